"""A tree in memory whose branches are worked on apart, so that not all of their factors are there at once."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from torch import Tensor

from hck.backend.caches import cached_property
from hck.backend.parallel import for_each, parallel_map
from hck.backend.steps import Inbox
from hck.hierarchy.blueprint import Blueprint
from hck.hierarchy.factor import Factor
from hck.hierarchy.layout import CutTree, Layout
from hck.hierarchy.smooth import Weights, smooth_down


@dataclass(eq=False)
class InMemory:
    """The branches of one tree, in bundles: a `Store` that solves (K_h + noise) w = b.

    On a CPU as many bundles are worked on at a time as it has cores; on a GPU one after another.
    """

    blueprint: Blueprint
    noise: Tensor  # (n + 1,), in the tree's order, with a zero at the end
    b: Tensor  # (n + 1, columns), likewise
    cut: CutTree
    kept: int  # bundles that stay factored; the others are factored again on the way down
    weights: Weights  # to be filled; the weights of landmarks, g, take the place of what leaves hear
    _factors: dict[int, Factor] = field(default_factory=dict)
    _bundles: dict[int, Blueprint] = field(default_factory=dict)

    @cached_property
    def trunk(self) -> Blueprint:
        return self._part(self.cut.trunk)

    def bundle(self, k: int) -> Blueprint:
        if k not in self._bundles:
            self._bundles[k] = self._part(self.cut.bundle(k))
        return self._bundles[k]

    def _part(self, layout: Layout) -> Blueprint:
        return replace(self.blueprint.part(layout), verbose=False)  # progress is that of branches

    def above(self, k: int) -> Tensor:
        """The nodes that a bundle hangs from, counted within the lowest level of the trunk."""
        return self.bundle(k).layout.above - self.trunk.layout.levels[-1][0]

    def up(self) -> Iterator[tuple[int, Iterator[Inbox]]]:
        device, every = self.blueprint.points.device, range(self.cut.n_bundles)
        yield 0, parallel_map(self._up, every, device, "Branches: up", self.blueprint.verbose)

    def _up(self, k: int) -> Inbox:
        factor = Factor(self.bundle(k), self.noise, self.b)
        if k < self.kept:
            self._factors[k] = factor
        return factor.message

    def solve(self, tree: int, messages: Iterable[Inbox]) -> Tensor:
        """Returns the states of the lowest nodes of the trunk."""
        first, stop = self.trunk.layout.levels[-1]
        received = Inbox.empty(stop - first, self.trunk.rank, self.b)
        for k, message in enumerate(messages):
            received.pour(self.above(k), message)
        factor = Factor(self.trunk, self.noise, self.b, received)
        states = smooth_down(factor, factor.filtered, self.weights)[-1]
        del factor  # before more is computed
        self.trunk.put_landmark_weights(self.weights.ambient)
        return states

    def down(self, tree: int, replies: Tensor) -> None:
        def work(k: int) -> None:
            factor = self._factors.pop(k, None) or Factor(self.bundle(k), self.noise, self.b)
            smooth_down(factor, factor.filtered, self.weights, replies[self.above(k)])
            del factor  # before more is computed
            self.bundle(k).put_landmark_weights(self.weights.ambient)

        device, every = self.blueprint.points.device, range(self.cut.n_bundles)
        for_each(work, every, device, "Branches: down", self.blueprint.verbose)

    def finish(self) -> None:
        """Nothing is left to wait for."""
