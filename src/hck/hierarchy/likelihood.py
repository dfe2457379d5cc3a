"""The log-likelihood of a Gaussian process and its gradient, in closed form: a sweep up and a sweep down.

The gradient with respect to the blocks of K_h is a by-product of the smoother. With L = log N(b; 0, K),
K = K_h + noise, w = K⁻¹ b, ẑ and P the mean and covariance of the latents given b, and g = M (ẑ_p − q)::

    leaf j, B = D⁻¹ V:  ∂L/∂K(X_j, X_j) = ½ (w wᵀ − D⁻¹ + B P_p Bᵀ)
                        ∂L/∂V_j         = w d_jᵀ + B (I − P_p (I + Θ_j))
    inner node i:       ∂L/∂W_i         = (ẑ_i − W_i g) gᵀ + (W_i − A⁻ᵀ H_i) (M − M P_p M)

and from there to kernel values: V = K(X, Z_p) C_p⁻ᵀ and W = C_i⁻¹ K(Z_i, Z_p) C_p⁻ᵀ. Since L does not change
when latents are rotated, N_p = Σ_children (∂L/∂V)ᵀ V + (∂L/∂W)ᵀ W, and ∂L/∂W_p W_pᵀ for p itself, is
symmetric, and ∂L/∂K(Z_p, Z_p) = −½ C_p⁻ᵀ N_p C_p⁻¹. `docs/mathematics.md` derives all of it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hck.backend import linalg
from hck.backend.parallel import parallel_map
from hck.hierarchy.blueprint import Blueprint
from hck.hierarchy.factor import Factor, Nodes
from hck.hierarchy.smooth import Filtered, smooth_down
from hck.points import KernelBlocks


@dataclass
class Likelihood:
    """log N(y; trend β, K_h + noise) at the best β, summed over the columns of y.

    Attributes
    ----------
    value : Tensor of shape ()
    gradient : list of Tensor
        With respect to each of the parameters that were asked for.
    coefficients : Tensor of shape (trends, columns)
        β, by generalised least squares.
    precision : Tensor of shape (trends, trends)
        Hᵀ (K_h + noise)⁻¹ H for the trend H: the inverse of the covariance of β.
    """

    value: Tensor
    gradient: list[Tensor]
    coefficients: Tensor
    precision: Tensor


@torch.no_grad()
def log_likelihood(
    blueprint: Blueprint,
    noise: float | Tensor,
    y: Tensor,
    parameters: Sequence[Tensor] = (),
    trend: Tensor | None = None,
) -> Likelihood:
    """The log-likelihood of observations, and its gradient.

    Parameters
    ----------
    blueprint : Blueprint
    noise : float or Tensor of shape () or (n,)
    y : Tensor of shape (n,) or (n, columns)
    parameters : sequence of Tensor
        What to differentiate by: among the kernel's `tensors`, or `noise` itself.
    trend : Tensor of shape (n, trends), optional
        H of a mean function H β. β is estimated along with it.
    """
    return linalg.without_waiting(
        lambda: _log_likelihood(blueprint, noise, y, parameters, trend), blueprint.points.device
    )


def _log_likelihood(
    blueprint: Blueprint,
    noise: float | Tensor,
    y: Tensor,
    parameters: Sequence[Tensor],
    trend: Tensor | None,
) -> Likelihood:
    known = [*blueprint.kernel.tensors(), noise]
    if any(all(parameter is not other for other in known) for parameter in parameters):
        raise ValueError(
            "parameters must be the noise, or tensors of the kernel that require a gradient and have the "
            "dtype and device of the points"
        )
    layout, variance = blueprint.layout, blueprint.pad_noise(noise)
    b = layout.pad(y, variance)
    columns = b.shape[1]
    if trend is not None:
        b = torch.cat([b, layout.pad(trend, variance)], 1)
    factor = Factor(blueprint, variance, blueprint.budget, b)
    result = evidence(factor, columns)
    if not parameters:
        return result
    sweep = _Gradient(blueprint, factor, subtract_trend(factor.filtered, columns, result.coefficients))
    found = sweep.down()
    for parameter in parameters:
        total = torch.zeros_like(parameter)
        for tensor, part in zip(blueprint.kernel.tensors(), found, strict=True):
            if tensor is parameter:
                total += part
        if parameter is noise:
            each = layout.unpad(sweep.at_noise[:, None])[:, 0]
            total += each if parameter.ndim else each.sum()
        result.gradient.append(total)
    return result


def evidence(factor: Factor, columns: int = 1) -> Likelihood:
    """The log-likelihood, without gradient, where (y, H) has gone up; the first `columns` are y."""
    gram = quadratic_form(factor, factor.filtered)
    beta = least_squares(gram[columns:, columns:], gram[columns:, :columns])
    square = gram[:columns, :columns].diagonal().sum() - (gram[columns:, :columns] * beta).sum()
    n = factor.layout.tree.n_points
    value = -(square + columns * (factor.log_determinant + n * math.log(2 * math.pi))) / 2
    return Likelihood(value, [], beta, gram[columns:, columns:])


def quadratic_form(factor: Factor, filtered: Filtered, rows: slice = slice(None)) -> Tensor:
    """cᵀ (K_h + noise)⁻¹ b for right-hand sides b that have gone up, and those among them, c, in `rows`.

    It is Σ aᵀa − Σ (νᵀν − qᵀ M q), summed up in float64.
    """
    columns = range(filtered.b.shape[1])
    total = torch.zeros(len(columns[rows]), len(columns), dtype=torch.float64, device=filtered.b.device)
    for a in filtered.whitened:
        total += _gram(a[..., rows], a)
    for level, parts in enumerate(factor.nodes):
        total -= _gram(filtered.mean[level][..., rows], filtered.mean[level])
        for part in parts:
            q = filtered.expected[level][part.here]
            total += _gram(linalg.multiply_packed(part.packed, part.diagonal, q[..., rows].contiguous()), q)
    return total


def least_squares(precision: Tensor, right: Tensor) -> Tensor:
    """β of generalised least squares, from Hᵀ (K_h + noise)⁻¹ H and Hᵀ (K_h + noise)⁻¹ y: (trends, columns).

    Of trends that say the same, any combination that does.
    """
    if not len(precision):
        return right
    return torch.linalg.lstsq(precision.cpu(), right.cpu(), driver="gelsd").solution.to(right.device)


def subtract_trend(filtered: Filtered, columns: int, beta: Tensor) -> Filtered:
    """What y − H β would have given where (y, H) has gone up, of which the first `columns` are y."""

    def subtract(x: Tensor) -> Tensor:
        return x[..., :columns] - x[..., columns:] @ beta.to(x.dtype)

    return filtered.map(subtract)


class _Gradient:
    """The sweep down, which hands weights for kernel values to the kernel."""

    def __init__(self, blueprint: Blueprint, factor: Factor, filtered: Filtered) -> None:
        self.blueprint, self.factor, self.filtered = blueprint, factor, filtered
        self.layout, self.rank, self.columns = factor.layout, factor.rank, filtered.b.shape[1]
        self.kernel, self.device = blueprint.kernel, factor.device
        self.identity = torch.eye(self.rank, dtype=factor.dtype, device=factor.device)
        b = filtered.b
        self.w = torch.zeros_like(b)
        self.ambient = b.new_empty(self.layout.tree.n_leaves, self.rank, self.columns)  # d
        self.at_noise = b.new_zeros(len(b))
        self.total = [torch.zeros_like(tensor) for tensor in self.kernel.tensors()]

    def down(self) -> list[Tensor]:
        """The gradient with respect to the kernel's tensors; that for the noise is left in `at_noise`."""
        layout, blueprint = self.layout, self.blueprint
        state = smooth_down(self.factor, self.filtered, self.w, self.ambient)
        self.covariance = self.factor.posterior()  # P
        rotation = [
            self.identity.new_zeros(stop - first, self.rank, self.rank) for first, stop in layout.levels
        ]  # N
        for level in range(len(layout.levels)):
            blueprint.prepare(level)
            if level == 0:
                continue

            def nodes(part: Nodes, level: int = level) -> tuple[Tensor, Tensor, list[Tensor]]:
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
        for level, (first, stop) in enumerate(layout.levels):

            def landmarks(part: slice, level: int = level, first: int = first) -> list[Tensor]:
                here = slice(part.start - first, part.stop - first)
                return self._landmarks(level, part, here, rotation[level][here])

            for found in parallel_map(landmarks, blueprint.chunks(first, stop), self.device):
                self._add(found)
            blueprint.release(level)
        return self.total

    def _nodes(self, level: int, part: Nodes, state: list[Tensor]) -> tuple[Tensor, Tensor, list[Tensor]]:
        """What some inner nodes add to N of themselves and of their parents, and to the gradient."""
        blueprint, first = self.blueprint, self.layout.levels[level][0]
        nodes = slice(part.here.start + first, part.here.stop + first)
        given = blueprint.node(level, nodes)
        own, above = given.own, given.above
        assert isinstance(given.far, KernelBlocks)
        assert own is not None
        assert above is not None
        w = given.transfer()
        factor, h, m = part.unpack()
        z, q = state[level][part.here], self.filtered.expected[level][part.here]
        g = m @ (state[level - 1][part.parent] - q)
        before = self.layout.levels[level - 1][0]
        inner = m - m @ self.covariance[before + part.parent] @ m
        at_w = (z - w @ g) @ g.mT
        at_w += self.columns * ((w - linalg.unwhiten_(factor, h.clone())) @ inner)
        weight = linalg.unwhiten_(above, linalg.unwhiten_(own, at_w.clone()).mT, part.parent)
        return at_w @ w.mT, at_w.mT @ w, self.kernel.gradient_of_sum(given.far, weight)

    def _leaves(self, k: int) -> tuple[Tensor, list[Tensor]]:
        """What a batch of leaves adds to N of their parents, and to the gradient."""
        layout, batch, count = self.layout, self.layout.leaves[k], self.columns
        factor, y = self.factor.leaf_factor[k], self.factor.leaf_whitened[k]
        w, d, covariance = (
            self.w[batch.index],
            self.ambient[batch.groups],
            self.covariance[layout.parents(batch)],
        )
        basis = linalg.unwhiten_(factor, y.clone())  # B
        weight = linalg.inverse(factor)
        weight.baddbmm_(basis @ covariance, basis.mT, beta=-count / 2, alpha=count / 2)
        weight.baddbmm_(w, w.mT, alpha=0.5)
        if not batch.full:
            weight.mul_(batch.mask[:, :, None])
        self.at_noise[batch.index] = weight.diagonal(dim1=-2, dim2=-1)
        given = self.blueprint.leaf(k)
        assert isinstance(given.far, KernelBlocks)
        assert isinstance(given.own, KernelBlocks)
        found = self.kernel.gradient_of_sum(given.own, weight)
        if layout.tree.depth == 0:
            return self.identity.new_zeros(1, self.rank, self.rank), found
        landmark = given.landmark
        assert landmark is not None
        rest = self.identity - covariance - covariance @ (y.mT @ y)
        at_v = torch.baddbmm(w @ d.mT, basis, rest, alpha=count)
        v = linalg.whiten_(landmark, given.far.tensor(), given.which)  # Vᵀ
        weight = linalg.unwhiten_(landmark, at_v.mT.contiguous(), given.which)
        more = self.kernel.gradient_of_sum(given.far, weight)
        return (v @ at_v).mT, [a + b for a, b in zip(found, more, strict=True)]

    def _landmarks(self, level: int, part: slice, here: slice, rotation: Tensor) -> list[Tensor]:
        """What the landmarks' own matrices of some inner nodes add to the gradient."""
        if self.layout.tree.depth == 0:
            return []
        factor = self.blueprint.factors[level][here]
        half = linalg.unwhiten_(factor, (rotation + rotation.mT) / 2)
        weight = linalg.unwhiten_(factor, half.mT.contiguous()).mul_(-0.5)
        z, block = self.blueprint.landmarks.points, self.blueprint.landmarks.blocks[self.layout.slot[part]]
        return self.kernel.gradient_of_sum(KernelBlocks(self.kernel, z, block, z, block), weight)

    def _add(self, found: list[Tensor]) -> None:
        for total, part in zip(self.total, found, strict=False):
            total += part


def _gram(a: Tensor, b: Tensor) -> Tensor:
    """Σ aᵀ b over the members of stacks."""
    return a.flatten(0, 1).mT.double() @ b.flatten(0, 1).double()
