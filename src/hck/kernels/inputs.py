"""What users hand to a kernel or make one of, checked."""

import reprlib
from collections.abc import Iterator, Mapping, Set
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike
from torch import Tensor

# Points as users have them: a 2-D array, frame, tensor or sparse matrix, or a sequence of things.
Data: TypeAlias = Any
Positive: TypeAlias = ArrayLike | Tensor  # a positive number, or one for each feature
_OF_NUMPY = (torch.float64, torch.float32, torch.float16)
_LEAST, _MOST = 1e-300, 1e154  # of parameters: inverses of smaller ones overflow, and squares of larger ones


def float_tensor(x: ArrayLike | Tensor) -> Tensor:
    """An array of numbers as a tensor of floating-point ones; a tensor as it is."""
    if isinstance(x, Tensor):
        return x
    array = np.asarray(x)
    refuse_complex(array)
    return torch.from_numpy(
        np.require(array, array.dtype if array.dtype.kind == "f" else np.float64, ["C", "W"])
    )


def refuse_complex(x: ArrayLike | Tensor | sp.spmatrix) -> None:
    """Raise ValueError for complex numbers, whose imaginary part would be lost."""
    given: Any = x if hasattr(x, "dtype") else np.asarray(x)
    if given.is_complex() if isinstance(given, Tensor) else given.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: got numbers of type {given.dtype}")


def refuse_times(x: Data, called: str) -> None:
    """Raise ValueError for dates and durations, which would become numbers of whatever unit they have.

    A date that is missing would even become one of the distant past.
    """
    if getattr(getattr(x, "dtype", None), "kind", None) in ("m", "M"):
        raise ValueError(
            f"{called} has dates or durations ({x.dtype}): turn them into numbers first; only of tables in "
            "memory columns of dates are understood"
        )


def refuse_single(x: Data, called: str) -> None:
    """Raise TypeError for what is no array or sequence, or is text, whose letters would be points."""
    if x is None or isinstance(x, str | bytes | bytearray | Mapping | Set | Iterator):
        got = "None" if x is None else f"a {type(x).__name__}"
        hint = "; make a list or an array of it" if isinstance(x, Iterator | Set) else ""
        raise TypeError(f"{called} must be an array, a frame, a tensor or a sparse matrix, got {got}{hint}")


def unmasked(x: Data) -> Data:
    """What a masked array holds, where masked as missing: NaN, or None beside text. All else as it is."""
    if not isinstance(x, np.ma.MaskedArray):
        return x
    gone, values = np.ma.getmaskarray(x), np.asarray(x)
    if not gone.any():
        return values
    nothing: Any = np.nan if values.dtype.kind in "biufc" else None
    return np.where(gone, nothing, values)


def on_host(x: Tensor) -> np.ndarray:
    """A tensor of any device as an array in the CPU's memory; what NumPy has no type for as float32."""
    here = x.detach().cpu()
    return (here.float() if here.is_floating_point() and here.dtype not in _OF_NUMPY else here).numpy()


def real_array(x: ArrayLike | Tensor, called: str = "what should be numbers") -> np.ndarray:
    """Numbers in the CPU's memory as float64; ValueError if they are complex, or times, or none."""
    array = on_host(x) if isinstance(x, Tensor) else np.asarray(unmasked(x))
    refuse_complex(array)
    refuse_times(array, called)
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{called} must be numbers, got {reprlib.repr(x)}") from None


def comparable(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Two blocks of points of one dtype, or ValueError if there are no values between them."""
    for x in (a, b):
        refuse_complex(x)
        if x.ndim < 2:
            raise ValueError(f"expected blocks of shape (*batch, n_points, n_features), got {tuple(x.shape)}")
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"points have {a.shape[-1]} features on one side and {b.shape[-1]} on the other")
    if 0 in (a.shape[-2], b.shape[-2]):
        raise ValueError("a kernel needs at least one point on each side")
    dtype = torch.promote_types(a.dtype, b.dtype)
    if not dtype.is_floating_point:
        dtype = torch.float64
    return a.to(dtype), b.to(dtype)


def positive(name: str, value: Positive, most_axes: int = 0) -> float | Tensor:
    """A positive number or, with `most_axes` = 1, perhaps one per feature; ValueError if it is not.

    A tensor that requires a gradient stays as it is.
    """
    if name == "lengthscale" and np.ndim(value) == 2:
        raise ValueError(
            f"lengthscale must be a number or one number per feature, got an array of shape "
            f"{tuple(np.shape(value))}: a matrix L is given to the kernel, as in kernel=Matern(1.0, metric=L)"
        )
    if isinstance(value, Tensor) and value.requires_grad:
        return value
    array = on_host(value) if isinstance(value, Tensor) else np.asarray(value)
    if array.dtype.kind not in "fiu" or array.ndim > most_axes or array.size == 0:
        what = "a number or one number per feature" if most_axes else "a number"
        raise ValueError(f"{name} must be {what}, got {value!r}")
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise ValueError(f"{name} must be positive and finite, got {value!r}")
    least, most = float(array.min()), float(array.max())
    if least < _LEAST or most > _MOST:
        bound = f"at least {_LEAST:.0e}" if least < _LEAST else f"at most {_MOST:.0e}"
        raise ValueError(f"{name} must be {bound}, got {value!r}: scale what it is measured in")
    if isinstance(value, Tensor):
        return value
    return float(array) if array.ndim == 0 else torch.from_numpy(array.astype(np.float64))


def linear_metric(value: ArrayLike | Tensor) -> Tensor:
    """A matrix (d, k) of real numbers in memory of its own, by which points are multiplied; or ValueError.

    A tensor that requires a gradient stays as it is.
    """
    array = on_host(value) if isinstance(value, Tensor) else np.asarray(value)
    if array.dtype.kind not in "fiu" or array.ndim != 2 or array.size == 0:
        raise ValueError(
            f"metric must be a matrix of numbers of shape (n_features, k), got an array of shape "
            f"{array.shape} and type {array.dtype}; a lengthscale for each feature is given as lengthscale"
        )
    most = np.finfo(array.dtype if array.dtype.kind == "f" else np.float64).max ** 0.5 / 1024
    if not (np.abs(array) <= most).all():  # NaN neither
        raise ValueError(f"metric must be finite, with entries of {most:.0e} at most, got {value!r}")
    if isinstance(value, Tensor) and value.is_floating_point():
        return value if value.requires_grad else value.clone()
    return torch.from_numpy(array.astype(np.float64))


def looks_like_objects(x: Data) -> bool:
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


def object_array(x: Data) -> np.ndarray:
    """A 1-D array of things, even where they are sequences themselves."""
    if isinstance(x, np.ndarray) and x.ndim == 1:
        return x
    out = np.empty(len(x), dtype=object)
    for i, item in enumerate(x):
        out[i] = item
    return out
