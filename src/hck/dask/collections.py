"""Dask arrays and dataframes as blocks of rows, in pairs of X and y."""

from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from dask.base import is_dask_collection

_ROWS = 100_000  # of a block of data that are in one piece


@dataclass
class Lazy:
    """Blocks of rows that are not computed yet.

    Attributes
    ----------
    blocks : list of Delayed
    rows : list of int, or None
        How many each has, if that is known.
    features : int
    names : ndarray of str, or None
        Of the columns of a dataframe.
    """

    blocks: list[Any]
    rows: list[int] | None
    features: int
    names: np.ndarray | None = None


def is_lazy(x: Any) -> bool:
    return bool(is_dask_collection(x))


def lazy_points(X: Any, blocks: int = 1, known: bool = False) -> Lazy:
    """X as blocks; data in one piece are cut into at least so many.

    Parameters
    ----------
    known : bool
        Whether the sizes of an array's chunks have to be known.
    """
    if _is_frame(X):
        _check_columns(X)
        names = np.asarray(X.columns, dtype=object) if all(isinstance(c, str) for c in X.columns) else None
        return Lazy(list(X.to_delayed()), None, len(X.columns), names)
    X = _as_array(X, "X", blocks, known)
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got a Dask array of shape {X.shape}. Reshape your data")
    if np.isnan(X.shape[1]):
        raise ValueError("the number of columns of X is not known: call X.compute_chunk_sizes() first")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    rows = None if np.isnan(X.shape[0]) else list(X.chunks[0])
    return Lazy(list(X.to_delayed().ravel()), rows, X.shape[1])


def lazy_pairs(X: Any, y: Any, blocks: int = 1) -> tuple[Lazy, list[Any]]:
    """Blocks of X and the blocks of y that belong to them."""
    if y is None:
        raise ValueError("this estimator requires y to be passed, but the target y is None")
    points = lazy_points(X, blocks, known=True)
    if _is_frame(y) or _is_series(y):
        return points, _same_number(points, list(y.to_delayed()), "partitions")
    if points.rows is None:
        if not is_lazy(y):
            raise ValueError("X is a dataframe: y must be one of its columns, or a Dask array or dataframe")
        chunks = y.rechunk(dict.fromkeys(range(1, y.ndim), -1)) if y.ndim > 1 else y
        return points, _same_number(points, list(chunks.to_delayed().ravel()), "chunks")
    y = _as_array(y, "y", blocks)
    if y.ndim not in (1, 2):
        raise ValueError(f"y must have one axis or two, got a Dask array of shape {y.shape}")
    if y.shape[0] != sum(points.rows):
        raise ValueError(f"X has {sum(points.rows)} rows but y has {y.shape[0]}")
    y = y.rechunk({0: tuple(points.rows), **({1: -1} if y.ndim == 2 else {})})
    return points, list(y.to_delayed().ravel())


def _same_number(points: Lazy, y: list[Any], what: str) -> list[Any]:
    if len(points.blocks) != len(y):
        raise ValueError(f"X has {len(points.blocks)} {what} but y has {len(y)}: they must have the same")
    return y


def _as_array(x: Any, name: str, blocks: int, known: bool = True) -> Any:
    if _is_frame(x) or _is_series(x):
        raise ValueError(
            f"{name} is a dataframe, but X is an array: use X.to_dask_array(lengths=True) for both"
        )
    if is_lazy(x) and not isinstance(x, da.Array):
        raise ValueError(f"{name} must be a Dask array or dataframe, got {type(x).__name__}")
    if not is_lazy(x):
        x = np.asarray(x)
        step = max(1, min(_ROWS, -(-len(x) // blocks))) if x.ndim else 1
        x = da.from_array(x, chunks=(step, *(-1 for _ in x.shape[1:])) if x.ndim else ())
    if known and x.ndim and np.isnan(x.shape[0]):
        raise ValueError(
            f"the sizes of the chunks of {name} are not known: call {name}.compute_chunk_sizes() first"
        )
    return x


def _is_frame(x: Any) -> bool:
    return is_lazy(x) and hasattr(x, "columns") and hasattr(x, "npartitions") and x.ndim == 2


def _is_series(x: Any) -> bool:
    return is_lazy(x) and hasattr(x, "npartitions") and hasattr(x, "name") and not isinstance(x, da.Array)


def _check_columns(frame: Any) -> None:
    wrong = [str(name) for name, kind in frame.dtypes.items() if getattr(kind, "kind", "O") not in "biuf"]
    if wrong:
        raise ValueError(
            f"columns of X that are not numbers: {', '.join(wrong)}; encode them first, for example with "
            "dask.dataframe.get_dummies"
        )
