"""The variance of a Gaussian process at new points, given the data."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from hck import linalg
from hck.blocks import Blocks, group_by
from hck.hierarchy.extend import by_leaf
from hck.hierarchy.factor import Factor
from hck.hierarchy.kernel import HierarchicalKernel
from hck.parallel import for_each
from hck.points import Points, as_points_like, cross, self_values


@dataclass
class _Visit:
    """New points that fall into a few leaves of one batch of the layout."""

    batch: int
    row: Tensor  # (leaves,) the leaves' numbers in the batch
    new: Blocks  # positions of the new points


@dataclass
class Variance:
    """x ↦ the variance of f(x) given observations with noise.

    For x in leaf j with parent p, and P the covariance of the latents given the data (`Factor.posterior`)::

        φ = C_p⁻¹ k(Z_p, x);   u = L_j⁻¹ k(X_j, x) − Y_j φ;   q = φ − Y_jᵀ u
        var(x) = k(x, x) − φᵀφ − uᵀu + qᵀ P_p q

    It costs O(n₀² + r²) per point; no walk up the tree.

    Parameters
    ----------
    hierarchical : HierarchicalKernel
    factor : Factor
        Of this kernel's matrix and the noise.
    """

    hierarchical: HierarchicalKernel
    factor: Factor
    posterior: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.posterior = self.factor.posterior()

    def __call__(self, x: Any, verbose: bool = False) -> Tensor:
        """The variance at each point of `x`, of f itself, without noise: shape (points,). Never negative."""
        x = as_points_like(x, self.hierarchical.points)
        out = torch.empty(len(x) + 1, dtype=x.dtype, device=x.device)

        def evaluate(visit: _Visit) -> None:
            out[visit.new.index] = self._variance(x, visit)

        for_each(evaluate, self._visits(x), x.device, "Predict: variance", verbose)
        return out[:-1].clamp_min(0)

    def _variance(self, x: Points, visit: _Visit) -> Tensor:
        h, factor, layout = self.hierarchical, self.factor, self.factor.layout
        batch, row = layout.leaves[visit.batch], visit.row
        parent = layout.leaf_parent[batch.groups[row]]
        u = cross(h.kernel, h.points, Blocks(batch.index[row], batch.full), x, visit.new)
        u = linalg.whiten_(factor.leaf_factor[visit.batch], u, row)
        prior = self_values(h.kernel, x, visit.new)
        if h.tree.depth == 0:
            return prior - u.square().sum(-2)
        phi = cross(h.kernel, h.landmarks.points, h.landmarks.blocks[parent], x, visit.new)
        phi = linalg.whiten_(h.landmark_factor, phi, parent)
        y = factor.leaf_whitened[visit.batch][row]
        u = u - y @ phi
        q = phi - y.mT @ u
        seen = q * (self.posterior[parent] @ q) - phi.square()
        return prior + seen.sum(-2) - u.square().sum(-2)

    def _visits(self, x: Points) -> list[_Visit]:
        """New points in batches by leaf, each within the memory budget."""
        layout, rank, found = self.factor.layout, self.factor.rank, []
        budget, itemsize = self.hierarchical.budget, x.dtype.itemsize
        order, start, count = group_by(layout.tree.route(x), layout.tree.n_leaves)
        for k, batch in enumerate(layout.leaves):
            width = batch.index.shape[1]
            per_point = itemsize * (4 * (width + rank) + 3 * x.values_per_point)
            per_leaf = itemsize * ((width + rank) * (width + rank) + 3 * (width + rank) * x.values_per_point)
            own = start[batch.groups], count[batch.groups]
            for row, new in by_leaf(order, *own, per_leaf, per_point, budget):
                found.append(_Visit(k, row, new))
        return found
