"""Gaussian process regression on a cluster."""

from typing import Any

import numpy as np
import torch
from sklearn.base import _fit_context
from sklearn.utils import check_random_state

from hck.dask import process
from hck.dask.base import ATTRIBUTES, EXTRA, NOTES, PARAMETERS, as_array
from hck.dask.blocks import Block
from hck.dask.cluster import Work, find_client, lazy, look_around
from hck.dask.collections import is_lazy
from hck.dask.fit import Fit, Sizes
from hck.dask.local import posterior
from hck.dask.process import Mixing
from hck.dask.ridge import RegressorOnCluster
from hck.dask.sampling import draw, read
from hck.dask.targets import WithTrend
from hck.dask.traffic import Clock, Traffic
from hck.estimators import HCKGaussianProcessRegressor
from hck.estimators.base import describe_parameters
from hck.estimators.branched import Plan, alone, check_settings, make_trunks, refuse, with_parameters
from hck.hierarchy.likelihood import evidence_from_gram
from hck.preparation.scaling import Scaling
from hck.preparation.trend import Trend
from hck.process import Mixture

_LEARNED = ("kernel_", "noise_", "theta_", "theta_names_", "history_", "n_iter_", "_space")


def describe(cls: Any) -> Any:
    """Put what is said of all estimators, and of those on a cluster, into the docstring."""
    plain = HCKGaussianProcessRegressor.__doc__ or ""
    parameters = plain.split("Parameters\n    ----------\n    ")[1].split("\n\n    Attributes")[0]
    for field, text in (
        *(("{parameters}", parameters), ("{cluster}", PARAMETERS)),
        *(("{fitted}", ATTRIBUTES), ("{notes}", NOTES)),
    ):
        cls.__doc__ = cls.__doc__.replace(field, text)
    return describe_parameters(cls)


