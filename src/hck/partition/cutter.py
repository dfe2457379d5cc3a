"""What cuts a node in two or more, and how a tree grows from cuts."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from hck.blocks import Blocks, consecutive, ranges
from hck.kernels import Kernel
from hck.partition.tree import Rule, Tree
from hck.points import Points


@dataclass(frozen=True)
class Frontier:
    """The nodes of one level that are to be cut.

    Attributes
    ----------
    points : Points
    kernel : Kernel
    order : Tensor of shape (n,)
        The points, so that those of each node are consecutive.
    start, size : Tensor of shape (nodes,)
        Node i owns ``order[start[i] : start[i] + size[i]]``.
    generator : torch.Generator
        On the device of the points.
    """

    points: Points
    kernel: Kernel
    order: Tensor
    start: Tensor
    size: Tensor
    generator: torch.Generator

    def __len__(self) -> int:
        return len(self.start)

    def members(self) -> tuple[Tensor, Tensor]:
        """The points of all nodes, node after node, and the node (its number here) of each."""
        position, which = ranges(self.start, self.size)
        return self.order[position], which

    def subset(self, which: Tensor) -> "Frontier":
        """Some of these nodes."""
        return replace(self, start=self.start[which], size=self.size[which])


class Cutter(ABC):
    """Cuts nodes into children, level by level. Has parameters but no state."""

    @abstractmethod
    def check(self, points: Points) -> None:
        """Raise TypeError if points of this kind cannot be cut this way."""

    @abstractmethod
    def cut(self, frontier: Frontier) -> tuple[Tensor, Rule]:
        """Cut every node of the frontier.

        Reorders each node's part of ``frontier.order`` in place, child after child.

        Returns
        -------
        child : Tensor of shape (nodes, most children)
            The sizes of the children; 0 where a node has fewer.
        rule : Rule
            Sends other points to the same children.
        """


def grow(points: Points, kernel: Kernel, cutter: Cutter, leaf_size: int, generator: torch.Generator) -> Tree:
    """Cut nodes of more than `leaf_size` points until there are none."""
    n, device = len(points), points.device
    cutter.check(points)
    order = torch.arange(n, device=device)
    parents = [torch.full((1,), -1, device=device)]
    starts = [torch.zeros(1, dtype=torch.long, device=device)]
    sizes = [torch.full((1,), n, device=device)]
    rules = []
    first = 0  # number of the first node of the level
    while True:
        big = (sizes[-1] > leaf_size).nonzero().squeeze(1)
        if len(big) == 0:
            break
        frontier = Frontier(points, kernel, order, starts[-1][big], sizes[-1][big], generator)
        child, rule = cutter.cut(frontier)
        rules.append(rule)
        begin = frontier.start[:, None] + child.cumsum(1) - child
        real = child > 0
        parents.append((first + big)[:, None].expand_as(child)[real])
        first += len(starts[-1])
        starts.append(begin[real])
        sizes.append(child[real])
    parent, start, size = torch.cat(parents), torch.cat(starts), torch.cat(sizes)
    return Tree(parent, start, start + size, order, tuple(rules))


def leaf_size_for(n: int, rank: int) -> int:
    """The leaf size that goes with a rank: depth ⌊log₂(n/r)⌋, so that leaves hold r to 2r points (eq. 22)."""
    depth = max(0, math.frexp(n // rank)[1] - 1)
    return -(-n // 2**depth)


def halve(frontier: Frontier, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Order each node's points by `value` and halve them.

    Parameters
    ----------
    value : Tensor of shape (members,)
        A number for each point of ``frontier.members()``.

    Returns
    -------
    below, above : Tensor of shape (nodes,)
        The largest value in the first half and the smallest in the second.
    child : Tensor of shape (nodes, 2)
        The sizes of the halves: equal, or the first has one more.
    """
    start, size = frontier.start, frontier.size
    width = int(size.max())
    place = consecutive(start, size, width, full=bool((size == width).all()))
    table = _scatter(value, place)
    table, by_value = table.sort(1)
    reordered = frontier.order[place.safe].gather(1, by_value)
    frontier.order[place.index[place.mask]] = reordered[place.mask]
    half = (size + 1) // 2
    below = table.gather(1, half[:, None] - 1)[:, 0]
    above = table.gather(1, half[:, None])[:, 0]
    return below, above, torch.stack([half, size - half], 1)


def _scatter(value: Tensor, place: Blocks) -> Tensor:
    """Numbers listed block after block, as a table padded with infinity."""
    if place.full:
        return value.reshape(place.index.shape)
    table = value.new_full(place.index.shape, torch.inf)
    table[place.mask] = value
    return table
