"""A tree as the sweeps see it: leaves in padded batches, inner nodes level by level."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from hck.blocks import Batch, batches
from hck.partition import Tree


@dataclass(frozen=True)
class Layout:
    """Where everything is.

    Points are in the tree's order. Inner nodes are named by their slots. A tree that is a single leaf
    gets one slot all the same, a root without landmarks, so that no sweep needs an exception.

    Attributes
    ----------
    tree : Tree
    leaves : list of Batch
        Batches of leaves; `groups` are leaf numbers and `index` are positions in the tree's order.
    leaf_parent : Tensor of shape (leaves,)
        The slot of each leaf's parent.
    slot_parent : Tensor of shape (slots,)
        The slot of each slot's parent; 0 for the root, whose transfer is 0.
    levels : list of (int, int)
        The slots of each level, from the root down.
    """

    tree: Tree
    leaves: list[Batch]
    leaf_parent: Tensor
    slot_parent: Tensor
    levels: list[tuple[int, int]]

    @classmethod
    def of(cls, tree: Tree, per_chunk: Callable[[int], int]) -> "Layout":
        """The layout of a tree, with at most `per_chunk(width)` leaves in a batch."""
        start, size = tree.start[tree.leaves], tree.size[tree.leaves]
        leaves = batches(start, size, per_chunk)
        if tree.depth == 0:
            zero = torch.zeros(1, dtype=torch.long, device=tree.device)
            return cls(tree, leaves, zero, zero, [(0, 1)])
        leaf_parent = tree.slot[tree.parent[tree.leaves]]
        slot_parent = tree.slot[tree.parent[tree.inner].clamp_min(0)]
        return cls(tree, leaves, leaf_parent, slot_parent, tree.inner_levels)

    @property
    def n_slots(self) -> int:
        return len(self.slot_parent)

    def parents(self, batch: Batch) -> Tensor:
        """The parents' slots of a batch of leaves."""
        return self.leaf_parent[batch.groups]

    def pad(self, b: Tensor) -> Tensor:
        """A matrix with a row per point, in the original order, in the tree's order and with a zero row."""
        if len(b) != self.tree.n_points:
            raise ValueError(f"expected {self.tree.n_points} rows, one for each point, got {len(b)}")
        return torch.cat([b[self.tree.order], b.new_zeros(1, b.shape[1])])

    def unpad(self, b: Tensor) -> Tensor:
        """The inverse of `pad`."""
        out = torch.empty_like(b[:-1])
        out[self.tree.order] = b[:-1]
        return out
