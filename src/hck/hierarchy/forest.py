"""Several trees over the same points, whose functions are averaged."""

from dataclasses import dataclass, replace
from typing import Any, Protocol

from torch import Tensor

from hck.backend.blocks import Blocks
from hck.hierarchy.extend import TreePredictor
from hck.partition import Landmarks
from hck.points import Points


class Predictor(Protocol):
    """x ↦ k̃(x, X) w for weights w and some kernel k̃, at any points.

    Attributes
    ----------
    points : Points
        Of the kind that it takes.
    nbytes : int
        Memory held, in bytes.
    """

    @property
    def points(self) -> Points: ...

    def __call__(self, x: Any, verbose: bool = False) -> Tensor:
        """The values at new points: shape (points, columns)."""

    @property
    def nbytes(self) -> int: ...


@dataclass
class Forest:
    """x ↦ the mean of functions that were trained with different trees.

    Attributes
    ----------
    members : list of Predictor
    weights : list of float or None
        Of a weighted mean; 1 in all.
    """

    members: list[Predictor]
    weights: list[float] | None = None

    def __call__(self, x: Any, verbose: bool = False) -> Tensor:
        """The mean at each point of `x`: shape (points, columns)."""
        if self.weights is None:
            total = self.members[0](x, verbose)
            for member in self.members[1:]:
                total += member(x, verbose)
            return total.div_(len(self.members))
        total = self.members[0](x, verbose).mul_(self.weights[0])
        for member, weight in zip(self.members[1:], self.weights[1:], strict=True):
            total.add_(member(x, verbose), alpha=weight)
        return total

    @property
    def nbytes(self) -> int:
        """Memory held by the weights, in bytes."""
        return sum(member.nbytes for member in self.members)


def share_points(predictor: TreePredictor, points: Points) -> TreePredictor:
    """The same function, which refers to points in their original order instead of to a copy of its own.

    Parameters
    ----------
    points : Points
        The training points, in the order in which they came.
    """
    order, landmarks = predictor.tree.order, predictor.landmarks
    if landmarks.points is predictor.points:
        blocks = landmarks.blocks
        landmarks = Landmarks(points, Blocks(order[blocks.safe].where(blocks.mask, -1), blocks.full))
    return replace(predictor, points=points, landmarks=landmarks, order=order)
