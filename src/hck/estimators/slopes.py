"""Gradients of predictions by the columns of X, in the units that X has."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from hck.errors import NoGradientError
from hck.estimators.base import HCKEstimator
from hck.estimators.parameters import Predictions
from hck.points import DensePoints
from hck.preparation.arrays import PointsLike

if TYPE_CHECKING:
    from hck.estimators.ridge import RidgeEstimator


def check_slopes(model: HCKEstimator) -> None:
    """Raise NoGradientError unless a fitted model can be differentiated by points."""
    if not isinstance(model._trained_points(), DensePoints):
        kind = "objects" if model._objects else "a sparse matrix"
        raise NoGradientError(
            f"gradients are there for dense X alone, but the model was fitted to {kind}: "
            + ("objects cannot be moved a little" if model._objects else "fit it to X.toarray()")
        )


def forest_slopes(model: "RidgeEstimator", X: PointsLike) -> Predictions:
    """The gradients of a forest's functions by the columns of X: shape (points, columns of X, columns)."""
    X = model._validate_new(X)
    check_slopes(model)
    verbose = bool(model.verbose)
    placed = [model._placed(part) for part in model._parts(X)]
    slopes = [model._scaling.back(model.forest_.slope(each, verbose), each.x) for each in placed]
    return model._out(X, by_columns(model, torch.cat(slopes)))


def chained(slopes: Predictions, values: Predictions, observable: Callable[[Tensor], Tensor]) -> Predictions:
    """Gradients (points, columns of X, columns) of what is made of values (points, columns), row by row."""
    known, at = (each if isinstance(each, Tensor) else torch.from_numpy(each) for each in (slopes, values))
    with torch.enable_grad():
        leaves = at.detach().clone().requires_grad_()
        made = observable(leaves).sum(0)
    rows = [torch.autograd.grad(each, leaves, retain_graph=True)[0] for each in made]
    found = torch.einsum("pdk,jpk->pdj", known, torch.stack(rows).to(known))
    return found if isinstance(slopes, Tensor) else found.numpy()


def by_columns(model: HCKEstimator, slopes: Tensor) -> Tensor:
    """Gradients (points, d, …) by features as those by the columns of X: NaN for categories."""
    known = model._columns_in
    if known is None:
        return slopes
    columns: int = model.n_features_in_
    numbers, features = known.numbers(columns)
    out = slopes.new_full((len(slopes), columns, *slopes.shape[2:]), torch.nan)
    out[:, numbers] = slopes[:, features]
    return out
