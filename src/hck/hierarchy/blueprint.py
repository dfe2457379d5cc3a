"""Kernel values, landmark factors, transfers, leaf bases and leaf residuals."""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from hck.backend import linalg
from hck.backend.blocks import Blocks
from hck.backend.checks import require
from hck.backend.memory import Cost, at_once, resolve_budget
from hck.backend.parallel import chunks, for_each, parallel_map
from hck.backend.random import RandomLike, as_random
from hck.backend.reuse import room
from hck.backend.steps import LeafInput, NodeInput
from hck.hierarchy.layout import Layout
from hck.hierarchy.matrix import HierarchicalMatrix
from hck.kernels import Kernel, make_kernel
from hck.kernels.inputs import looks_like_objects, refuse_complex
from hck.kernels.registry import KernelLike
from hck.partition import Landmarks, Tree, choose_landmarks, make_tree
from hck.points import (
    KernelBlocks,
    Points,
    PointsLike,
    as_points,
    check_alike,
    check_kernel,
    check_reach,
    features_of,
    self_values,
)
from hck.settings import Settings

# λ' on the landmark matrices when none is given, relative to k(x, x): it bounds their condition, and with
# it the rounding.
DEFAULT_JITTER = {torch.float64: 1e-8, torch.float32: 1e-4}


