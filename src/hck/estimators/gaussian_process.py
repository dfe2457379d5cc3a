"""Gaussian process regression."""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor

from hck.approximations import Approximation
from hck.approximations.exact import ExactPredictor
from hck.approximations.make import for_each_tree
from hck.estimators.base import HCKEstimator, describe_parameters
from hck.estimators.process_prediction import ProcessPrediction
from hck.persistence.classes import saved
from hck.preparation.trend import Trend
from hck.process import Mixture, Process
from hck.selection import Observations, Space


@saved(
    *("kernel_", "noise_", "theta_", "theta_names_", "history_", "n_iter_", "coefficients_"),
    *("log_marginal_likelihood_value_", "posterior_", "residuals_", "_space", "_trend"),
    device=lambda model: model.posterior_.members[0].y.device,
)
@describe_parameters
class HCKGaussianProcessRegressor(RegressorMixin, ProcessPrediction):
    """Gaussian process regression with a hierarchically compositional kernel.

    y = trend(x) + f(x) + noise, where f is a Gaussian process. Lengthscales, output scale and noise are those
    of the largest likelihood, which is exact for the hierarchical kernel. Training takes O(n r²) time and
    O(n r) memory, a prediction O(n₀ + r), and O(n₀² + r²) with its standard deviation. With a single leaf
    (``rank`` at least n) it is an exact Gaussian process.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="matern32"
        A name (one of ``hck.kernels.kernel_names()``), which is multiplied by an output scale and gets a
        lengthscale for each feature; an object of `hck.kernels`, taken as it is; or a function k(A, B), of
        which nothing is learned.
    lengthscale : float, array-like of shape (n_features,) or None, default=None
        Where learning starts, for a named kernel. None: √n_features standard deviations of each feature.
    ard : bool, default=True
        Whether a named kernel has a lengthscale for each feature, or one for all.
    noise : float or None, default=None
        λ > 0, the variance of the noise where learning starts. None: a tenth of the variance of y.
    trend : {"zero", "constant", "linear"} or callable, default="constant"
        The mean function: none, a constant, linear in the features, or linear in those that a function
        makes of X, as an array of shape (n_samples, n_trends). Its coefficients are estimated by generalised
        least squares, and their uncertainty is part of that of predictions.
    optimizer : {"auto", "lbfgs", "stochastic"} or None, default="auto"
        How to learn. ``"lbfgs"``: L-BFGS, with a tree that is made anew a few times, since cuts follow the
        lengthscales. ``"stochastic"``: Adam with a fresh tree, and fresh points if `learn_size` is less than
        n, at every step, which does not fit one partition's artefacts. ``"auto"``: one half of the
        iterations stochastic, the other L-BFGS; all of them L-BFGS if the points to learn on fit into one
        leaf. None: do not learn.
    max_iter : int, default=100
        The most iterations of L-BFGS; the number of steps of Adam.
    n_restarts : int, default=0
        How many more starts to try with L-BFGS, at random around the first.
    bounds : dict or None, default=None
        Bounds of parameters by name, such as ``{"lengthscale": (0.1, 10), "noise": "fixed"}``; names are
        those of ``kernel.parameters()`` (for named kernels "lengthscale" and "scale"), and "noise".
    priors : dict or None, default=None
        Log-normal priors of parameters by name, as (median, standard deviation of the logarithm).
    learn_size : int or None, default=20_000
        The most points to learn parameters on, drawn at random; None for all. Predictions use all points.
        With the exact kernel, parameters are learned with the hierarchical one if these are thousands.
    n_trees : int, default=1
        How many trees, with partitions and landmarks of their own, to average.
    rank : int, default=128
        r, the number of landmarks of a node. Accuracy and cost (time r², memory r) grow with it. Of other
        approximations their rank, or the mean number of nonzeros of a row; standard deviations of Nyström's
        are too small far from its landmarks, where its kernel vanishes.
    {settings}

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
    residuals_ : list of lists of float
        Where the exact kernel was solved with by iteration: the relative residual after each.
    {attributes}

    References
    ----------
    J. Chen, H. Avron, V. Sindhwani, Hierarchically compositional kernels for scalable nonparametric learning,
    Journal of Machine Learning Research 18 (2017).
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
        "learn_size": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        kernel: Any = "matern32",
        *,
        lengthscale: Any = None,
        ard: bool = True,
        noise: float | None = None,
        trend: Any = "constant",
        optimizer: str | None = "auto",
        max_iter: int = 100,
        n_restarts: int = 0,
        bounds: dict[str, Any] | None = None,
        priors: dict[str, Any] | None = None,
        learn_size: int | None = 20_000,
        approximation: Any = "hierarchical",
        n_trees: int = 1,
        rank: int = 128,
        leaf_size: int | None = None,
        partition: Any = "random_projection",
        landmarks: Any = "uniform",
        jitter: float | None = None,
        device: Any = None,
        dtype: str = "float64",
        memory_budget: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.lengthscale = lengthscale
        self.ard = ard
        self.noise = noise
        self.trend = trend
        self.optimizer = optimizer
        self.max_iter = max_iter
        self.n_restarts = n_restarts
        self.bounds = bounds
        self.priors = priors
        self.learn_size = learn_size
        self.approximation = approximation
        self.n_trees = n_trees
        self.rank = rank
        self.leaf_size = leaf_size
        self.partition = partition
        self.landmarks = landmarks
        self.jitter = jitter
        self.device = device
        self.dtype = dtype
        self.memory_budget = memory_budget
        self.random_state = random_state
        self.verbose = verbose

    # Training ---------------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, noise_variance: Any = None) -> "HCKGaussianProcessRegressor":
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
        X, y = self._validate_training(X, y, y_numeric=True)
        points, rng = self._points(X), check_random_state(self.random_state)
        known = _check_variances(noise_variance, len(y))
        trend, features = Trend.of(self.trend, X, y)
        rest = torch.tensor(y, dtype=torch.float64)
        rest -= features @ torch.from_numpy(trend.rough)
        data = Observations(points, rest, features, known)
        spread = float(rest.var(correction=0)) or 1.0
        noise = None if known is not None else self._clip("noise", 0.1 * spread, self.noise)
        space = Space.of(self._start_kernel(points, spread), noise, self.bounds, self.priors, spread)
        learned = self._learn(space, data, rng)
        kernel, noise = space.at(learned.theta)
        variance: float | Tensor = known if known is not None else float(noise or 0.0)
        seeds = rng.randint(2**31 - 1, size=1 if self._is_fixed() else self.n_trees).tolist()

        def condition(approximation: Approximation) -> Process:
            return Process.of(approximation, variance, data.y, features)

        members = for_each_tree(condition, kernel, points, self._settings(self._shape), seeds)
        posterior = Mixture(members)
        self._set_fitted(
            kernel_=kernel,
            noise_=variance if known is None else known.numpy(),
            theta_=learned.theta,
            theta_names_=space.names,
            history_=learned.history,
            n_iter_=len(learned.history),
            coefficients_=trend.raw(posterior.coefficients[:, 0].cpu().numpy()),
            log_marginal_likelihood_value_=posterior.log_likelihood,
            posterior_=posterior,
            residuals_=[m.mean.residuals for m in members if isinstance(m.mean, ExactPredictor)],
            trees_=[member.source.tree for member in members if member.source.tree is not None],
            _space=space,
            _trend=trend,
        )
        return self


def _check_variances(variance: Any, n: int) -> Tensor | None:
    if variance is None:
        return None
    array = np.array(variance.detach().cpu().numpy() if isinstance(variance, Tensor) else variance, float)
    if array.shape != (n,):
        raise ValueError(f"noise_variance must have shape ({n},), got {array.shape}")
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise ValueError("noise_variance must be positive and finite")
    return torch.from_numpy(array)
