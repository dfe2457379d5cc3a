"""Kernel ridge regression, and regression by other losses."""

from collections.abc import Sequence
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin, _fit_context
from sklearn.metrics import d2_pinball_score
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval
from torch import Tensor

from hck.approximations import Iterative
from hck.backend.checks import require
from hck.conformal import LeftOutErrors
from hck.estimators.base import device_of
from hck.estimators.intervals import around, half_widths, regression_errors
from hck.estimators.online_ridge import OnlineRidge
from hck.estimators.parameters import (
    KernelLike,
    LandmarksLike,
    PartitionLike,
    Predictions,
    Weights,
    assign,
    described,
)
from hck.estimators.penalised import (
    is_squared,
    loss_of_numbers,
    problems_of_numbers,
    refuse_zero,
    stand_in,
)
from hck.estimators.promise import keeps_time
from hck.estimators.ridge import SAVED
from hck.estimators.slopes import chained, forest_slopes
from hck.estimators.updating import check_targets, check_updatable, still_held
from hck.losses import Loss, Quantile
from hck.persistence.classes import saved
from hck.preparation.arrays import PointsLike, TargetsLike, to_host
from hck.preparation.coding import as_targets


@saved(*SAVED, "_one_target", device=device_of)
@described
class HCKRegressor(RegressorMixin, OnlineRidge):
    """Kernel ridge regression with a hierarchically compositional kernel.

    Trains in O(n r²) time and O(n r) memory, where exact kernel ridge regression takes O(n³) and O(n²).
    With a single leaf (``rank`` or ``leaf_size`` at least n) it is exact kernel ridge regression. Targets
    are centred; several targets share one factorization. Other losses than the squared one take a few
    factorizations for each target.

    Parameters
    ----------
    {ridge}
    loss : str or hck.losses.Loss, default="squared"
        What is minimised, beside the ridge: ``"squared"``, ½ (y − f)², for means; ``"absolute"``, for
        medians; ``"huber"``, for means that outliers do not move (``hck.losses.Huber(delta)``);
        ``"quantile"``; ``"poisson"``, for counts, ``"gamma"``, for positive amounts, and ``"tweedie"``, for
        amounts of which some are 0 (``hck.losses.Tweedie(power)``), of which f is the logarithm of the mean.
        With ``alpha="auto"`` the ridge is the one that suits the loss.
    quantile : float or list of float, default=0.5
        For ``loss="quantile"``: between 0 and 1. Of several, which must ascend, predictions have a column
        each, and are put into order where they would cross.

    Attributes
    ----------
    intercept_ : ndarray of shape (n_targets,)
        The (weighted) mean of the targets, or the constant of the least loss.
    {steps}
    crossing_ : float
        The share of training points where quantiles, if there are several, would cross.
    {residuals}
    {attributes}

    References
    ----------
    {paper}.

    Examples
    --------
    >>> import numpy as np
    >>> from hck import HCKRegressor
    >>> X = np.random.default_rng(0).uniform(size=(5000, 2))
    >>> y = np.sin(6 * X[:, 0]) + X[:, 1] ** 2
    >>> model = HCKRegressor(lengthscale=0.3, alpha=1e-3, rank=64, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.999
    True
    """

    _loss = "squared_error"
    _one_target: bool
    crossing_: float

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **OnlineRidge._parameter_constraints,
        "quantile": [Interval(Real, 0, 1, closed="neither"), "array-like"],
    }

    def __init__(
        self,
        kernel: KernelLike = "auto",
        *,
        lengthscale: ArrayLike | None = "auto",
        alpha: float | str = "auto",
        loss: str | Loss = "squared",
        quantile: float | Sequence[float] = 0.5,
        scale: str | None = "auto",
        fit_time: float | str = "balanced",
        leave_one_out: bool = True,
        approximation: str | Iterative = "hierarchical",
        n_trees: int | str = "auto",
        rank: int | str = "auto",
        leaf_size: int | None = None,
        partition: PartitionLike = "random_projection",
        landmarks: LandmarksLike = "uniform",
        jitter: float | None = None,
        device: str | torch.device | None = None,
        dtype: str = "float64",
        memory_budget: float | str | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        assign(self, locals())

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        require(not self._one_target or self.forest_.columns == 1, "_one_target, but there are several")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    @keeps_time
    def fit(self, X: PointsLike, y: TargetsLike, sample_weight: Weights = None) -> "HCKRegressor":
        """Train.

        Parameters
        ----------
        X : {array-like, sparse matrix, torch.Tensor} of shape (n_samples, n_features)
            Or, if the kernel is a function, a sequence of objects that it takes.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the losses: a point of weight 2 counts as if it were there twice.

        Returns
        -------
        self
        """
        given = X
        X, y = self._validate_training(X, y, multi_output=True, y_numeric=True)
        losses = loss_of_numbers(self.loss, self.quantile)
        observed = targets = y.reshape(len(y), -1)
        problems = None
        if not is_squared(losses):
            refuse_zero(self.alpha)
            problems = partial(problems_of_numbers, losses, observed)
            targets = stand_in(losses, observed, self._dtype())
        fitted = self._train(X, given, targets, sample_weight, targets, problems)
        self._keep(fitted)
        self._one_target = y.ndim == 1 and self.forest_.columns == 1
        values, weighed = fitted.trained.fitted, fitted.weighed
        several = _are_quantiles(fitted.losses)
        self.crossing_ = _crossing(values + self.intercept_) if several and values is not None else 0.0
        others = None if several or fitted.left_out is None else self._observable(fitted.left_out)
        self._left_out_errors = None
        if others is not None:
            held = fitted.selection.held
            self._left_out_errors = regression_errors(observed[weighed.rows], others, weighed.weights, held)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: PointsLike, y: TargetsLike, sample_weight: Weights = None) -> "HCKRegressor":
        """Take in more observations, without a refit; the first call is a fit.

        The result is that of a fit with all observations, where kernel, ridge, intercept, scaling and, except
        for leaves that grow too large, tree and landmarks are those that there are. An observation costs
        O(n₀² + r³ log(n/r)). See also `forget`, `update` and `drift_`.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKRegressor
        >>> X = np.random.default_rng(0).uniform(size=(3000, 2))
        >>> y = np.sin(6 * X[:, 0]) + X[:, 1] ** 2
        >>> model = HCKRegressor(lengthscale=0.3, alpha=1e-3, rank=64, random_state=0).fit(X[:2000], y[:2000])
        >>> model.partial_fit(X[2000:], y[2000:]).forget(keep=2500).tree_.n_points
        2500
        """
        check_updatable(self)
        if not hasattr(self, "trees_"):
            return self.fit(X, y, sample_weight)
        X, y = self._validate_training(X, y, reset=False, multi_output=True, y_numeric=True)
        self._add(X, self._centred(y.reshape(len(y), -1)), sample_weight)
        return self

    def _errors_of(
        self, targets: np.ndarray, left_out: np.ndarray, weight: np.ndarray | None
    ) -> LeftOutErrors:
        return regression_errors(targets, left_out, weight, still_held(self, self._online))

    def _right_sides(self, y: TargetsLike) -> Tensor:
        if np.size(y) == 0:
            return self._centred(np.zeros((0, len(self.intercept_))))
        y = check_targets(self, y)
        return self._centred(y.reshape(len(y), -1))

    def predict(self, X: PointsLike, interval: float | None = None) -> Predictions:
        """Predict targets, with intervals if asked for.

        Parameters
        ----------
        X : as in `fit`
        interval : float, default=None
            The share of new observations, such as 0.9, that intervals around predictions should hold; of
            several targets, each for itself. They are as wide as left-out training points ask for, in units
            of the errors close by (`hck.conformal`; docs/uncertainty.md says what is proven of their coverage
            and what is measured), and infinite if there are too few of these: the level may be n / (n + 1).
            Needs ``leave_one_out=True``.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_targets)
            A column for each quantile, if there are several. A tensor on X's device if X is a tensor.
        lower, upper : the same, if `interval` is given
            Then the result is a tuple of the three.

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(4000, 1))
        >>> y = np.sin(6 * X[:, 0]) + 0.3 * X[:, 0] * rng.standard_normal(4000)  # noisier to the right
        >>> model = HCKRegressor("gaussian", lengthscale=0.3, alpha=0.1, random_state=0)
        >>> model = model.fit(X[:2000], y[:2000])
        >>> mean, lower, upper = model.predict(X[2000:], interval=0.9)
        >>> inside = (lower <= y[2000:]) & (y[2000:] <= upper)
        >>> bool(0.87 < inside.mean() < 0.93)
        True
        """
        if interval is None:
            values = self._observable(self._evaluate(X))
            return values[:, 0] if self._one_target else values
        if _are_quantiles(self._losses()):
            raise ValueError("several quantiles are intervals already: use the columns of predict(X)")
        half = half_widths(self, X, interval)  # first: it may be refused
        parts = around(self._observable(self._evaluate(X)), half)
        if losses := self._losses():
            parts = tuple(each.clip(losses[0].lowest) for each in parts)  # what can be observed
        return tuple(each[:, 0] for each in parts) if self._one_target else parts

    def predict_gradient(self, X: PointsLike) -> Predictions:
        """The gradient of `predict` by x, in closed form, in the units that X and y have.

        It is that of the leaves that a point is in: across a cut, where predictions may jump, it says
        nothing. Where a point is a training point or a landmark, kernels that have a kink there (laplace,
        matern12) count as flat.

        Parameters
        ----------
        X : as in `fit`, but dense

        Returns
        -------
        ndarray of shape (n_samples, n_features) or (n_samples, n_features, n_targets)
            NaN for columns that are categories; where a value is missing, the slope at the mean that takes
            its place. A tensor on X's device if X is a tensor.

        Raises
        ------
        NoGradientError
            If the model was fitted to sparse points or objects, or the kernel cannot be differentiated.

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKRegressor
        >>> X = np.random.default_rng(0).uniform(size=(2000, 2))
        >>> y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2
        >>> model = HCKRegressor("gaussian", lengthscale=0.5, alpha=1e-6, random_state=0).fit(X, y)
        >>> model.predict_gradient([[0.5, 0.5]]).round(2)  # 3 cos(1.5) and 1
        array([[0.21, 1.  ]])
        """
        slopes = forest_slopes(self, X)
        if self._losses():
            slopes = chained(slopes, self._evaluate(X), self._observable)
        return slopes[:, :, 0] if self._one_target else slopes

    def _observable(self, values: Predictions) -> Predictions:
        """Means, medians or quantiles (points, columns), from what the trained functions say."""
        losses = self._losses()
        if not losses:
            return values
        if _are_quantiles(losses):
            return values.sort(1).values if isinstance(values, Tensor) else np.sort(values, 1)
        if isinstance(values, Tensor):
            return losses[0].mean(values)
        return losses[0].mean(torch.from_numpy(values)).numpy()

    def _losses(self) -> list[Loss]:
        """Other than the squared one."""
        return getattr(self, "losses_", [])  # which models of earlier versions lack

    def score(self, X: PointsLike, y: TargetsLike, sample_weight: Weights = None) -> float:
        """R² of predictions, the mean over targets; of several quantiles how much better than constants.

        That is D², 1 − loss/loss of the best constant, of the loss of each quantile; the mean over them.

        Parameters
        ----------
        X : as in `fit`
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        float

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKRegressor
        >>> X = np.linspace(0, 1, 100)[:, None]
        >>> model = HCKRegressor("matern32", lengthscale=0.5, alpha=0.01, rank=16).fit(X, np.sin(6 * X[:, 0]))
        >>> model.score(X, np.sin(6 * X[:, 0])) > 0.99
        True
        """
        losses, y = self._losses(), as_targets(to_host(y))
        if not _are_quantiles(losses):
            return float(super().score(X, y, sample_weight))
        predicted = to_host(self.predict(X)).T
        each = [
            d2_pinball_score(y, values, alpha=loss.level, sample_weight=sample_weight)
            for values, loss in zip(predicted, losses, strict=True)
            if isinstance(loss, Quantile)
        ]
        return float(np.mean(each))

    def loo_predict(self) -> np.ndarray:
        """Each training target predicted from all others, in closed form; the mean over trees.

        The lengthscales and alpha are those that were chosen with all points. Of losses other than the
        squared one they are those of a step of Newton's method from the minimum. Needs
        ``leave_one_out=True``.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            Without points of weight 0.

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKRegressor
        >>> X = np.linspace(0, 1, 100)[:, None]
        >>> y = np.sin(6 * X[:, 0])
        >>> model = HCKRegressor("matern32", lengthscale=0.5, alpha=0.01, rank=16).fit(X, y)
        >>> float(np.abs(model.loo_predict() - y).max()) < 0.1
        True
        """
        values = self._observable(self._left_out_values())
        return values[:, 0] if self._one_target else values


def _are_quantiles(losses: list[Loss]) -> bool:
    return len({loss.level for loss in losses if isinstance(loss, Quantile)}) > 1


def _crossing(values: np.ndarray) -> float:
    """The share of rows that do not ascend."""
    return float((np.diff(values, axis=1) < 0).any(1).mean())
