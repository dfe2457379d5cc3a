"""Kernel ridge regression and classification on a cluster."""

from abc import abstractmethod
from typing import Any, ClassVar

import dask.array as da
import numpy as np
from sklearn.base import _fit_context
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state

from hck.dask import tasks
from hck.dask.base import ATTRIBUTES, EXTRA, PARAMETERS, OnCluster, as_array
from hck.dask.cluster import Work, find_client, lazy, look_around
from hck.dask.collections import is_lazy
from hck.dask.fit import Fit, Sizes, Trained
from hck.dask.local import forest
from hck.dask.sampling import Training, draw, read
from hck.dask.tasks import LeftOut
from hck.dask.traffic import Clock, Traffic
from hck.estimators import HCKClassifier, HCKRegressor
from hck.estimators._branched import as_plain, check_settings, plan_ridge, with_parameters
from hck.estimators._coding import Centred, OneAgainstAll
from hck.estimators._ridge import describe_ridge
from hck.selection.loss import Calibration


def describe(cls: Any) -> Any:
    """Put what is said of all estimators, and of those on a cluster, into a docstring."""
    cls = describe_ridge(cls)
    for field, text in (("{cluster}", PARAMETERS), ("{fitted}", ATTRIBUTES)):
        cls.__doc__ = cls.__doc__.replace(field, text)
    return cls


class RidgeOnCluster(OnCluster):
    """What the regressor and the classifier share."""

    intercept_: np.ndarray
    left_out_rows_: np.ndarray | None
    _labels: ClassVar[bool] = False

    @abstractmethod
    def _targets(self, data: Training) -> Any:
        """How y becomes right-hand sides."""

    def _fit(self, X: Any, y: Any) -> tuple[Training, Any, LeftOut | None, dict[str, Any]]:
        """Train; returns the fitted attributes, to be set once nothing can fail any more."""
        check_settings(self)
        self._check_branches()
        estimator: Any = self
        client, clock, traffic = find_client(self.client), Clock(), Traffic()
        facts = look_around(client, estimator.device)
        rng = check_random_state(estimator.random_state)
        with Work(client, bool(estimator.verbose)) as work:
            with clock.phase("read"):
                data = read(work, X, y, self._labels, 2 * facts.threads)
                targets = self._targets(data)
            settled = self._settled(facts)
            sizes = Sizes(settled, facts, data, len(targets.intercept))
            with clock.phase("sample"):
                sample = draw(work, data, sizes.sample, rng)
                traffic.sample = sample.x.nbytes + sample.y.nbytes
            with clock.phase("plan"):
                plan, selection = plan_ridge(
                    *(settled, self._alone(device=None)),
                    lambda chosen: sizes.branches(chosen.n_trees, chosen.leaf_size, chosen.rank),
                    *(sample.x, sample.y),
                )
            trained = Fit(
                *(work, plan, data, targets, facts, traffic, clock), left_out=estimator.leave_one_out
            ).run()
        left_out = _in_order(trained)
        return (
            data,
            targets,
            left_out,
            {
                "_model": trained.model,
                "intercept_": targets.intercept,
                "selection_": selection,
                "bytes_": traffic,
                "seconds_": clock.seconds,
                "left_out_rows_": None if left_out is None else left_out.number,
                "_left_out": None if left_out is None else left_out.values + targets.intercept,
            },
        )

    def _evaluate(self, X: Any) -> Any:
        """The trained functions at new points: shape (points, columns); lazily if X is lazy."""
        self._check_fitted()
        model, dtype = self._model, self._model.plan.dtype
        if not is_lazy(X):
            x = self._new(X)
            return tasks.average(model.now(x)[0], model.n_trees, len(x), self.intercept_, dtype)
        points, blocks = self._lazy_new(X)
        made = [
            lazy(tasks.average)(
                values, model.n_trees, lazy(tasks.count)(block), self.intercept_, dtype
            )  # the count alone, so that the block itself need not stay
            for values, block in zip(model.values(blocks), blocks, strict=True)
        ]
        return as_array(made, points.rows, (len(self.intercept_),), dtype)

    def _local(self, *names: str) -> Any:
        """The model on this machine, with these attributes beside those of all."""
        self._check_fitted()
        plan = self._model.plan
        members = forest(plan.trunks, self._model.gather())
        used = np.arange(members[0].tree.n_points) if self.left_out_rows_ is None else self.left_out_rows_
        copied = ("intercept_", "selection_", "_left_out", "n_features_in_", "feature_names_in_", *names)
        fitted = {name: getattr(self, name) for name in copied if hasattr(self, name)}
        return as_plain(self._alone(), plan, members, _used=used, **fitted)


def _in_order(trained: Trained) -> LeftOut | None:
    """Left-out predictions, the mean over trees, in the order of rows."""
    if not trained.left_out:
        return None
    trees = []
    for branches in trained.left_out:
        number = np.concatenate([each.number for each in branches])
        order = np.argsort(number)
        values = np.concatenate([each.values for each in branches])[order]
        targets = np.concatenate([each.targets for each in branches])[order]
        trees.append(LeftOut(number[order], values, targets))
    return LeftOut(trees[0].number, np.mean([each.values for each in trees], 0), trees[0].targets)


class RegressorOnCluster:
    """The score of predictions of numbers."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of predictions; computed on the workers if X and y are Dask collections."""
        predicted = self.predict(X)  # type: ignore[attr-defined]
        if not is_lazy(X):
            return float(r2_score(y, predicted, sample_weight=sample_weight))
        y = as_dask(y, predicted)
        lost, spread = da.compute(((y - predicted) ** 2).sum(0), ((y - y.mean(0)) ** 2).sum(0))
        return float(np.mean(1 - lost / spread))


