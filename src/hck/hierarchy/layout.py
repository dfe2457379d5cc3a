"""A tree as the sweeps see it: leaves in padded batches, inner nodes level by level."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from hck.backend.blocks import Batch, batches, positions, send
from hck.backend.caches import cached_property
from hck.kernels.inputs import refuse_complex
from hck.partition import Tree
from hck.points import as_tensor

PerChunk: TypeAlias = Callable[[int, int], int]  # the most leaves in a batch, given their width and number


@dataclass(frozen=True)
class Layout:
    """Where everything is, in a whole tree or in a part of one.

    Points are in the tree's order. Inner nodes have slots, numbered from the root down. A tree that is a
    single leaf gets one slot all the same, a root without landmarks, so that no sweep needs an exception.

    A tree cut at a depth is a *trunk*, with the nodes above, and its *branches*, with the nodes from there
    on (`CutTree`). Branches may be bundled, so a part may have several roots. Its inner nodes have numbers of
    their own, from 0; `slot` says which ones of the tree they are.
    """

    tree: Tree
    per_chunk: PerChunk
    leaves: list[Batch]  # `groups` are leaf numbers and `index` are positions in the tree's order
    leaf_levels: list[int]  # of the parents of each batch of leaves
    leaf_parent: Tensor  # (tree's leaves,): -1 for a leaf whose parent is elsewhere
    slot: Tensor  # (inner nodes,): in the tree
    parent: Tensor  # (inner nodes,): for roots, which of `above` it is; 0 if there is none
    levels: list[tuple[int, int]]  # the inner nodes of each level, from the root down
    # slots of the roots' parents
    above: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.long, device="cpu"))

    @classmethod
    def of(cls, tree: Tree, per_chunk: PerChunk) -> "Layout":
        """The layout of a whole tree."""
        host = tree.host
        start, size = host.start[host.leaves], host.size[host.leaves]
        leaves, leaf_levels = _batches_of_leaves(tree, start, size, per_chunk)
        if tree.depth == 0:
            zero = torch.zeros_like(tree.leaf_parent)
            return cls(tree, per_chunk, leaves, [0] * len(leaves), zero, zero, zero, [(0, 1)])
        slot = torch.arange(len(tree.host.inner), device=tree.device)
        parent = send(parent_slots(tree), tree.device)
        return cls(tree, per_chunk, leaves, leaf_levels, tree.leaf_parent, slot, parent, tree.inner_levels)

    def among(self, counted: Tensor) -> "Layout":
        """The same whole tree, with leaves in which only some points count: a mask (n,), in the tree's order.

        A leaf in which none does is padding alone.
        """
        tree = self.tree.host
        before = torch.cat([torch.zeros(1, dtype=torch.long, device="cpu"), counted.cumsum(0).cpu()])
        start = before[tree.start[tree.leaves]]
        size = before[tree.start[tree.leaves] + tree.size[tree.leaves]] - start
        empty, total = size == 0, int(before[-1])
        # behind the places is that of padding, where -1 points to as well
        places = torch.cat([positions(counted), counted.new_full((1,), -1, dtype=torch.long)])
        start, size = start.where(~empty, total), size.clamp_min(1)
        leaves, leaf_levels = _batches_of_leaves(self.tree, start, size, self.per_chunk)
        some = bool(empty.any())
        found = [
            Batch(places[each.index], each.full and not (some and each.index.shape[1] == 1), each.groups)
            for each in leaves
        ]
        return replace(self, leaves=found, leaf_levels=[max(0, level) for level in leaf_levels])

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
        """The parents of inner nodes of a level, counted within the level above; for roots within `above`."""
        return self.parent[nodes] - self.levels[max(0, level - 1)][0]

    def pad(self, b: ArrayLike | Tensor, like: Tensor) -> Tensor:
        """Rows (n,) or (n, columns) in the tree's order, with a zero row at the end: shape (n + 1, columns).

        They get the dtype and the device of `like`.
        """
        refuse_complex(b)
        b = (b if isinstance(b, Tensor) else as_tensor(np.asarray(b))).to(like)
        if len(b) != self.tree.n_points:
            raise ValueError(f"expected {self.tree.n_points} rows, one for each point, got {len(b)}")
        columns = b[:, None] if b.ndim == 1 else b
        return torch.cat([columns[self.tree.order], columns.new_zeros(1, columns.shape[1])])

    def unpad(self, b: Tensor) -> Tensor:
        """Rows in the original order again, without the zero row."""
        return self.unsort(b[:-1])

    def unsort(self, rows: Tensor) -> Tensor:
        """Rows (n, …) in the original order, that are in the tree's."""
        out = torch.empty_like(rows)
        out[self.tree.order] = rows
        return out

    def cut(self, depth: int, bundles: int | None = None) -> "CutTree":
        """The whole tree cut at a depth, its branches in at most so many bundles; by default one by one."""
        first, stop = self.levels[depth]
        return CutTree(self, depth, stop - first if bundles is None else min(bundles, stop - first))


