"""Checks of what comes from files: a ValueError that says which part is wrong."""

from numbers import Integral
from typing import TypeGuard

import torch
from torch import Tensor

_INTEGERS = (torch.int64, torch.int32)
_FLOATS = (torch.float64, torch.float32)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether it is a whole number, of Python or NumPy; truth values are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def require(holds: bool, what: str) -> None:
    """Raise a ValueError that says what must hold, unless it does."""
    if not holds:
        raise ValueError(what)


def check_floats(name: str, tensor: Tensor, *shape: int | None) -> None:
    """Finite floating-point numbers of a shape; None stands for any length."""
    _check_shape(name, tensor, shape)
    require(tensor.dtype in _FLOATS, f"{name} must be float64 or float32, got {tensor.dtype}")
    require(bool(torch.isfinite(tensor).all()), f"{name} must be finite, but has NaN or infinity")


def check_indices(name: str, tensor: Tensor, stop: int, *shape: int | None, low: int = 0) -> None:
    """Whole numbers from `low` to `stop` − 1, of a shape; None stands for any length."""
    _check_shape(name, tensor, shape)
    require(tensor.dtype in _INTEGERS, f"{name} must be int64 or int32, got {tensor.dtype}")
    if tensor.numel():
        least, most = (int(end) for end in torch.aminmax(tensor))
        require(
            low <= least and most < stop, f"{name} must be from {low} to {stop - 1}, got {least} to {most}"
        )


def check_permutation(name: str, tensor: Tensor, n: int) -> None:
    """Each of 0, …, n − 1 once."""
    check_indices(name, tensor, n, n)
    counts = torch.bincount(tensor, minlength=n)
    require(bool((counts == 1).all()), f"{name} must have each of 0 to {n - 1} once")


def _check_shape(name: str, tensor: Tensor, shape: tuple[int | None, ...]) -> None:
    fits = tensor.ndim == len(shape) and all(
        wanted is None or wanted == found for wanted, found in zip(shape, tensor.shape, strict=True)
    )
    wanted = ", ".join("any" if each is None else str(each) for each in shape)
    require(fits, f"{name} must have the shape ({wanted}), got {tuple(tensor.shape)}")
