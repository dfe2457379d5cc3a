"""Gaussian process regression on a cluster."""

from dataclasses import replace
from typing import Any, NoReturn, Self

import numpy as np
import torch
from distributed import Client
from numpy.typing import ArrayLike
from sklearn.base import _fit_context

from hck.branches import Plan
from hck.dask.answers import Evaluation
from hck.dask.cluster import lazy
from hck.dask.collections import is_lazy
from hck.dask.pieces import in_one_piece
from hck.dask.training import Training
from hck.estimators.branched import refuse
from hck.estimators.distributed.base import OnCluster, as_array
from hck.estimators.distributed.sizes import Sizes
from hck.estimators.gaussian_process import HCKGaussianProcessRegressor
from hck.estimators.parameters import Predictions, Weights, assign, described
from hck.estimators.process_learning import Bounds
from hck.kernels import Kernel
from hck.preparation.arrays import PointsLike, TargetsLike
from hck.preparation.sample import Sample
from hck.preparation.trend import Trend, TrendLike
from hck.process import Mixture

_LEARNED = (
    "kernel_",
    "noise_",
    "theta_",
    "theta_names_",
    "history_",
    "n_iter_",
    "selection_",
    "_space",
    "_scaling",
)
_KEPT = (
    *(*_LEARNED, "coefficients_", "log_marginal_likelihood_value_", "_trend"),
    *("n_features_in_", "feature_names_in_"),
)


_LEARNED_ON = 20_000  # points, where that is "auto"
_ELSEWHERE = "not there on a cluster: use to_local()"


def _after_to_local(name: str) -> Any:
    """A method that is refused."""

    def method(self: object, *args: object, **options: object) -> NoReturn:
        """After `to_local` only."""
        raise NotImplementedError(f"{name} is {_ELSEWHERE}.{name}")

    method.__name__ = name
    return method


