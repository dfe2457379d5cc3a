"""What the estimators on a cluster share."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from numbers import Integral
from typing import Any, NoReturn, Self
from uuid import uuid4

import dask.array as da
import numpy as np
from dask.highlevelgraph import HighLevelGraph
from distributed import Client
from sklearn.base import clone
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from hck.branches import Plan
from hck.dask import score as scores
from hck.dask.cluster import Traffic, Work, bring, lazy
from hck.dask.collections import LazyChunks, check_kind, is_lazy, lazy_points, names_of
from hck.dask.model import Model
from hck.dask.store import Trained, train
from hck.dask.training import Training, as_matrix, draw, read
from hck.dask.workers import find_client, look_around
from hck.estimators.base import ACCEPTED
from hck.estimators.branched import Branched, Extent
from hck.estimators.distributed.sizes import Sizes, budget_of
from hck.estimators.parameters import Weights
from hck.preparation.arrays import PointsLike, TargetsLike, to_host
from hck.preparation.sample import Sample


class OnCluster(Branched, ABC):
    """An estimator whose branches are on the workers of a Dask cluster."""

    client: Client | None
    n_branches: int | None
    n_features_in_: int
    bytes_: Traffic
    seconds_: dict[str, float]
    _model: Model

    def __sklearn_clone__(self) -> Self:
        given = self.get_params(deep=False)
        client = given.pop("client")  # which cannot be copied
        return type(self)(client=client, **{name: clone(each, safe=False) for name, each in given.items()})

    def __getstate__(self) -> dict[str, Any]:
        if "_model" in self.__dict__:
            raise TypeError(
                f"a fitted {type(self).__name__} cannot be pickled or copied, since its branches are on "
                "workers: use to_local()"
            )
        state: Any = super().__getstate__()
        return {**state, "client": None}

    def __copy__(self) -> Self:
        return self._with_client(self.__getstate__())

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._with_client(deepcopy(self.__getstate__(), memo))

    def _with_client(self, state: dict[str, Any]) -> Self:
        """Another one of this state, and of the same client."""
        made = type(self).__new__(type(self))
        made.__dict__.update({**state, "client": self.client})
        return made

    @property
    def tree_(self) -> NoReturn:
        """After `to_local` only."""
        self._check_fitted()
        raise AttributeError("trees are in pieces on the workers: use to_local().tree_")

    def save(self, path: str | os.PathLike[str], force: bool = False) -> None:
        """Save the model of `to_local`, which has to fit into this machine's memory; `hck.load` loads it."""
        self.to_local().save(path, force)

    @abstractmethod
    def to_local(self) -> Any:
        """The model on this machine, where it fits into memory."""

    # Training ---------------------------------------------------------------------------------------

    @abstractmethod
    def _columns(self, data: Training) -> int:
        """How many right-hand sides there are, or an error if targets are wrong."""

    @abstractmethod
    def _settle(
        self, sizes: Sizes, data: Training, sample: Sample, rng: np.random.RandomState
    ) -> tuple[Plan, dict[str, Any]]:
        """Decide everything by a sample; also what was decided, as fitted attributes."""

    def _least_sample(self, n: int) -> int:
        """Rows, of n, that have to be drawn in any case."""
        return 0

    def _train_on_cluster(self, X: PointsLike, y: TargetsLike) -> tuple[Training, Trained, dict[str, Any]]:
        """Train; returns the data, what came of them, and fitted attributes."""
        self._check_settings()
        self._check_branches()
        client = find_client(self.client)
        facts, rng = look_around(client, self.device), check_random_state(self.random_state)
        # for work on the client: in the CPU's memory, within that of a worker's thread
        settled = self._alone(device=None, memory_budget=budget_of(self.memory_budget, facts))
        with Work(client, bool(self.verbose)) as work:
            with work.clock.phase("read"):
                data = read(work, X, y, self._labels, 2 * facts.threads)
                extent = Extent(data.n, data.features, self._columns(data))
            sizes = Sizes(settled, extent, facts.threads, self.n_branches)
            with work.clock.phase("sample"):
                sample = draw(work, data, max(sizes.sample, self._least_sample(data.n)), rng)
                work.traffic.sample = sample.x.nbytes + sample.y.nbytes
            with work.clock.phase("plan"):
                plan, known = self._settle(sizes, data, sample, rng)
            trained = train(work, facts, plan, data)
        more = {"_model": trained.model, "bytes_": work.traffic, "seconds_": work.clock.seconds}
        return data, trained, {**known, **more}

    def _check_branches(self) -> None:
        number = self.n_branches
        if number is None:
            return
        if not isinstance(number, Integral) or number < 2 or number & (number - 1):
            raise ValueError(
                f"n_branches must be None or an integer that is a power of two, at least 2, got {number!r}"
            )

    def _remember(self, data: Training) -> None:
        """Number and names of features, as scikit-learn has them."""
        self.n_features_in_ = data.features
        self.__dict__.pop("feature_names_in_", None)
        if data.names is not None:
            self.feature_names_in_ = data.names

    # New points -------------------------------------------------------------------------------------

    def _check_fitted(self) -> None:
        check_is_fitted(self, "_model")

    def _lazy_new(self, X: PointsLike) -> tuple[LazyChunks, list[Any]]:
        """Blocks of new points, and the same checked."""
        self._check_fitted()
        points = lazy_points(X)
        self._check_features(points.features, points.names)
        checked = [lazy(as_matrix)(block, i, self.n_features_in_) for i, block in enumerate(points.delayed)]
        return points, checked

    def _new(self, X: PointsLike) -> np.ndarray:
        """New points that are here."""
        self._check_fitted()
        check_kind(X, "X")
        x = check_array(to_host(X), dtype=ACCEPTED)
        self._check_features(x.shape[1], names_of(X))
        return np.asarray(x)

    def _check_features(self, number: int, names: np.ndarray | None) -> None:
        self._check_width(number)
        known = getattr(self, "feature_names_in_", None)
        if known is not None and names is not None and list(known) != list(names):
            raise ValueError(
                f"The feature names should match those that were passed during fit: {', '.join(known)}"
            )

    def score(self, X: PointsLike, y: TargetsLike, sample_weight: Weights = None) -> float:
        """R² of predictions, of labels the share of right ones; on the workers if X is a Dask collection.

        Parameters
        ----------
        X : Dask array or dataframe, or an array here
        y : targets or labels, in the same blocks if X is a dataframe
        sample_weight : weights of the rows, as y, default=None
        """
        predicted, client = self.predict(X), self._model.client
        if is_lazy(X):
            there = scores.accuracy if self._labels else scores.r2
            return there(client, X, predicted, y, sample_weight)
        y, sample_weight = (
            bring(client, [each], "score")[0] if is_lazy(each) else each for each in (y, sample_weight)
        )
        here = accuracy_score if self._labels else r2_score
        return float(here(y, predicted, sample_weight=sample_weight))


def as_array(made: Sequence[Any], rows: Sequence[int] | None, shape: tuple[int, ...], dtype: str) -> da.Array:
    """A Dask array of blocks, each of which has this shape beside its rows."""
    name = f"hck-predict-{uuid4().hex}"
    zeros = (0,) * len(shape)
    graph: dict[Any, Any] = {(name, i, *zeros): each.key for i, each in enumerate(made)}
    whole = HighLevelGraph.from_collections(name, graph, dependencies=list(made))
    chunks = (tuple(rows) if rows is not None else (np.nan,) * len(made), *((size,) for size in shape))
    return da.Array(whole, name, chunks, dtype=dtype)
