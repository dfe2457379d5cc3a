"""Solve with a factor: right-hand sides go up the tree, as in a Kalman filter, and down, as in a smoother."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from hck.backend import linalg
from hck.backend.parallel import for_each, parallel_map
from hck.hierarchy.layout import Layout
from hck.hierarchy.steps import leaf_down, node_down

if TYPE_CHECKING:
    from hck.hierarchy.factor import Factor, NodeFactors


@dataclass
class Filtered:
    """Right-hand sides on their way up, and what they leave for the way down.

    In `mean` is first, for each level, τ, the sum of what its nodes hear from their children, and then ν.
    """

    b: Tensor  # (n + 1, columns), in the tree's order, with a zero row at the end
    whitened: list[Tensor]  # a = L⁻¹ b (leaves, n₀, columns) for each batch of leaves
    mean: list[Tensor]  # ν = A⁻¹ τ (nodes, r, columns) for each level
    expected: list[Tensor]  # q = Hᵀ ν (nodes, r, columns) for each level

    @classmethod
    def start(cls, layout: Layout, b: Tensor, rank: int) -> "Filtered":
        shapes = [(stop - first, rank, b.shape[1]) for first, stop in layout.levels]
        mean, expected = [b.new_zeros(shape) for shape in shapes], [b.new_empty(shape) for shape in shapes]
        return cls(b, [], mean, expected)

    def map(self, change: Callable[[Tensor], Tensor]) -> "Filtered":
        """What other right-hand sides leave, that are combinations of these: `change` combines columns."""
        lists = (list(map(change, each)) for each in (self.whitened, self.mean, self.expected))
        return Filtered(change(self.b), *lists)


class Weights(NamedTuple):
    """A solution w, or room for one, and what each leaf hears of it: d_j = ẑ_p − V_jᵀ w_j."""

    own: Tensor  # w (n + 1, columns), in the tree's order, with a zero row at the end
    ambient: Tensor  # d (leaves, r, columns)

    @classmethod
    def room(cls, layout: Layout, b: Tensor, rank: int) -> "Weights":
        """For right-hand sides b (n + 1, columns)."""
        return cls(torch.zeros_like(b), b.new_empty(layout.tree.n_leaves, rank, b.shape[1]))


def filter_up(factor: "Factor", b: Tensor) -> Filtered:
    """The up-sweep of right-hand sides (n + 1, columns) in the tree's order."""
    layout = factor.layout
    filtered = Filtered.start(layout, b, factor.rank)

    def leaves(k: int) -> tuple[Tensor, Tensor]:
        a = linalg.whiten_(factor.leaf_factor[k], b[layout.leaves[k].index])
        return a, factor.leaf_whitened[k].mT @ a

    every = range(len(layout.leaves))
    for k, (a, sent) in enumerate(parallel_map(leaves, every, factor.device)):
        filtered.whitened.append(a)
        filtered.mean[layout.leaf_levels[k]].index_add_(0, layout.within_level(k), sent)

    for level in reversed(range(len(layout.levels))):

        def nodes(part: "NodeFactors", level: int = level) -> Tensor:
            a, h, m = part.unpack()
            nu = linalg.whiten_(a, filtered.mean[level][part.here])
            filtered.mean[level][part.here] = nu
            filtered.expected[level][part.here] = q = h.mT @ nu
            return m @ q

        parts = factor.nodes[level]
        for part, sent in zip(parts, parallel_map(nodes, parts, factor.device), strict=True):
            if level > 0:
                filtered.mean[level - 1].index_add_(0, part.parent, sent)
    return filtered


def smooth_down(
    factor: "Factor", filtered: Filtered, out: Weights, above: Tensor | None = None
) -> list[Tensor]:
    """The down-sweep: fills the rows of `out` that belong to the factor's part of the tree.

    Inner node i: ẑ_i = A⁻ᵀ (ν + H M (ẑ_p − q)). Leaf j: w_j = L⁻ᵀ (a_j − Y_j ẑ_p). `above` is ẑ of the roots'
    parents (nodes above, r, columns), if they have some. Returns ẑ for each level: (nodes, r, columns).
    """
    layout = factor.layout

    def nodes(level: int, above: Tensor) -> Tensor:
        mean, expected = filtered.mean[level], filtered.expected[level]
        found = torch.empty_like(mean)

        def visit(part: "NodeFactors") -> None:
            own, here = (part.packed, part.diagonal, part.whitened), part.here
            found[here] = node_down(own, mean[here], expected[here], above[part.parent])

        for_each(visit, factor.nodes[level], factor.device)
        return found

    before = filtered.b.new_zeros(1, factor.rank, filtered.b.shape[1]) if above is None else above
    state: list[Tensor] = []
    for level in range(len(layout.levels)):
        before = nodes(level, before)
        state.append(before)

    def leaves(k: int) -> None:
        batch, y = layout.leaves[k], factor.leaf_whitened[k]
        z = state[layout.leaf_levels[k]][layout.within_level(k)]
        a = filtered.whitened[k].clone()
        out.own[batch.index], out.ambient[batch.groups] = leaf_down(factor.leaf_factor[k], y, a, z)

    for_each(leaves, range(len(layout.leaves)), factor.device)
    out.own[-1] = 0  # where padding was written
    return state
