"""Gaussian process regression."""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from hck import metrics
from hck.approximations import Approximation, TreeKernel
from hck.approximations.exact import ExactPredictor
from hck.estimators.base import _FEW, HCKEstimator, describe_parameters
from hck.hierarchy.mixture import Mixture
from hck.hierarchy.posterior import Posterior
from hck.kernels import Kernel, make_kernel
from hck.partition import Tree, leaf_size_for
from hck.points import DensePoints, Points, VectorPoints
from hck.preparation.trend import Trend
from hck.selection import Learned, Observations, Space, evaluate, learn
from hck.selection.work import Shape


@describe_parameters
class HCKGaussianProcessRegressor(RegressorMixin, HCKEstimator):
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
    posterior_ : hck.hierarchy.mixture.Mixture
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

        def condition(approximation: Approximation) -> Any:
            return approximation.condition(variance, data.y, features, bool(self.verbose))

        members = self._for_each_tree(condition, kernel, points, seeds, self._shape)
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
            trees_=[member.blueprint.layout.tree for member in members if isinstance(member, Posterior)],
            _space=space,
            _trend=trend,
        )
        return self

    @property
    def _shape(self) -> Shape:
        return Shape(self.n_trees, self.leaf_size, self.rank)

    def _start_kernel(self, points: Points, spread: float) -> Kernel:
        if not isinstance(self.kernel, str):
            return make_kernel(self.kernel, self.lengthscale)
        assert isinstance(points, VectorPoints)
        scale, d = self.lengthscale, points.n_features
        if scale is None:
            every = torch.arange(len(points), device=points.device)
            variance = points.variance(every, torch.zeros_like(every), 1)[0].double().clamp_min(0)
            mean = points.mean(every, torch.zeros_like(every), 1)[0].double().abs()
            rounding = 1e-12 if points.dtype == torch.float64 else 1e-4
            rounding = rounding if isinstance(points, DensePoints) else max(rounding, 1e-6)
            constant = variance.sqrt() <= rounding * mean
            scale = np.where(constant.cpu(), 1.0, np.sqrt(d * variance.cpu().numpy()))
            scale = self._clip("lengthscale", scale if self.ard else np.exp(np.log(scale).mean()))
        elif self.ard and np.ndim(scale) == 0:
            scale = np.full(d, float(scale))
        return self._clip("scale", spread) * make_kernel(self.kernel, scale)

    def _clip(self, name: str, value: Any, given: Any = None) -> Any:
        """What was given for a parameter; else a default, within the bounds that it has."""
        bounds = (self.bounds or {}).get(name)
        if given is None and not isinstance(bounds, str | None) and np.shape(bounds) == (2,):
            value = np.clip(value, *bounds)
        value = value if given is None else given
        return float(value) if np.ndim(value) == 0 else value

    def _learn(self, space: Space, data: Observations, rng: np.random.RandomState) -> Learned:
        start = space.start
        if self.optimizer is None or not len(start):
            return Learned(start, np.nan, [], True)
        size = len(data.y) if self.learn_size is None else min(self.learn_size, len(data.y))
        if isinstance(self.partition, Tree) and size < len(data.y):
            raise ValueError(
                f"a tree given as partition needs learn_size=None: it does not fit {size} of the points"
            )

        alone = size <= (leaf_size_for(size, self.rank) if self.leaf_size is None else self.leaf_size)
        alone = alone or (self._is_exact() and size <= _FEW)

        def run(how: str, steps: int, start: np.ndarray | None = None) -> Learned:
            return learn(
                space,
                data,
                lambda kernel, points, seed: self._approximation(
                    kernel, points, seed, self._shape, scouting=True
                ),
                rng,
                how,
                steps,
                self.n_restarts,
                size,
                self.jitter,
                start,
                bool(self.verbose),
            )

        if self.optimizer != "auto":
            return run(self.optimizer, self.max_iter)
        if alone or self.max_iter < 2:
            return run("lbfgs", self.max_iter)
        first = run("stochastic", self.max_iter // 2)
        then = run("lbfgs", self.max_iter - self.max_iter // 2, first.theta)
        return Learned(then.theta, then.value, first.history + then.history, then.converged)

    # Likelihood -------------------------------------------------------------------------------------

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False) -> Any:
        """The log-likelihood of all training data, at the best trend.

        Parameters
        ----------
        theta : array-like of shape (n_parameters,), default=None
            Logarithms of parameters, as in `theta_`; None for those that were learned.
        eval_gradient : bool, default=False
            Whether to return the gradient with respect to theta as well.

        Returns
        -------
        value : float
        gradient : ndarray of shape (n_parameters,), if `eval_gradient`
        """
        check_is_fitted(self, "posterior_")
        if theta is None and not eval_gradient:
            return self.log_marginal_likelihood_value_
        theta = self.theta_ if theta is None else np.asarray(theta, dtype=float)
        data, found = self._training_data(), []
        for member in self.posterior_.members:
            found.append(
                evaluate(self._space, _source(member), data, theta, self.jitter, eval_gradient)
            )  # fmt: skip
        value = float(np.mean([one for one, _ in found]))
        return (value, np.mean([slope for _, slope in found], 0)) if eval_gradient else value

    def standard_errors(self, step: float = 1e-3) -> dict[str, np.ndarray]:
        """Standard errors of the logarithms of the parameters: relative errors of the parameters, if small.

        From the observed Fisher information, that is minus the second derivatives of the log-likelihood of
        all training data at `theta_`, which are differences of its gradient: 2 · n_parameters evaluations.
        NaN where the likelihood has no maximum. At a bound they mean nothing.

        Parameters
        ----------
        step : float, default=1e-3
            For the differences.

        Returns
        -------
        dict
            For each parameter's name, an array of its shape.
        """
        check_is_fitted(self, "posterior_")
        if not len(self.theta_):
            return {}
        rows = []
        for i in range(len(self.theta_)):
            move = step * np.eye(len(self.theta_))[i]
            ends = [self.log_marginal_likelihood(self.theta_ + sign * move, True)[1] for sign in (1, -1)]
            rows.append((ends[1] - ends[0]) / (2 * step))
        information = np.reshape(rows, (len(self.theta_), -1))
        values, vectors = np.linalg.eigh((information + information.T) / 2)
        known = values > 1e-12 * np.abs(values).max()
        variance = (vectors[:, known] ** 2) @ (1 / values[known])
        unknown = (vectors[:, ~known] ** 2).sum(1) > 1e-6  # some of it is along a flat direction
        return self._space.split(np.sqrt(np.where(unknown, np.nan, variance)))

    def plot_history(self, ax: Any = None) -> Any:
        """Draw the objective at each step of learning; returns matplotlib's axes."""
        from hck.plotting import plot_learning  # which needs matplotlib

        check_is_fitted(self, "posterior_")
        return plot_learning(self, ax=ax)

    # Predictions ------------------------------------------------------------------------------------

    def predict(
        self, X: Any, return_std: bool = False, return_cov: bool = False, observed: bool = False
    ) -> Any:
        """Predict, with the uncertainty if asked for.

        Parameters
        ----------
        X : as in `fit`
        return_std : bool, default=False
            Whether to return standard deviations as well.
        return_cov : bool, default=False
            Whether to return covariances between all points as well; for some thousands of points at most.
        observed : bool, default=False
            Whether the uncertainty is that of new observations, with noise, or that of the function.

        Returns
        -------
        mean : ndarray of shape (n_samples,); a tensor on X's device if X is a tensor
        std : the same, if `return_std`
        cov : of shape (n_samples, n_samples), if `return_cov`
        """
        if return_std and return_cov:
            raise ValueError("ask for return_std or for return_cov, not for both")
        X = self._validate_new(X)
        posterior, features, verbose = self.posterior_, self._trend(X), bool(self.verbose)
        noise = self._noise_of_new() if observed and (return_std or return_cov) else 0.0
        if return_std:
            mean, variance = posterior.variance(X, features, verbose)
            mean = self._trend.restore(features, mean)
            return self._out(X, mean), self._out(X, (variance + noise).sqrt())
        if return_cov:
            mean, cov = posterior.covariance(X, features)
            cov.diagonal().add_(noise)
            return self._out(X, self._trend.restore(features, mean)), self._out(X, cov)
        return self._out(X, self._trend.restore(features, posterior.predict(X, features, verbose)))

    def _noise_of_new(self) -> float:
        if np.ndim(self.noise_):
            raise ValueError(
                "observed=True needs the noise of new observations, but `fit` was given one variance for "
                "each training point: add your own to the square of the latent standard deviation"
            )
        return float(self.noise_)

    # Leave-one-out ----------------------------------------------------------------------------------

    def loo_predict(self, return_std: bool = False) -> Any:
        """Predict each training observation from all others, in closed form.

        Tree, landmarks and learned parameters stay as they are; the trend is estimated without the point.

        Parameters
        ----------
        return_std : bool, default=False
            Whether to return the standard deviations of the observations, noise included, as well.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
        std : ndarray of shape (n_samples,), if `return_std`
        """
        check_is_fitted(self, "posterior_")
        left_out = self.posterior_.leave_one_out()
        mean = self._restore_training(left_out.mean)
        return (mean, left_out.variance.sqrt().cpu().numpy()) if return_std else mean

    def loo_metrics(self) -> dict[str, float]:
        """How good leave-one-out predictions are.

        Returns
        -------
        dict
            "rmse"; "lpd", the mean log predictive density; "crps"; and "coverage" of 95 % intervals.
        """
        mean, std = self.loo_predict(return_std=True)
        if not np.isfinite(std).all():
            raise ValueError(
                "some observations alone determine a part of the trend, so that the others cannot predict "
                "them: there are too few observations for this trend"
            )
        y = self._restore_training(self._training_data().y)
        return {
            "rmse": metrics.rmse(y, mean),
            "lpd": -metrics.nlpd(y, mean, std),
            "crps": metrics.crps(y, mean, std),
            "coverage": metrics.coverage(y, mean, std),
        }

    # Draws ------------------------------------------------------------------------------------------

    def sample_prior(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Any:
        """Draw functions from the process without observations and trend, at any number of points.

        The kernel is the one that was learned, or, before `fit`, the one to start with; the tree is one over
        these points. It takes O(n r²) once and O(n r) for each draw.

        Returns
        -------
        ndarray of shape (len(X), n_samples); a tensor on X's device if X is a tensor
        """
        self._validate_params()
        X = self._validate_new(X) if hasattr(self, "posterior_") else self._validate_points(X)
        _check_count(n_samples)
        points, rng = self._points(X), check_random_state(random_state)
        kernel = self.kernel_ if hasattr(self, "kernel_") else self._start_kernel(points, 1.0)
        source = self._approximation(kernel, points, rng.randint(2**31 - 1), self._shape, scouting=True)
        generator = torch.Generator(points.device).manual_seed(int(rng.randint(2**31 - 1)))
        return self._out(X, source.draw(n_samples, generator, bool(self.verbose)))

    def sample_posterior(
        self, X: Any, n_samples: int = 1, random_state: Any = 0, observed: bool = False
    ) -> Any:
        """Draw functions given the observations, jointly at any number of points (Matheron's rule).

        With the tapered and the exact kernel (by iteration) at some thousands of points at most.

        Parameters
        ----------
        X : as in `fit`
        n_samples : int, default=1
        random_state : int, RandomState instance or None, default=0
        observed : bool, default=False
            Whether to add noise, as new observations have it.

        Returns
        -------
        ndarray of shape (len(X), n_samples); a tensor on X's device if X is a tensor
        """
        X, seed = self._validate_new(X), int(check_random_state(random_state).randint(2**31 - 1))
        generator = torch.Generator(self.posterior_.members[0].y.device).manual_seed(seed)
        _check_count(n_samples)
        features = self._trend(X)
        drawn = self.posterior_.sample(X, features, n_samples, generator, bool(self.verbose))
        drawn = self._trend.restore(features, drawn)
        if observed:
            error = torch.randn(drawn.shape, generator=generator, dtype=drawn.dtype, device=drawn.device)
            drawn = drawn + self._noise_of_new() ** 0.5 * error
        return self._out(X, drawn)

    def _restore_training(self, values: Tensor) -> np.ndarray:
        """Values at the training points with what the trend took away."""
        features = self.posterior_.members[0].observations()[0][:, 1:]
        return self._trend.restore(features.double().cpu(), values).cpu().numpy()

    def _training_data(self) -> Observations:
        """The observations; their points are those of the members."""
        first = self.posterior_.members[0]
        both, noise = first.observations()
        return Observations(
            _source(first).points, both[:, 0], both[:, 1:], noise if np.ndim(self.noise_) else None
        )


def _source(member: Any) -> Approximation:
    """What stands in for the kernel in a member of the mixture."""
    return TreeKernel(member.blueprint) if isinstance(member, Posterior) else member.source


def _check_count(n_samples: Any) -> None:
    if not isinstance(n_samples, Integral) or n_samples < 1:
        raise ValueError(f"n_samples must be a whole number, at least 1, got {n_samples!r}")


def _check_variances(variance: Any, n: int) -> Tensor | None:
    if variance is None:
        return None
    array = np.array(variance.detach().cpu().numpy() if isinstance(variance, Tensor) else variance, float)
    if array.shape != (n,):
        raise ValueError(f"noise_variance must have shape ({n},), got {array.shape}")
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise ValueError("noise_variance must be positive and finite")
    return torch.from_numpy(array)
