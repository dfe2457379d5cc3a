"""Gaussian process regression."""

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor

from hck.approximations import Approximation, Iterative
from hck.approximations.exact import ExactPredictor
from hck.approximations.make import for_each_tree
from hck.backend.checks import check_floats, require
from hck.errors import NumericalWarning
from hck.estimators.base import MOST_TREES, HCKEstimator, device_of
from hck.estimators.online_process import OnlineProcessEstimator, check_variances, raw_coefficients
from hck.estimators.parameters import KernelLike, LandmarksLike, PartitionLike, Weights, assign, described
from hck.estimators.process_learning import Bounds
from hck.estimators.promise import keeps_time
from hck.estimators.updating import check_updatable, start_anew
from hck.hierarchy.blueprint import mean_variance
from hck.hierarchy.extremes import extremes, warn_of_rounding
from hck.persistence.classes import saved
from hck.points import check_kernel, features_of, own
from hck.preparation.arrays import PointsLike, TargetsLike, to_host
from hck.preparation.trend import Trend, TrendLike
from hck.preparation.units import Units, varies
from hck.process import Mixture, Process
from hck.selection import Observations, Selection

_SMALL = 0.1  # variance of a function, of that of targets: what is not known of their mean counts beside it
_ONE_VALUE = (
    "y has one value only, and nothing says how much it varies elsewhere: standard deviations are next to "
    "nothing. Where you know better, give a kernel with its scale, the noise, and optimizer=None"
)


