"""Solve (K_h + noise) w = b once, without keeping the factor: all that ridge regression needs."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from hck.backend import linalg
from hck.backend.kinds import kind_of
from hck.backend.parallel import at_a_time
from hck.backend.text import in_bytes
from hck.branches.drive import drive
from hck.branches.memory import InMemory
from hck.hierarchy.blueprint import Blueprint
from hck.hierarchy.factor import Factor
from hck.hierarchy.predictor import TreePredictor
from hck.hierarchy.smooth import Weights, smooth_down

_TRUNK = 64  # leaves of the tree for each node of a trunk, at least: it is small beside them


@torch.no_grad()
def ridge(blueprint: Blueprint, noise: float | Tensor, b: Tensor, depth: int | None = None) -> TreePredictor:
    """x ↦ wᵀ k_h(X, x) for the solution w of (K_h + noise) w = b.

    Parameters
    ----------
    blueprint : Blueprint
        Of K_h.
    noise : float or Tensor of shape (n,)
        λ, or a variance for each point.
    b : Tensor of shape (n,) or (n, columns)
    depth : int, optional
        Where to cut the tree. 0: not at all; every factor is stored until the down-sweep. Else the branches
        below this depth are factored, on a CPU as many at a time as it has cores. The first few are kept, as
        far as the memory budget allows; of the others nothing but their messages, and they are factored again
        on the way down. A depth that is given is taken even if the budget is too small for it. By default the
        memory budget decides, and branches are worked on in bundles: a small node does not fill a GPU.

    Examples
    --------
    >>> import torch
    >>> from hck.branches import ridge
    >>> from hck.hierarchy import Blueprint
    >>> from hck.settings import Settings
    >>> x = torch.linspace(0, 1, 400, dtype=torch.float64)[:, None]
    >>> blueprint = Blueprint.of("gaussian", x, Settings(rank=8), generator=0)
    >>> whole, in_pieces = (ridge(blueprint, 0.1, x[:, 0], depth) for depth in (0, 2))
    >>> bool((whole(x) - in_pieces(x)).abs().max() < 1e-10)
    True
    """
    layout = blueprint.layout
    if depth is not None and not 0 <= depth < len(layout.levels):
        raise ValueError(f"depth must be 0 to {len(layout.levels) - 1} for this tree, got {depth}")
    variance = blueprint.pad_noise(noise)
    padded = layout.pad(b, variance)
    depth, bundles, kept = cut_within_budget(blueprint, padded.shape[1], depth)
    weights = Weights.room(layout, padded, blueprint.rank)

    def solve() -> None:
        if depth:
            cut = layout.cut(depth, bundles)
            drive(InMemory(blueprint, variance, padded, cut, kept, weights))
            return
        factor = Factor(blueprint, variance, padded)
        smooth_down(factor, factor.filtered, weights)
        del factor  # before more is computed
        blueprint.put_landmark_weights(weights.ambient)

    try:
        linalg.without_waiting(solve, padded.device)
    finally:
        blueprint.factors.clear()
    return TreePredictor.of(blueprint, weights)


def cut_within_budget(blueprint: Blueprint, columns: int, depth: int | None = None) -> tuple[int, int, int]:
    """How `ridge` stays within the memory budget; a MemoryError if no way is enough.

    The depth at which to cut, in how many bundles to work on the branches, and how many bundles to keep.
    """
    best, least, needs = None, math.inf, []
    for cut, bundles in _ways(blueprint) if depth is None else [(depth, None)]:
        work, each, number = bytes_needed(blueprint, columns, cut, bundles)
        needs.append(work)
        if work > blueprint.budget and depth is None:
            continue
        kept = min(number, int(max(0, blueprint.budget - work) // each))
        again = 0.0 if cut == 0 else 1 - kept / number
        if again > least - kind_of(blueprint.points.device).split_gain:
            break
        best, least = (cut, number, kept), again
    if best is not None:
        return best
    raise MemoryError(
        f"memory_budget={in_bytes(blueprint.budget)} is too small: at least {in_bytes(min(needs))} are "
        "needed. Lower rank or leaf_size, use dtype='float32', or raise memory_budget"
    )


def _ways(blueprint: Blueprint) -> Iterator[tuple[int, int]]:
    """Depths and numbers of bundles to try, in this order."""
    levels = blueprint.layout.levels
    counts = [stop - first for first, stop in levels]
    small = blueprint.layout.tree.n_leaves // _TRUNK
    yield 0, 1
    for bundles in (2**i for i in range(1, max(counts).bit_length())):
        fine = [depth for depth in range(1, len(counts)) if bundles <= counts[depth]]
        if fine:  # the deepest with a small trunk
            yield max([depth for depth in fine if levels[depth][0] <= small], default=fine[0]), bundles
    for depth in range(1, len(counts)):  # of a tree of another shape
        yield depth, counts[depth]


def bytes_needed(
    blueprint: Blueprint, columns: int, depth: int, bundles: int | None = None
) -> tuple[int, int, int]:
    """Memory for `ridge`, in bytes, with the tree cut at a depth, and its branches in bundles.

    The most that is needed at once, beside the points, if no bundle is kept; what it takes to keep a bundle;
    and how many bundles there are.
    """
    layout, rank = blueprint.layout, blueprint.rank
    tree, itemsize = layout.tree.host, blueprint.points.dtype.itemsize
    above, cut = layout.levels[depth][0], layout.cut(depth, bundles)
    together = cut.sizes.topk(min(at_a_time(blueprint.points.device), cut.n_bundles)).values
    leaf_size = max(batch.index.shape[1] for batch in layout.leaves)
    # L and Y; A and M, and H
    stored = tree.n_points * (leaf_size + rank) + 2 * rank * rank * layout.n_slots
    # C and messages at the level that is worked on and the one above
    under_way = rank * rank * layout.n_slots
    own = tree.leaves[tree.level[tree.leaves] <= depth]  # leaves of the trunk
    trunk = 3.5 * rank * rank * above + float(tree.size[own].sum()) * (leaf_size + rank)
    trunk = trunk if depth else 0.0
    vectors = (4 * tree.n_points + 4 * rank * (tree.n_leaves + layout.n_slots)) * columns + 6 * tree.n_points
    at_once, each = (float(points) / tree.n_points for points in (together.sum(), together[0]))
    work = at_once * (stored + under_way) + trunk + vectors
    return int(itemsize * work), int(itemsize * each * stored), cut.n_bundles
