"""Several trees over the same points, whose functions are averaged."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from torch import Tensor

from hck.backend.blocks import Blocks
from hck.backend.checks import require
from hck.backend.interrupts import interruptible_unless
from hck.hierarchy.predictor import TreePredictor
from hck.partition import Landmarks
from hck.points import Points, PointsLike, check_alike

_MOST = 1e6  # of weights from files


class Predictor(Protocol):
    """x ↦ k̃(x, X) w for weights w and some kernel k̃, at any points.

    Examples
    --------
    >>> import torch
    >>> from hck.approximations import make_approximation
    >>> x = torch.linspace(0, 1, 100, dtype=torch.float64)[:, None]
    >>> made = make_approximation("hierarchical", "matern52", x, rank=10, generator=0)
    >>> predictor, _ = made.ridge(1e-3, torch.sin(x[:, 0]))
    >>> predictor([[0.5]]).round(decimals=2)
    tensor([[0.4800]], dtype=torch.float64)
    >>> predictor.slope([[0.5]]).shape
    torch.Size([1, 1, 1])
    """

    def __call__(self, x: PointsLike, verbose: bool = False) -> Tensor:
        """The values at new points: shape (points, columns)."""

    def slope(self, x: PointsLike, verbose: bool = False) -> Tensor:
        """Their gradients by x: shape (points, d, columns)."""

    @property
    def points(self) -> Points:
        """Of the kind that it takes."""

    @property
    def columns(self) -> int:
        """How many values there are at a point."""

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""


def _is_light(forest: "Forest", x: PointsLike, verbose: bool = False) -> bool:
    return isinstance(x, Points) and len(x) < 10


@dataclass
class Forest:
    """x ↦ the mean of functions that were trained with different trees.

    Examples
    --------
    >>> import torch
    >>> from hck.approximations import make_approximation
    >>> from hck.hierarchy import Forest
    >>> x = torch.linspace(0, 1, 100, dtype=torch.float64)[:, None]
    >>> trees = [make_approximation("hierarchical", "matern52", x, rank=10, generator=k) for k in range(2)]
    >>> forest = Forest([tree.ridge(1e-3, torch.sin(x[:, 0]))[0] for tree in trees])
    >>> bool((forest(x) == (forest.members[0](x) + forest.members[1](x)) / 2).all())
    True
    """

    members: list[Predictor]
    weights: list[float] | None = None  # of a weighted mean; 1 in all

    def validate(self) -> None:
        """Raise ValueError unless the members are alike, with a weight for each of them."""
        require(len(self.members) > 0, "members must not be empty")
        require(len({member.columns for member in self.members}) == 1, "members must have as many columns")
        for member in self.members[1:]:
            check_alike(member.points, self.members[0].points)
        if self.weights is not None:
            require(len(self.weights) == len(self.members), "weights must be one for each member")
            require(all(abs(weight) < _MOST for weight in self.weights), "weights must be finite and small")

    @property
    def columns(self) -> int:
        """How many values there are at a point."""
        return self.members[0].columns

    @interruptible_unless(_is_light)
    def __call__(self, x: PointsLike, verbose: bool = False) -> Tensor:
        """The mean at each point of `x`: shape (points, columns)."""
        return self._mean([partial(member, x, verbose) for member in self.members])

    @interruptible_unless(_is_light)
    def slope(self, x: PointsLike, verbose: bool = False) -> Tensor:
        """The gradient of the mean at each point of `x`: shape (points, d, columns)."""
        return self._mean([partial(member.slope, x, verbose) for member in self.members])

    def _mean(self, parts: list[Callable[[], Tensor]]) -> Tensor:
        """Of what members say, one after another, so that two of these are there at a time."""
        weights = [1.0] * len(self.members) if self.weights is None else self.weights
        total = parts[0]().mul_(weights[0])
        for part, weight in zip(parts[1:], weights[1:], strict=True):
            total.add_(part(), alpha=weight)
        return total.div_(len(self.members)) if self.weights is None else total

    @property
    def nbytes(self) -> int:
        """Memory held by the weights, in bytes."""
        return sum(member.nbytes for member in self.members)


def share_points(predictor: TreePredictor, points: Points) -> TreePredictor:
    """The same function, which refers to the training points as they came instead of to a copy of its own.

    Parameters
    ----------
    predictor : TreePredictor
    points : Points
        The training points, in their original order.

    Examples
    --------
    >>> import torch
    >>> from hck.hierarchy import HierarchicalKernel, share_points
    >>> from hck.points import as_points
    >>> points = as_points(torch.linspace(0, 1, 100, dtype=torch.float64)[:, None])
    >>> predictor = HierarchicalKernel.build("gaussian", points, rank=10, generator=0).extend(torch.ones(100))
    >>> shared = share_points(predictor, points)
    >>> shared.points is points, bool((shared([[0.5]]) == predictor([[0.5]])).all())
    (True, True)
    """
    order, landmarks = predictor.tree.order, predictor.landmarks
    if landmarks.points is predictor.points:
        blocks = landmarks.blocks
        landmarks = Landmarks(points, Blocks(order[blocks.safe].where(blocks.mask, -1), blocks.full))
    return replace(predictor, points=points, landmarks=landmarks, order=order)
