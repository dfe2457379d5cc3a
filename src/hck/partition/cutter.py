"""What cuts a node in two or more, and how a tree grows from cuts."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from hck.backend.blocks import Segments, send
from hck.backend.cuts import halves, separate
from hck.backend.kinds import kind_of
from hck.kernels import Kernel
from hck.kernels.placement import check_lengthscales
from hck.partition.rules import Rule
from hck.partition.tree import Tree
from hck.points import Points, VectorPoints


@dataclass(frozen=True)
class Frontier(Segments):
    """The nodes of one level that are to be cut: segments of an order of the points.

    Attributes
    ----------
    points : Points
    kernel : Kernel
    generator : torch.Generator
        On the device of the points.
    doubts : list of Tensor, or None
        Where a cutter that need not wait notes whether a cut has to be mended. None: mend it.
    """

    points: Points
    kernel: Kernel
    generator: torch.Generator
    doubts: list[Tensor] | None = None

    def halve(self, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Halve each node's points: those with the smaller values come first.

        Parameters
        ----------
        value : Tensor of shape (members,)
            A number for each point of ``members()``.

        Returns
        -------
        below, above : Tensor of shape (nodes,)
            The largest value in the first half and the smallest in the second.
        child : Tensor of shape (nodes, 2)
            The sizes of the halves: equal, or the first has one more. In the CPU's memory.
        """
        return *separate(self, value), halves(self.size)

    def subset(self, which: Tensor) -> "Frontier":
        """Some of these nodes."""
        which = which.cpu()
        return replace(self, start=self.start[which], size=self.size[which])


class Cutter(ABC):
    """Cuts nodes into children, level by level. Has parameters but no state.

    Attributes
    ----------
    measures : bool
        Whether it measures distances, which are then those of the kernel: where that has a lengthscale for
        each feature, points are divided by them.
    arguments : tuple of str
        The parameters of its constructor, which are attributes too, for saved models.
    """

    measures: ClassVar[bool] = False
    arguments: ClassVar[tuple[str, ...]] = ()

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
            The sizes of the children; 0 where a node has fewer. In the CPU's memory.
        rule : Rule
            Sends other points to the same children.
        """

    def cut_all(
        self, points: Points, order: Tensor, leaf_size: int, generator: torch.Generator
    ) -> list[tuple[Tensor, Rule]] | None:
        """Cut level after level until no node has more than `leaf_size` points, all of them at once.

        Returns
        -------
        list
            What `cut` returns, for each level; `order` is rearranged. None if that is not possible: then
            `order` and the generator are as they were.
        """
        return None


def grow(
    points: Points,
    kernel: Kernel,
    cutter: Cutter,
    leaf_size: int,
    generator: torch.Generator,
    trust: bool | None = None,
) -> Tree:
    """Cut nodes of more than `leaf_size` points until there are none.

    With `trust`, as by default on a GPU, no level waits to see whether the cuts of the one before have to be
    mended. If one had to be, the tree is grown again, with a look at each: data with ties, such as repeated
    points, take twice the time.
    """
    cutter.check(points)
    metric, factor = kernel.metric(), None
    if cutter.measures and metric is not None:
        assert isinstance(points, VectorPoints)
        check_lengthscales(metric, points.n_features)
        factor = 1 / metric.to(points.device, points.dtype)
        points = points.scaled(factor)
    if trust or (trust is None and kind_of(points.device).is_queued):
        state = generator.get_state()
        doubts: list[Tensor] = []
        tree = _grow(points, kernel, cutter, leaf_size, generator, doubts, factor)
        if not doubts or not torch.stack(doubts).any():
            return tree
        generator.set_state(state)
    return _grow(points, kernel, cutter, leaf_size, generator, None, factor)


def _grow(
    points: Points,
    kernel: Kernel,
    cutter: Cutter,
    leaf_size: int,
    generator: torch.Generator,
    doubts: list[Tensor] | None,
    factor: Tensor | None,
) -> Tree:
    n, device = len(points), points.device
    order = torch.arange(n, device=device)
    parents, starts, sizes = [torch.tensor([-1])], [torch.tensor([0])], [torch.tensor([n])]
    rules: list[Rule] = []
    done = cutter.cut_all(points, order, leaf_size, generator) if doubts is None else None
    first = 0  # number of the first node of the level
    while True:
        big = (sizes[-1] > leaf_size).nonzero().squeeze(1)
        if len(big) == 0:
            break
        frontier = Frontier(order, starts[-1][big], sizes[-1][big], points, kernel, generator, doubts)
        child, rule = cutter.cut(frontier) if done is None else done[len(rules)]
        rules.append(rule if factor is None else rule.after_scaling(factor))
        begin = frontier.start[:, None] + child.cumsum(1) - child
        real = child > 0
        parents.append((first + big)[:, None].expand_as(child)[real])
        first += len(starts[-1])
        starts.append(begin[real])
        sizes.append(child[real])
    parent, start = torch.cat(parents), torch.cat(starts)
    host = Tree(parent, start, start + torch.cat(sizes), order, tuple(rules))
    if kind_of(device).is_host:
        return host
    parent, start, stop = (send(part, device) for part in (parent, start, host.stop))
    tree = Tree(parent, start, stop, order, tuple(rules))
    tree.__dict__["host"] = host
    return tree


def leaf_size_for(n: int, rank: int) -> int:
    """The leaf size that goes with a rank: depth ⌊log₂(n/r)⌋, so that leaves hold r to 2r points (eq. 22)."""
    depth = max(0, math.frexp(n // rank)[1] - 1)
    return -(-n // 2**depth)
