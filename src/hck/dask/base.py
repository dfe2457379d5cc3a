"""What the estimators on a cluster share."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from numbers import Integral
from typing import Any, ClassVar
from uuid import uuid4

import dask.array as da
import numpy as np
from dask.highlevelgraph import HighLevelGraph
from distributed import Client
from sklearn.base import clone
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from hck.dask.blocks import as_matrix
from hck.dask.cluster import Facts, bring, lazy
from hck.dask.collections import Lazy, check_kind, is_lazy, lazy_points, names_of
from hck.dask.fit import budget_of
from hck.dask.model import Model
from hck.dask.sampling import Training
from hck.dask.traffic import Traffic
from hck.estimators.base import _ACCEPTED
from hck.estimators.branched import alone

EXTRA = {"client": None, "n_branches": None}  # parameters that plain estimators do not have

PARAMETERS = """client : distributed.Client or None, default=None
        The cluster to work on. None: the client that was started last. Copies have the same; pickles have
        none.
    n_branches : int or None, default=None
        How many branches a tree is cut into: a power of two, at least 2. None: enough for the memory of the
        workers (`memory_budget`), and two for each of their threads where there are points enough; then
        results depend on the cluster, even with the same `random_state`."""

ATTRIBUTES = """bytes_ : hck.dask.Traffic
        What travelled during the fit.
    seconds_ : dict
        Seconds of its phases."""

NOTES = """``device=None`` means the GPUs of the workers if each of them has one, and else their CPUs;
    ``memory_budget=None`` means half of what a worker has left, divided by its threads.

    Here `approximation` is ``"hierarchical"``, `partition` one of ``"random_projection"``, ``"pca"`` and
    ``"kd"``, `landmarks` one of ``"uniform"``, ``"kmeans"`` and ``"farthest"``, and the kernel a name or an
    object of `hck.kernels`. X is dense, and there are no weights.

    A tree has at least two branches. So it is never one leaf, and `rank` or `leaf_size` of at least n do not
    give the exact kernel, as they do on one machine."""


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

    def __copy__(self) -> Any:
        return self._with_client(self.__getstate__())

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self._with_client(deepcopy(self.__getstate__(), memo))

    def _with_client(self, state: dict[str, Any]) -> Any:
        """Another one of this state, and of the same client."""
        made = type(self).__new__(type(self))
        made.__dict__.update({**state, "client": self.client})
        return made

    def __sklearn_tags__(self) -> Any:
        tags: Any = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = False
        return tags

    @property
    def tree_(self) -> Any:
        """After `to_local` only."""
        self._check_fitted()
        raise AttributeError("trees are in pieces on the workers: use to_local().tree_")

    def save(self, path: Any, force: bool = False) -> None:
        """Save the model of `to_local`, which has to fit into this machine's memory; `hck.load` loads it."""
        self.to_local().save(path, force)

    @abstractmethod
    def to_local(self) -> Any:
        """The model on this machine, where it fits into memory."""

    def _settled(self, facts: Facts) -> Any:
        """For work on the client: in the CPU's memory, within the memory of a worker's thread."""
        return alone(self, device=None, memory_budget=budget_of(getattr(self, "memory_budget", None), facts))

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

    def _lazy_new(self, X: Any) -> tuple[Lazy, list[Any]]:
        """Blocks of new points, and the same checked."""
        self._check_fitted()
        points = lazy_points(X)
        self._check_features(points.features, points.names)
        checked = [lazy(as_matrix)(block, i, self.n_features_in_) for i, block in enumerate(points.blocks)]
        return points, checked

    def _new(self, X: Any) -> np.ndarray:
        """New points that are here."""
        self._check_fitted()
        check_kind(X, "X")
        x = check_array(X.detach().cpu().numpy() if hasattr(X, "detach") else X, dtype=_ACCEPTED)
        self._check_features(x.shape[1], names_of(X))
        return np.asarray(x)

    def _check_features(self, number: int, names: np.ndarray | None) -> None:
        if number != self.n_features_in_:
            raise ValueError(
                f"X has {number} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input"
            )
        known = getattr(self, "feature_names_in_", None)
        if known is not None and names is not None and list(known) != list(names):
            raise ValueError(
                f"The feature names should match those that were passed during fit: {', '.join(known)}"
            )

    def _here(self, values: Any) -> Any:
        """Targets or weights of points that are here, brought here if they are not."""
        return bring(self._model.client, [values], "score")[0] if is_lazy(values) else values


def as_array(made: Sequence[Any], rows: Sequence[int] | None, shape: tuple[int, ...], dtype: Any) -> da.Array:
    """A Dask array of blocks, each of which has this shape beside its rows."""
    name = f"hck-predict-{uuid4().hex}"
    zeros = (0,) * len(shape)
    graph: dict[Any, Any] = {(name, i, *zeros): each.key for i, each in enumerate(made)}
    whole = HighLevelGraph.from_collections(name, graph, dependencies=list(made))
    chunks = (tuple(rows) if rows is not None else (np.nan,) * len(made), *((size,) for size in shape))
    return da.Array(whole, name, chunks, dtype=dtype)