@describe
@with_parameters(**EXTRA)
class DaskHCKGaussianProcessRegressor(RegressorOnCluster, HCKGaussianProcessRegressor):
    """Gaussian process regression with a hierarchically compositional kernel, on a Dask cluster.

    As `hck.HCKGaussianProcessRegressor`, for data that are spread over machines; see `DaskHCKRegressor`.
    Parameters are learned on the client, on `learn_size` points that are drawn at random from all; then all
    points are conditioned on, where they are. Draws, leave-one-out predictions and covariances between points
    are there after `to_local`.

    Parameters
    ----------
    {parameters}
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
    {fitted}
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during fit, if X is a dataframe.

    Notes
    -----
    {notes}

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

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, noise_variance: None = None) -> "DaskHCKGaussianProcessRegressor":
        """Learn the parameters on a sample, then condition on all observations.

        Parameters
        ----------
        X : Dask array or dataframe of shape (n_samples, n_features)
            Of numbers, with known sizes of chunks if it is an array. Arrays of NumPy are cut into blocks.
        y : Dask array or series of shape (n_samples,)
        noise_variance : None
            Known variances are not possible here.

        Returns
        -------
        self
        """
        refuse(noise_variance, "known variances of the noise")
        check_settings(self)
        self._check_branches()
        client, clock, traffic = find_client(self.client), Clock(), Traffic()
        facts = look_around(client, self.device)
        rng = check_random_state(self.random_state)
        with Work(client, bool(self.verbose)) as work:
            with clock.phase("read"):
                data = read(work, X, y, False, 2 * facts.threads)
                if len(data.target_shape):
                    raise ValueError(f"y must have one axis, got rows of shape {data.target_shape}")
            settled = self._settled(facts)
            sizes = Sizes(settled, facts, data, 2 + data.features, self.n_branches)
            learn_size = data.n if self.learn_size is None else self.learn_size
            with clock.phase("sample"):
                sample = draw(work, data, max(sizes.sample, learn_size), rng)
                traffic.sample = sample.x.nbytes + sample.y.nbytes
            with clock.phase("plan"):
                learned = self._learned(sample, learn_size)
                trend = Trend.of(self.trend, sample.x, sample.y)[0]
                number = sizes.branches(self.n_trees, self.leaf_size, self.rank)
                plan = self._plan(settled, learned, sample, number, rng)
            trained = Fit(*(work, plan, data, WithTrend(trend), facts, traffic, clock), process=True).run()
        found = [
            evidence_from_gram(torch.as_tensor((gram + gram.T) / 2), log_determinant, data.n)
            for gram, log_determinant in zip(trained.grams, trained.log_determinants, strict=True)
        ]
        mixing = Mixing(trend, found)
        self._remember(data)
        self._set_fitted(
            **{name: getattr(learned, name) for name in _LEARNED},
            coefficients_=process.coefficients(mixing),
            log_marginal_likelihood_value_=float(np.mean([float(each.value) for each in found])),
            bytes_=traffic,
            seconds_=clock.seconds,
            _model=trained.model,
            _trend=trend,
            _mixing=mixing,
        )
        return self

    def _learned(self, sample: Block, size: int) -> HCKGaussianProcessRegressor:
        """A plain estimator that has learned the parameters from some of the sample."""
        plain = alone(self, device=None, n_trees=1)
        found: HCKGaussianProcessRegressor = plain.fit(sample.x[:size], sample.y[:size])
        return found

    def _plan(
        self,
        settled: Any,
        learned: HCKGaussianProcessRegressor,
        sample: Block,
        number: int,
        rng: np.random.RandomState,
    ) -> Plan:
        seeds = rng.randint(2**31 - 1, size=self.n_trees).tolist()
        plan = Plan(
            *(learned.kernel_, float(learned.noise_), Scaling(), [], seeds, self.leaf_size),
            *(self.partition, self.landmarks, self.dtype, "cpu", settled.memory_budget),
        )
        plan.trunks = make_trunks(plan, sample.x, number, self.rank, self.jitter)
        return plan

    # Predictions ------------------------------------------------------------------------------------

    def predict(
        self, X: Any, return_std: bool = False, return_cov: bool = False, observed: bool = False
    ) -> Any:
        """Predict, with the uncertainty if asked for.

        For standard deviations every branch that has new points is factored again, once for all of them.

        Parameters
        ----------
        X : Dask array or dataframe, or an array here
        return_std : bool, default=False
            Whether to return standard deviations as well.
        return_cov : bool, default=False
            Not possible here: use `to_local`.
        observed : bool, default=False
            Whether the uncertainty is that of new observations, with noise, or that of the function.

        Returns
        -------
        mean : a lazy Dask array of shape (n_samples,) for Dask collections, else an ndarray
        std : the same, if `return_std`
        """
        if return_cov:
            raise ValueError("covariances between points are not there on a cluster: use to_local().predict")
        noise = float(self.noise_) if observed and hasattr(self, "noise_") else 0.0
        if not is_lazy(X):
            x = self._new(X)
            values, spread = self._model.now(x, return_std)
            mean = self._mixing.mean(values, x)
            return (mean, self._mixing.std(values, spread, x, noise)) if return_std else mean
        points, blocks = self._lazy_new(X)
        model, dtype = self._model, self._model.plan.dtype
        values = model.values(blocks)
        means = [lazy(Mixing.mean)(self._mixing, *each) for each in zip(values, blocks, strict=True)]
        made = as_array(means, points.rows, (), dtype)
        if not return_std:
            return made
        spread = model.variances(blocks)
        spreads = [
            lazy(Mixing.std)(self._mixing, *each, noise) for each in zip(values, spread, blocks, strict=True)
        ]
        return made, as_array(spreads, points.rows, (), dtype)

    def to_local(self) -> HCKGaussianProcessRegressor:
        """The model on this machine, where it fits into memory: `hck.HCKGaussianProcessRegressor`."""
        self._check_fitted()
        members = [
            posterior(trunk, parts, float(self.noise_), known)
            for trunk, parts, known in zip(
                self._model.plan.trunks, self._model.gather(), self._mixing.evidence, strict=True
            )
        ]
        made: HCKGaussianProcessRegressor = alone(self)
        made._set_fitted(
            posterior_=Mixture(members),
            residuals_=[],
            trees_=[member.source.tree for member in members],
            _objects=False,
            _categories=None,
        )
        copied = (
            *(*_LEARNED, "coefficients_", "log_marginal_likelihood_value_", "_trend"),
            *("n_features_in_", "feature_names_in_"),
        )
        made._set_fitted(**{name: getattr(self, name) for name in copied if hasattr(self, name)})
        return made

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False) -> Any:
        """The log-likelihood of all training data at the learned parameters; elsewhere after `to_local`."""
        self._check_fitted()
        if theta is None and not eval_gradient:
            return self.log_marginal_likelihood_value_
        return self._refuse("log_marginal_likelihood with theta or a gradient")

    def plot_history(self, ax: Any = None) -> Any:
        """Draw the objective at each step of learning; returns matplotlib's axes."""
        from hck.plotting import plot_learning  # which needs matplotlib

        self._check_fitted()
        return plot_learning(self, ax=ax)

    def standard_errors(self, step: float = 1e-3) -> Any:
        """After `to_local` only."""
        return self._refuse("standard_errors")

    def loo_predict(self, return_std: bool = False) -> Any:
        """After `to_local` only."""
        return self._refuse("loo_predict")

    def loo_metrics(self) -> Any:
        """After `to_local` only."""
        return self._refuse("loo_metrics")

    def sample_prior(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Any:
        """After `to_local` only."""
        return self._refuse("sample_prior")

    def sample_posterior(
        self, X: Any, n_samples: int = 1, random_state: Any = 0, observed: bool = False
    ) -> Any:
        """After `to_local` only."""
        return self._refuse("sample_posterior")

    def _refuse(self, what: str) -> Any:
        raise NotImplementedError(f"{what} is not there on a cluster: use to_local().{what.split()[0]}")
