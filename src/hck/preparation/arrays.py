"""What users give, wherever it is."""

from typing import Any, TypeAlias, TypeVar

import numpy as np
from torch import Tensor

from hck.kernels.inputs import on_host, unmasked

Value = TypeVar("Value")

# Points: an array-like, a sparse matrix, a tensor or a table of shape (n, d), or a sequence of objects.
PointsLike: TypeAlias = Any
TargetsLike: TypeAlias = Any  # an array-like or a tensor of shape (n,) or (n, targets); on disk, a path
Table: TypeAlias = Any  # a dataframe, of pandas or of another library


def to_host(values: Tensor | Value) -> np.ndarray | Value:
    """A tensor of any device, or a list of them, as arrays in the CPU's memory; anything else as it is.

    What a masked array hides is missing.
    """
    if isinstance(values, list | tuple) and len(values) and isinstance(values[0], Tensor):
        return [to_host(each) for each in values]  # type: ignore[return-value]
    if not isinstance(values, Tensor):
        return unmasked(values)
    check_has_numbers(values)
    return on_host(values)


def check_has_numbers(x: Tensor) -> None:
    """Raise ValueError for tensors that are shapes without numbers, or packed ones, as of float8."""
    if x.is_meta or x.is_quantized or (x.is_floating_point() and x.itemsize < 2):
        raise ValueError(f"a tensor of {x.dtype} on {str(x.device)!r} has no numbers to learn from")


def count(X: PointsLike) -> int:
    """How many points; sparse matrices have no length."""
    return int(X.shape[0] if hasattr(X, "shape") else len(X))
