"""Intervals around predictions, as wide as those of left-out training points ask for."""

from typing import TYPE_CHECKING

import numpy as np
import torch

from hck.conformal import LeftOutErrors, LocalScale, check_level
from hck.estimators.parameters import Predictions
from hck.preparation.arrays import PointsLike

if TYPE_CHECKING:
    from hck.estimators.ridge import RidgeEstimator

_OLD = (
    "the model has no errors of left-out points, since it was saved by an earlier version: fit it again for "
    "intervals and sets"
)


def errors_of(model: "RidgeEstimator") -> LeftOutErrors:
    """Those of a fitted model; ValueError if there are none."""
    model._left_out_values()  # or an error
    known = model._errors()
    if known is None:
        raise ValueError(_OLD)
    return known


def half_widths(model: "RidgeEstimator", X: PointsLike, level: float) -> Predictions:
    """Half the widths of intervals at new points: shape (points, targets), or (targets,) if all are alike."""
    check_level(level)
    errors, forest = errors_of(model), getattr(model, "forest_", None)
    local = None if forest is None else LocalScale.of(forest, errors)
    if local is None or not errors.reaches(level):
        half = errors.threshold(level)
        return torch.from_numpy(half).to(X.device) if isinstance(X, torch.Tensor) else half
    X = model._validate_new(X)
    scale = np.concatenate([local(model._placed(part)) for part in model._parts(X)])
    return model._out(X, torch.from_numpy(scale * errors.threshold(level, local)))


def around(values: Predictions, half: Predictions) -> tuple[Predictions, Predictions, Predictions]:
    """Values with both ends of their intervals, as numbers of the same type."""
    ends = values - half, values + half
    if isinstance(values, torch.Tensor):
        return values, *(end.to(values.dtype) for end in ends)
    return values, *(end.astype(values.dtype) for end in ends)


def regression_errors(
    observed: np.ndarray, left_out: np.ndarray, weight: np.ndarray | None, held: np.ndarray | None = None
) -> LeftOutErrors:
    """Of targets (n, targets) that all others predict."""
    return LeftOutErrors(observed - left_out, weight, held)


def classification_errors(
    probabilities: np.ndarray, code: np.ndarray, weight: np.ndarray | None
) -> LeftOutErrors:
    """Of classes, given the probabilities (n, classes) that all others give them."""
    return LeftOutErrors(1 - np.take_along_axis(probabilities, code[:, None], 1), weight)
