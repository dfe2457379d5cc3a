"""NumPy's npz files: arrays X and y, dense or the pieces of a CSR matrix, in one part or in several."""

import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, is_zipfile

import numpy as np
import scipy.sparse as sp

from hck.backend.files import replacing
from hck.datasets.table import Table, refuse_missing
from hck.points import check_sparse

_PIECES = ("data", "indices", "indptr", "shape")
_EXACT = (np.uint8, np.int16, np.float32)  # tried in this order


@contextmanager
def opened(path: Path) -> Iterator[Mapping[str, np.ndarray]]:
    """The arrays of a file, each read when it is asked for."""
    if not is_zipfile(path):
        raise ValueError(f"{path.name} is not an npz file, or is damaged")
    try:
        with np.load(path) as arrays:
            yield arrays
    except (BadZipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path.name} is damaged: {error}") from None
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise ValueError(f"{path.name} has an array of Python's objects: save numbers or text") from None


def read_npz(path: Path, part: str | None = None, target_needed: bool = True) -> Table:
    """X and y, or X_part and y_part. y may be absent, or have holes where it is not needed."""
    with opened(path) as arrays:
        table = _read_part(arrays, path, part)
    if target_needed and table.y is not None and table.y.dtype.kind == "f":
        refuse_missing(np.isnan(table.y), str(table.target_name), path.name)
    return table


def parts_of(path: Path) -> tuple[str | None, ...]:
    """The parts to train and to test on, if the file has them: ("train", "test"); else (None,)."""
    with opened(path) as arrays:
        return ("train", "test") if {"train", "test"} <= set(_parts(arrays)) else (None,)


def write_npz(path: Path, parts: dict[str | None, Table]) -> None:
    """Tables, each as a part, or one as the whole file, with the smallest numbers that are exact."""
    arrays: dict[str, Any] = {}
    for part, table in parts.items():
        x, y = _named("X", part), _named("y", part)
        if sp.issparse(table.X):
            pieces = (_small(table.X.data), table.X.indices, table.X.indptr, table.X.shape)
            arrays |= {f"{x}_{piece}": value for piece, value in zip(_PIECES, pieces, strict=True)}
        else:
            arrays[x] = _small(table.X)
        arrays[y] = table.y
    with replacing(path) as draft, draft.open("wb") as file:
        np.savez(file, **arrays)


def _read_part(arrays: Mapping[str, np.ndarray], path: Path, part: str | None) -> Table:
    x, y = _named("X", part), _named("y", part)
    if x in arrays:
        X: Any = arrays[x]
    elif all(f"{x}_{piece}" in arrays for piece in _PIECES):
        X = _csr([arrays[f"{x}_{piece}"] for piece in _PIECES], f"{path.name}: {x}")
    elif found := _parts(arrays):
        raise ValueError(f"{path.name} has the parts {', '.join(found)}: say which (part)")
    else:
        raise ValueError(f"{path.name} has no array {x!r}; it has {', '.join(arrays) or 'none'}")
    _refuse_complex(X.dtype, x, path)
    if X.ndim != 2 or X.shape[0] == 0:
        raise ValueError(f"{path.name}: {x} must have a shape (n, d) with n > 0, got {X.shape}")
    if y not in arrays:
        return Table(X)
    target = arrays[y]
    _refuse_complex(target.dtype, y, path)
    if target.shape != (X.shape[0],):
        raise ValueError(f"{path.name}: {y} must have the shape ({X.shape[0]},), got {target.shape}")
    return Table(X, target, target_name=y)


def _refuse_complex(dtype: np.dtype, name: str, path: Path) -> None:
    if dtype.kind == "c":
        raise ValueError(f"{path.name}: {name} must be real numbers, got {dtype}")


def _csr(pieces: list[np.ndarray], called: str) -> sp.csr_matrix:
    """A CSR matrix of its data, indices, indptr and shape, or an error if they do not belong together."""
    data, indices, start, shape = pieces
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or (shape < 0).any():
        raise ValueError(f"{called}_shape must be two whole numbers, got {shape.tolist()!r}")
    if indices.dtype.kind not in "iu" or start.dtype.kind not in "iu":
        raise ValueError(f"{called}: indices and indptr must be integers, not {indices.dtype}, {start.dtype}")
    try:
        X = sp.csr_matrix((data, indices, start), shape=tuple(map(int, shape)))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{called} is a malformed sparse matrix: {error}") from None
    return check_sparse(X, called).astype(float)


def _named(name: str, part: str | None) -> str:
    return name if part is None else f"{name}_{part}"


def _parts(arrays: Mapping[str, np.ndarray]) -> list[str]:
    """Such as train and test, of X_train or X_train_data, and X_test."""
    found = (re.fullmatch(r"X_([^_]+)(?:_data)?", name) for name in arrays)
    return [match[1] for match in found if match and match[1] not in _PIECES]


def _small(values: np.ndarray) -> np.ndarray:
    for dtype in _EXACT:
        with np.errstate(invalid="ignore", over="ignore"):
            small = values.astype(dtype)
        if np.array_equal(small, values):
            return small
    return values
