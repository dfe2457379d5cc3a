"""What cuts a node in two or more, and how a tree grows from cuts."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from hck.backend.blocks import Segments, batches, send
from hck.backend.cuts import halves, separate
from hck.backend.kinds import kind_of
from hck.backend.random import Random
from hck.kernels import Kernel
from hck.kernels.placement import check_factor
from hck.partition.rules import Rule, as_vectors
from hck.partition.tree import Tree
from hck.points import Points

_VALUES_AT_ONCE = 2**22


@dataclass(frozen=True)
class Frontier(Segments):
    """The nodes of one level that are to be cut: segments of an order of the points.

    A cutter that need not wait notes in `doubts` whether a cut has to be mended; where that is None, it mends
    it. Each level has random numbers of its own.
    """

    points: Points
    kernel: Kernel
    random: Random
    doubts: list[Tensor] | None = None

    @classmethod
    def root(cls, points: Points, kernel: Kernel, random: Random) -> "Frontier":
        """The root of a tree that is to grow."""
        order = torch.arange(len(points), device=points.device)
        start, size = (torch.tensor([each], dtype=torch.long, device="cpu") for each in (0, len(points)))
        return cls(order, start, size, points, kernel, random)

    def halve(self, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Halve each node's points by a value for each of ``members()``: those with the smaller come first.

        The largest value in the first half and the smallest in the second (nodes,), and the sizes of both
        (nodes, 2), in the CPU's memory: they are equal, or the first has one more.
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
        each feature, or a metric, points are put there (`Kernel.stretch`).
    looks_at_some : bool
        Whether it looks at some of a node's points only: then they come in the order of their rows, which
        devices share.
    arguments : tuple of str
        The parameters of its constructor, which are attributes too, for saved models.

    Examples
    --------
    >>> import numpy as np
    >>> from hck import HCKRegressor
    >>> from hck.partition import KMeans
    >>> X = np.random.default_rng(0).uniform(size=(90, 2))
    >>> model = HCKRegressor(lengthscale=1.0, alpha=0.1, rank=8, n_trees=1, partition=KMeans(n_children=3))
    >>> bool((model.fit(X, X[:, 0]).tree_.n_children <= 3).all())
    True
    """

    measures: ClassVar[bool] = False
    looks_at_some: ClassVar[bool] = False
    arguments: ClassVar[tuple[str, ...]] = ()

    def check(self, points: Points) -> None:
        """Raise TypeError if points of this kind cannot be cut this way."""
        if self.measures:
            as_vectors(points)

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

    def cut_all(self, root: Frontier, leaf_size: int) -> list[tuple[Tensor, Rule]] | None:
        """Cut level after level until no node has more than `leaf_size` points, all of them at once.

        Returns
        -------
        list
            What `cut` returns, for each level; `root.order` is rearranged. None if that is not possible: then
            it is as it was.
        """
        return None


def grow(root: Frontier, cutter: Cutter, leaf_size: int, trust: bool | None = None) -> Tree:
    """Cut nodes of more than `leaf_size` points until there are none.

    With `trust`, as by default on a GPU, no level waits to see whether the cuts of the one before have to be
    mended. If one had to be, the tree is grown again, with a look at each: data with ties, such as repeated
    points, take twice the time.
    """
    points = root.points
    cutter.check(points)
    factor = root.kernel.stretch() if cutter.measures else None
    if factor is not None:
        vectors, factor = as_vectors(points), factor.to(points.device, points.dtype)
        check_factor(factor, vectors.n_features)
        root = replace(root, points=vectors.scaled(factor))
    if trust or (trust is None and kind_of(points.device).is_queued):
        doubts: list[Tensor] = []
        tree = _grow(replace(root, order=root.order.clone(), doubts=doubts), cutter, leaf_size, factor)
        if not doubts or not torch.stack(doubts).any():
            return tree
    return _grow(root, cutter, leaf_size, factor)


def _grow(root: Frontier, cutter: Cutter, leaf_size: int, factor: Tensor | None) -> Tree:
    """The same for points that are multiplied by a factor already, as others are to be before routing."""
    order, device = root.order, root.points.device
    parents, starts, sizes = [torch.full_like(root.start, -1)], [root.start], [root.size]
    rules: list[Rule] = []
    done = cutter.cut_all(root, leaf_size) if root.doubts is None else None
    first = 0  # number of the first node of the level
    while True:
        big = (sizes[-1] > leaf_size).nonzero().squeeze(1)
        if len(big) == 0:
            break
        random = root.random.child(len(rules))
        frontier = replace(root, start=starts[-1][big], size=sizes[-1][big], random=random)
        if rules and cutter.looks_at_some:
            _sort(order, frontier.start, frontier.size)
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
    _sort(order, start[host.leaves], host.size[host.leaves])
    if kind_of(device).is_host:
        return host
    parent, start, stop = (send(part, device) for part in (parent, start, host.stop))
    tree = Tree(parent, start, stop, order, tuple(rules))
    tree.__dict__["host"] = host
    return tree


def _sort(order: Tensor, start: Tensor, size: Tensor) -> None:
    """Put the points of each node in the order of their rows: devices leave them in other orders."""
    for batch in batches(start, size, lambda width, _: max(1, _VALUES_AT_ONCE // width), order.device):
        rows = order[batch.safe] if batch.full else order[batch.safe].where(batch.mask, len(order))
        rows = rows.sort(1).values
        if batch.full:
            order[batch.index] = rows
        else:
            order[batch.index[batch.mask]] = rows[batch.mask]


def leaf_size_for(n: int, rank: int) -> int:
    """The leaf size that goes with a rank: depth ⌊log₂(n/r)⌋, so that leaves hold r to 2r points (eq. 22).

    Parameters
    ----------
    n : int
        Points.
    rank : int
        r.

    Examples
    --------
    >>> from hck.partition import leaf_size_for
    >>> leaf_size_for(1000, rank=100)
    125
    """
    depth = max(0, math.frexp(n // rank)[1] - 1)
    return -(-n // 2**depth)
