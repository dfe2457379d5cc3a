"""The kernel between training points and new ones (Algorithm 3), and the function that predicts."""

from dataclasses import dataclass

import torch
from torch import Tensor

from hck.backend import linalg
from hck.backend.blocks import Batch, Blocks, batches, group_by, pieces
from hck.backend.checks import check_indices, require
from hck.backend.memory import per_chunk
from hck.backend.parallel import for_each
from hck.hierarchy.blueprint import Blueprint, check_landmarks
from hck.hierarchy.factor import Factor
from hck.hierarchy.smooth import Filtered, Weights
from hck.kernels import Kernel
from hck.kernels.slope import slope_of_sum
from hck.partition import Landmarks, Tree
from hck.points import (
    KernelBlocks,
    Points,
    PointsLike,
    as_points_like,
    check_kernel,
    check_weights,
    features_of,
)


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
    """What a stack of visited leaves takes, and how much it may take."""

    rank: int
    budget: int  # bytes that temporaries should stay within
    factored: bool = False  # whether factors of the leaves are needed as well
    each: int = 1  # numbers between two points: more than a kernel's value where that is differentiated

    def needed(self, leaf_size: int, x: Points) -> tuple[int, int]:
        """Bytes for a leaf, and for each new point in it."""
        width, gathered = leaf_size + self.rank, 3 * x.values_per_point
        per_leaf = gathered * width + self.factored * width**2
        per_point = (3 + self.factored) * width * self.each + gathered
        return x.dtype.itemsize * per_leaf, x.dtype.itemsize * per_point


