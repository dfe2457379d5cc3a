"""Points that are not vectors: what counts as such, and how they are held."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from torch import Tensor


def looks_like_objects(x: Any) -> bool:
    """Whether a sequence is of things rather than of vectors.

    Vectors are the rows of a 2-D array, frame, tensor or sparse matrix, or lists of numbers of equal length.
    """
    if isinstance(x, str) or not (hasattr(x, "__len__") and hasattr(x, "__getitem__")):
        raise TypeError(f"expected a sequence of points, got {type(x).__name__}")
    if isinstance(x, Tensor) or sp.issparse(x):
        return False
    if hasattr(x, "ndim"):
        return bool(x.ndim == 1)
    rows = [row for row in x if isinstance(row, list | tuple | np.ndarray)]
    if len(rows) < len(x) or len({len(row) for row in rows}) != 1:
        return True
    return np.asarray(rows[0]).dtype.kind not in "biuf"


def object_array(x: Any) -> np.ndarray:
    """A 1-D array of things, even where they are sequences themselves."""
    if isinstance(x, np.ndarray) and x.ndim == 1:
        return x
    out = np.empty(len(x), dtype=object)
    for i, item in enumerate(x):
        out[i] = item
    return out
