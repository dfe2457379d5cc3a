"""The gradient of the log-likelihood of a Gaussian process, in closed form: a sweep down the tree.

The gradient with respect to the blocks of K_h is a by-product of the smoother. With L = log N(b; 0, K),
K = K_h + noise, w = K⁻¹ b, ẑ and P the mean and covariance of the latents given b, and g = M (ẑ_p − q)::

    leaf j, B = D⁻¹ V:  ∂L/∂K(X_j, X_j) = ½ (w wᵀ − D⁻¹ + B P_p Bᵀ)
                        ∂L/∂V_j         = w d_jᵀ + B (I − P_p (I + Θ_j))
    inner node i:       ∂L/∂W_i         = (ẑ_i − W_i g) gᵀ + (W_i − A⁻ᵀ H_i) (M − M P_p M)

and from there to kernel values: V = K(X, Z_p) C_p⁻ᵀ and W = C_i⁻¹ K(Z_i, Z_p) C_p⁻ᵀ. Since L does not change
when latents are rotated, N_p = Σ_children (∂L/∂V)ᵀ V + (∂L/∂W)ᵀ W, and ∂L/∂W_p W_pᵀ for p itself, is
symmetric, and ∂L/∂K(Z_p, Z_p) = −½ C_p⁻ᵀ N_p C_p⁻¹, whose traces are ∂L/∂jitter: a jitter in proportion to
k(x, x) is differentiated with it. `docs/mathematics.md` derives all of it.
"""

import torch
from torch import Tensor

from hck.backend import linalg
from hck.backend.parallel import parallel_map
from hck.hierarchy.blueprint import Blueprint, jitter_gradient
from hck.hierarchy.factor import Factor, NodeFactors
from hck.hierarchy.smooth import Filtered, Weights, smooth_down
from hck.points import KernelBlocks


def likelihood_gradient(
    blueprint: Blueprint, factor: Factor, filtered: Filtered
) -> tuple[list[Tensor], Tensor]:
    """The gradient of log N(b; 0, K_h + noise), of all columns, for right-hand sides that have gone up.

    It is that with respect to each of the kernel's `tensors`, and to the variance of the noise of each point
    (n,), in the original order.
    """

    def work() -> tuple[list[Tensor], Tensor]:
        sweep = _Gradient(blueprint, factor, filtered)
        found = sweep.down()
        return found, factor.layout.unpad(sweep.at_noise[:, None])[:, 0]

    return linalg.without_waiting(work, factor.device)