@saved(
    *("kernel_", "noise_", "theta_", "theta_names_", "history_", "n_iter_", "coefficients_"),
    *("log_marginal_likelihood_value_", "posterior_", "residuals_", "_space", "_trend"),
    device=device_of,
)
@described
class HCKGaussianProcessRegressor(MultiOutputMixin, RegressorMixin, OnlineProcessEstimator):
    """Gaussian process regression with a hierarchically compositional kernel.

    y = trend(x) + f(x) + noise, where f is a Gaussian process. What is not given is chosen within `fit_time`:
    kernel and metric by the observations that they predict, their variance and how wide intervals are by
    leave-one-out. Parameters of a kernel that is given are those of the largest likelihood, which is exact
    for the hierarchical kernel. Training takes O(n r²) time and O(n r) memory, a prediction O(n₀ + r), and
    O(n₀² + r²) with its standard deviation. With a single leaf, as small data have it, the process is exact.

    Several targets are independent processes with the same kernel and noise, each in its own units
    (`normalize_y`), which share one factorization.

    Parameters
    ----------
    {process}

    Attributes
    ----------
    kernel_ : Kernel
        With the parameters that were chosen or learned, for features as they came; or, where these were
        chosen and heavy tails of some drawn in, for scaled ones (`features_scaled_`).
    noise_ : float or ndarray of shape (n_samples,)
        The variance of the noise, or the variances that `fit` was given.
    theta_ : ndarray of shape (n_parameters,)
        The logarithms of what was learned; `theta_names_` says of which parameters: the kernel's in the order
        of ``kernel_.theta``, then the noise, without those that are fixed.
    theta_names_ : list of str
    theta_bounds_ : ndarray of shape (n_parameters, 2)
        Within which `theta_` was learned.
    X_train_, y_train_ : ndarray
        The training points, as the kernel sees them, and targets; copies of what the model holds.
    y_scale_ : ndarray of shape (n_targets,)
        The units of targets, which variances of kernel and noise are multiples of the squares of: standard
        deviations with `normalize_y`, else 1.
    history_ : list of float
        The objective, per observation, at each step of learning by likelihood; `n_iter_` is their number.
        Where candidates competed instead, the log-likelihood of the best.
    selection_ : hck.selection.Selection
        What was chosen, and why: sizes, and candidates if some competed, with kernels of scaled features.
    coefficients_ : ndarray of shape (n_trends,) or (n_trends, n_targets)
        Of the trend: the intercept, and then the slopes.
    log_marginal_likelihood_value_ : float
        Of all training data; see `log_marginal_likelihood`.
    posterior_ : hck.process.Mixture
        What predictions are made of.
    {residuals}
    {attributes}

    References
    ----------
    {paper}.
    A. O'Hagan, Curve fitting and optimal design for prediction, Journal of the Royal Statistical Society B 40
    (1978): the trend.

    Examples
    --------
    >>> import numpy as np
    >>> from hck import HCKGaussianProcessRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(2000, 2))
    >>> y = np.sin(6 * X[:, 0]) + 0.1 * rng.standard_normal(2000)
    >>> model = HCKGaussianProcessRegressor(fit_time="fast", random_state=0).fit(X, y)
    >>> mean, std = model.predict([[0.5, 0.5]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(3.0)) < 4 * std[0])
    True
    >>> bool(0.08 < model.noise_ ** 0.5 < 0.12)
    True
    """

    coefficients_: np.ndarray
    calibrate: str | None
    history_: list[float]
    selection_: Selection
    n_iter_: int
    residuals_: list[list[float]]
    theta_names_: list[str]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **HCKEstimator._parameter_constraints,
        "ard": ["boolean"],
        "calibrate": [StrOptions({"auto", "loo"}), None],
        "fit_time": [StrOptions({"fast", "balanced", "best"}), Interval(Real, 0, None, closed="neither")],
        "lengthscale": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither"), "array-like", None],
        "noise": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither"), None],
        "trend": [StrOptions({"auto", "zero", "mean", "constant", "linear"}), callable],
        "optimizer": [StrOptions({"auto", "lbfgs", "stochastic"}), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_restarts": [Interval(Integral, 0, None, closed="left")],
        "bounds": [dict, None],
        "priors": [dict, None],
        "n_trees": [StrOptions({"auto"}), Interval(Integral, 1, MOST_TREES, closed="both")],
        "rank": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "learn_size": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left"), None],
        "normalize_y": ["boolean", None],
    }

    def __init__(
        self,
        kernel: KernelLike = "auto",
        *,
        lengthscale: ArrayLike | None = "auto",
        ard: bool = True,
        noise: float | str | None = "auto",
        trend: TrendLike = "auto",
        fit_time: float | str = "balanced",
        calibrate: str | None = "auto",
        optimizer: str | None = "auto",
        max_iter: int = 100,
        n_restarts: int = 0,
        bounds: Bounds | None = None,
        priors: dict[str, tuple[float, float]] | None = None,
        learn_size: int | str | None = "auto",
        normalize_y: bool | None = None,
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
        d, first = features_of(self._trained_points()), self.posterior_.members[0]
        trends, targets = first.features.shape[1], () if first.outputs == 1 else (first.outputs,)
        self._trend.check(d, trends, first.outputs)
        self._own_scaling().check(d)
        check_kernel(self.kernel_, self._trained_points())
        check_floats("theta_", torch.from_numpy(self.theta_), len(self._space.start))
        check_floats("coefficients_", torch.from_numpy(self.coefficients_), len(self._trend.rough), *targets)
        units = self._own_units()
        require(units is None or units.scale.shape == targets, f"_units must be of {first.outputs} targets")
        noise = np.asarray(self.noise_)
        known = noise.dtype.kind == "f" and noise.shape in ((), (len(first.y),))
        require(known and bool(np.isfinite(noise).all() and (noise >= 0).all()), "noise_ must be variances")

    # Training ---------------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)
    @keeps_time
    def fit(
        self, X: PointsLike, y: TargetsLike, noise_variance: Weights = None
    ) -> "HCKGaussianProcessRegressor":
        """Learn the parameters, then condition on all observations.

        Parameters
        ----------
        X : {array-like, sparse matrix, torch.Tensor} of shape (n_samples, n_features)
            Or, if the kernel is a function, a sequence of objects that it takes.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            One column is the same as none.
        noise_variance : array-like of shape (n_samples,), default=None
            The variance of the noise of each observation, if it is known, of all targets. Then no noise is
            learned.

        Returns
        -------
        self
        """
        given = X
        check_columns(y)
        X, y = self._validate_training(X, y, multi_output=True, y_numeric=True)
        y = y.reshape(-1) if y.ndim == 2 and y.shape[1] == 1 else y
        points, rng = own(self._points(X), given), check_random_state(self.random_state)
        known = check_variances(noise_variance, len(y))
        units = self._choose_units(y, known is not None)
        y = y if units is None else units(y)
        self._check_size(y)
        trend, features = Trend.of(self._trend_kind(len(y), known is not None), X, y)
        rest = torch.tensor(y, dtype=torch.float64, device="cpu")
        rest -= trend.explained(features)
        data = Observations(points, _informative(rest, y), features, known)
        chosen = self._settle_parameters(data, rng)
        learns = len(chosen.space.start) and self.optimizer is not None
        if learns and trend.kind != "zero" and not varies(y).any():
            warnings.warn(_ONE_VALUE, NumericalWarning, stacklevel=5)
        points = chosen.scaling(points, points.dtype)
        if trend.kind == "mean" != self.trend:
            size = mean_variance(chosen.kernel, points)
            if size < _SMALL * float(data.columns.var(0, correction=0).mean()):
                trend, features = Trend.of("constant", X, y)  # most of what is not known of the function
        variance: float | Tensor = float(chosen.noise or 0.0) if known is None else known

        def condition(approximation: Approximation) -> Process:
            self._check_memory(approximation)
            made = Process.of(approximation, variance, rest, features)
            observed = made.y[:, : made.outputs]
            warn_of_rounding([extremes(made.mean, points, observed, made.explained)])
            return made

        settings = self._settings(chosen.selection.shape)
        members = for_each_tree(condition, chosen.kernel, points, settings, chosen.seeds)
        posterior = Mixture(members)
        if self.calibrate == "loo" or (self.calibrate == "auto" and (chosen.compared or len(members) > 1)):
            posterior = posterior.calibrated(chosen.selection.held, known_noise=known is not None)
        self.coefficients_ = raw_coefficients(posterior, trend, units)
        self.log_marginal_likelihood_value_ = posterior.log_likelihood
        self.kernel_, self.noise_ = chosen.kernel, variance if known is None else known.numpy()
        self.theta_, self.theta_names_ = chosen.theta, chosen.space.names
        self.history_ = [posterior.log_likelihood / len(y)] if chosen.compared else chosen.history
        self.n_iter_, self.selection_ = len(self.history_), chosen.selection
        self.residuals_ = [each.mean.residuals for each in members if isinstance(each.mean, ExactPredictor)]
        self.trees_ = [each.source.tree for each in members if each.source.tree is not None]
        self.posterior_, self._space, self._trend, self._units = posterior, chosen.space, trend, units
        self._scaling = chosen.scaling
        start_anew(self)
        return self

    def _trend_kind(self, n: int, noise_is_known: bool) -> TrendLike:
        """Of "auto": the mean where candidates compete, since they do with it; or else a constant."""
        if not (isinstance(self.trend, str) and self.trend == "auto"):
            return self.trend
        return "mean" if self._compares(n, noise_is_known) else "constant"

    def _choose_units(self, y: np.ndarray, noise_is_known: bool) -> Units | None:
        """Those that targets (n,) or (n, targets) are divided by; None: they are left as they are."""
        if noise_is_known:
            if self.normalize_y:
                raise ValueError(
                    "normalize_y=True and noise_variance exclude each other, since targets in units of their "
                    "own do not share a known noise: use normalize_y=False, or fit target by target"
                )
            return None
        wanted = y.ndim == 2 if self.normalize_y is None else self.normalize_y
        return Units.of(y, centred=self.trend == "zero") if wanted else None

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: PointsLike, y: TargetsLike, noise_variance: Weights = None
    ) -> "HCKGaussianProcessRegressor":
        """Condition on more observations, without a refit; the first call is a fit.

        The result, with its likelihood, is that of all observations, where kernel, noise and, except for
        leaves that grow too large, tree and landmarks are those that there are; the trend is estimated anew.
        An observation costs O(n₀² + r³ log(n/r)). See also `forget`, `update` and `drift_`.

        Parameters
        ----------
        X, y : as in `fit`
        noise_variance : array-like of shape (n_samples,), default=None
            Needed if `fit` was given such variances, and only then.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKGaussianProcessRegressor
        >>> X = np.linspace(0, 1, 60)[:, None]
        >>> process = HCKGaussianProcessRegressor("matern52", lengthscale=0.3, noise=0.01, optimizer=None)
        >>> _ = process.fit(X, np.sin(6 * X[:, 0]))
        >>> _, before = process.predict([[2.0]], return_std=True)
        >>> _, after = process.partial_fit([[2.0]], [0.0]).predict([[2.0]], return_std=True)
        >>> after < before
        array([ True])
        """
        check_updatable(self)
        if not hasattr(self, "trees_"):
            return self.fit(X, y, noise_variance)
        X, y = self._validate_training(X, y, reset=False, multi_output=True, y_numeric=True)
        self._add(X, y, noise_variance)
        return self


def check_columns(y: TargetsLike) -> None:
    """Raise ValueError unless targets are one column, or several."""
    shape = np.shape(to_host(y)) if hasattr(y, "shape") else ()
    if len(shape) > 2 or (len(shape) == 2 and shape[1] == 0):
        raise ValueError(
            "y must have the shape (n_samples,) or (n_samples, n_targets), with at least one target, got "
            f"{shape}"
        )


def _informative(rest: Tensor, y: np.ndarray) -> Tensor:
    """What is learned from: without targets that are constant, as long as others are not."""
    if rest.ndim == 1:
        return rest
    known = torch.from_numpy(varies(y))
    return rest[:, known] if known.any() else rest
