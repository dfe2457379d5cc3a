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
from hck.parallel import for_each

_LITTLE = 0.25  # share of the work that may be done twice, rather than cut the tree into more branches


def ridge(blueprint: Blueprint, noise: float | Tensor, b: Tensor, depth: int | None = None) -> Extension:
    """x ↦ wᵀ k_h(X, x) for the solution w of (K_h + noise) w = b.

    Parameters
    ----------
    noise : float or Tensor of shape (n,)
        λ, or a variance for each point.
    b : Tensor of shape (n,) or (n, columns)
    depth : int, optional
        Where to cut the tree. 0: not at all; every factor is stored until the down-sweep. Else the branches
        below this depth are factored one after another. The first few are kept, as far as the memory budget
        allows; of the others nothing but their messages, and they are factored again on the way down. By
        default the depth at which the least has to be done again.
    """
    layout = blueprint.layout
    variance = blueprint.pad_noise(noise)
    padded = layout.pad(b, variance)
    depth, kept = plan_within_budget(blueprint, padded.shape[1], depth)
    w = torch.zeros_like(padded)
    ambient = padded.new_empty(layout.tree.n_leaves, blueprint.rank, padded.shape[1])

    def factored(source: Blueprint, received: Inbox | None = None) -> Factor:
        return Factor(source, variance, blueprint.budget, padded, received, blueprint.verbose)

    def smooth(factor: Factor, above: Tensor | None = None) -> Tensor:
        return smooth_down(factor, factor.filtered, w, ambient, above)[-1]

    def solve_whole() -> None:
        smooth(factored(blueprint))
        landmark_weights(blueprint, ambient)

    def solve_by_branches() -> None:
        factors: list[Factor] = []
        first, stop = trunk.layout.levels[-1]
        received = Inbox.empty(stop - first, blueprint.rank, padded)
        for branch in branches:
            factor = factored(branch)
            where = torch.full((1,), branch.layout.above - first, device=padded.device)
            received.pour(where, factor.message)
            if len(factors) < kept:
                factors.append(factor)
            del factor
        state = smooth(factored(trunk, received))
        del received
        landmark_weights(trunk, ambient)
        for branch in branches:
            smooth(factors.pop(0) if factors else factored(branch), state[branch.layout.above - first])
            landmark_weights(branch, ambient)

    if depth > 0:
        above, below = layout.cut(depth)
        trunk, branches = blueprint.part(above), [blueprint.part(branch) for branch in below]
    linalg.without_waiting(solve_by_branches if depth > 0 else solve_whole, padded.device)
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
        first, stop = blueprint.layout.levels[cut]
        kept = min(stop - first, int(max(0, blueprint.budget - work) // branch))
        again = 0.0 if cut == 0 else 1 - kept / (stop - first)
        if again < least and (work <= blueprint.budget or depth is not None):
            best, least = (cut, kept), again
        if least <= _LITTLE:
            break
        needs.append(work)
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
    leaf_size = max(batch.index.shape[1] for batch in layout.leaves)
    # L and Y; A and M, and H
    stored = tree.n_points * (leaf_size + rank) + 2 * rank * rank * layout.n_slots
    # C and messages at the level that is worked on and the one above
    under_way = rank * rank * layout.n_slots
    trunk = 3.5 * rank * rank * first
    vectors = (4 * tree.n_points + 4 * rank * (tree.n_leaves + layout.n_slots)) * columns + 6 * tree.n_points
    return int(itemsize * (share * (stored + under_way) + trunk + vectors)), int(itemsize * share * stored)


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