@described
class DaskHCKGaussianProcessRegressor(OnCluster, HCKGaussianProcessRegressor):
    """Gaussian process regression with a hierarchically compositional kernel, on a Dask cluster.

    As `hck.HCKGaussianProcessRegressor`, for data that are spread over machines; see `DaskHCKRegressor`.
    Parameters are chosen or learned on the client, on `learn_size` points (auto: 20,000) that are drawn at
    random from all, and so are sizes and the calibration of standard deviations; then all points are
    conditioned on, where they are. Draws, leave-one-out predictions and covariances between points
    are there after `to_local`. There is one target, in the units that it has.

    Parameters
    ----------
    {process}
    {cluster}

    Attributes
    ----------
    kernel_ : Kernel
        With the parameters that were learned.
    noise_ : float
        The variance of the noise.
    theta_, theta_names_, history_, n_iter_ : as for `hck.HCKGaussianProcessRegressor`
    coefficients_ : ndarray of shape (n_trends,)
        Of the trend: the intercept, and then the slopes.
    log_marginal_likelihood_value_ : float
        Of all training data.
    {cluster_attributes}

    Notes
    -----
    {cluster_notes}

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from hck.dask import DaskHCKGaussianProcessRegressor
    >>> client = Client(n_workers=2, threads_per_worker=1)  # doctest: +SKIP
    >>> rng = da.random.default_rng(0)
    >>> X = rng.uniform(size=(100_000, 2), chunks=(25_000, 2))
    >>> y = da.sin(6 * X[:, 0]) + 0.1 * rng.standard_normal(100_000, chunks=25_000)
    >>> model = DaskHCKGaussianProcessRegressor(rank=64, random_state=0).fit(X, y)  # doctest: +SKIP
    >>> mean, std = model.predict(X, return_std=True)  # doctest: +SKIP
    """

    _plain = HCKGaussianProcessRegressor

    def __init__(
        self,
        kernel: str | Kernel = "auto",
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
        approximation: str = "hierarchical",
        n_trees: int | str = "auto",
        rank: int | str = "auto",
        leaf_size: int | None = None,
        partition: str = "random_projection",
        landmarks: str = "uniform",
        jitter: float | None = None,
        device: str | torch.device | None = None,
        dtype: str = "float64",
        memory_budget: float | str | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        client: Client | None = None,
        n_branches: int | None = None,
    ) -> None:
        assign(self, locals())

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: PointsLike, y: TargetsLike, noise_variance: Weights = None) -> Self:
        """Learn the parameters on a sample, then condition on all observations.

        Parameters
        ----------
        X : Dask array or dataframe of shape (n_samples, n_features)
            Of numbers, with known sizes of chunks if it is an array. Arrays of NumPy are cut into blocks.
        y : Dask array or series of shape (n_samples,)
            Several targets are not possible here.
        noise_variance : None
            Known variances are not possible here.

        Returns
        -------
        self
        """
        refuse(noise_variance, "known variances of the noise")
        refuse(self.normalize_y or None, "targets in units of their own (normalize_y=True)")
        data, trained, fitted = self._train_on_cluster(X, y)
        found = trained.likelihoods
        self._evaluation = Evaluation(fitted["_trend"], found, fitted.pop("spread"))
        self.coefficients_ = self._evaluation.coefficients
        self.log_marginal_likelihood_value_ = float(np.mean([float(each.value) for each in found]))
        self._remember(data)
        assign(self, fitted)
        return self

    def _columns(self, data: Training) -> int:
        if len(data.target_shape):
            raise ValueError(
                f"y must have one axis, got rows of shape {data.target_shape}: several targets are not "
                "possible here; fit one after another, or use hck.HCKGaussianProcessRegressor"
            )
        return 2 + data.features

    def _least_sample(self, n: int) -> int:
        most = _LEARNED_ON if isinstance(self.learn_size, str) else self.learn_size
        return n if most is None else most

    def _settle(
        self, sizes: Sizes, data: Training, sample: Sample, rng: np.random.RandomState
    ) -> tuple[Plan, dict[str, Any]]:
        """Learn the parameters on some of the sample, with a plain estimator."""
        size, plain = self._least_sample(data.n), self._alone(device=None)
        plain._adds = False
        learned: HCKGaussianProcessRegressor = plain.fit(sample.x[:size], sample.y[:size])
        trend = Trend.of(learned._trend.kind, sample.x, sample.y)[0]
        shape = learned.selection_.shape
        settings = sizes.estimator._settings(shape)
        number = sizes.branches(shape.n_trees, settings)
        seeds = rng.randint(2**31 - 1, size=int(shape.n_trees)).tolist()
        noise = float(learned.noise_)
        plan = Plan(
            *(learned.kernel_, noise, learned._scaling, [], seeds, settings, self.dtype, "cpu"),
            coding=trend,
            process=True,
        )
        known = {name: getattr(learned, name) for name in _LEARNED}
        known["selection_"] = replace(learned.selection_, held=None)  # which are rows of the sample
        return plan.cut(sample.x, number), {**known, "_trend": trend, "spread": learned.posterior_.spread}

    # Predictions ------------------------------------------------------------------------------------

    def predict(
        self,
        X: PointsLike,
        return_std: bool = False,
        return_cov: bool = False,
        observed: bool = False,
        interval: float | None = None,
    ) -> Predictions:
        """Predict, with the uncertainty if asked for.

        For standard deviations every branch that has new points is factored again, once for all of them.

        Parameters
        ----------
        X : Dask array or dataframe, or an array here
        return_std : bool, default=False
            Whether to return standard deviations as well: of the function, unless `observed`.
        return_cov : bool, default=False
            Not possible here: use `to_local`.
        observed : bool, default=False
            Whether the uncertainty is that of new observations, with noise, or that of the function.
        interval : float, default=None
            Not possible here: use `to_local`.

        Returns
        -------
        mean : a lazy Dask array of shape (n_samples,) for Dask collections, else an ndarray
        std : the same, if `return_std`
        """
        if return_cov:
            raise ValueError(f"covariances between points are {_ELSEWHERE}.predict")
        if interval is not None:
            raise ValueError(f"intervals by left-out observations are {_ELSEWHERE}.predict")
        noise = float(self.noise_) if observed and hasattr(self, "noise_") else 0.0
        if not is_lazy(X):
            x = self._new(X)
            values, spread = self._model.now(x, return_std)
            mean = self._evaluation.mean(values, x)
            return (mean, self._evaluation.std(values, spread, x, noise)) if return_std else mean
        points, blocks = self._lazy_new(X)
        model, dtype = self._model, self._model.plan.dtype
        values = model.values(blocks)
        means = [lazy(Evaluation.mean)(self._evaluation, *each) for each in zip(values, blocks, strict=True)]
        made = as_array(means, points.rows, (), dtype)
        if not return_std:
            return made
        every = zip(values, model.variances(blocks), blocks, strict=True)
        spreads = [lazy(Evaluation.std)(self._evaluation, *each, noise) for each in every]
        return made, as_array(spreads, points.rows, (), dtype)

    def to_local(self) -> HCKGaussianProcessRegressor:
        """The model on this machine, where it fits into memory: `hck.HCKGaussianProcessRegressor`."""
        self._check_fitted()
        members = [
            in_one_piece(trunk, pieces, float(self.noise_), known)
            for trunk, pieces, known in zip(
                self._model.plan.trunks, self._model.gather(), self._evaluation.found, strict=True
            )
        ]
        made: HCKGaussianProcessRegressor = self._alone()
        made.posterior_ = Mixture(members, self._evaluation.spread)
        made.residuals_, made._objects, made._columns_in, made._units = [], False, None, None
        made.trees_ = [member.source.tree for member in members if member.source.tree is not None]
        assign(made, {name: getattr(self, name) for name in _KEPT if hasattr(self, name)})
        return made

    def log_marginal_likelihood(
        self, theta: ArrayLike | None = None, eval_gradient: bool = False, clone_kernel: bool = True
    ) -> Any:
        """The log-likelihood of all training data at the learned parameters; elsewhere after `to_local`."""
        self._check_fitted()
        if theta is None and not eval_gradient:
            return self.log_marginal_likelihood_value_
        raise NotImplementedError(f"theta or a gradient is {_ELSEWHERE}.log_marginal_likelihood")

    standard_errors = _after_to_local("standard_errors")
    loo_predict = _after_to_local("loo_predict")
    loo_metrics = _after_to_local("loo_metrics")
    sample_prior = _after_to_local("sample_prior")
    sample_posterior = _after_to_local("sample_posterior")
    sample_y = _after_to_local("sample_y")
    draw_functions = _after_to_local("draw_functions")