@dataclass
class Blueprint:
    """What the blocks of K_h are computed from, when they are asked for.

    ::

        C_p C_pᵀ = K(Z_p, Z_p) + jitter I
        W_i = C_i⁻¹ K(Z_i, Z_p) C_p⁻ᵀ              inner node i with parent p
        V_j = K(X_j, Z_p) C_p⁻ᵀ                    leaf j with parent p
        D_j = K(X_j, X_j) − V_j V_jᵀ

    Examples
    --------
    >>> import torch
    >>> from hck.hierarchy import Blueprint
    >>> from hck.settings import Settings
    >>> x = torch.linspace(0, 1, 100, dtype=torch.float64)[:, None]
    >>> blueprint = Blueprint.of("gaussian", x, Settings(rank=10), generator=0)
    >>> blueprint.layout.tree.n_leaves, blueprint.rank
    (8, 10)
    """

    kernel: Kernel
    points: Points  # in the tree's order
    landmarks: Landmarks
    jitter: float
    layout: Layout  # of a tree or of a part of one
    budget: int  # bytes that temporaries should stay within
    verbose: bool = False
    factors: dict[int, Tensor] = field(default_factory=dict)  # C, level by level, of those that are prepared
    jitter_follows: bool = False  # whether the jitter is in proportion to k(x, x)

    def validate(self) -> None:
        """Raise ValueError unless kernel, points, tree and landmarks fit together."""
        check_landmarks(self.landmarks, self.layout.tree, self.points)
        check_kernel(self.kernel, self.points)
        require(0 <= self.jitter < float("inf"), f"jitter must be finite, none negative, got {self.jitter}")

    @property
    def rank(self) -> int:
        """The most landmarks of a node."""
        return self.landmarks.rank

    @classmethod
    @torch.no_grad()
    def of(
        cls, kernel: KernelLike, x: PointsLike, settings: Settings, generator: RandomLike = None
    ) -> "Blueprint":
        """Partition the points and choose landmarks; see `HierarchicalKernel.build`."""
        kernel = make_kernel(kernel)
        objects = kernel.takes_objects and not isinstance(x, Points) and looks_like_objects(x)
        points = as_points(x, objects=objects)
        kernel = kernel.to(points.device, points.dtype)
        if len(points) == 0:
            raise ValueError("there are no points")
        check_reach(points)
        random = as_random(generator)
        tree = make_tree(
            settings.partition, points, kernel, settings.rank, settings.leaf_size, random.child(0)
        )
        points = points.take(tree.order)
        landmarks = choose_landmarks(settings.landmarks, points, tree, settings.rank, kernel, random.child(1))
        jitter = resolve_jitter(settings.jitter, kernel, points)
        budget = resolve_budget(settings.memory_budget, points.device)
        layout = lay_out(tree, points, landmarks.rank, budget)
        made = cls(kernel, points, landmarks, jitter, layout, budget, settings.verbose)
        made.jitter_follows = settings.jitter is None
        return made

    def part(self, layout: Layout) -> "Blueprint":
        """The same for a part of the tree."""
        return replace(self, layout=layout, factors={})

    def with_kernel(self, kernel: Kernel, jitter: float | None = None) -> "Blueprint":
        """The same points, tree and landmarks with another kernel; by default with that kernel's jitter."""
        own = resolve_jitter(jitter, kernel, self.points)
        return replace(self, kernel=kernel, jitter=own, jitter_follows=jitter is None, factors={})

    def join(self, x: Points) -> "Blueprint":
        """The same tree and landmarks with more points, which follow those that are there."""
        tree = self.layout.tree.join(self.layout.tree.route(x))
        points = self.points.join([x]).take(tree.order)
        layout = lay_out(tree, points, self.rank, self.budget)
        return replace(self, points=points, layout=layout, factors={})

    def pad_noise(self, noise: float | Tensor) -> Tensor:
        """Variances for each point in the tree's order, and a 0: shape (n + 1,)."""
        each = check_noise(noise, self.layout.tree.n_points, self.points.dtype, self.points.device)
        return self.layout.pad(each, each)[:, 0]

    def landmark_factor(self, slots: Tensor, out: Tensor | None = None) -> Tensor:
        """C of inner nodes, given by their slots in the tree; `out` is memory that may be used for it."""
        z, block = self.landmarks.points, self.landmarks.blocks[slots]
        values = KernelBlocks(self.kernel, z, block, z, block, upper=True).tensor(out)
        # a padded landmark has a zero row and 1 on the diagonal
        jitter = values.new_full((), self.jitter)
        values.diagonal(dim1=-2, dim2=-1).add_(jitter if block.full else jitter.where(block.mask, 1))
        return linalg.factor_(values, "the landmark matrix K(Z, Z) + jitter I")

    def prepare(self, level: int) -> None:
        """Compute C of a level, and keep it until `release`. Level -1 are the parents of roots."""
        if level in self.factors:
            return
        rank, z = self.rank, self.landmarks.points
        slots = self.layout.above if level < 0 else self.layout.slot[slice(*self.layout.levels[level])]
        out = room((len(slots), rank, rank), z.dtype, z.device)

        def work(here: slice) -> None:
            part = out[here]
            factor = self.landmark_factor(slots[here], part)
            if factor.data_ptr() != part.data_ptr():
                part.copy_(factor)

        for_each(work, self.chunks(0, len(slots)), z.device, "Landmarks: factors", self.verbose)
        self.factors[level] = out

    def release(self, level: int) -> None:
        """Forget C of a level."""
        self.factors.pop(level, None)

    def prepare_leaves(self) -> None:
        """Prepare the levels of the leaves' parents."""
        for level in sorted(set(self.layout.leaf_levels)):
            self.prepare(level)

    def leaf(self, k: int) -> LeafInput:
        """What D and V of a batch of leaves are made of; their parents' levels are prepared."""
        landmark = self.factors[self.layout.leaf_levels[k]]
        return LeafInput(*self.leaf_values(k), landmark, self.layout.within_level(k))

    def leaf_values(self, k: int) -> tuple[KernelBlocks, KernelBlocks]:
        """K(X, X) and K(Z, X) of a batch of leaves, to be computed."""
        layout, batch = self.layout, self.layout.leaves[k]
        block = self.landmarks.blocks[layout.slot[layout.parents(batch)]]
        own = KernelBlocks(self.kernel, self.points, batch, self.points, batch, upper=True)
        return own, KernelBlocks(self.kernel, self.landmarks.points, block, self.points, batch)

    def node(self, level: int, part: slice) -> NodeInput:
        """What W of some inner nodes of a level is made of; this level is prepared, and the one above."""
        first, which = self.layout.levels[level][0], self.layout.parent_within_level(level, part)
        if level == 0 and not len(self.layout.above):
            zero = torch.zeros(1, self.rank, self.rank, dtype=self.points.dtype, device=self.points.device)
            return NodeInput(zero, None, None, which)
        own = self.factors[level][part.start - first : part.stop - first]
        return NodeInput(self.node_values(level, part), own, self.factors[level - 1], which)

    def node_values(self, level: int, part: slice) -> KernelBlocks:
        """K(Z_p, Z_i) of some inner nodes i of a level, to be computed."""
        layout, z, blocks = self.layout, self.landmarks.points, self.landmarks.blocks
        parent = (layout.slot if level else layout.above)[layout.parent[part]]
        return KernelBlocks(self.kernel, z, blocks[parent], z, blocks[layout.slot[part]])

    def put_landmark_weights(self, ambient: Tensor) -> None:
        """Put landmarks' weights, g = C_p⁻ᵀ d, in place of what the leaves hear, d (leaves, r, columns)."""
        layout = self.layout
        self.prepare_leaves()

        def work(k: int) -> None:
            groups, factor = layout.leaves[k].groups, self.factors[layout.leaf_levels[k]]
            ambient[groups] = linalg.unwhiten_(factor, ambient[groups], layout.within_level(k))

        for_each(work, range(len(layout.leaves)), self.points.device)
        for level in set(layout.leaf_levels):
            self.release(level)

    def chunks(self, first: int, stop: int) -> list[slice]:
        """Inner nodes in slices small enough for their temporaries."""
        rank = self.rank
        each = self.points.dtype.itemsize * (4 * rank * rank + 6 * rank * self.points.values_per_point)
        most = self.layout.tree.n_leaves // 2
        step = at_once(stop - first, most, Cost(each, rank**3), self.budget, self.points.device)
        return chunks(first, stop, step)


