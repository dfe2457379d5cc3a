"""The steps of training by ridge regression: weigh, scale, (select,) train each tree, blend.

What is selected between scaling and training is the business of `hck.selection`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import _check_sample_weight
from torch import Tensor

from hck.approximations import Approximation, Predictor
from hck.estimators.parameters import Weights
from hck.hierarchy import TreePredictor, share_points
from hck.hierarchy.extremes import extremes, warn_of_rounding
from hck.kernels.inputs import real_array, refuse_times
from hck.losses import Certificate
from hck.losses import Loss as PointLoss
from hck.points import Points
from hck.preparation.arrays import to_host
from hck.preparation.scaling import Scaling, other_units
from hck.preparation.ties import Ties
from hck.selection import Observations, Selection
from hck.selection.candidate import Given
from hck.selection.contest import Contest
from hck.selection.glance import is_better
from hck.selection.isotropic import Units
from hck.selection.loss import InUnits, Loss

_LARGEST, _LEAST = 1e151, 1e-145  # targets, of which squares are summed
_LEAST_SINGLE = 1e-30  # in float32, of which digits would be lost
_WEIGHTS = 1e-100, 1e100  # the largest weight


@dataclass(frozen=True)
class Weighed:
    """Targets y (n, columns) without their (weighted) mean, the intercept (columns,), and weights (n,).

    The rows are those of training points that count: all but those of weight 0.
    """

    rows: np.ndarray
    y: Tensor
    intercept: Tensor
    weight: Tensor | None

    @property
    def spread(self) -> Tensor:
        """The standard deviation of each column; 1 for constant ones."""
        spread = self.y.std(0, correction=0)
        return spread.where(spread > 0, 1.0)

    def noise(self, of_mean_weight: bool) -> Tensor | None:
        """The noise of each point over alpha, which is the noise of weight 1, or of the mean weight."""
        if self.weight is None:
            return None
        return (self.weight.mean() if of_mean_weight else 1.0) / self.weight

    def observations(self, points: Points, noise: Tensor | None) -> Observations:
        """What parameters are chosen by: columns of standard deviation 1."""
        return Observations(points, self.y / self.spread, noise=noise)

    @property
    def weights(self) -> np.ndarray | None:
        """As an array."""
        return None if self.weight is None else self.weight.numpy()

    def loss(self, kind: type[Loss], observed: np.ndarray) -> Loss:
        """The loss of predictions of these observations, from what was observed at all training points."""
        inner = kind(observed[self.rows], self.weights)
        return InUnits(inner, self.spread.numpy(), self.intercept.numpy())


def check_sample_weight(weight: Weights, n: int) -> Tensor | None:
    """Weights (n,), none negative and not all 0, or an error."""
    if weight is None:
        return None
    array: Any = to_host(weight)
    refuse_times(array, "sample_weight")
    if np.asarray(array).dtype.kind in "OUS":
        array = real_array(array, "sample_weight")
    array = _check_sample_weight(array, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True)
    if not array.any():
        raise ValueError("all sample weights are zero: at least one point must count")
    if not _WEIGHTS[0] <= array.max() <= _WEIGHTS[1]:
        size = "large" if array.max() > 1 else "small"
        raise ValueError(
            f"sample weights are too {size}: the largest is {array.max():.2g}. Divide them by their largest, "
            "and alpha, if it is given, too"
        )
    return torch.tensor(array, dtype=torch.float64, device="cpu")


def weigh(targets: np.ndarray, weight: Tensor | None, dtype: torch.dtype = torch.float64) -> Weighed:
    """Centre the targets (n, columns), to be worked on as `dtype`; what counts for nothing is not there."""
    y, rows = torch.tensor(targets, dtype=torch.float64, device="cpu"), np.arange(len(targets))
    if weight is not None and (weight == 0).any():
        kept = weight.nonzero().squeeze(1)
        y, weight, rows = y[kept], weight[kept], kept.numpy()
    check_size(y, _LEAST_SINGLE if dtype == torch.float32 else _LEAST)
    intercept = y.mean(0) if weight is None else weight @ y / weight.sum()
    return Weighed(rows, y - intercept, intercept, weight)


def check_size(y: np.ndarray | Tensor, least: float = 0.0, most: float = _LARGEST) -> None:
    """Raise ValueError for targets of which squares overflow, or underflow unless all are 0."""
    largest = max(float(y.max()), -float(y.min()))
    if not largest <= most:
        raise ValueError(
            f"y is too large: got {largest:.2g}, where squares of more than {most:.0e} overflow. Scale y"
            + (", or use dtype='float64'" if most < 1e38 else "")
        )
    if 0 < largest < least:
        raise ValueError(
            f"y is too small: its largest value is {largest:.2g}, and below {least:.0e} digits are lost. "
            "Scale y"
        )


@dataclass(frozen=True)
class ScaledPoints:
    """Scaled points, how they were, other units in which features can be compared, and which are tied."""

    points: Points
    scaling: Scaling
    units: Units
    ties: Ties | None


def scale(
    points: Points, kind: str | None, other: bool, dtype: torch.dtype, ties: Ties | None = None
) -> ScaledPoints:  # fmt: skip
    """Bring features to a common scale, "standard", "minmax" or None; maybe with other units to be tried."""
    scaling = Scaling.of(kind, points, ties)
    units = other_units(scaling if other else Scaling(), points)
    return ScaledPoints(scaling(points, dtype), scaling, units, ties and ties.scaled(scaling.factor))


def draw_in(scaled: ScaledPoints, points: Points, given: Given, contest: Contest) -> ScaledPoints:
    """Heavy tails of features drawn in, if left-out observations are predicted better then.

    The points are those that were scaled, as they came.
    """
    bent = scaled.scaling.bent(points, scaled.ties)
    dtype = scaled.points.dtype
    if bent is None or not is_better(given, contest, lambda rows: bent(points.take(rows), dtype)):
        return scaled
    return ScaledPoints(bent(points, dtype), bent, other_units(bent, points), scaled.ties)


@dataclass(frozen=True)
class Solved:
    """What one tree, or what else stands in for the kernel, makes of the equations."""

    predictor: Predictor
    left_out: Tensor | None  # (n, columns): what it would say of points without them
    certificates: list[Certificate] = field(default_factory=list)  # of losses that take steps
    fitted: Tensor | None = None  # (n, columns), of these: at the points themselves


Solve = Callable[[Approximation], Solved]
Trees = Callable[[Solve, list[int]], list[Solved]]  # does some work for a tree of each seed


@dataclass(frozen=True)
class Equations:
    """(K̃ + α diag(noise)) w = y (n, columns), for any K̃ that stands in for the kernel matrix.

    No noise (n,) means 1. With `left_out`, each point is predicted from all others, too.
    """

    points: Points
    y: Tensor
    noise: Tensor | None
    left_out: bool
    losses: ClassVar[list[PointLoss]] = []  # beyond the squared one

    def train(self, trees: Trees, alpha: float, seeds: list[int]) -> list[Solved]:
        """For each tree."""
        return trees(partial(self.solve, alpha=alpha), seeds)

    def solve(self, approximation: Approximation, alpha: float) -> Solved:
        """For one tree."""
        noise = alpha if self.noise is None else alpha * self.noise
        found, others = approximation.ridge(noise, self.y, self.left_out)
        found = share_points(found, self.points) if isinstance(found, TreePredictor) else found
        warn_of_rounding([extremes(found, self.points, self.y)])
        return Solved(found, None if others is None else others.double().cpu())


@dataclass(frozen=True)
class Ensemble:
    """Functions whose mean, weighted or not, predicts.

    `left_out`, (n, columns), is what it predicts of left-out observations, without the intercept.
    """

    members: list[Predictor]
    left_out: np.ndarray | None = None
    weights: list[float] | None = None
    certificates: list[Certificate] = field(default_factory=list)
    fitted: np.ndarray | None = None  # (n, columns), where certificates are

    @classmethod
    def of(cls, solved: Sequence[Solved]) -> "Ensemble":
        """A mean of all."""
        others, fitted = (_mean([getattr(each, name) for each in solved]) for name in ("left_out", "fitted"))
        certificates = [certificate for each in solved for certificate in each.certificates]
        return cls([each.predictor for each in solved], others, None, certificates, fitted)


def _mean(values: list[Tensor | None]) -> np.ndarray | None:
    known = [each for each in values if each is not None]
    return torch.stack(known).mean(0).numpy() if known else None


def blend(trained: list[Ensemble], weights: list[float]) -> Ensemble:
    """A mean of what was trained with several candidates, by their weights."""
    if len(trained) == 1:
        return trained[0]
    pairs = list(zip(trained, weights, strict=True))
    known = [share * each.left_out for each, share in pairs if each.left_out is not None]
    return Ensemble(
        [member for each in trained for member in each.members],
        np.sum(known, axis=0) if len(known) == len(trained) else None,
        [share / len(each.members) for each, share in pairs for _ in each.members],
    )


@dataclass(frozen=True)
class Fitted:
    """All that a fit has found, to be kept once nothing can fail any more."""

    trained: Ensemble
    weighed: Weighed
    scaling: Scaling
    selection: Selection
    losses: list[PointLoss] = field(default_factory=list)  # none: least squares

    @property
    def left_out(self) -> np.ndarray | None:
        """What all others predict of each point that counts: shape (n, columns)."""
        found = self.trained.left_out
        return None if found is None else found + self.weighed.intercept.numpy()
