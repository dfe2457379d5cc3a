"""What the estimators on a cluster share."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar
from uuid import uuid4

import dask.array as da
import numpy as np
from dask.highlevelgraph import HighLevelGraph
from distributed import Client
from sklearn.base import clone
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from hck.dask import tasks
from hck.dask.cluster import Facts, lazy
from hck.dask.collections import Lazy, lazy_points
from hck.dask.fit import budget_of
from hck.dask.model import Model
from hck.dask.sampling import Training
from hck.dask.traffic import Traffic
from hck.estimators._base import _ACCEPTED

EXTRA = {"client": None, "n_branches": None}  # parameters that plain estimators do not have

PARAMETERS = """client : distributed.Client or None, default=None
        The cluster to work on. None: the client that was started last.
    n_branches : int or None, default=None
        How many branches a tree is cut into: a power of two, at least 2. None: enough for the memory of the
        workers (`memory_budget`), and two for each of their threads where there are points enough."""

ATTRIBUTES = """bytes_ : hck.dask.Traffic
        What travelled during the fit.
    seconds_ : dict
        Seconds of its phases."""


class OnCluster(ABC):
    """An estimator whose branches are on the workers of a Dask cluster."""

    client: Client | None
    n_branches: int | None
    n_features_in_: int
    bytes_: Traffic
    seconds_: dict[str, float]
    _model: Model
    _plain: ClassVar[Any]  # the estimator of one machine

    def __sklearn_clone__(self) -> Any:
        given = self.get_params(deep=False)  # type: ignore[attr-defined]
        client = given.pop("client")  # which cannot be copied
        copied = {name: clone(value, safe=False) for name, value in given.items()}
        cls: Any = type(self)
        return cls(client=client, **copied)

    def __getstate__(self) -> dict[str, Any]:
        if "_model" in self.__dict__:
            raise TypeError(
                f"a fitted {type(self).__name__} cannot be pickled or copied, since its branches are on "
                "workers: use to_local()"
            )
        state: Any = super().__getstate__()
        return {**state, "client": None}

    def save(self, path: Any, force: bool = False) -> None:
        """Save the model of `to_local`, which has to fit into this machine's memory; `hck.load` loads it."""
        self.to_local().save(path, force)

    @abstractmethod
    def to_local(self) -> Any:
        """The model on this machine, where it fits into memory."""

    def _alone(self, **changes: Any) -> Any:
        """The estimator of one machine with the same parameters, not fitted."""
        given = self.get_params(deep=False)  # type: ignore[attr-defined]
        given = {name: value for name, value in given.items() if name not in EXTRA}
        return self._plain(**{**given, **changes})

    def _settled(self, facts: Facts) -> Any:
        """The same, for work on the client: in the CPU's memory, within the memory of a worker's thread."""
        settled = self._alone(
            device=None, memory_budget=budget_of(getattr(self, "memory_budget", None), facts)
        )
        settled.n_branches = self.n_branches
        return settled

    def _check_branches(self) -> None:
        number = self.n_branches
        if number is not None and (number != int(number) or number < 2 or number & (number - 1)):
            raise ValueError(f"n_branches must be a power of two, at least 2, got {number!r}")

    def _remember(self, data: Training) -> None:
        """Number and names of features, as scikit-learn has them."""
        self.n_features_in_ = data.features
        self.__dict__.pop("feature_names_in_", None)
        if data.names is not None:
            self.feature_names_in_ = data.names

    # New points -------------------------------------------------------------------------------------

    def _check_fitted(self) -> None:
        check_is_fitted(self, "_model")

    def _lazy_new(self, X: Any) -> tuple[Lazy, list[Any]]:
        """Blocks of new points, and the same checked."""
        self._check_fitted()
        points = lazy_points(X)
        if points.features != self.n_features_in_:
            raise ValueError(
                f"X has {points.features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        known = getattr(self, "feature_names_in_", None)
        if known is not None and points.names is not None and list(known) != list(points.names):
            raise ValueError(
                f"The feature names should match those that were passed during fit: {', '.join(known)}"
            )
        checked = [
            lazy(tasks.check_new)(block, i, self.n_features_in_) for i, block in enumerate(points.blocks)
        ]
        return points, checked

    def _new(self, X: Any) -> np.ndarray:
        """New points that are here."""
        self._check_fitted()
        X = X.detach().cpu().numpy() if hasattr(X, "detach") else X
        x = check_array(X, dtype=_ACCEPTED)
        if x.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {x.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input"
            )
        return np.asarray(x)


def as_array(made: Sequence[Any], rows: Sequence[int] | None, shape: tuple[int, ...], dtype: Any) -> da.Array:
    """A Dask array of blocks, each of which has this shape beside its rows."""
    name = f"hck-predict-{uuid4().hex}"
    zeros = (0,) * len(shape)
    graph: dict[Any, Any] = {(name, i, *zeros): each.key for i, each in enumerate(made)}
    whole = HighLevelGraph.from_collections(name, graph, dependencies=list(made))
    chunks = (tuple(rows) if rows is not None else (np.nan,) * len(made), *((size,) for size in shape))
    return da.Array(whole, name, chunks, dtype=dtype)
