"""Variances and covariances of a Gaussian process at new points, given the data."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from torch import Tensor

from hck.backend import linalg
from hck.backend.blocks import Blocks, group_by
from hck.backend.parallel import for_each
from hck.hierarchy.blueprint import Blueprint
from hck.hierarchy.factor import Factor
from hck.hierarchy.predictor import Room, Visit, visits
from hck.kernels import Kernel
from hck.kernels.slope import slope_values, slope_variance
from hck.points import (
    KernelBlocks,
    Points,
    PointsLike,
    as_points_like,
    cross,
    features_of,
    self_values,
)

# What is asked of a kernel between blocks of points and of new ones: (leaves, width, ·).
Across: TypeAlias = Callable[[Kernel, Points, Blocks, Points, Blocks], Tensor]


@dataclass
class _Seen:
    """New points as their leaves see them, all (leaves, ·, width)."""

    phi: Tensor  # φ = C_p⁻¹ k(Z_p, x)
    u: Tensor  # u = L_j⁻¹ k(X_j, x) − Y_j φ
    q: Tensor  # q = φ − Y_jᵀ u: what is left of the parent's latent


@dataclass
class Uncertainty:
    """What is not known about f(x) given observations with noise.

    For x in leaf j with parent p, and P the covariance of the latents given the data (`Factor.posterior`)::

        φ = C_p⁻¹ k(Z_p, x);   u = L_j⁻¹ k(X_j, x) − Y_j φ;   q = φ − Y_jᵀ u
        var(x) = k(x, x) − φᵀφ − uᵀu + qᵀ P_p q

    It costs O(n₀² + r²) per point; no walk up the tree.
    """

    blueprint: Blueprint
    factor: Factor  # of this kernel's matrix and the noise
    above: Tensor | None = None  # P of the roots' parents (nodes above, r, r), in a part of a larger tree
    posterior: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.posterior = self.factor.posterior(self.above)
        self.blueprint = self.blueprint.part(self.factor.layout)
        self.blueprint.prepare_leaves()

    def variance(self, x: PointsLike, verbose: bool = False) -> Tensor:
        """The variance at each point of `x`, of f itself, without noise: shape (points,). Never negative."""
        x = as_points_like(x, self.blueprint.points)
        out = torch.empty(len(x) + 1, dtype=x.dtype, device=x.device)

        def evaluate(visit: Visit) -> None:
            left = self._left(visit, self._see(x, visit))
            out[visit.new.index] = left + self_values(self.blueprint.kernel, x, visit.new)

        for_each(evaluate, self._visits(x), x.device, "Predict: variance", verbose)
        return out[:-1].clamp_min(0)

    @torch.no_grad()
    def slope_variance(self, x: PointsLike, verbose: bool = False) -> Tensor:
        """The variance of ∂f/∂x at each point of `x`: shape (points, d). Never negative.

        φ, u and q are linear in k(·, x), and so are their derivatives in its derivatives: the variance is
        that of f(x) with these in their place, and with ∂²k(x, x')/∂x∂x' at x' = x in place of k(x, x).
        """
        x = as_points_like(x, self.blueprint.points)
        d, kernel = features_of(x), self.blueprint.kernel
        out = torch.empty(len(x) + 1, d, dtype=x.dtype, device=x.device)

        def slopes(kernel: Kernel, points: Points, own: Blocks, new: Points, which: Blocks) -> Tensor:
            found = slope_values(kernel, KernelBlocks(kernel, new, which, points, own))
            return found.flatten(1, 2).mT.contiguous()  # (leaves, width of own, new points · d)

        def evaluate(visit: Visit) -> None:
            left = self._left(visit, self._see(x, visit, slopes)).unflatten(1, (-1, d))
            out[visit.new.index] = left + slope_variance(kernel, x.x[visit.new.safe])

        for_each(evaluate, self._visits(x, d), x.device, "Predict: variance of gradients", verbose)
        return out[:-1].clamp_min(0)

    def _visits(self, x: Points, each: int = 1) -> list[Visit]:
        layout = self.factor.layout
        room = Room(self.factor.rank, self.blueprint.budget, factored=True, each=each)
        return visits(layout.tree, layout.leaves, x, room)

    def _left(self, visit: Visit, seen: _Seen) -> Tensor:
        """What is left of a prior variance, less that: shape (leaves, ·)."""
        latent = seen.q * (self.posterior[self._parent(visit)] @ seen.q) - seen.phi.square()
        return latent.sum(-2) - seen.u.square().sum(-2)

    def covariance(self, x: PointsLike) -> Tensor:
        """The covariances of f between all points of `x`: shape (points, points). For some thousands at most.

        For x and x' in leaves whose parents' latents have the covariance S given the data, it is qᵀ S q', and
        for two points of one leaf k(x, x') − φᵀφ' − uᵀu' more. Up the tree, S = J P Jᵀ: a latent is known
        through its parent's by the smoother's gain J.
        """
        x = as_points_like(x, self.blueprint.points)
        kernel, layout = self.blueprint.kernel, self.factor.layout
        out = torch.zeros(len(x), len(x), dtype=x.dtype, device=x.device)
        state = torch.zeros(len(x), self.factor.rank, dtype=x.dtype, device=x.device)
        slot = torch.zeros(len(x), dtype=torch.long, device=x.device)
        order, start, count = group_by(layout.tree.route(x), layout.tree.n_leaves)
        for k, batch in enumerate(layout.leaves):
            for row in count[batch.groups].nonzero().squeeze(1):
                begin, number = int(start[batch.groups[row]]), int(count[batch.groups[row]])
                mine = order[begin : begin + number]
                leaf, own = batch.groups[row][None], Blocks(batch.index[row][None], batch.full)
                visit = Visit(Blocks(mine[None], full=True), k, row[None], leaf, own)
                seen = self._see(x, visit)
                near = cross(kernel, x, visit.new, x, visit.new) - seen.phi.mT @ seen.phi
                out[mine[:, None], mine] = (near - seen.u.mT @ seen.u)[0]
                state[mine], slot[mine] = seen.q[0].mT, self._parent(visit)
        return out + self._latent_covariance(state, slot)

    def _latent_covariance(self, state: Tensor, slot: Tensor) -> Tensor:
        """qᵀ S q' for vectors (points, r) that belong to the latents of inner nodes, given by their slots."""
        out = state.new_zeros(len(state), len(state))
        done = torch.zeros_like(out, dtype=torch.bool)
        state, slot = state.clone(), slot.clone()
        for level in reversed(range(len(self.factor.layout.levels))):
            first, stop = self.factor.layout.levels[level]
            for node in slot[(slot >= first) & (slot < stop)].unique():
                mine = (slot == node).nonzero().squeeze(1)
                pairs = mine[:, None], mine
                block = state[mine] @ self.posterior[node] @ state[mine].mT
                out[pairs] = torch.where(done[pairs], out[pairs], block)  # what met further down stays
                done[pairs] = True
                if level > 0:
                    state[mine] = state[mine] @ self.factor.gain(level, int(node) - first)
                    slot[mine] = self.factor.layout.parent[node]
        return (out + out.mT) / 2

    def _see(self, x: Points, visit: Visit, across: Across = cross) -> _Seen:
        source, factor, layout = self.blueprint, self.factor, self.factor.layout
        row = visit.row
        u = across(source.kernel, source.points, visit.own, x, visit.new)
        u = linalg.whiten_(factor.leaf_factor[visit.batch], u, row)
        if layout.tree.depth == 0:
            none = u.new_zeros(len(row), factor.rank, u.shape[-1])
            return _Seen(none, u, none)
        block = source.landmarks.blocks[layout.slot[self._parent(visit)]]
        phi = across(source.kernel, source.landmarks.points, block, x, visit.new)
        level = layout.leaf_levels[visit.batch]
        phi = linalg.whiten_(source.factors[level], phi, layout.within_level(visit.batch)[row])
        y = factor.leaf_whitened[visit.batch][row]
        u = u - y @ phi
        return _Seen(phi, u, phi - y.mT @ u)

    def _parent(self, visit: Visit) -> Tensor:
        return self.factor.layout.leaf_parent[visit.leaf]