def visits(
    tree: Tree, leaves: list[Batch], x: Points, room: Room, at: Tensor | None = None
) -> list[Visit]:  # fmt: skip
    """New points in blocks, each of one leaf, and the blocks in stacks within the memory budget.

    In a batch of `leaves`, which may all be visited, those of similar size are together. Where it is known
    already which leaf each point is in, it is told by its number, `at` (points,).
    """
    order, start, count = group_by(tree.route(x) if at is None else at, tree.n_leaves)
    found = []
    for number, batch in enumerate(leaves):
        per_leaf, per_point = room.needed(batch.index.shape[1], x)
        gathered = min(per_leaf, room.budget // 8) // per_point  # worth gathering a leaf's own points
        limit = max(per_chunk(per_point, room.budget, x.device), gathered)

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
    Points are in the tree's order, or, so that trees can share them, as they came: then `order` says where
    each point in the tree's order is among them.

    Examples
    --------
    >>> import torch
    >>> from hck.hierarchy import HierarchicalKernel
    >>> x = torch.linspace(0, 1, 100, dtype=torch.float64)[:, None]
    >>> kernel = HierarchicalKernel.build("gaussian", x, rank=10, generator=0)
    >>> w = torch.ones(100, dtype=torch.float64)
    >>> bool((kernel.extend(w)(x)[:, 0] - kernel @ w).abs().max() < 1e-6)  # at training points, the product
    True
    """

    kernel: Kernel
    tree: Tree
    points: Points
    landmarks: Landmarks
    weights: Tensor  # w (n, columns), in the tree's order
    landmark_weights: Tensor  # g (leaves, r, columns)
    budget: int  # bytes that temporaries should stay within
    order: Tensor | None = None  # (n,)

    def validate(self) -> None:
        """Raise ValueError unless all parts fit together."""
        tree, points, weights = self.tree, self.points, self.weights
        check_landmarks(self.landmarks, tree, points)
        most = check_kernel(self.kernel, points)
        check_weights("weights", weights, most, tree.n_points, None)
        rank, columns = self.landmarks.rank, weights.shape[-1]
        require(columns > 0, "weights must have columns")
        check_weights("landmark_weights", self.landmark_weights, most, tree.n_leaves, rank, columns)
        require(self.landmark_weights.dtype == weights.dtype == points.dtype, "weights must be of one type")
        if self.order is not None:
            check_indices("order", self.order, len(points), tree.n_points)
            require(self.order.dtype == torch.int64, "order must be int64")

    @property
    def columns(self) -> int:
        """How many values there are at a point."""
        return self.weights.shape[1]

    @classmethod
    def of(cls, blueprint: Blueprint, weights: Weights) -> "TreePredictor":
        """From weights whose `ambient` is g already (`Blueprint.put_landmark_weights`)."""
        tree, own = blueprint.layout.tree, weights.own[:-1]
        places = tree, blueprint.points, blueprint.landmarks
        return cls(blueprint.kernel, *places, own, weights.ambient, blueprint.budget)

    @torch.no_grad()
    def __call__(self, x: PointsLike, verbose: bool = False) -> Tensor:
        """f at each point of `x`: shape (points, columns)."""
        x = as_points_like(x, self.points)
        return self._values(x, self._visits(x), verbose)

    @torch.no_grad()
    def at_points(self, leaves: list[Batch]) -> Tensor:
        """f at the training points, (n, columns), in the tree's order: that of `points`, here.

        The leaves are all of the tree's, with positions of those points that have weights.
        """
        tree, room = self.tree, Room(self.landmarks.rank, self.budget)
        at = tree.leaf_of_point[tree.order]
        return self._values(self.points, visits(tree, leaves, self.points, room, at))

    def _values(self, x: Points, found: list[Visit], verbose: bool = False) -> Tensor:
        out = self.weights.new_empty(len(x) + 1, self.columns)

        def evaluate(visit: Visit) -> None:
            near, *far = self._sides(x, visit)
            value = near[0].tensor() @ near[1]  # the kernel is 0 where a leaf is padded
            for pairs, weights in far:
                value = torch.baddbmm(value, pairs.tensor(), weights)
            out[visit.new.index] = value

        for_each(evaluate, found, x.device, "Predict", verbose)
        return out[:-1]

    @torch.no_grad()
    def slope(self, x: PointsLike, verbose: bool = False) -> Tensor:
        """∂f/∂x at each point of `x`, of the leaf that it is in: shape (points, d, columns)."""
        x = as_points_like(x, self.points)
        d = features_of(x)
        out = self.weights.new_empty(len(x) + 1, d, self.columns)

        def evaluate(visit: Visit) -> None:
            parts = [slope_of_sum(self.kernel, *side) for side in self._sides(x, visit)]
            out[visit.new.index] = parts[0] if len(parts) == 1 else parts[0] + parts[1]

        for_each(evaluate, self._visits(x, d), x.device, "Predict: gradient", verbose)
        return out[:-1]

    @torch.no_grad()
    def neighbours(self, x: PointsLike, count: int) -> Tensor:
        """The training points closest to each point of `x` among those of its leaf, by the kernel.

        Shape (points, count): positions among the training points, −1 where a leaf has fewer.
        """
        x = as_points_like(x, self.points)
        out = torch.full((len(x) + 1, count), -1, dtype=torch.long, device=x.device)

        def evaluate(visit: Visit) -> None:
            pairs, _ = self._sides(x, visit)[0]
            values = pairs.tensor()
            if not pairs.columns.full:
                values.masked_fill_(~pairs.columns.mask[:, None], -torch.inf)
            closest = values.topk(min(count, values.shape[2]), sorted=False).indices
            every = pairs.columns.index[:, None].expand_as(values)
            out[visit.new.index, : closest.shape[2]] = every.gather(2, closest)

        for_each(evaluate, self._visits(x), x.device, "Predict: neighbours")
        return out[:-1]

    def _visits(self, x: Points, each: int = 1) -> list[Visit]:
        return visits(self.tree, leaves_of(self.tree), x, Room(self.landmarks.rank, self.budget, each=each))

    def _sides(self, x: Points, visit: Visit) -> list[tuple[KernelBlocks, Tensor]]:
        """New points with those of their leaves and with landmarks, if there are any, and the weights."""
        own = visit.own
        if self.order is not None:
            own = Blocks(self.order[own.safe].where(own.mask, -1), own.full)
        near = KernelBlocks(self.kernel, x, visit.new, self.points, own)
        sides = [(near, self.weights[visit.own.safe])]
        if self.tree.depth:
            blocks = self.landmarks.blocks[self.tree.leaf_parent[visit.leaf]]
            far = KernelBlocks(self.kernel, x, visit.new, self.landmarks.points, blocks)
            sides.append((far, self.landmark_weights[visit.leaf]))
        return sides

    @property
    def nbytes(self) -> int:
        """Memory held by the weights, in bytes."""
        return self.weights.nbytes + self.landmark_weights.nbytes


Extension = TreePredictor  # its name in files, and in earlier versions


def descend(
    blueprint: Blueprint, factor: Factor, filtered: Filtered, above: Tensor | None = None
) -> TreePredictor:
    """x ↦ k_h(x, X) (K_h + noise)⁻¹ b for right-hand sides b that have gone up.

    The factor is of this kernel's matrix, or of a part of it: then `above` is ẑ of the roots' parents,
    (nodes above, r, columns).
    """
    source = blueprint.part(factor.layout)

    def work() -> TreePredictor:
        weights = factor.smooth(filtered, above)
        source.put_landmark_weights(weights.ambient)
        return TreePredictor.of(source, weights)

    return linalg.without_waiting(work, factor.device)