@describe
@with_parameters(**EXTRA)
class DaskHCKRegressor(RidgeOnCluster, RegressorOnCluster, HCKRegressor):
    """Kernel ridge regression with a hierarchically compositional kernel, on a Dask cluster.

    As `hck.HCKRegressor`, for data that are spread over machines: each row is brought to the worker that has
    its branch of the tree, and then only small messages travel. The result is that of one machine on the same
    tree. What is not given is chosen on a sample, on the client.

    Parameters
    ----------
    {parameters}
    {cluster}

    Attributes
    ----------
    intercept_ : ndarray of shape (n_targets,)
        The mean of the targets.
    left_out_rows_ : ndarray of int, or None
        The rows that `loo_predict` predicts: all, or of millions every so-many-th.
    {fitted}
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during fit, if X is a dataframe.

    Notes
    -----
    ``device=None`` means the GPUs of the workers if each of them has one, and else their CPUs.

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

    def _targets(self, data: Training) -> Centred:
        return Centred(data.mean())

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> "DaskHCKRegressor":
        """Train.

        Parameters
        ----------
        X : Dask array or dataframe of shape (n_samples, n_features)
            Of numbers, with known sizes of chunks if it is an array. Arrays of NumPy are cut into blocks.
        y : Dask array, series or dataframe of shape (n_samples,) or (n_samples, n_targets)

        Returns
        -------
        self
        """
        data, _, _, fitted = self._fit(X, y)
        self._remember(data)
        self._set_fitted(**fitted, _one_target=len(data.target_shape) == 0)
        return self

    def predict(self, X: Any) -> Any:
        """Predict targets.

        Parameters
        ----------
        X : Dask array or dataframe, or an array here

        Returns
        -------
        A lazy Dask array for Dask collections, of which nothing is brought here; else an ndarray. Of shape
        (n_samples,) or (n_samples, n_targets); of a dataframe, the sizes of chunks are not known.
        """
        return super().predict(X)

    def to_local(self) -> HCKRegressor:
        """The model on this machine, where it fits into memory: a fitted `hck.HCKRegressor`."""
        return self._local("_one_target")


@describe
@with_parameters(**EXTRA)
class DaskHCKClassifier(RidgeOnCluster, HCKClassifier):
    """Classification with a hierarchically compositional kernel, on a Dask cluster.

    As `hck.HCKClassifier`, for data that are spread over machines; see `DaskHCKRegressor`.

    Parameters
    ----------
    {parameters}
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
    {fitted}
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during fit, if X is a dataframe.

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

    def _targets(self, data: Training) -> OneAgainstAll:
        classes, counts = data.classes()
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes, but y has one class only: {classes[0]!r}"
            )
        return OneAgainstAll.of(classes, counts)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> "DaskHCKClassifier":
        """Train.

        Parameters
        ----------
        X : Dask array or dataframe of shape (n_samples, n_features)
            Of numbers, with known sizes of chunks if it is an array. Arrays of NumPy are cut into blocks.
        y : Dask array or series of shape (n_samples,)
            Class labels of any type.

        Returns
        -------
        self
        """
        data, targets, left_out, fitted = self._fit(X, y)
        calibration = None
        if left_out is not None:
            calibration = Calibration.fit(fitted["_left_out"], targets.codes(left_out.targets))
        self._remember(data)
        self._set_fitted(**fitted, classes_=targets.classes, calibration_=calibration)
        return self

    def predict(self, X: Any) -> Any:
        """Predict class labels: a lazy Dask array if X is a Dask collection, else an ndarray."""
        if not is_lazy(X):
            return super().predict(X)
        score = self.decision_function(X)
        drop = [1] if score.ndim == 2 else None
        return score.map_blocks(_labels_of, self.classes_, drop_axis=drop, dtype=self.classes_.dtype)

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, (n_samples, n_classes); lazily if X is a Dask collection.

        Needs ``leave_one_out=True``; see `hck.HCKClassifier.predict_proba`.
        """
        if not is_lazy(X):
            return super().predict_proba(X)
        self._left_out_values()  # or an error
        score = self._evaluate(X)
        chunks = score.chunks[0], (len(self.classes_),)
        return score.map_blocks(_probabilities, self.calibration_, chunks=chunks, dtype=np.float64)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of right labels; computed on the workers if X and y are Dask arrays."""
        if not is_lazy(X):
            return float(super().score(X, y, sample_weight))
        predicted = self.predict(X)
        return float((as_dask(y, predicted) == predicted).mean().compute())

    def to_local(self) -> HCKClassifier:
        """The model on this machine, where it fits into memory: a fitted `hck.HCKClassifier`."""
        return self._local("classes_", "calibration_")


def as_dask(y: Any, like: da.Array) -> da.Array:
    """Targets beside predictions, in the same chunks."""
    if hasattr(y, "to_dask_array"):
        return y.to_dask_array()
    if not is_lazy(y):
        y = da.from_array(np.asarray(y), chunks=-1)
    return y if np.isnan(like.shape[0]) else y.rechunk({0: like.chunks[0]})


def _labels_of(score: np.ndarray, classes: np.ndarray) -> np.ndarray:
    return classes[(score > 0).astype(int) if score.ndim == 1 else score.argmax(1)]


def _probabilities(score: np.ndarray, calibration: Calibration) -> np.ndarray:
    return calibration(score)
