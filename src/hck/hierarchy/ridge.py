"""Solve (K_h + noise) w = b once, without keeping the factor: all that ridge regression needs."""

import math

import torch
from torch import Tensor

from hck import linalg
from hck.hierarchy.blueprint import Blueprint
from hck.hierarchy.extend import Extension
from hck.hierarchy.factor import Factor
from hck.hierarchy.smooth import smooth_down
from hck.hierarchy.steps import Inbox
from hck.parallel import at_a_time, for_each, parallel_map

# Share of the work that has to be saved for the tree to be cut into twice as many branches. A GPU works on
# one after another, each with as many commands.
_GAIN = {"cpu": 0.1, "cuda": 0.2}


def ridge(blueprint: Blueprint, noise: float | Tensor, b: Tensor, depth: int | None = None) -> Extension:
    """x ↦ wᵀ k_h(X, x) for the solution w of (K_h + noise) w = b.

    Parameters
    ----------
    noise : float or Tensor of shape (n,)
        λ, or a variance for each point.
    b : Tensor of shape (n,) or (n, columns)
    depth : int, optional
        Where to cut the tree. 0: not at all; every factor is stored until the down-sweep. Else the branches
        below this depth are factored, on a CPU as many at a time as it has cores. The first few are kept, as
        far as the memory budget allows; of the others nothing but their messages, and they are factored again
        on the way down. By default the tree is cut deeper as long as that saves work. A depth that is given
        is taken even if the budget is too small for it.
    """
    layout = blueprint.layout
    if depth is not None and not 0 <= depth < len(layout.levels):
        raise ValueError(f"depth must be 0 to {len(layout.levels) - 1} for this tree, got {depth}")
    variance = blueprint.pad_noise(noise)
    padded = layout.pad(b, variance)
    depth, kept = plan_within_budget(blueprint, padded.shape[1], depth)
    w = torch.zeros_like(padded)
    ambient = padded.new_empty(layout.tree.n_leaves, blueprint.rank, padded.shape[1])

    def factored(source: Blueprint, received: Inbox | None = None, show: bool = False) -> Factor:
        return Factor(source, variance, blueprint.budget, padded, received, show)

    def smooth(factor: Factor, above: Tensor | None = None) -> Tensor:
        return smooth_down(factor, factor.filtered, w, ambient, above)[-1]

    def solve_whole() -> None:
        smooth(factored(blueprint, show=blueprint.verbose))
        landmark_weights(blueprint, ambient)  # now that the factor is gone

    def solve_by_branches() -> None:
        first, stop = trunk.layout.levels[-1]
        every, show = range(len(branches)), blueprint.verbose
        received = Inbox.empty(stop - first, blueprint.rank, padded)
        factors: list[Factor | None] = []

        def up(k: int) -> tuple[Inbox, Factor | None]:
            factor = factored(branches[k])
            return factor.message, factor if k < kept else None

        def down(k: int) -> None:
            factor, factors[k] = factors[k] or factored(branches[k]), None
            smooth(factor, state[branches[k].layout.above - first])
            del factor
            landmark_weights(branches[k], ambient)

        for k, (message, factor) in enumerate(parallel_map(up, every, padded.device, "Branches: up", show)):
            where = torch.full((1,), branches[k].layout.above - first, device=padded.device)
            received.pour(where, message)
            factors.append(factor)
        state = smooth(factored(trunk, received))
        landmark_weights(trunk, ambient)
        for_each(down, every, padded.device, "Branches: down", show)

    if depth > 0:
        above, below = layout.cut(depth)
        trunk, branches = blueprint.part(above), [blueprint.part(branch) for branch in below]
    try:
        linalg.without_waiting(solve_by_branches if depth > 0 else solve_whole, padded.device)
    finally:
        blueprint.factors.clear()
    w[-1] = 0
    return extension(blueprint, w, ambient)


def plan_within_budget(blueprint: Blueprint, columns: int, depth: int | None = None) -> tuple[int, int]:
    """Where to cut the tree so that `ridge` stays within the memory budget, and how many branches to keep.

    Raises
    ------
    MemoryError
        If no depth is enough.
    """
    best, least, needs = None, math.inf, []
    for cut in range(len(blueprint.layout.levels)) if depth is None else [depth]:
        work, branch = bytes_needed(blueprint, columns, cut)
        needs.append(work)
        if work > blueprint.budget and depth is None:
            continue
        first, stop = blueprint.layout.levels[cut]
        kept = min(stop - first, int(max(0, blueprint.budget - work) // branch))
        again = 0.0 if cut == 0 else 1 - kept / (stop - first)
        if again > least - _GAIN[blueprint.points.device.type]:
            break
        best, least = (cut, kept), again
    if best is not None:
        return best
    raise MemoryError(
        f"memory_budget={blueprint.budget / 1e9:.2g} GB is too small: at least {min(needs) / 1e9:.2g} GB are "
        "needed. Lower rank or leaf_size, use dtype='float32', or raise memory_budget"
    )


def bytes_needed(blueprint: Blueprint, columns: int, depth: int) -> tuple[int, int]:
    """Memory for `ridge`, in bytes, with the tree cut at a depth.

    Returns
    -------
    work : int
        The most that is needed at once, beside the points, if no branch is kept.
    branch : int
        What it takes to keep a branch.
    """
    layout, rank = blueprint.layout, blueprint.rank
    tree, itemsize = layout.tree.host, blueprint.points.dtype.itemsize
    first, stop = layout.levels[depth]
    share = float(tree.size[tree.inner[first:stop]].max()) / tree.n_points if tree.depth else 1.0
    together = min(at_a_time(blueprint.points.device), stop - first)  # branches
    leaf_size = max(batch.index.shape[1] for batch in layout.leaves)
    # L and Y; A and M, and H
    stored = tree.n_points * (leaf_size + rank) + 2 * rank * rank * layout.n_slots
    # C and messages at the level that is worked on and the one above
    under_way = rank * rank * layout.n_slots
    own = tree.leaves[tree.level[tree.leaves] <= depth]  # leaves of the trunk
    trunk = 3.5 * rank * rank * first + float(tree.size[own].sum()) * (leaf_size + rank)
    trunk = trunk if depth else 0.0
    vectors = (4 * tree.n_points + 4 * rank * (tree.n_leaves + layout.n_slots)) * columns + 6 * tree.n_points
    work = together * share * (stored + under_way) + trunk + vectors
    return int(itemsize * work), int(itemsize * share * stored)


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


def extension(blueprint: Blueprint, w: Tensor, landmark_weights: Tensor) -> Extension:
    """The function with weights w (n + 1, columns) in the tree's order."""
    kernel, points, tree = blueprint.kernel, blueprint.points, blueprint.layout.tree
    return Extension(kernel, tree, points, blueprint.landmarks, w[:-1], landmark_weights, blueprint.budget)
