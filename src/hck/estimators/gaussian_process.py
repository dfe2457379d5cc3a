"""Gaussian process regression."""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor

from hck.approximations import Approximation, Iterative
from hck.approximations.exact import ExactPredictor
from hck.approximations.make import for_each_tree
from hck.backend.checks import check_floats, require
from hck.estimators.base import HCKEstimator, device_of
from hck.estimators.online_process import OnlineProcessEstimator, check_variances
from hck.estimators.parameters import KernelLike, LandmarksLike, PartitionLike, Weights, assign, described
from hck.estimators.process_learning import Bounds
from hck.estimators.updating import check_updatable
from hck.persistence.classes import saved
from hck.points import check_kernel, features_of, own
from hck.preparation.arrays import PointsLike, TargetsLike
from hck.preparation.trend import Trend, TrendLike
from hck.process import Mixture, Process
from hck.selection import Observations, Space


@saved(
    *("kernel_", "noise_", "theta_", "theta_names_", "history_", "n_iter_", "coefficients_"),
    *("log_marginal_likelihood_value_", "posterior_", "residuals_", "_space", "_trend"),
    device=device_of,
)
@described
class HCKGaussianProcessRegressor(RegressorMixin, OnlineProcessEstimator):
    """Gaussian process regression with a hierarchically compositional kernel.

    y = trend(x) + f(x) + noise, where f is a Gaussian process. Lengthscales, output scale and noise are those
    of the largest likelihood, which is exact for the hierarchical kernel. Training takes O(n r²) time and
    O(n r) memory, a prediction O(n₀ + r), and O(n₀² + r²) with its standard deviation. With a single leaf
    (``rank`` at least n) it is an exact Gaussian process.

    Parameters
    ----------
    {process}

    Attributes
    ----------
    kernel_ : Kernel
        With the parameters that were learned.
    noise_ : float or ndarray of shape (n_samples,)
        The variance of the noise, or the variances that `fit` was given.
    theta_ : ndarray of shape (n_parameters,)
        The logarithms of what was learned; `theta_names_` says of which parameters.
    theta_names_ : list of str
    history_ : list of float
        The objective, per observation, at each step of learning; `n_iter_` is their number.
    coefficients_ : ndarray of shape (n_trends,)
        Of the trend: the intercept, and then the slopes.
    log_marginal_likelihood_value_ : float
        Of all training data.
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
    >>> model = HCKGaussianProcessRegressor(rank=64, random_state=0).fit(X, y)
    >>> mean, std = model.predict([[0.5, 0.5]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(3.0)) < 4 * std[0])
    True
    >>> bool(0.08 < model.noise_ ** 0.5 < 0.12)
    True
    """

    coefficients_: np.ndarray
    history_: list[float]
    n_iter_: int
    residuals_: list[list[float]]
    theta_names_: list[str]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **HCKEstimator._parameter_constraints,
        "ard": ["boolean"],
        "noise": [Interval(Real, 0, None, closed="neither"), None],
        "trend": [StrOptions({"zero", "constant", "linear"}), callable],
        "optimizer": [StrOptions({"auto", "lbfgs", "stochastic"}), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_restarts": [Interval(Integral, 0, None, closed="left")],
        "bounds": [dict, None],
        "priors": [dict, None],
        "n_trees": [Interval(Integral, 1, None, closed="left")],
        "learn_size": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        kernel: KernelLike = "matern32",
        *,
        lengthscale: ArrayLike | None = None,
        ard: bool = True,
        noise: float | None = None,
        trend: TrendLike = "constant",
        optimizer: str | None = "auto",
        max_iter: int = 100,
        n_restarts: int = 0,
        bounds: Bounds | None = None,
        priors: dict[str, tuple[float, float]] | None = None,
        learn_size: int | None = 20_000,
        approximation: str | Iterative = "hierarchical",
        n_trees: int = 1,
        rank: int = 128,
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
        self._trend.check(d, first.y.shape[1] - 1)
        check_kernel(self.kernel_, self._trained_points())
        check_floats("theta_", torch.from_numpy(self.theta_), len(self._space.start))
        check_floats("coefficients_", torch.from_numpy(self.coefficients_), first.y.shape[1] - 1)
        noise = np.asarray(self.noise_)
        known = noise.dtype.kind == "f" and noise.shape in ((), (len(first.y),))
        require(known and bool(np.isfinite(noise).all() and (noise >= 0).all()), "noise_ must be variances")

    # Training ---------------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: PointsLike, y: TargetsLike, noise_variance: Weights = None
    ) -> "HCKGaussianProcessRegressor":
        """Learn the parameters, then condition on all observations.

        Parameters
        ----------
        X : {array-like, sparse matrix, torch.Tensor} of shape (n_samples, n_features)
            Or, if the kernel is a function, a sequence of objects that it takes.
        y : array-like of shape (n_samples,)
        noise_variance : array-like of shape (n_samples,), default=None
            The variance of the noise of each observation, if it is known. Then no noise is learned.

        Returns
        -------
        self
        """
        given = X
        X, y = self._validate_training(X, y, y_numeric=True)
        points, rng = own(self._points(X), given), check_random_state(self.random_state)
        known = check_variances(noise_variance, len(y))
        trend, features = Trend.of(self.trend, X, y)
        rest = torch.tensor(y, dtype=torch.float64, device="cpu")
        rest -= features @ torch.from_numpy(trend.rough)
        data = Observations(points, rest, features, known)
        spread = self._variance(rest)
        start = self._clip("noise", 0.1 * spread) if self.noise is None else float(self.noise)
        kernel, noise = self._start_kernel(points, spread), start if known is None else None
        space = Space.of(kernel, noise, self.bounds, self.priors, spread)
        learned = self._learn(space, data, rng)
        kernel, noise = space.at(learned.theta)
        variance: float | Tensor = known if known is not None else float(noise or 0.0)
        seeds = rng.randint(2**31 - 1, size=1 if self._is_fixed() else int(self.n_trees)).tolist()

        def condition(approximation: Approximation) -> Process:
            self._check_memory(approximation)
            return Process.of(approximation, variance, data.y, features)

        members = for_each_tree(condition, kernel, points, self._settings(self._shape), seeds)
        posterior = Mixture(members)
        found = trend.raw(posterior.coefficients[:, 0].cpu().numpy()), posterior.log_likelihood
        self.coefficients_, self.log_marginal_likelihood_value_ = found
        self.kernel_, self.noise_ = kernel, variance if known is None else known.numpy()
        self.theta_, self.theta_names_ = learned.theta, space.names
        self.history_, self.n_iter_ = learned.history, len(learned.history)
        self.residuals_ = [each.mean.residuals for each in members if isinstance(each.mean, ExactPredictor)]
        self.trees_ = [each.source.tree for each in members if each.source.tree is not None]
        self.posterior_, self._space, self._trend = posterior, space, trend
        return self

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
        """
        check_updatable(self)
        if not hasattr(self, "trees_"):
            return self.fit(X, y, noise_variance)
        X, y = self._validate_training(X, y, reset=False, y_numeric=True)
        self._add(X, y, noise_variance)
        return self
