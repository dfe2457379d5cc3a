"""A tree as the sweeps see it: leaves in padded batches, inner nodes level by level."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from hck.blocks import Batch, batches, send
from hck.partition import Tree


@dataclass(frozen=True)
class Layout:
    """Where everything is, in a whole tree or in a part of one.

    Points are in the tree's order. Inner nodes have slots, numbered from the root down. A tree that is a
    single leaf gets one slot all the same, a root without landmarks, so that no sweep needs an exception.

    A tree cut at a depth is a *trunk*, with the nodes above, and its *branches*, with the nodes from there
    on. Their inner nodes have numbers of their own, from 0; `slot` says which ones of the tree they are.

    Attributes
    ----------
    tree : Tree
    leaves : list of Batch
        Batches of leaves; `groups` are leaf numbers and `index` are positions in the tree's order.
    leaf_levels : list of int
        The level of the parents of each batch of leaves.
    leaf_parent : Tensor of shape (tree's leaves,)
        The parent of each leaf, -1 if it is elsewhere.
    slot : Tensor of shape (inner nodes,)
        The slot of each inner node in the tree.
    parent : Tensor of shape (inner nodes,)
        The parent of each inner node. The root's is 0: there is none, or it is elsewhere.
    levels : list of (int, int)
        The inner nodes of each level, from the root down.
    above : int
        The slot of the root's parent, -1 if the root is the tree's.
    """

    tree: Tree
    leaves: list[Batch]
    leaf_levels: list[int]
    leaf_parent: Tensor
    slot: Tensor
    parent: Tensor
    levels: list[tuple[int, int]]
    above: int = -1

    @classmethod
    def of(cls, tree: Tree, per_chunk: Callable[[int], int]) -> "Layout":
        """The layout of a tree, with at most `per_chunk(width)` leaves in a batch."""
        host, device = tree.host, tree.device
        start, size = host.start[host.leaves], host.size[host.leaves]
        if tree.depth == 0:
            zero = torch.zeros_like(tree.leaf_parent)
            leaves = batches(start, size, per_chunk, device)
            return cls(tree, leaves, [0] * len(leaves), tree.leaf_parent, zero, zero, [(0, 1)])
        leaves, leaf_levels = [], []
        level_of = host.level[host.leaves] - 1
        for level in level_of.unique().tolist():
            found = batches(start, size.where(level_of == level, 0), per_chunk, device)
            leaves += found
            leaf_levels += [level] * len(found)
        parent = send(host.slot[host.parent[host.inner].clamp_min(0)], device)
        slot = torch.arange(len(parent), device=device)
        return cls(tree, leaves, leaf_levels, tree.leaf_parent, slot, parent, tree.inner_levels)

    @property
    def n_slots(self) -> int:
        return len(self.slot)

    def parents(self, batch: Batch) -> Tensor:
        """The parents of a batch of leaves."""
        return self.leaf_parent[batch.groups]

    @cached_property
    def leaves_closed(self) -> list[bool]:
        """Whether the parents of each batch of leaves have no leaves in other batches."""
        batch = torch.full_like(self.leaf_parent, -1)
        for k, leaves in enumerate(self.leaves):
            batch[leaves.groups] = k
        batch, parent = batch[batch >= 0], self.leaf_parent[batch >= 0]
        least = torch.full_like(self.slot, len(self.leaves)).scatter_reduce_(0, parent, batch, "amin")
        most = torch.full_like(self.slot, -1).scatter_reduce_(0, parent, batch, "amax")
        shared = torch.zeros(len(self.leaves), dtype=torch.bool, device=batch.device)
        shared[batch[least[parent] != most[parent]]] = True
        return (~shared).tolist()

    def within_level(self, k: int) -> Tensor:
        """The parents of the k-th batch of leaves, counted within their level."""
        return self.parents(self.leaves[k]) - self.levels[self.leaf_levels[k]][0]

    def parent_within_level(self, level: int, nodes: slice) -> Tensor:
        """The parents of inner nodes of a level, counted within the level above; 0 for the root."""
        return self.parent[nodes] - self.levels[max(0, level - 1)][0]

    def pad(self, b: Any, like: Tensor) -> Tensor:
        """Columns in the tree's order, with a zero row at the end: shape (n + 1, columns).

        Parameters
        ----------
        b : array-like of shape (n,) or (n, columns)
            A row for each point, in the original order.
        like : Tensor
            Has the dtype and the device of the result.
        """
        b = torch.as_tensor(b).to(like)
        if len(b) != self.tree.n_points:
            raise ValueError(f"expected {self.tree.n_points} rows, one for each point, got {len(b)}")
        columns = b[:, None] if b.ndim == 1 else b
        return torch.cat([columns[self.tree.order], columns.new_zeros(1, columns.shape[1])])

    def unpad(self, b: Tensor) -> Tensor:
        """Rows in the original order again, without the zero row."""
        out = torch.empty_like(b[:-1])
        out[self.tree.order] = b[:-1]
        return out

    def cut(self, depth: int) -> tuple["Layout", list["Layout"]]:
        """The trunk above a depth of the whole tree, and the branches from there on."""
        first, stop = self.levels[depth]
        number = torch.full_like(self.slot, -1)  # of the branch of each inner node
        number[first:stop] = torch.arange(stop - first, device=number.device)
        for begin, end in self.levels[depth + 1 :]:
            number[begin:end] = number[self.parent[begin:end]]
        of_leaf = number[self.leaf_parent]
        trunk = Layout(
            self.tree,
            *self._leaves(of_leaf < 0, 0),
            self.leaf_parent.where(of_leaf < 0, -1),
            self.slot[:first],
            self.parent[:first],
            self.levels[:depth],
        )
        above = self.parent[first:stop].tolist()
        return trunk, [self._branch(depth, number, of_leaf, k, above[k]) for k in range(stop - first)]

    def _branch(self, depth: int, number: Tensor, of_leaf: Tensor, k: int, above: int) -> "Layout":
        members = (number == k).nonzero().squeeze(1)
        local = torch.zeros_like(number)
        local[members] = torch.arange(len(members), device=number.device)
        levels, first = [], 0
        for begin, end in self.levels[depth:]:
            count = int((number[begin:end] == k).sum())
            if count:
                levels.append((first, first + count))
            first += count
        mine = of_leaf == k
        leaf_parent = local[self.leaf_parent].where(mine, -1)
        parent = local[self.parent[members]]
        return Layout(self.tree, *self._leaves(mine, depth), leaf_parent, members, parent, levels, above)

    def _leaves(self, mine: Tensor, depth: int) -> tuple[list[Batch], list[int]]:
        """The batches with only those leaves that are `mine`, and their parents' levels below a depth."""
        found, levels = [], []
        for batch, level in zip(self.leaves, self.leaf_levels, strict=True):
            keep = mine[batch.groups]
            if keep.any():
                found.append(Batch(batch.index[keep], batch.full, batch.groups[keep]))
                levels.append(level - depth)
        return found, levels
