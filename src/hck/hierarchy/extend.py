"""The kernel between training points and new ones (Algorithm 3)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hck.backend import linalg
from hck.backend.blocks import Blocks, batches, consecutive, group_by, pieces
from hck.backend.memory import per_chunk
from hck.backend.parallel import for_each
from hck.hierarchy.matrix import sweep
from hck.kernels import Kernel
from hck.partition import Landmarks, Tree
from hck.points import Points, as_points_like, cross

if TYPE_CHECKING:
    from hck.hierarchy.kernel import HierarchicalKernel


@dataclass
class Visit:
    """New points that fall into a few leaves, and what these leaves own."""

    new: Blocks  # positions of the new points
    leaf: Tensor  # (leaves,) leaf numbers
    own: Blocks  # positions of the leaves' training points, in the tree's order
    parent: Tensor  # (leaves,) the slots of the leaves' parents


def visits(tree: Tree, x: Points, rank: int, budget: int) -> list[Visit]:
    """New points in batches by leaf, each batch within the memory budget."""
    size = tree.size[tree.leaves]
    order, start, count = group_by(tree.route(x), tree.n_leaves)
    found = []
    # Leaves of similar size go together, and among them those with a similar number of new points.
    for alike in batches(torch.zeros_like(size), size, lambda _, count: count):
        width, gathered = alike.index.shape[1] + rank, 3 * x.values_per_point
        each = x.dtype.itemsize * gathered * width, x.dtype.itemsize * (3 * width + gathered)
        for row, new in by_leaf(order, start[alike.groups], count[alike.groups], *each, budget):
            leaf = alike.groups[row]
            first = tree.start[tree.leaves[leaf]]
            own = consecutive(first, size[leaf], alike.index.shape[1], alike.full)
            found.append(Visit(new, leaf, own, tree.leaf_parent[leaf]))
    return found


def by_leaf(
    order: Tensor, start: Tensor, count: Tensor, per_leaf: int, per_point: int, budget: int
) -> list[tuple[Tensor, Blocks]]:
    """New points in blocks, each of one leaf, and the blocks in stacks within the memory budget.

    Parameters
    ----------
    order : Tensor of shape (new points,)
        The new points, those of a leaf one after another.
    start, count : Tensor of shape (leaves,)
        Where the new points of some leaves are in `order`.
    per_leaf, per_point : int
        Bytes that a leaf and each new point take.

    Returns
    -------
    list of (Tensor of shape (blocks,), Blocks)
        The leaves of the blocks, counted among these, and the positions of the new points.
    """
    limit = per_chunk(per_point, budget, order.device)
    limit = max(limit, min(per_leaf, budget // 8) // per_point)  # worth the gathering of a leaf's own points

    def at_once(width: int, _: int) -> int:
        return per_chunk(per_leaf + width * per_point, budget, order.device)

    begin, number, leaf = pieces(start, count, limit)
    return [
        (leaf[batch.groups], Blocks(order[batch.safe].where(batch.mask, -1), batch.full))
        for batch in batches(begin, number, at_once)
    ]


@dataclass
class Extension:
    """The function f(x) = wᵀ k_h(X, x), for any x.

    For x in leaf j with parent p, f(x) = k(x, X_j) w_j + k(x, Z_p) g_j: no walk up the tree.

    Attributes
    ----------
    kernel, tree, landmarks : as in `HierarchicalKernel`
    points : Points
        The training points in the tree's order, or, with `order`, as they came.
    weights : Tensor of shape (n, columns)
        w, in the tree's order.
    landmark_weights : Tensor of shape (leaves, r, columns)
        g for each leaf.
    budget : int
        Bytes that temporaries should stay within.
    order : Tensor of shape (n,), optional
        Where each point in the tree's order is among `points`, so that trees can share them.
    """

    kernel: Kernel
    tree: Tree
    points: Points
    landmarks: Landmarks
    weights: Tensor
    landmark_weights: Tensor
    budget: int
    order: Tensor | None = None

    @torch.no_grad()
    def __call__(self, x: Any, verbose: bool = False) -> Tensor:
        """f at each point of `x`: shape (points, columns)."""
        x = as_points_like(x, self.points)
        out = self.weights.new_empty(len(x) + 1, self.weights.shape[1])

        def evaluate(visit: Visit) -> None:
            own = visit.own
            if self.order is not None:
                own = Blocks(self.order[own.safe].where(own.mask, -1), own.full)
            near = cross(self.kernel, x, visit.new, self.points, own)
            value = near @ self.weights[visit.own.safe]  # near is 0 where a leaf is padded
            if self.tree.depth:
                blocks = self.landmarks.blocks[visit.parent]
                far = cross(self.kernel, x, visit.new, self.landmarks.points, blocks)
                value = torch.baddbmm(value, far, self.landmark_weights[visit.leaf])
            out[visit.new.index] = value

        every = visits(self.tree, x, self.landmarks.rank, self.budget)
        for_each(evaluate, every, x.device, "Predict", verbose)
        return out[:-1]

    @property
    def nbytes(self) -> int:
        """Memory held by the weights, in bytes."""
        return self.weights.nbytes + self.landmark_weights.nbytes


@torch.no_grad()
def cross_matrix(hierarchical: "HierarchicalKernel", x: Any) -> Tensor:
    """k_h(X, x), with rows in the original order of the training points: shape (n, number of new points)."""
    h, points = hierarchical, hierarchical.points
    x = as_points_like(x, points)
    layout, rank = h.matrix.layout, h.landmarks.rank
    message = torch.zeros(h.tree.n_leaves, rank, len(x), dtype=x.dtype, device=x.device)
    near = torch.zeros(h.tree.n_points + 1, len(x), dtype=x.dtype, device=x.device)
    for visit in visits(h.tree, x, rank, h.budget):
        column = visit.new.index[:, None, :]
        keep = (visit.new.mask[:, None, :] & visit.own.mask[:, :, None]).nonzero(as_tuple=True)
        values = cross(h.kernel, points, visit.own, x, visit.new)
        rows = visit.own.index[:, :, None].expand_as(values)[keep]
        near[rows, column.expand_as(values)[keep]] = values[keep]
        far = cross(h.kernel, h.landmarks.points, h.landmarks.blocks[visit.parent], x, visit.new)
        phi = linalg.whiten_(h.landmark_factor, far, visit.parent)  # (leaves, r, width)
        for leaf, columns, block in zip(visit.leaf, visit.new.index, phi, strict=True):
            message[leaf][:, columns[columns >= 0]] = block[:, columns >= 0]
    ambient = sweep(layout, h.matrix.transfer, None, message)[h.tree.leaf_parent] - message
    for batch, basis in zip(layout.leaves, h.matrix.basis, strict=True):
        near[batch.index] += basis @ ambient[batch.groups]
    return layout.unpad(near)
