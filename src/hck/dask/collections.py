"""Dask arrays and dataframes as chunks of rows, and what belongs beside them."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.base import is_dask_collection
from dask.delayed import Delayed

from hck.preparation.arrays import to_host

_ROWS = 100_000  # of a chunk of data that are in one piece
Collection: TypeAlias = Any  # a Dask array, dataframe or series, or what NumPy makes an array of


@dataclass
class LazyChunks:
    """Chunks of rows that are not computed yet; how many rows each has, and names of columns, if known."""

    delayed: list[Delayed]
    rows: list[int] | None
    features: int
    names: np.ndarray | None = None


def is_lazy(x: Collection) -> bool:
    return bool(is_dask_collection(x))


def lazy_points(X: Collection, least: int = 1, known: bool = False) -> LazyChunks:
    """X in chunks, whose sizes may have to be `known`: at least so many, if it is in one piece."""
    check_kind(X, "X")
    _check_columns(X)
    names = names_of(X)
    if len(getattr(X, "shape", ())) == 2 and X.shape[1] == 0:
        raise ValueError("X has no columns: at least one feature is needed")
    if _is_frame(X):
        return LazyChunks(list(X.to_delayed()), None, len(X.columns), names)
    if _is_series(X):
        raise ValueError("Expected 2D array, got a Dask series: use X.to_frame()")
    X = _as_array(X, "X", least, known)
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got a Dask array of shape {X.shape}. Reshape your data")
    if np.isnan(X.shape[1]):
        raise ValueError("the number of columns of X is not known: call X.compute_chunk_sizes() first")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    rows = None if np.isnan(X.shape[0]) else list(X.chunks[0])
    return LazyChunks(list(X.to_delayed().ravel()), rows, X.shape[1], names)


def beside(points: LazyChunks, y: Collection, name: str) -> list[Delayed]:
    """The chunks of targets, or of weights, that belong to chunks of X."""
    if y is None:
        raise ValueError(f"this estimator requires {name} to be passed, but the target {name} is None")
    check_kind(y, name)
    if _is_frame(y) or _is_series(y):
        return _same_number(points, list(y.to_delayed()), "partitions", name)
    if points.rows is None:
        if not is_lazy(y):
            raise ValueError(
                f"how many rows the blocks of X have is not known: {name} must be a Dask array or series of "
                "the same blocks, for example one of its columns"
            )
        chunks = y.rechunk(dict.fromkeys(range(1, y.ndim), -1)) if y.ndim > 1 else y
        return _same_number(points, list(chunks.to_delayed().ravel()), "chunks", name)
    y = _as_array(y, name)
    if y.ndim not in (1, 2):
        raise ValueError(f"{name} must have one axis or two, got a Dask array of shape {y.shape}")
    if y.shape[0] != sum(points.rows):
        raise ValueError(f"X has {sum(points.rows)} rows but {name} has {y.shape[0]}")
    y = y.rechunk({0: tuple(points.rows), **({1: -1} if y.ndim == 2 else {})})
    return list(y.to_delayed().ravel())


def _same_number(points: LazyChunks, y: list[Delayed], what: str, name: str) -> list[Delayed]:
    if len(points.delayed) != len(y):
        raise ValueError(
            f"X has {len(points.delayed)} {what} but {name} has {len(y)}: they must have the same"
        )
    return y


def check_kind(x: Collection, name: str) -> None:
    """Raise an error for what has no chunks of numbers."""
    if isinstance(x, Delayed):
        raise ValueError(
            f"{name} is a Delayed, of which nothing is known: use dask.array.from_delayed or "
            "dask.dataframe.from_delayed"
        )
    if sp.issparse(x):
        raise ValueError(f"{name} is sparse, which is not possible here: use {name}.toarray()")
    if isinstance(x, np.ma.MaskedArray):
        raise ValueError(f"{name} is masked, which is not possible here: use {name}.filled()")
    if is_lazy(x) and not (isinstance(x, da.Array) or _is_frame(x) or _is_series(x)):
        raise ValueError(f"{name} must be a Dask array or dataframe, got {type(x).__name__}")


def _as_array(x: Collection, name: str, least: int = 1, known: bool = True) -> da.Array:
    if not is_lazy(x):
        x = np.asarray(to_host(x))
        step = max(1, min(_ROWS, -(-len(x) // least))) if x.ndim else 1
        x = da.from_array(x, chunks=(step, *(-1 for _ in x.shape[1:])) if x.ndim else ())
    if known and x.ndim and np.isnan(x.shape[0]):
        raise ValueError(
            f"the sizes of the chunks of {name} are not known: call {name}.compute_chunk_sizes() first"
        )
    return x


def _is_frame(x: Collection) -> bool:
    return is_lazy(x) and hasattr(x, "columns") and hasattr(x, "npartitions") and x.ndim == 2


def _is_series(x: Collection) -> bool:
    return is_lazy(x) and hasattr(x, "to_frame") and not _is_frame(x)


def names_of(x: Collection) -> np.ndarray | None:
    """The names of the columns of a dataframe, here or not, if all of them are text."""
    names = list(getattr(x, "columns", []))
    return np.array(names, dtype=object) if names and all(isinstance(name, str) for name in names) else None


def _check_columns(x: Collection) -> None:
    kinds = getattr(x, "dtypes", None)
    known = kinds.items() if kinds is not None and hasattr(kinds, "items") else ()  # of dataframes
    wrong = [str(name) for name, kind in known if getattr(kind, "kind", "O") not in "biuf"]
    if wrong:
        raise ValueError(
            f"columns of X that are not numbers: {', '.join(wrong)}; encode them first, for example with "
            "dask.dataframe.get_dummies"
        )