@dataclass(frozen=True)
class CutTree:
    """A tree cut at a depth."""

    layout: Layout  # of the whole tree
    depth: int  # of the branches' roots; 0: there is no trunk
    n_bundles: int  # in which the branches are

    @property
    def of_branches(self) -> Tensor:
        """The bundle of each branch; in the CPU's memory."""
        first, stop = self.layout.levels[self.depth]
        return torch.arange(stop - first, device="cpu") * self.n_bundles // (stop - first)

    @cached_property
    def number(self) -> Tensor:
        """The bundle of each inner node, -1 for those of the trunk; in the CPU's memory."""
        levels, parent = self.layout.levels, parent_slots(self.layout.tree)
        number = torch.full_like(parent, -1)
        number[slice(*levels[self.depth])] = self.of_branches
        for begin, end in levels[self.depth + 1 :]:
            number[begin:end] = number[parent[begin:end]]
        return number

    @property
    def sizes(self) -> Tensor:
        """The number of points of each bundle; in the CPU's memory."""
        tree = self.layout.tree.host
        if tree.depth == 0:
            return tree.size
        roots = tree.inner[slice(*self.layout.levels[self.depth])]
        sizes = torch.zeros(self.n_bundles, dtype=tree.size.dtype, device="cpu")
        return sizes.index_add_(0, self.of_branches, tree.size[roots])

    @property
    def trunk(self) -> Layout:
        """The nodes above the cut, and the leaves right below them."""
        nothing = self.number[:0]
        return self._part(-1, self.layout.levels[: self.depth], 0, nothing)

    def bundle(self, k: int) -> Layout:
        """The nodes of some branches, and their leaves."""
        roots = (self.of_branches == k).nonzero().squeeze(1) + self.layout.levels[self.depth][0]
        above = parent_slots(self.layout.tree)[roots].unique()
        return self._part(k, self.layout.levels[self.depth :], self.depth, above)

    def _part(self, which: int, levels: list[tuple[int, int]], depth: int, above: Tensor) -> Layout:
        """The inner nodes of a number, and the leaves below them; the first of `levels` has this depth."""
        whole, number = self.layout, self.number
        tree, device = whole.tree, whole.tree.device
        members = (number == which).nonzero().squeeze(1)
        local = torch.zeros_like(number)
        local[members] = torch.arange(len(members), device="cpu")
        local[above] = torch.arange(len(above), device="cpu")
        counts = [int((number[begin:end] == which).sum()) for begin, end in levels]
        stops = list(accumulate(counts))
        mine = number[tree.host.leaf_parent] == which
        start, size = tree.host.start[tree.host.leaves], tree.host.size[tree.host.leaves].where(mine, 0)
        leaves, leaf_levels = _batches_of_leaves(tree, start, size, whole.per_chunk)
        return Layout(
            tree,
            whole.per_chunk,
            leaves,
            [level - depth for level in leaf_levels],
            send(local[tree.host.leaf_parent].where(mine, -1), device),
            send(members, device),
            send(local[parent_slots(tree)[members]], device),
            [(stop - count, stop) for stop, count in zip(stops, counts, strict=True) if count],
            send(above, device),
        )


def parent_slots(tree: Tree) -> Tensor:
    """The slot of each inner node's parent, 0 for the root; in the CPU's memory."""
    host = tree.host
    return host.slot[host.parent[host.inner].clamp_min(0)]


def _batches_of_leaves(
    tree: Tree, start: Tensor, size: Tensor, per_chunk: PerChunk
) -> tuple[list[Batch], list[int]]:
    """Batches of leaves that start somewhere and have a size, and the level of each batch's parents."""
    level_of = tree.host.level[tree.host.leaves] - 1
    found, levels = [], []
    for level in level_of[size > 0].unique().tolist():
        some = batches(start, size.where(level_of == level, 0), per_chunk, tree.device)
        found += some
        levels += [level] * len(some)
    return found, levels
