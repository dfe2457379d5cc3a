"""Solve (K_h + noise) w = b once, without keeping the factor: all that ridge regression needs."""

import torch
from torch import Tensor

from hck import linalg
from hck.hierarchy.blueprint import Blueprint
from hck.hierarchy.extend import Extension
from hck.hierarchy.factor import Factor
from hck.hierarchy.smooth import smooth_down
from hck.hierarchy.steps import Inbox
from hck.parallel import for_each


def ridge(blueprint: Blueprint, noise: float | Tensor, b: Tensor, depth: int | None = None) -> Extension:
    """x ↦ wᵀ k_h(X, x) for the solution w of (K_h + noise) w = b.

    Parameters
    ----------
    noise : float or Tensor of shape (n,)
        λ, or a variance for each point.
    b : Tensor of shape (n,) or (n, columns)
    depth : int, optional
        Where to cut the tree. 0: not at all; every factor is stored until the down-sweep. Else the branches
        below this depth are factored one after another, twice: nothing but their messages is kept. By
        default the least depth at which the memory budget is enough.
    """
    layout = blueprint.layout
    variance = blueprint.pad_noise(noise)
    padded = layout.pad(b, variance)
    depth = depth_within_budget(blueprint, padded.shape[1]) if depth is None else depth
    w = torch.zeros_like(padded)
    ambient = padded.new_empty(layout.tree.n_leaves, blueprint.rank, padded.shape[1])

    def factored(source: Blueprint, received: Inbox | None = None) -> Factor:
        return Factor(source, variance, blueprint.budget, padded, received, blueprint.verbose)

    if depth == 0:
        factor = factored(blueprint)
        smooth_down(factor, factor.filtered, w, ambient)
        del factor
    else:
        trunk, branches = layout.cut(depth)
        above = blueprint.part(trunk)
        first, stop = trunk.levels[-1]
        received = Inbox.empty(stop - first, blueprint.rank, padded)
        for branch in branches:
            where = torch.tensor([branch.above - first], device=padded.device)
            received.pour(where, factored(blueprint.part(branch)).message)
        factor = factored(above, received)
        state = smooth_down(factor, factor.filtered, w, ambient)[-1]
        del factor, received
        for branch in branches:
            factor = factored(blueprint.part(branch))
            smooth_down(factor, factor.filtered, w, ambient, state[branch.above - first])
            del factor
    w[-1] = 0
    landmark_weights(blueprint, ambient)
    return extension(blueprint, w, ambient)


def depth_within_budget(blueprint: Blueprint, columns: int) -> int:
    """The least depth at which to cut the tree so that `ridge` stays within the memory budget.

    Raises
    ------
    MemoryError
        If no depth is enough.
    """
    needs = []
    for depth in range(len(blueprint.layout.levels)):
        needs.append(bytes_needed(blueprint, columns, depth))
        if needs[-1] <= blueprint.budget:
            return depth
    raise MemoryError(
        f"memory_budget={blueprint.budget / 1e9:.2g} GB is too small: at least {min(needs) / 1e9:.2g} GB are "
        "needed. Lower rank or leaf_size, use dtype='float32', or raise memory_budget"
    )


def bytes_needed(blueprint: Blueprint, columns: int, depth: int) -> int:
    """Memory that `ridge` takes at its peak, in bytes, beside the points, with the tree cut at a depth."""
    layout, rank = blueprint.layout, blueprint.rank
    tree = layout.tree
    first, stop = layout.levels[depth]
    share = float(tree.size[tree.inner[first:stop]].max()) / tree.n_points if tree.depth else 1.0
    leaf_size = max(batch.index.shape[1] for batch in layout.leaves)
    # L and Y; A and M, H, and what is under way of C and messages at the level that is worked on
    stored = tree.n_points * (leaf_size + rank) + 2.25 * rank * rank * layout.n_slots
    trunk = 3.5 * rank * rank * first
    vectors = (4 * tree.n_points + 4 * rank * (tree.n_leaves + layout.n_slots)) * columns + 6 * tree.n_points
    return int(blueprint.points.dtype.itemsize * (share * stored + trunk + vectors))


def landmark_weights(blueprint: Blueprint, ambient: Tensor, landmark_factor: Tensor | None = None) -> None:
    """Put g = C_p⁻ᵀ d in place of what the leaves hear, d. C is computed again if it is not given."""
    layout = blueprint.layout

    def work(k: int) -> None:
        batch = layout.leaves[k]
        parent = layout.parents(batch)
        if landmark_factor is None:
            slots, which = torch.unique_consecutive(parent, return_inverse=True)
            factor = blueprint.landmark_factor(slots)
        else:
            factor, which = landmark_factor, parent
        ambient[batch.groups] = linalg.unwhiten_(factor, ambient[batch.groups], which)

    for_each(work, range(len(layout.leaves)), blueprint.points.device)


def extension(blueprint: Blueprint, w: Tensor, landmark_weights: Tensor) -> Extension:
    """The function with weights w (n + 1, columns) in the tree's order."""
    kernel, points, tree = blueprint.kernel, blueprint.points, blueprint.layout.tree
    return Extension(kernel, tree, points, blueprint.landmarks, w[:-1], landmark_weights, blueprint.budget)
