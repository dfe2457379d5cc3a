"""Blocks of rows as they are on workers: checked, described, sampled."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets


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
    total : ndarray or None
        The sum of the targets.
    classes, counts : ndarray or None
        The labels in it, and how often they occur.
    """

    rows: int
    features: int
    itemsize: int
    shape: tuple[int, ...]
    total: np.ndarray | None = None
    classes: np.ndarray | None = None
    counts: np.ndarray | None = None


def prepare(x: Any, y: Any, number: int, features: int, labels: bool) -> Block:
    """Check a block of X and y."""
    x = as_matrix(x, number, features)
    y = _as_labels(y, number) if labels else _as_numbers(y, number)
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
    x = np.asarray(x.to_numpy() if hasattr(x, "to_numpy") else x)
    if x.dtype != np.float32:
        x = _as_floats(x, f"block {number} of X")
    if x.ndim != 2 or x.shape[1] != features:
        raise ValueError(f"block {number} of X has the shape {x.shape}; it must have {features} columns")
    _check_finite(x, "X", number)
    return x


def _as_numbers(y: Any, number: int) -> np.ndarray:
    y = _as_floats(np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y), f"block {number} of y")
    if y.ndim not in (1, 2):
        raise ValueError(f"block {number} of y has the shape {y.shape}; it must have one axis or two")
    _check_finite(y, "y", number)
    return y


def _as_labels(y: Any, number: int) -> np.ndarray:
    y = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise ValueError(f"block {number} of y has the shape {y.shape}; labels must have one axis")
    if y.dtype.kind == "f":
        _check_finite(y, "y", number)
        if len(y):
            check_classification_targets(y)
    elif y.dtype.kind == "O" and any(each is None or each != each for each in y.tolist()):
        raise ValueError(f"Input y contains missing labels in block {number}")
    return y


def _as_floats(values: np.ndarray, what: str) -> np.ndarray:
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {what}")
    try:
        return values.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} is not numbers: {error}") from None


def _check_finite(values: np.ndarray, name: str, number: int) -> None:
    fine = np.isfinite(values)
    if not fine.all():
        row = int(np.argmin(fine.reshape(len(values), -1).all(1)))
        raise ValueError(f"Input {name} contains NaN or infinity: in block {number}, first in its row {row}")


def describe(block: Block, labels: bool) -> Summary:
    """What the client has to know of a block."""
    each = block.x.itemsize * block.x.shape[1] + block.y.itemsize * int(np.prod(block.y.shape[1:]))
    known = len(block.x), block.x.shape[1], each, block.y.shape[1:]
    if not labels:
        return Summary(*known, total=block.y.sum(0))
    classes, counts = np.unique(block.y, return_counts=True)
    return Summary(*known, classes=classes, counts=counts)


def draw(block: Block, count: int, seed: int) -> Block:
    """Some rows of a block, drawn at random."""
    some = np.sort(np.random.default_rng(seed).permutation(len(block.x))[:count])
    return Block(block.x[some], block.y[some])
