"""What the front doors ask of a fitted estimator, so that they need not know how it keeps it."""

import numpy as np
from scipy.special import ndtri
from torch import Tensor

from hck.estimators.base import HCKEstimator
from hck.estimators.kernel_pca import HCKKernelPCA
from hck.estimators.process_classifier import HCKGaussianProcessClassifier
from hck.estimators.process_learning import ProcessLearning
from hck.estimators.process_prediction import ProcessPrediction
from hck.estimators.ridge import RidgeEstimator
from hck.preparation.arrays import PointsLike
from hck.preparation.columns import Columns


def check_new(model: HCKEstimator, X: PointsLike) -> PointsLike:
    """New points as the model takes them, or an error: an array, a CSR matrix, a tensor, or objects."""
    return model._validate_new(X)


def leaves_of(model: HCKEstimator, X: PointsLike) -> Tensor:
    """The number of the leaf of each new point, in the first tree: shape (n,)."""
    return model.tree_.route(model._placed(model._validate_new(X)))


def n_training_points(model: HCKEstimator) -> int:
    """How many points the model was fitted to; those of weight 0 do not count."""
    if model.trees_:
        return model.tree_.n_points
    if isinstance(model, HCKKernelPCA):
        return len(model.eigenvectors_)
    if isinstance(model, ProcessLearning):
        several = isinstance(model, HCKGaussianProcessClassifier)
        posterior = model.posteriors_[0] if several else model.posterior_
        return len(posterior.members[0].y)
    return len(model._used)


def columns_of(model: HCKEstimator) -> Columns | None:
    """How the columns of a table or an array became features, if they were not all taken as they were."""
    return getattr(model, "_columns_in", None)


def categories_of(model: HCKEstimator) -> list[int]:
    """Positions of the columns of a table that are categories."""
    columns = columns_of(model)
    return [] if columns is None else columns.categories


def scaling_kind(model: RidgeEstimator) -> str | None:
    """How features were scaled: "standard", with heavy tails drawn in or as they are, "minmax" or not."""
    kind = model._scale_kind()
    return kind if model._scaling.bend is None else f"{kind}, heavy tails drawn in"


def trend_of(model: ProcessLearning) -> str:
    """The mean function: what it is called."""
    kind = model._trend.kind
    return kind if isinstance(kind, str) else "a function"


def has_left_out(model: HCKEstimator) -> bool:
    """Whether there are predictions of training points by all others; those of processes always are."""
    return not isinstance(model, RidgeEstimator) or model._left_out is not None


def has_intervals(model: RidgeEstimator, level: float) -> bool:
    """Whether intervals of a level are known, and enough training points are there for them."""
    errors = model._errors()
    return errors is not None and errors.reaches(level)


def reach_of(model: ProcessPrediction, level: float) -> np.ndarray:
    """How many standard deviations intervals of a process reach to both sides.

    Where the noise of new observations is not known, those of the function: as many as a Gaussian's.
    """
    return ndtri((1 + level) / 2) if np.ndim(model.noise_) else model._reach(level)


def learned_parameters(model: ProcessLearning) -> dict[str, np.ndarray]:
    """By name, the logarithms of what a Gaussian process has learned."""
    return model._space.split(model.theta_)


def expected_failed_checks(model: HCKEstimator) -> dict[str, str]:
    """By name, those of scikit-learn's checks that need not hold, and why: for `check_estimator`.

    Parameters
    ----------
    model : HCKEstimator
        Fitted or not.

    Examples
    --------
    >>> from sklearn.utils.estimator_checks import check_estimator
    >>> from hck import HCKRegressor
    >>> from hck.estimators.inspection import expected_failed_checks
    >>> model = HCKRegressor()
    >>> check_estimator(model, expected_failed_checks=expected_failed_checks(model))  # doctest: +SKIP
    """
    if not isinstance(model, RidgeEstimator):
        return {}
    why = "repeated points make another tree than weights do, and predict each other when one is left out"
    found = {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in ("dense", "sparse")}
    if model.loss not in ("squared", "auto"):
        found["check_fit_score_takes_y"] = "`partial_fit` is for loss='squared' alone"
    return found
