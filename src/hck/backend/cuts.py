"""Cuts of nodes: projections of points, and halves at medians, level by level or all at once."""

from dataclasses import dataclass

import torch
from torch import Tensor

from hck.backend.blocks import Segments
from hck.backend.kinds import kind_of


def project(x: Tensor, rows: Tensor, directions: Tensor, which: Tensor) -> Tensor:
    """⟨x[rows[i]], directions[which[i]]⟩ for each i."""
    return kind_of(x.device).machine().project(x, rows, directions.to(x.dtype).contiguous(), which)


def separate(nodes: Segments, value: Tensor) -> tuple[Tensor, Tensor]:
    """Halve each node by a value for each of its members: smaller ones come first in ``nodes.order``.

    Returns the largest value in the first half of each node and the smallest in the second.
    """
    return kind_of(value.device).machine().separate(nodes, value)


def halves(size: Tensor) -> Tensor:
    """The sizes of the halves of nodes: equal, or the first has one more. Shape (nodes, 2)."""
    return torch.stack([(size + 1) // 2, size // 2], 1)


@dataclass(frozen=True)
class Halvings:
    """All nodes that are halved until none has more than a number of points, level after level."""

    start: Tensor  # (nodes,): where its points begin
    size: Tensor  # (nodes,)
    child: Tensor  # (nodes, 2): which of these nodes its halves are; -1: none, since it is small
    counts: list[int]  # of the nodes of each level

    @classmethod
    def of(cls, n: int, leaf_size: int) -> "Halvings":
        """For n points."""
        start, size = (torch.tensor([each], dtype=torch.int64, device="cpu") for each in (0, n))
        start, size = start[size > leaf_size], size[size > leaf_size]
        levels, stop = [], 0
        while len(size):
            both = halves(size)
            big, stop = both > leaf_size, stop + len(size)
            number = stop + big.reshape(-1).cumsum(0).reshape(big.shape) - 1
            levels.append((start, size, number.where(big, -1)))
            start, size = torch.stack([start, start + both[:, 0]], 1)[big], both[big]
        if not levels:
            return cls(start, size, torch.empty(0, 2, dtype=torch.int64, device="cpu"), [])
        starts, sizes, children = zip(*levels, strict=True)
        return cls(torch.cat(starts), torch.cat(sizes), torch.cat(children), [len(each) for each in sizes])

    @property
    def halves(self) -> list[Tensor]:
        """The sizes of the halves of the nodes of each level: shape (nodes, 2)."""
        return list(halves(self.size).split(self.counts))


@dataclass(frozen=True)
class Directions:
    """What nodes are projected on. A direction that does not separate the halves of a node is replaced."""

    values: Tensor  # (directions, d)
    pick: Tensor  # (nodes,): the direction of each node
    spares: int  # how many of the directions, the last ones, may replace others


def halve_all(
    x: Tensor, order: Tensor, nodes: Halvings, directions: Directions
) -> tuple[Tensor, Tensor] | None:
    """Halve nodes by projections of their points x (n, d), all levels at once; None where a device cannot.

    The order (n,), at first any, is rearranged to that of the nodes. Returns what `separate` does.
    """
    return kind_of(x.device).machine().halve_all(x, order, nodes, directions)
