"""Kernel ridge regression and classification on a cluster."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from distributed import Client
from numpy.typing import ArrayLike
from sklearn.base import _fit_context

from hck.branches import Plan, assemble_forest
from hck.branches.plan import probe_every
from hck.dask.answers import average
from hck.dask.cluster import lazy
from hck.dask.collections import is_lazy
from hck.dask.training import Training
from hck.estimators.branched import BranchedRidge, plan_ridge, refuse, settings_for
from hck.estimators.classifier import HCKClassifier
from hck.estimators.distributed.base import OnCluster, as_array
from hck.estimators.distributed.sizes import Sizes
from hck.estimators.parameters import Predictions, Weights, assign, described
from hck.estimators.regressor import HCKRegressor
from hck.kernels import Kernel
from hck.preparation.arrays import PointsLike, TargetsLike
from hck.preparation.coding import codes_of
from hck.preparation.sample import Sample
from hck.selection import Selection
from hck.selection.loss import Calibration


class RidgeOnCluster(OnCluster, BranchedRidge):
    """What the regressor and the classifier share."""

    def __init__(
        self,
        kernel: str | Kernel = "auto",
        *,
        lengthscale: ArrayLike | None = "auto",
        alpha: float | str = "auto",
        loss: str = "squared",
        scale: str | None = "auto",
        fit_time: float | str = "balanced",
        leave_one_out: bool = True,
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

    def _columns(self, data: Training) -> int:
        return len(data.coding().intercept)

    def _settle(
        self, sizes: Sizes, data: Training, sample: Sample, rng: np.random.RandomState
    ) -> tuple[Plan, dict[str, Any]]:
        def branches(chosen: Selection) -> int:
            return sizes.branches(chosen.n_trees, settings_for(sizes.estimator, chosen))

        plan, selection = plan_ridge(sizes.estimator, self._alone(device=None), branches, sample)
        every = probe_every(data.n) if self.leave_one_out else None
        return replace(plan, coding=data.coding(), every=every), {"selection_": selection}

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: PointsLike, y: TargetsLike, sample_weight: Weights = None) -> Self:
        """Train.

        Parameters
        ----------
        X : Dask array or dataframe of shape (n_samples, n_features)
            Of numbers, with known sizes of chunks if it is an array. Arrays of NumPy are cut into blocks.
        y : Dask array, series or dataframe of shape (n_samples,) or (n_samples, n_targets)
            Class labels are whole numbers or text, of shape (n_samples,).
        sample_weight : None
            Weights are not possible here.

        Returns
        -------
        self
        """
        refuse(sample_weight, "weights")
        data, trained, fitted = self._train_on_cluster(X, y)
        self._set_outcome(data.coding(), trained.probes, one_target=len(data.target_shape) == 0)
        self._remember(data)
        assign(self, fitted)
        return self

    def _evaluate(self, X: PointsLike) -> Predictions:
        """The trained functions at new points: shape (points, columns); lazily if X is lazy."""
        self._check_fitted()
        model, dtype = self._model, self._model.plan.dtype
        if not is_lazy(X):
            x = self._new(X)
            return average(model.now(x)[0], model.n_trees, len(x), self.intercept_, dtype)
        points, blocks = self._lazy_new(X)
        made = [
            lazy(average)(
                values, model.n_trees, lazy(len)(block), self.intercept_, dtype
            )  # the count alone, so that the block itself need not stay
            for values, block in zip(model.values(blocks), blocks, strict=True)
        ]
        return as_array(made, points.rows, (len(self.intercept_),), dtype)

    def to_local(self) -> Any:
        """The model on this machine, where it fits into memory: one of `hck`, fitted."""
        self._check_fitted()
        plan = self._model.plan
        return self._as_plain(plan, assemble_forest(plan.trunks, self._model.gather()))


@described
class DaskHCKRegressor(RidgeOnCluster, HCKRegressor):
    """Kernel ridge regression with a hierarchically compositional kernel, on a Dask cluster.

    As `hck.HCKRegressor`, for data that are spread over machines: each row is brought to the worker that has
    its branch of the tree, and then only small messages travel. The result is that of one machine on the same
    tree. What is not given is chosen on a sample, on the client. Predictions of Dask collections are lazy
    Dask arrays, of which nothing is brought here; of a dataframe, the sizes of chunks are not known.

    Parameters
    ----------
    {ridge}
    {branched_loss}
    quantile : float, default=0.5
        For ``loss="quantile"`` of the estimator in memory.
    {cluster}

    Attributes
    ----------
    intercept_ : ndarray of shape (n_targets,)
        The mean of the targets.
    left_out_rows_ : ndarray of int, or None
        The rows that `loo_predict` predicts: all, or of millions every so-many-th.
    {cluster_attributes}

    Notes
    -----
    {cluster_notes}

    {cluster_choice}

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from hck.dask import DaskHCKRegressor
    >>> client = Client(n_workers=2, threads_per_worker=1)  # doctest: +SKIP
    >>> X = da.random.default_rng(0).uniform(size=(100_000, 2), chunks=(25_000, 2))
    >>> y = da.sin(6 * X[:, 0]) + X[:, 1] ** 2
    >>> model = DaskHCKRegressor(lengthscale=0.3, alpha=1e-3, rank=64).fit(X, y)  # doctest: +SKIP
    >>> model.predict(X)  # doctest: +SKIP
    dask.array<getitem, shape=(100000,), dtype=float64, chunksize=(25000,), chunktype=numpy.ndarray>
    """

    _plain = HCKRegressor

    def __init__(
        self,
        kernel: str | Kernel = "auto",
        *,
        lengthscale: ArrayLike | None = "auto",
        alpha: float | str = "auto",
        loss: str = "squared",
        quantile: float = 0.5,
        scale: str | None = "auto",
        fit_time: float | str = "balanced",
        leave_one_out: bool = True,
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


@described
class DaskHCKClassifier(RidgeOnCluster, HCKClassifier):
    """Classification with a hierarchically compositional kernel, on a Dask cluster.

    As `hck.HCKClassifier`, for data that are spread over machines; see `DaskHCKRegressor`.

    Parameters
    ----------
    {ridge}
    {branched_loss}
    {cluster}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    calibration_ : hck.selection.loss.Calibration
        From decision values to probabilities.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The mean of the ±1 targets.
    left_out_rows_ : ndarray of int, or None
        The rows that `loo_decision_function` is for: all, or of millions every so-many-th.
    {cluster_attributes}

    Notes
    -----
    {cluster_notes}

    {cluster_choice}

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from hck.dask import DaskHCKClassifier
    >>> client = Client(n_workers=2, threads_per_worker=1)  # doctest: +SKIP
    >>> X = da.random.default_rng(0).uniform(size=(100_000, 2), chunks=(25_000, 2))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> model = DaskHCKClassifier(lengthscale=0.3, alpha=1e-2, rank=64).fit(X, y)  # doctest: +SKIP
    >>> model.predict_proba(X).mean(axis=0).compute()  # doctest: +SKIP
    """

    _plain = HCKClassifier
    _labels = True

    def predict(self, X: PointsLike) -> Predictions:
        """Predict class labels: a lazy Dask array if X is a Dask collection, else an ndarray."""
        if not is_lazy(X):
            return super().predict(X)
        score = self.decision_function(X)
        drop = [1] if score.ndim == 2 else None
        return score.map_blocks(_labels_of, self.classes_, drop_axis=drop, dtype=self.classes_.dtype)

    def predict_proba(self, X: PointsLike) -> Predictions:
        """Probabilities of the classes, (n_samples, n_classes); lazily if X is a Dask collection.

        Needs ``leave_one_out=True``; see `hck.HCKClassifier.predict_proba`.
        """
        if not is_lazy(X):
            return super().predict_proba(X)
        self._left_out_values()  # or an error
        score = self._evaluate(X)
        chunks = score.chunks[0], (len(self.classes_),)
        return score.map_blocks(_probabilities, self.calibration_, chunks=chunks, dtype=np.float64)


def _labels_of(score: np.ndarray, classes: np.ndarray) -> np.ndarray:
    return classes[codes_of(score)]


def _probabilities(score: np.ndarray, calibration: Calibration) -> np.ndarray:
    return calibration(score)
