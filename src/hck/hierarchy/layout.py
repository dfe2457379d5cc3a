"""A tree as the sweeps see it: leaves in padded batches, inner nodes level by level."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
    slot_parent : Tensor of shape (slots,)
        The slot of each slot's parent; 0 for the root, whose transfer is 0.
    levels : list of (int, int)
        The slots of each level, from the root down.
    """

    tree: Tree
    leaves: list[Batch]
    slot_parent: Tensor
    levels: list[tuple[int, int]]

    @classmethod
    def of(cls, tree: Tree, per_chunk: Callable[[int], int]) -> "Layout":
        """The layout of a tree, with at most `per_chunk(width)` leaves in a batch."""
        start, size = tree.start[tree.leaves], tree.size[tree.leaves]
        leaves = batches(start, size, per_chunk)
        if tree.depth == 0:
            return cls(tree, leaves, torch.zeros_like(tree.leaf_parent), [(0, 1)])
        slot_parent = tree.slot[tree.parent[tree.inner].clamp_min(0)]
        return cls(tree, leaves, slot_parent, tree.inner_levels)

    @property
    def n_slots(self) -> int:
        return len(self.slot_parent)

    def parents(self, batch: Batch) -> Tensor:
        """The parents' slots of a batch of leaves."""
        return self.tree.leaf_parent[batch.groups]

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
