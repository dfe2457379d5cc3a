"""Arrays as they are stored: nothing twice, and laid out in memory as before once they are read."""

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor

_FLOATS, _BITS = ("float64", "float32", "float16"), (64, 32, 16, 8)
_INTEGERS = (f"{kind}{bits}" for kind in ("int", "uint") for bits in _BITS)
DTYPES: dict[str, torch.dtype] = {name: getattr(torch, name) for name in (*_FLOATS, *_INTEGERS, "bool")}
JSON: TypeAlias = Any  # what JSON can hold
Node: TypeAlias = dict[str, JSON]  # that says in "is" what it stands for
Read: TypeAlias = Callable[[str, torch.dtype, list[int]], Tensor]  # name, dtype, shape of what is in a file
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def pack(tensor: Tensor) -> tuple[Tensor, dict[str, list[int]]]:
    """A view without repeated entries, its axes in the order of the memory; and how to get back.

    Rounding depends on how a matrix lies in memory, so that the order of its axes is kept. The layout has
    "expand", the shape that entries are repeated to, and "axes", the axes' old numbers, where needed.
    """
    layout: dict[str, list[int]] = {}
    repeated = [axis for axis in range(tensor.ndim) if tensor.stride(axis) == 0 and tensor.shape[axis] > 1]
    if repeated:
        layout["expand"] = list(tensor.shape)
    for axis in repeated:
        tensor = tensor.narrow(axis, 0, 1)
    steps = tensor.stride()
    axes = sorted(range(tensor.ndim), key=lambda axis: -steps[axis])
    if not tensor.is_contiguous() and axes != list(range(tensor.ndim)):
        layout["axes"] = axes
        tensor = tensor.permute(axes)
    return tensor, layout


def unpack(packed: Tensor, layout: Node) -> Tensor:
    """What `pack` was given."""
    if "axes" in layout:
        axes = layout["axes"]
        packed = packed.permute([axes.index(axis) for axis in range(len(axes))])
    return packed.expand(layout["expand"]) if "expand" in layout else packed
