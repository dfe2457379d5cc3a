"""Solve with a factor: right-hand sides go up the tree, as in a Kalman filter, and down, as in a smoother."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from hck.backend import linalg
from hck.backend.parallel import for_each, parallel_map
from hck.hierarchy.layout import Layout
from hck.hierarchy.steps import leaf_down, node_down

if TYPE_CHECKING:
    from hck.hierarchy.factor import Factor, Nodes


@dataclass
class Filtered:
    """Right-hand sides on their way up, and what they leave for the way down.

    Attributes
    ----------
    b : Tensor of shape (n + 1, columns)
        In the tree's order, with a zero row at the end.
    whitened : list of Tensor, each (leaves, n₀, columns)
        a = L⁻¹ b for each batch of leaves, in their order.
    mean : list of Tensor, each (nodes, r, columns)
        For each level τ, the sum of what its nodes hear from their children, and then ν = A⁻¹ τ.
    expected : list of Tensor, each (nodes, r, columns)
        q = Hᵀ ν for each level.
    """

    b: Tensor
    whitened: list[Tensor]
    mean: list[Tensor]
    expected: list[Tensor]

    @classmethod
    def start(cls, layout: Layout, b: Tensor, rank: int) -> "Filtered":
        shapes = [(stop - first, rank, b.shape[1]) for first, stop in layout.levels]
        mean, expected = [b.new_zeros(shape) for shape in shapes], [b.new_empty(shape) for shape in shapes]
        return cls(b, [], mean, expected)

    def map(self, change: Callable[[Tensor], Tensor]) -> "Filtered":
        """What other right-hand sides leave, that are combinations of these: `change` combines columns."""
        lists = (list(map(change, each)) for each in (self.whitened, self.mean, self.expected))
        return Filtered(change(self.b), *lists)


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

        def nodes(part: "Nodes", level: int = level) -> Tensor:
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
    factor: "Factor", filtered: Filtered, w: Tensor, ambient: Tensor, above: Tensor | None = None
) -> list[Tensor]:
    """The down-sweep: the solution of (K_h + noise) w = b and what the leaves hear of it.

    Inner node i: ẑ_i = A⁻ᵀ (ν + H M (ẑ_p − q)). Leaf j: w_j = L⁻ᵀ (a_j − Y_j ẑ_p).

    Parameters
    ----------
    w : Tensor of shape (n + 1, columns)
        To be filled, in the tree's order.
    ambient : Tensor of shape (leaves, r, columns)
        To be filled: d_j = ẑ_p − V_jᵀ w_j for each leaf, what it hears of w in all other leaves.
    above : Tensor of shape (nodes above, r, columns), optional
        ẑ of the roots' parents, if they have some.

    Returns
    -------
    list of Tensor, each (nodes, r, columns)
        ẑ for each level.
    """
    layout = factor.layout
    state: list[Tensor] = []
    for level, mean in enumerate(filtered.mean):
        out = torch.empty_like(mean)
        before = state[-1] if state else above
        before = mean.new_zeros(1, *mean.shape[1:]) if before is None else before

        def nodes(
            part: "Nodes", level: int = level, mean: Tensor = mean, out: Tensor = out, before: Tensor = before
        ) -> None:
            q = filtered.expected[level][part.here]
            factors = (part.packed, part.diagonal, part.whitened)
            out[part.here] = node_down(factors, mean[part.here], q, before[part.parent])

        for_each(nodes, factor.nodes[level], factor.device)
        state.append(out)

    def leaves(k: int) -> None:
        batch, y = layout.leaves[k], factor.leaf_whitened[k]
        z = state[layout.leaf_levels[k]][layout.within_level(k)]
        a = filtered.whitened[k].clone()
        w[batch.index], ambient[batch.groups] = leaf_down(factor.leaf_factor[k], y, a, z)

    for_each(leaves, range(len(layout.leaves)), factor.device)
    return state