class _Gradient:
    """The sweep down, which hands weights for kernel values to the kernel."""

    def __init__(self, blueprint: Blueprint, factor: Factor, filtered: Filtered) -> None:
        self.blueprint = blueprint.part(factor.layout)
        self.factor, self.filtered = factor, filtered
        self.layout, self.rank, self.columns = factor.layout, factor.rank, filtered.b.shape[1]
        self.kernel, self.device = blueprint.kernel, factor.device
        self.identity = torch.eye(self.rank, dtype=factor.dtype, device=factor.device)
        b = filtered.b
        self.weights = Weights.room(self.layout, b, self.rank)  # w and d
        self.at_noise = b.new_zeros(len(b))
        self.total = [torch.zeros_like(tensor) for tensor in self.kernel.tensors()]

    def down(self) -> list[Tensor]:
        """The gradient with respect to the kernel's tensors; that for the noise is left in `at_noise`."""
        layout, blueprint = self.layout, self.blueprint
        state = smooth_down(self.factor, self.filtered, self.weights)
        self.covariance = self.factor.posterior()  # P
        rotation = [
            self.identity.new_zeros(stop - first, self.rank, self.rank) for first, stop in layout.levels
        ]  # N
        for level in range(len(layout.levels)):
            blueprint.prepare(level)
            if level == 0:
                continue

            def nodes(part: NodeFactors, level: int = level) -> tuple[Tensor, Tensor, list[Tensor]]:
                return self._nodes(level, part, state)

            parts = self.factor.nodes[level]
            for part, (own, above, found) in zip(parts, parallel_map(nodes, parts, self.device), strict=True):
                rotation[level][part.here] += own
                rotation[level - 1].index_add_(0, part.parent, above)
                self._add(found)
        every = range(len(layout.leaves))
        for k, (above, found) in enumerate(parallel_map(self._leaves, every, self.device)):
            rotation[layout.leaf_levels[k]].index_add_(0, layout.within_level(k), above)
            self._add(found)
        at_jitter = self.identity.new_zeros(())
        for level, (first, stop) in enumerate(layout.levels):

            def landmarks(part: slice, level: int = level, first: int = first) -> tuple[list[Tensor], Tensor]:
                here = slice(part.start - first, part.stop - first)
                return self._landmarks(level, part, here, rotation[level][here])

            for found, slope in parallel_map(landmarks, blueprint.chunks(first, stop), self.device):
                self._add(found)
                at_jitter += slope
            blueprint.release(level)
        if blueprint.jitter_follows and layout.tree.depth:
            self._add(jitter_gradient(self.kernel, blueprint.points, at_jitter))
        return self.total

    def _nodes(
        self, level: int, part: NodeFactors, state: list[Tensor]
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """What some inner nodes add to N of themselves and of their parents, and to the gradient."""
        blueprint, first = self.blueprint, self.layout.levels[level][0]
        nodes = slice(part.here.start + first, part.here.stop + first)
        own, above = blueprint.factors[level][part.here], blueprint.factors[level - 1]  # C
        w = blueprint.node(level, nodes).transfer()
        factor, h, m = part.unpack()
        z, q = state[level][part.here], self.filtered.expected[level][part.here]
        g = m @ (state[level - 1][part.parent] - q)
        before = self.layout.levels[level - 1][0]
        inner = m - m @ self.covariance[before + part.parent] @ m
        at_w = (z - w @ g) @ g.mT
        at_w += self.columns * ((w - linalg.unwhiten_(factor, h.clone())) @ inner)
        weight = linalg.unwhiten_(above, linalg.unwhiten_(own, at_w.clone()).mT, part.parent)
        found = self.kernel.gradient_of_sum(blueprint.node_values(level, nodes), weight)
        return at_w @ w.mT, at_w.mT @ w, found

    def _leaves(self, k: int) -> tuple[Tensor, list[Tensor]]:
        """What a batch of leaves adds to N of their parents, and to the gradient."""
        layout, batch, count = self.layout, self.layout.leaves[k], self.columns
        factor, y = self.factor.leaf_factor[k], self.factor.leaf_whitened[k]
        w, d = self.weights.own[batch.index], self.weights.ambient[batch.groups]
        covariance = self.covariance[layout.parents(batch)]
        basis = linalg.unwhiten_(factor, y.clone())  # B
        weight = linalg.inverse(factor)
        weight.baddbmm_(basis @ covariance, basis.mT, beta=-count / 2, alpha=count / 2)
        weight.baddbmm_(w, w.mT, alpha=0.5)
        if not batch.full:
            weight.mul_(batch.mask[:, :, None])
        self.at_noise[batch.index] = weight.diagonal(dim1=-2, dim2=-1)
        own, far = self.blueprint.leaf_values(k)
        found = self.kernel.gradient_of_sum(own, weight)
        if layout.tree.depth == 0:
            return self.identity.new_zeros(1, self.rank, self.rank), found
        landmark, which = self.blueprint.factors[layout.leaf_levels[k]], layout.within_level(k)  # C
        rest = self.identity - covariance - covariance @ (y.mT @ y)
        at_v = torch.baddbmm(w @ d.mT, basis, rest, alpha=count)
        v = linalg.whiten_(landmark, far.tensor(), which)  # Vᵀ
        # a copy, also of leaves of one point, which are contiguous both ways
        weight = linalg.unwhiten_(landmark, at_v.mT.clone(memory_format=torch.contiguous_format), which)
        more = self.kernel.gradient_of_sum(far, weight)
        return (v @ at_v).mT, [a + b for a, b in zip(found, more, strict=True)]

    def _landmarks(
        self, level: int, part: slice, here: slice, rotation: Tensor
    ) -> tuple[list[Tensor], Tensor]:
        """What the landmarks' own matrices of some inner nodes add to the gradient, and to that by jitter."""
        if self.layout.tree.depth == 0:
            return [], rotation.new_zeros(())
        factor = self.blueprint.factors[level][here]
        half = linalg.unwhiten_(factor, (rotation + rotation.mT) / 2)
        weight = linalg.unwhiten_(factor, half.mT.contiguous()).mul_(-0.5)
        z, block = self.blueprint.landmarks.points, self.blueprint.landmarks.blocks[self.layout.slot[part]]
        at_jitter = weight.diagonal(dim1=-2, dim2=-1)
        found = self.kernel.gradient_of_sum(KernelBlocks(self.kernel, z, block, z, block), weight)
        return found, (at_jitter if block.full else at_jitter * block.mask).sum()

    def _add(self, found: list[Tensor]) -> None:
        for total, part in zip(self.total, found, strict=False):
            total += part
