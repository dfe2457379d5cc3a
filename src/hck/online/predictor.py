"""The function that a version predicts with."""

from dataclasses import dataclass

import torch
from torch import Tensor

from hck.backend.caches import cached_property
from hck.hierarchy import TreePredictor
from hck.online.node import leaves_below
from hck.online.read import leaf_weights, predict
from hck.online.state import State
from hck.partition import Tree
from hck.points import Points, PointsLike, as_points_like


@dataclass(frozen=True, eq=False)
class OnlinePredictor:
    """x ↦ k_h(x, X) (K_h + noise)⁻¹ b · change, where the change is of shape (k, columns), or nothing.

    Examples
    --------
    >>> import torch
    >>> from hck.hierarchy import Blueprint
    >>> from hck.online import Habit, OnlinePredictor, State
    >>> from hck.settings import Settings
    >>> x = torch.linspace(0, 1, 100, dtype=torch.float64)[:, None]
    >>> blueprint = Blueprint.of("gaussian", x, Settings(rank=8), generator=0)
    >>> habit = Habit("random_projection", "uniform", leaf_size=16)
    >>> state = State.of(blueprint, 8, habit, torch.sin(6 * x), torch.full((100,), 0.1))
    >>> OnlinePredictor(state)([[0.25], [0.5]]).shape
    torch.Size([2, 1])
    """

    state: State
    change: Tensor | None = None

    def __call__(self, x: PointsLike, verbose: bool = False) -> Tensor:
        """The values at new points: shape (points, columns)."""
        values = predict(self.state, as_points_like(x, self.points))  # type: ignore[arg-type]
        return values if self.change is None else (values.double() @ self.change.to(values.device)).to(values)

    @property
    def points(self) -> Points:
        """Of the kind that it takes."""
        return self.state.root.frame.landmarks

    @property
    def columns(self) -> int:
        """How many values there are at a point."""
        return self.state.columns if self.change is None else self.change.shape[1]

    @property
    def tree(self) -> Tree:
        """Over all points, in the order in which they came."""
        return self.state.harvested[0].layout.tree

    @property
    def nbytes(self) -> int:
        """Memory that the weights of all leaves take, in bytes."""
        n, leaves = len(self.state), len(self.state.paths)
        return (n + leaves * self.state.workshop.rank) * self.columns * self.points.dtype.itemsize

    def slope(self, x: PointsLike, verbose: bool = False) -> Tensor:
        """The gradients at new points: shape (points, d, columns)."""
        return self._settled.slope(x, verbose)

    @cached_property
    def _settled(self) -> TreePredictor:
        return self.settle()

    @torch.no_grad()
    def settle(self) -> TreePredictor:
        """The same function as one of a tree that does not change, which can be saved."""
        state, blueprint = self.state, self.state.harvested[0]
        tree, every = blueprint.layout.tree, dict(leaves_below(state.root))
        found = leaf_weights(state, list(every))
        # leaves are in the order of their points
        own = torch.cat([found[path][: leaf.size] for path, leaf in every.items()])
        by_start = tree.start[tree.leaves].argsort()
        heard = torch.stack([found[path][leaf.size :] for path, leaf in every.items()])
        far = torch.empty_like(heard)
        far[by_start] = heard
        far = far[:, : blueprint.rank].contiguous()
        if self.change is not None:
            own, far = ((part.double() @ self.change.to(part.device)).to(part) for part in (own, far))
        parts = blueprint.kernel, tree, blueprint.points, blueprint.landmarks
        return TreePredictor(*parts, own, far, blueprint.budget)
