"""Ragged groups of positions as padded tables, so that a batch of them is one tensor operation."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hck.backend.caches import cached_property
from hck.backend.checks import check_indices, require
from hck.backend.kinds import kind_of

# A group joins a batch if padding it to the batch's width wastes at most this share of the width.
_WASTE = 0.2


@dataclass(frozen=True)
class Blocks:
    """A stack of groups of positions (blocks, width), -1 where a block is shorter than the width.

    As an index into an array with one spare row at its end, -1 means that row.
    """

    index: Tensor
    full: bool  # whether it is known that no entry is -1, so that masking can be skipped

    def validate(self) -> None:
        """Raise ValueError if something of it is wrong; what positions are of knows how many there are."""
        check_indices("index", self.index, 2**62, None, None, low=0 if self.full else -1)
        require(self.index.dtype == torch.int64, f"index must be int64, got {self.index.dtype}")

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


@dataclass(frozen=True)
class Segments:
    """Groups of things that are consecutive: group i owns order[start[i] : start[i] + size[i]]."""

    order: Tensor  # (n,): the things
    start: Tensor  # (groups,), in the CPU's memory
    size: Tensor  # (groups,), in the CPU's memory

    def __len__(self) -> int:
        return len(self.start)

    @cached_property
    def is_whole(self) -> bool:
        """Whether the groups own all things, one group after another."""
        stop = self.size.cumsum(0)
        return int(stop[-1]) == len(self.order) and torch.equal(self.start, stop - self.size)

    @cached_property
    def sent(self) -> tuple[Tensor, Tensor]:
        """`start` and `size` on the device of the order."""
        start, size = send(torch.stack([self.start, self.size]), self.order.device)
        return start, size

    def members(self) -> tuple[Tensor, Tensor]:
        """The things of all groups, group after group, and the group (its number here) of each.

        They may share the memory of `order`: use them before you change that.
        """
        if self.is_whole:
            return self.order, owners(self.sent[1], len(self.order))
        position, which = ranges(*self.sent, int(self.size.sum()))
        return self.order[position], which


def consecutive(start: Tensor, count: Tensor, width: int, full: bool) -> Blocks:
    """Blocks of the positions start, start + 1, …, start + count - 1."""
    step = torch.arange(width, device=start.device)
    index = start[:, None] + step
    return Blocks(index if full else index.masked_fill(step >= count[:, None], -1), full)


def ranges(start: Tensor, count: Tensor, total: int | None = None) -> tuple[Tensor, Tensor]:
    """All positions of groups of consecutive positions, group after group, and the group of each.

    `total` is the number of positions; who knows it need not wait for a GPU to tell.
    """
    group = owners(count, total)
    number = torch.arange(len(group), device=start.device)
    return number + (start - count.cumsum(0) + count)[group], group


def owners(count: Tensor, total: int | None = None) -> Tensor:
    """The group of each position, where group g has count[g] positions; for `total` see `ranges`."""
    if total is None:
        return torch.arange(len(count), device=count.device).repeat_interleave(count)
    number = torch.arange(total, device=count.device)
    return torch.searchsorted(count.cumsum(0), number, right=True)


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor in the CPU's memory on a device, without waiting for the device."""
    return kind_of(device).machine().send(tensor, device)


def batches(
    start: Tensor, count: Tensor, per_chunk: Callable[[int, int], int], device: torch.device | None = None
) -> list[Batch]:
    """Groups of consecutive positions in batches of similar size; empty groups are left out.

    Group g holds the positions start[g], …, start[g] + count[g] - 1; they are in the CPU's memory, or one has
    to wait for them. `per_chunk` gives the largest number of blocks in one batch from their width and how
    many there are; `device` is where the batches are to be, by default where `start` is.
    """
    device = start.device if device is None else device
    start, count = start.cpu(), count.cpu()
    found, widest = [], int(count.max()) if len(count) else 0
    while widest > 0:
        least = max(1, int(widest * (1 - _WASTE)))
        alike = ((count >= least) & (count <= widest)).nonzero().squeeze(1)
        full = int(count[alike].min()) == widest
        for groups in alike.split(max(1, per_chunk(widest, len(alike)))):
            begin, length = send(start[groups], device), send(count[groups], device)
            blocks = consecutive(begin, length, widest, full)
            found.append(Batch(blocks.index, blocks.full, send(groups, device)))
        smaller = count.where(count < least, 0)
        widest = int(smaller.max())
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


def positions(mask: Tensor) -> Tensor:
    """Where a mask, of any shape, is true: flat positions, ascending."""
    if kind_of(mask.device).is_host:  # NumPy is several times as fast
        return torch.from_numpy(np.flatnonzero(mask.numpy()))
    return mask.flatten().nonzero()[:, 0]
