"""Ragged groups of positions as padded tables, so that a batch of them is one tensor operation."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

# A group joins a batch if padding it to the batch's width wastes at most this share of the width.
_WASTE = 0.2


@dataclass(frozen=True)
class Blocks:
    """A stack of groups of positions.

    Attributes
    ----------
    index : Tensor of shape (blocks, width)
        Positions; -1 where a block is shorter than the width. As an index into an array with one
        spare row at its end, -1 means that row.
    full : bool
        Whether it is known that no entry is -1, so that masking can be skipped.
    """

    index: Tensor
    full: bool

    def __len__(self) -> int:
        return self.index.shape[0]

    def __getitem__(self, which: Tensor | slice) -> "Blocks":
        return Blocks(self.index[which], self.full)

    @property
    def mask(self) -> Tensor:
        """True where an entry is real."""
        return self.index >= 0

    @property
    def safe(self) -> Tensor:
        """The positions, with padding repeating the first of each block."""
        return self.index if self.full else self.index.where(self.mask, self.index[:, :1]).clamp_min(0)


@dataclass(frozen=True)
class Batch(Blocks):
    """Blocks that are processed together, and the numbers of the groups they are."""

    groups: Tensor  # (blocks,)


def consecutive(start: Tensor, count: Tensor, width: int, full: bool) -> Blocks:
    """Blocks of the positions start, start + 1, …, start + count - 1."""
    step = torch.arange(width, device=start.device)
    index = start[:, None] + step
    return Blocks(index if full else index.masked_fill(step >= count[:, None], -1), full)


def ranges(start: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """All positions of groups of consecutive positions, group after group, and the group of each."""
    group = torch.arange(len(start), device=start.device).repeat_interleave(count)
    shift = start - (count.cumsum(0) - count)
    return torch.arange(len(group), device=start.device) + shift[group], group


def batches(start: Tensor, count: Tensor, per_chunk: Callable[[int], int]) -> list[Batch]:
    """Groups of consecutive positions in batches of similar size; empty groups are left out.

    Parameters
    ----------
    start, count : Tensor of shape (groups,)
        Group g holds the positions start[g], …, start[g] + count[g] - 1.
    per_chunk : callable
        The largest number of blocks in one batch, given their width.
    """
    order = torch.argsort(count, descending=True, stable=True)
    sizes, number = torch.unique_consecutive(count[order], return_counts=True)
    sizes, number = sizes.tolist(), number.tolist()  # the one synchronisation
    found, first, done = [], 0, 0
    while first < len(sizes) and sizes[first] > 0:
        width = sizes[first]
        least = max(1, int(width * (1 - _WASTE)))
        last = first + 1
        while last < len(sizes) and sizes[last] >= least:
            last += 1
        alike = order[done : done + sum(number[first:last])].sort().values
        for groups in alike.split(max(1, per_chunk(width))):
            blocks = consecutive(start[groups], count[groups], width, last == first + 1)
            found.append(Batch(blocks.index, blocks.full, groups))
        done += len(alike)
        first = last
    return found


def group_by(label: Tensor, n_groups: int) -> tuple[Tensor, Tensor, Tensor]:
    """Sort positions by label: the order, and where each group starts and how many it has."""
    order = torch.argsort(label, stable=True)
    count = torch.bincount(label, minlength=n_groups)
    return order, count.cumsum(0) - count, count


def pieces(start: Tensor, count: Tensor, limit: int) -> tuple[Tensor, Tensor, Tensor]:
    """Cut groups of consecutive positions into pieces of at most `limit`: start, count, and group of each."""
    n_pieces = (count + limit - 1) // limit
    number, group = ranges(torch.zeros_like(count), n_pieces)
    return start[group] + number * limit, (count[group] - number * limit).clamp_max(limit), group
