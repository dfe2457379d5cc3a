"""The kernel between training points and new ones (Algorithm 3)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hck.backend import linalg
from hck.backend.blocks import Batch, Blocks, batches, group_by, pieces
from hck.backend.memory import per_chunk
from hck.backend.parallel import for_each
from hck.hierarchy.blueprint import Blueprint
from hck.hierarchy.matrix import sweep
from hck.kernels import Kernel
from hck.partition import Landmarks, Tree
from hck.points import Points, as_points_like, cross

if TYPE_CHECKING:
    from hck.hierarchy.kernel import HierarchicalKernel


@dataclass
class Visit:
    """New points that fall into a few leaves of a batch."""

    new: Blocks  # positions of the new points
    batch: int  # the number of the batch
    row: Tensor  # (leaves,) the leaves' rows in the batch
    leaf: Tensor  # (leaves,) the leaves' numbers in the tree
    own: Blocks  # positions of the leaves' training points, in the tree's order


@dataclass(frozen=True)
class Room:
    """What a stack of visited leaves takes, and how much it may take.

    Attributes
    ----------
    rank : int
    budget : int
        Bytes that temporaries should stay within.
    factored : bool
        Whether factors of the leaves are needed as well.
    """

    rank: int
    budget: int
    factored: bool = False

    def needed(self, leaf_size: int, x: Points) -> tuple[int, int]:
        """Bytes for a leaf, and for each new point in it."""
        width, gathered = leaf_size + self.rank, 3 * x.values_per_point
        per_leaf = gathered * width + self.factored * width**2
        return x.dtype.itemsize * per_leaf, x.dtype.itemsize * ((3 + self.factored) * width + gathered)


def visits(tree: Tree, leaves: list[Batch], x: Points, room: Room) -> list[Visit]:
    """New points in blocks, each of one leaf, and the blocks in stacks within the memory budget.

    Parameters
    ----------
    leaves : list of Batch
        The leaves that are visited, those of similar size together.
    """
    order, start, count = group_by(tree.route(x), tree.n_leaves)
    found = []
    for number, batch in enumerate(leaves):
        per_leaf, per_point = room.needed(batch.index.shape[1], x)
        limit = per_chunk(per_point, room.budget, x.device)
        limit = max(
            limit, min(per_leaf, room.budget // 8) // per_point
        )  # worth gathering a leaf's own points

        def at_once(width: int, _: int, per_leaf: int = per_leaf, per_point: int = per_point) -> int:
            return per_chunk(per_leaf + width * per_point, room.budget, x.device)

        begin, size, leaf = pieces(start[batch.groups], count[batch.groups], limit)
        for stack in batches(begin, size, at_once):
            row, new = leaf[stack.groups], Blocks(order[stack.safe].where(stack.mask, -1), stack.full)
            found.append(Visit(new, number, row, batch.groups[row], Blocks(batch.index[row], batch.full)))
    return found


def leaves_of(tree: Tree) -> list[Batch]:
    """All leaves of a tree in batches, in which `visits` finds those with a similar number of new points."""
    return batches(tree.start[tree.leaves], tree.size[tree.leaves], lambda _, count: count)


@dataclass
class TreePredictor:
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
                blocks = self.landmarks.blocks[self.tree.leaf_parent[visit.leaf]]
                far = cross(self.kernel, x, visit.new, self.landmarks.points, blocks)
                value = torch.baddbmm(value, far, self.landmark_weights[visit.leaf])
            out[visit.new.index] = value

        every = visits(self.tree, leaves_of(self.tree), x, Room(self.landmarks.rank, self.budget))
        for_each(evaluate, every, x.device, "Predict", verbose)
        return out[:-1]

    @property
    def nbytes(self) -> int:
        """Memory held by the weights, in bytes."""
        return self.weights.nbytes + self.landmark_weights.nbytes


Extension = TreePredictor  # its name in files, and in earlier versions


def landmark_weights(blueprint: Blueprint, ambient: Tensor) -> None:
    """Put g = C_p⁻ᵀ d in place of what the leaves hear, d."""
    layout = blueprint.layout
    blueprint.prepare_leaves()

    def work(k: int) -> None:
        groups, factor = layout.leaves[k].groups, blueprint.factors[layout.leaf_levels[k]]
        ambient[groups] = linalg.unwhiten_(factor, ambient[groups], layout.within_level(k))

    for_each(work, range(len(layout.leaves)), blueprint.points.device)
    for level in set(layout.leaf_levels):
        blueprint.release(level)


def extension(blueprint: Blueprint, w: Tensor, landmark_weights: Tensor) -> TreePredictor:
    """The function with weights w (n + 1, columns) in the tree's order."""
    kernel, points, tree = blueprint.kernel, blueprint.points, blueprint.layout.tree
    return TreePredictor(
        kernel, tree, points, blueprint.landmarks, w[:-1], landmark_weights, blueprint.budget
    )


@torch.no_grad()
def cross_matrix(hierarchical: "HierarchicalKernel", x: Any) -> Tensor:
    """k_h(X, x), with rows in the original order of the training points: shape (n, number of new points)."""
    h, points = hierarchical, hierarchical.points
    x = as_points_like(x, points)
    layout, rank = h.matrix.layout, h.landmarks.rank
    message = torch.zeros(h.tree.n_leaves, rank, len(x), dtype=x.dtype, device=x.device)
    near = torch.zeros(h.tree.n_points + 1, len(x), dtype=x.dtype, device=x.device)
    for visit in visits(h.tree, layout.leaves, x, Room(rank, h.budget)):
        parent = h.tree.leaf_parent[visit.leaf]
        column = visit.new.index[:, None, :]
        keep = (visit.new.mask[:, None, :] & visit.own.mask[:, :, None]).nonzero(as_tuple=True)
        values = cross(h.kernel, points, visit.own, x, visit.new)
        rows = visit.own.index[:, :, None].expand_as(values)[keep]
        near[rows, column.expand_as(values)[keep]] = values[keep]
        far = cross(h.kernel, h.landmarks.points, h.landmarks.blocks[parent], x, visit.new)
        phi = linalg.whiten_(h.landmark_factor, far, parent)  # (leaves, r, width)
        for leaf, columns, block in zip(visit.leaf, visit.new.index, phi, strict=True):
            message[leaf][:, columns[columns >= 0]] = block[:, columns >= 0]
    ambient = sweep(layout, h.matrix.transfer, None, message)[h.tree.leaf_parent] - message
    for batch, basis in zip(layout.leaves, h.matrix.basis, strict=True):
        near[batch.index] += basis @ ambient[batch.groups]
    return layout.unpad(near)
