"""A tree in memory whose branches are worked on apart, so that not all of their factors are there at once."""

from collections.abc import Iterable, Iterator
from functools import cached_property

import torch
from torch import Tensor

from hck.backend.parallel import for_each, parallel_map
from hck.backend.steps import Inbox
from hck.hierarchy.blueprint import Blueprint
from hck.hierarchy.extend import TreePredictor, extension, landmark_weights
from hck.hierarchy.factor import Factor
from hck.hierarchy.layout import Cut
from hck.hierarchy.smooth import smooth_down


class Equations:
    """(K_h + noise) w = b, and room for the solution.

    Parameters
    ----------
    blueprint : Blueprint
    noise : float or Tensor of shape (n,)
    b : Tensor of shape (n,) or (n, columns)

    Attributes
    ----------
    b, w : Tensor of shape (n + 1, columns)
        In the tree's order, with a zero row at the end.
    ambient : Tensor of shape (leaves, r, columns)
        What the leaves hear, d; then the weights of landmarks, g.
    """

    def __init__(self, blueprint: Blueprint, noise: float | Tensor, b: Tensor) -> None:
        self.blueprint, self.noise = blueprint, blueprint.pad_noise(noise)
        self.b = blueprint.layout.pad(b, self.noise)
        self.w = torch.zeros_like(self.b)
        self.ambient = self.b.new_empty(blueprint.layout.tree.n_leaves, blueprint.rank, self.b.shape[1])

    def factor(self, part: Blueprint, received: Inbox | None = None, show: bool = False) -> Factor:
        """Up a part of the tree, with the right-hand sides."""
        return Factor(part, self.noise, self.blueprint.budget, self.b, received, show)

    def smooth(self, factor: Factor, above: Tensor | None = None) -> Tensor:
        """Down a part of the tree; returns the states ẑ of its lowest nodes."""
        return smooth_down(factor, factor.filtered, self.w, self.ambient, above)[-1]

    def solve(self) -> None:
        """Up and down the whole tree, with all factors in memory."""
        self.smooth(self.factor(self.blueprint, show=self.blueprint.verbose))
        landmark_weights(self.blueprint, self.ambient)  # now that the factor is gone

    def extension(self) -> TreePredictor:
        """x ↦ wᵀ k_h(X, x), of the solution."""
        self.w[-1] = 0
        return extension(self.blueprint, self.w, self.ambient)


class InMemory:
    """The branches of one tree, in bundles: a `Store`.

    On a CPU as many bundles are worked on at a time as it has cores; on a GPU one after another.

    Parameters
    ----------
    equations : Equations
    cut : Cut
    kept : int
        How many bundles stay factored; the others are factored again on the way down.
    """

    def __init__(self, equations: Equations, cut: Cut, kept: int) -> None:
        self.equations, self.cut, self.kept = equations, cut, kept
        self.factors: dict[int, Factor] = {}
        self._parts: dict[int, Blueprint] = {}

    @cached_property
    def trunk(self) -> Blueprint:
        return self.equations.blueprint.part(self.cut.trunk)

    def bundle(self, k: int) -> Blueprint:
        if k not in self._parts:
            self._parts[k] = self.equations.blueprint.part(self.cut.bundle(k))
        return self._parts[k]

    def above(self, k: int) -> Tensor:
        """The nodes that a bundle hangs from, counted within the lowest level of the trunk."""
        return self.bundle(k).layout.above - self.trunk.layout.levels[-1][0]

    def up(self) -> Iterator[tuple[int, Iterator[Inbox]]]:
        blueprint = self.equations.blueprint
        device, every = blueprint.points.device, range(self.cut.n_bundles)
        yield 0, parallel_map(self._up, every, device, "Branches: up", blueprint.verbose)

    def _up(self, k: int) -> Inbox:
        factor = self.equations.factor(self.bundle(k))
        if k < self.kept:
            self.factors[k] = factor
        return factor.message

    def solve(self, tree: int, messages: Iterable[Inbox]) -> Tensor:
        """Returns the states of the lowest nodes of the trunk."""
        first, stop = self.trunk.layout.levels[-1]
        received = Inbox.empty(stop - first, self.trunk.rank, self.equations.b)
        for k, message in enumerate(messages):
            received.pour(self.above(k), message)
        states = self.equations.smooth(self.equations.factor(self.trunk, received))
        landmark_weights(self.trunk, self.equations.ambient)
        return states

    def down(self, tree: int, replies: Tensor) -> None:
        def work(k: int) -> None:
            factor = self.factors.pop(k, None) or self.equations.factor(self.bundle(k))
            self.equations.smooth(factor, replies[self.above(k)])
            del factor  # before more is computed
            landmark_weights(self.bundle(k), self.equations.ambient)

        blueprint = self.equations.blueprint
        every = range(self.cut.n_bundles)
        for_each(work, every, blueprint.points.device, "Branches: down", blueprint.verbose)

    def finish(self) -> None:
        """Nothing is left to wait for."""