def check_landmarks(landmarks: Landmarks, tree: Tree, points: Points) -> None:
    """Raise ValueError unless a tree is over these points, and landmarks are of its inner nodes."""
    # a branch has its landmarks behind its points
    require(len(points) >= tree.n_points, f"there are {len(points)} points in a tree of {tree.n_points}")
    tree.check_rules(features_of(points))
    sets, slots = len(landmarks.blocks), max(1, len(tree.inner))
    require(sets == slots, f"there are {sets} sets of landmarks for {slots} inner nodes")
    check_alike(landmarks.points, points)


def lay_out(tree: Tree, points: Points, rank: int, budget: int) -> Layout:
    """The layout of a tree over points, with as many leaves in a batch as a memory budget allows."""
    itemsize, d = points.dtype.itemsize, points.values_per_point
    return Layout.of(tree, _LeavesAtOnce(itemsize, d, points.device, tree.n_leaves, rank, budget))


@dataclass(frozen=True)
class _LeavesAtOnce:
    """How many leaves to work on together, given their size and number; pickled without points."""

    itemsize: int
    d: int
    device: torch.device
    n_leaves: int
    rank: int
    budget: int

    def __call__(self, width: int, leaves: int) -> int:
        both = width + self.rank
        each = self.itemsize * (2 * width * both + 4 * both * self.d)
        cost = Cost(each, width * both**2)
        number = at_once(leaves, self.n_leaves, cost, self.budget, self.device)
        return max(2, number + number % 2)  # siblings together


@torch.no_grad()
def build_matrix(blueprint: Blueprint) -> tuple[HierarchicalMatrix, Tensor]:
    """K_h with all blocks stored, and the landmark factors C of all inner nodes."""
    layout, device = blueprint.layout, blueprint.points.device
    for level in range(len(layout.levels)):
        blueprint.prepare(level)
    transfer: list[Tensor] = []
    for level, (first, stop) in enumerate(layout.levels):

        def node(part: slice, level: int = level) -> Tensor:
            return blueprint.node(level, part).transfer()

        parts = blueprint.chunks(first, stop)
        transfer += parallel_map(node, parts, device, "Landmarks: transfers", blueprint.verbose)

    def leaf(k: int) -> tuple[Tensor, Tensor]:
        residual, basis = blueprint.leaf(k).blocks()
        if not layout.leaves[k].full:
            residual.diagonal(dim1=-2, dim2=-1).add_((~layout.leaves[k].mask).to(residual.dtype))
        return linalg.mirror(residual), basis

    every = range(len(layout.leaves))
    leaves = list(parallel_map(leaf, every, device, "Leaves: kernel", blueprint.verbose))
    residual, basis = [own for own, _ in leaves], [v for _, v in leaves]
    factors = torch.cat([blueprint.factors[level] for level in range(len(layout.levels))])
    for level in range(len(layout.levels)):
        blueprint.release(level)
    return HierarchicalMatrix(layout, residual, basis, torch.cat(transfer)), factors


def check_noise(noise: float | Tensor, n: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The noise as one variance for each of n points: shape (n,)."""
    refuse_complex(noise)
    noise = torch.as_tensor(noise, dtype=dtype, device=device)
    if noise.ndim and noise.shape != (n,):
        raise ValueError(f"noise must be a number or have shape ({n},), got {tuple(noise.shape)}")
    if not (noise >= 0).all():
        raise ValueError("noise must be numbers, none negative")
    return noise.expand(n)


def resolve_jitter(jitter: float | None, kernel: Kernel, points: Points) -> float:
    """λ': what is given, or else a part of the mean of k(x, x)."""
    if jitter is not None:
        return float(jitter)
    return DEFAULT_JITTER[points.dtype] * mean_variance(kernel, points)


def mean_variance(kernel: Kernel, points: Points, most: int = 256) -> float:
    """The mean of k(x, x) over a few points."""
    return float(self_values(kernel, points, _few(points, most)).detach().mean())


def jitter_gradient(kernel: Kernel, points: Points, slope: Tensor) -> list[Tensor]:
    """What a jitter that follows the kernel adds to the gradient; `slope` is that with respect to it."""
    few = _few(points)
    weight = (slope * DEFAULT_JITTER[points.dtype] / len(few)).expand(len(few), 1, 1)
    return kernel.gradient_of_sum(KernelBlocks(kernel, points, few, points, few), weight)


def _few(points: Points, most: int = 256) -> Blocks:
    index = torch.arange(0, len(points), max(1, len(points) // most), device=points.device)[:, None]
    return Blocks(index, full=True)
