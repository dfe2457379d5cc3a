"""All that is known of a leaf or of an inner node in one piece of memory, made and given back at once.

It begins alike for both, so that a parent need not know what its children are::

    half, gram               float64: half the log-determinant of all below, and bᵀ (K_h + noise)⁻¹ b (k, k)
    information, mean        −Θ (r, r) and −t (r, k), which are sent up
    factor, whitened, a      of a leaf: L (n, n), Y (n, r) and L⁻¹ b (n, k)
    packed, diagonal, nu, q  of an inner node: A and M packed (r, r), M's diagonal (r,), ν and q (r, k)

n is the leaf's size, r the rank, k the number of right-hand sides. H is not kept, since it is A⁻¹ W.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import torch
from torch import Tensor

_LINE = 64  # bytes of a cache line


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the parts of a record are, in numbers from its start."""

    dtype: torch.dtype
    parts: dict[str, tuple[int, tuple[int, ...]]]  # first number and shape
    size: int
    k: int

    @property
    def rank(self) -> int:
        return self.parts["information"][1][0]

    @property
    def head(self) -> int:
        """Where that begins which is of the layout's type."""
        return self.parts["information"][0]


def leaf_layout(dtype: torch.dtype, n: int, r: int, k: int) -> Layout:
    """Of a leaf of n points."""
    return _layout(dtype, r, k, n)


def node_layout(dtype: torch.dtype, r: int, k: int) -> Layout:
    """Of an inner node."""
    return _layout(dtype, r, k, None)


@lru_cache(4096)
def _layout(dtype: torch.dtype, r: int, k: int, n: int | None) -> Layout:
    shapes: dict[str, tuple[int, ...]] = {"information": (r, r), "mean": (r, k)}
    if n is None:
        shapes |= {"packed": (r, r), "diagonal": (r,), "nu": (r, k), "q": (r, k)}
    else:
        shapes |= {"factor": (n, n), "whitened": (n, r), "a": (n, k)}
    at = -(-8 * (1 + k * k) // _LINE) * _LINE // dtype.itemsize
    parts = {}
    for name, shape in shapes.items():
        parts[name] = at, shape
        at += prod(shape)
    return Layout(dtype, parts, at, k)


class Record:
    """The memory of a leaf or of an inner node; parts have a leading dimension of 1, to be stacked by."""

    __slots__ = ("layout", "memory")

    def __init__(self, layout: Layout, device: torch.device) -> None:
        self.layout = layout
        self.memory = torch.empty(layout.size, dtype=layout.dtype, device=device)

    @classmethod
    def of(cls, layout: Layout, half: Tensor, gram: Tensor, parts: Sequence[Tensor]) -> "Record":
        """With copies of all parts, in the order of the layout; half () and gram are in float64."""
        tally = torch.cat([half.reshape(1), gram.reshape(-1)]).view(layout.dtype)
        made, gap = object.__new__(cls), tally.new_zeros(layout.head - len(tally))
        made.layout, made.memory = layout, torch.cat([tally, gap, *(part.reshape(-1) for part in parts)])
        return made

    def __getitem__(self, name: str) -> Tensor:
        at, shape = self.layout.parts[name]
        return self.memory[at : at + prod(shape)].view(1, *shape)

    @property
    def tally(self) -> Tensor:
        """half and gram, one after another: (1 + k²,)."""
        return self.memory[: (1 + self.layout.k**2) * 8 // self.layout.dtype.itemsize].view(torch.float64)

    @property
    def half(self) -> float:
        return self.tally[0].item()

    @property
    def gram(self) -> Tensor:
        return self.tally[1:].view(self.layout.k, self.layout.k)

    @property
    def nbytes(self) -> int:
        return self.memory.nbytes


def stacked(records: Sequence[Record], name: str) -> Tensor:
    """A part of several records, in which it has one shape; of one by itself it is not copied."""
    return records[0][name] if len(records) == 1 else torch.cat([record[name] for record in records])
