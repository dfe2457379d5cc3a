"""Nodes that are halved: at the medians of given values, or, all levels at once, of projections."""

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from hck.backend.blocks import consecutive
from hck.backend.linalg import flat
from hck.backend.parallel import at_a_time, chunks, for_each, grain
from hck.partition.cutter import Frontier

_SELECTION = 500  # flops that take as long as selection does for each number
_NEAR = 2**22  # bytes of points that are found quickly once they lie together
_FEW = 2000  # points that are not worth another core


def halve(frontier: Frontier, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Halve each node's points: those with the smaller values come first.

    Parameters
    ----------
    value : Tensor of shape (members,)
        A number for each point of ``frontier.members()``.

    Returns
    -------
    below, above : Tensor of shape (nodes,)
        The largest value in the first half and the smallest in the second.
    child : Tensor of shape (nodes, 2)
        The sizes of the halves: equal, or the first has one more. In the CPU's memory.
    """
    separate = _separate_by_selection if value.device.type == "cpu" else _separate_by_sorting
    return *separate(frontier, value), _halves(frontier.size)


def _separate_by_sorting(frontier: Frontier, value: Tensor) -> tuple[Tensor, Tensor]:
    """Put the halves of each node in order; their largest and their smallest value."""
    (start, size), order = frontier.sent, frontier.order
    width = int(frontier.size.max())
    full = bool((frontier.size == width).all())
    if full and frontier.is_whole:
        table, by_value = value.reshape(-1, width).sort(1)
        order.copy_(order.reshape(-1, width).gather(1, by_value).reshape(-1))
    else:  # where a node is padded, -1 leads to a spare row
        place = consecutive(start, size, width, full).index
        listed = place if frontier.is_whole else consecutive(size.cumsum(0) - size, size, width, full).index
        table, by_value = torch.cat([value, value.new_full((1,), torch.inf)])[listed].sort(1)
        padded = torch.cat([order, order[:1]])
        padded[place] = padded[place].gather(1, by_value)
        order.copy_(padded[:-1])
    half = (size[:, None] + 1) // 2
    return table.gather(1, half - 1)[:, 0], table.gather(1, half)[:, 0]


def _separate_by_selection(frontier: Frontier, value: Tensor) -> tuple[Tensor, Tensor]:
    """The same on the CPU, by quickselect."""
    below, above = torch.empty(2, len(frontier), dtype=value.dtype)
    size, stop = frontier.size, frontier.size.cumsum(0)
    arrays = [flat(part) for part in (frontier.order, frontier.start, value, below, above, size, stop)]
    step = grain(len(frontier), _SELECTION * int(size.max()))

    def work(part: slice) -> None:
        _compiled().halve(*arrays, part.start, part.stop)

    for_each(work, chunks(0, len(frontier), step), value.device)
    return below, above


@dataclass(frozen=True)
class Halvings:
    """All nodes that are halved until none has more than a number of points, level after level.

    Attributes
    ----------
    start, size : Tensor of shape (nodes,)
        The points of each node.
    child : Tensor of shape (nodes, 2)
        Which of these nodes its halves are; -1: none, since it is small.
    counts : list of int
        How many nodes there are at each level.
    """

    start: Tensor
    size: Tensor
    child: Tensor
    counts: list[int]

    @classmethod
    def of(cls, n: int, leaf_size: int) -> "Halvings":
        """For n points."""
        start, size = torch.zeros(1, dtype=torch.int64), torch.tensor([n])
        start, size = start[size > leaf_size], size[size > leaf_size]
        levels, stop = [], 0
        while len(size):
            halves = _halves(size)
            big, stop = halves > leaf_size, stop + len(size)
            number = stop + big.reshape(-1).cumsum(0).reshape(big.shape) - 1
            levels.append((start, size, number.where(big, -1)))
            start, size = torch.stack([start, start + halves[:, 0]], 1)[big], halves[big]
        if not levels:
            return cls(start, size, torch.empty(0, 2, dtype=torch.int64), [])
        starts, sizes, children = zip(*levels, strict=True)
        return cls(torch.cat(starts), torch.cat(sizes), torch.cat(children), [len(each) for each in sizes])

    @property
    def halves(self) -> list[Tensor]:
        """The sizes of the halves of the nodes of each level: shape (nodes, 2)."""
        return list(_halves(self.size).split(self.counts))


def halve_all(
    x: Tensor, order: Tensor, nodes: Halvings, directions: Tensor, pick: Tensor, spares: int
) -> tuple[Tensor, Tensor]:
    """Halve nodes by projections of their points, on the CPU.

    Large nodes are worked on level by level. The subtrees below, whose points are gathered, are worked on one
    by one.

    Parameters
    ----------
    x : Tensor of shape (n, d)
    order : Tensor of shape (n,)
        The points in the order of the nodes, at first any; it is rearranged.
    directions : Tensor of shape (directions, d)
    pick : Tensor of shape (nodes,)
        The direction of each node. One that does not separate the halves of a node is replaced.
    spares : int
        How many of the directions, the last ones, may replace others.

    Returns
    -------
    below, above : Tensor of shape (nodes,)
        The largest value in the first half and the smallest in the second.
    """
    d = x.shape[1]
    below, above = torch.empty(2, len(nodes.start), dtype=x.dtype)
    arrays = flat(x), d, flat(order), flat(nodes.start), flat(nodes.size), flat(nodes.child)
    by, ends = (flat(pick), flat(directions), spares), (flat(below), flat(above))
    first = 0
    for count in nodes.counts:
        largest = int(nodes.size[first : first + count].max())
        near = largest * d * x.itemsize <= _NEAR and (count > at_a_time(x.device) or largest < _FEW)
        halve = _compiled().halve_subtrees if near else _compiled().halve_by_projection

        def work(part: slice, halve: Any = halve) -> None:
            halve(*arrays, *by, *ends, part.start, part.stop)

        step = grain(count, (_SELECTION + 4 * d) * largest)
        for_each(work, chunks(first, first + count, step), x.device)
        if near:
            break
        first += count
    return below, above


def _halves(size: Tensor) -> Tensor:
    """The sizes of the halves of nodes: equal, or the first has one more."""
    return torch.stack([(size + 1) // 2, size // 2], 1)


@cache
def _compiled() -> Any:
    """The compiled code, loaded when it is first used."""
    return import_module("hck.backend.cpu.cuts")
