"""Blocks of rows as they are on workers: checked, described, sampled."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from hck.preparation.coding import as_labels, is_missing
from hck.preparation.moments import Moments
from hck.preparation.targets import Labels, Numbers, Targets


@dataclass
class Block:
    """Some rows of the training data.

    Attributes
    ----------
    x : ndarray of shape (rows, d)
    y : ndarray of shape (rows,) or (rows, targets)
    """

    x: np.ndarray
    y: np.ndarray

    @property
    def nbytes(self) -> int:
        return self.x.nbytes + self.y.nbytes


@dataclass
class Summary:
    """What a client has to know of a block.

    Attributes
    ----------
    rows, features : int
    itemsize : int
        Bytes of a row's features and targets.
    shape : tuple of int
        Of the target of one row.
    moments : Moments
        Of the features.
    targets : Numbers or Labels
        Of the targets.
    """

    rows: int
    features: int
    itemsize: int
    shape: tuple[int, ...]
    moments: Moments
    targets: Targets | None = None


def prepare(x: Any, y: Any, number: int, features: int, labels: bool) -> Block:
    """Check a block of X and y."""
    x = as_matrix(x, number, features)
    y = label_block(y, number) if labels else number_block(y, number)
    if len(x) != len(y):
        raise ValueError(
            f"block {number} of X has {len(x)} rows, but that of y has {len(y)}: X and y must have the same "
            "chunks (partitions)"
        )
    return Block(x, y)


def as_matrix(x: Any, number: int, features: int) -> np.ndarray:
    """A block of X as an array of finite floats (rows, d)."""
    if sp.issparse(x):
        raise ValueError(
            f"block {number} of X is sparse, which is not possible here: make it dense, for example with "
            "X.map_blocks(lambda x: x.toarray())"
        )
    x = _as_array(x, "X", number)
    if x.dtype != np.float32:
        x = _as_floats(x, "X", number)
    if x.ndim != 2 or x.shape[1] != features:
        raise ValueError(f"block {number} of X has the shape {x.shape}; it must have {features} columns")
    _check_finite(x, "X", number)
    return x


def number_block(y: Any, number: int, name: str = "y") -> np.ndarray:
    """A block of y as an array of finite floats (rows,) or (rows, targets)."""
    y = _as_floats(_as_array(y, name, number), name, number)
    if y.ndim not in (1, 2):
        raise ValueError(f"block {number} of {name} has the shape {y.shape}; it must have one axis or two")
    _check_finite(y, name, number)
    return y


def label_block(y: Any, number: int) -> np.ndarray:
    """A block of y as an array of labels (rows,)."""
    return as_labels(_as_array(y, "y", number), where=f" of block {number}")


def _as_array(values: Any, name: str, number: int) -> np.ndarray:
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(
            f"block {number} of {name} is masked, which is not possible here: fill it, for example with "
            f"dask.array.ma.filled({name}, 0.0)"
        )
    return np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)


def _as_floats(values: np.ndarray, name: str, number: int) -> np.ndarray:
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: block {number} of {name}")
    try:
        return values.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        missing = np.array([is_missing(each) for each in values.ravel()]).reshape(values.shape)
        _check_finite(np.where(missing, np.nan, 0.0), name, number)
        raise ValueError(f"block {number} of {name} is not numbers: {error}") from None


def _check_finite(values: np.ndarray, name: str, number: int) -> None:
    fine = np.isfinite(values)
    if not fine.all():
        row = int(np.argmin(fine.reshape(len(values), -1).all(1)))
        raise ValueError(f"Input {name} contains NaN or infinity: in block {number}, first in its row {row}")


def describe(block: Block, labels: bool) -> Summary:
    """What the client has to know of a block."""
    each = block.x.itemsize * block.x.shape[1] + block.y.itemsize * int(np.prod(block.y.shape[1:]))
    targets = Labels.of(block.y) if labels else Numbers.of(block.y)
    return Summary(
        *(len(block.x), block.x.shape[1], each, block.y.shape[1:]), Moments.of(block.x), targets
    )  # fmt: skip


def pick(block: Block, some: np.ndarray) -> Block:
    """Some rows of a block."""
    return Block(block.x[some], block.y[some])
