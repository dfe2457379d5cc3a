"""How likely observations are at placed points, and how that changes with the places; for small sets of them.

With K = scale k + level noise and c columns of y, the derivative of minus the log-likelihood ℓ by K is
G = ∂ℓ/∂K = (c K⁻¹ − K⁻¹ y yᵀ K⁻¹) / 2. With H = scale G ∘ ∂k/∂r² that by the places Z is
4 (diag(H 1) − H) Z.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from hck.backend.duals import Dual, of_duals
from hck.backend.kernels import Formula, farthest
from hck.backend.kinds import kind_of
from hck.backend.linalg import inverse, try_factor_


@dataclass(frozen=True)
class Placed:
    """Sets of m observations each, and a kernel for each set: scale · f(s, shape), and level · noise."""

    formulas: list[Formula]
    levels: Tensor  # (sets, 3): scale, level and shape
    z: Tensor  # (sets, m, k): the points
    y: Tensor  # (sets, m, columns)
    noise: Tensor  # (sets, m): relative to that of others


def likelihood_gradient(sets: Placed) -> tuple[Tensor, Tensor]:
    """The gradient of minus the log-likelihood of each set, per value of y.

    By the places (sets, m, k), and by the logarithms of the levels (sets, 3); 0 where K is not positive
    definite.
    """
    return kind_of(sets.z.device).machine().likelihood_gradient(sets)


def gradient_by_torch(sets: Placed) -> tuple[Tensor, Tensor]:
    """The same, on any device."""
    z, y, noise, formulas = sets.z, sets.y, sets.noise, sets.formulas
    s, (scale, level, shape) = _distances(z, formulas), sets.levels[..., None, None].unbind(1)
    values, slopes, shape_slopes = zip(*map(_with_slopes, formulas, s, shape), strict=True)
    matrix = torch.stack(values).mul_(scale)
    matrix.diagonal(dim1=1, dim2=2).add_(level[:, 0] * noise)
    factor, known = try_factor_(matrix)
    weight, columns = inverse(factor), y.shape[2]
    solved = weight @ y
    weight = weight.baddbmm_(solved, solved.mT, beta=columns / 2, alpha=-0.5)
    by_noise = (weight.diagonal(dim1=1, dim2=2) * noise).sum(1) * level[:, 0, 0]
    by_scale = (weight * torch.stack(values)).sum((1, 2)) * scale[:, 0, 0]
    by_shape = (weight * torch.stack(shape_slopes)).sum((1, 2)) * (scale * shape)[:, 0, 0]
    weight.mul_(torch.stack(slopes)).mul_(scale)
    by_place = 4 * (weight.sum(2, keepdim=True) * z - weight @ z)
    for i, formula in enumerate(formulas):
        if formula.manhattan:
            by_place[i] = 2 * ((z[i][:, None] - z[i]).sign() * weight[i][..., None]).sum(1)
    known, share = known[:, None], 1 / (z.shape[1] * columns)
    by_level = torch.stack([by_scale, by_noise, by_shape], 1)
    return (by_place * share).where(known[..., None], 0), (by_level * share).where(known, 0)


def _distances(z: Tensor, formulas: list[Formula]) -> Tensor:
    """What formulas are of, (sets, m, m): squared distances, or sums of absolute differences."""
    norm = z.square().sum(-1, keepdim=True)
    s = torch.baddbmm(norm + norm.mT, z, z.mT, alpha=-2).clamp_min_(0)
    s.diagonal(dim1=1, dim2=2).zero_()
    for i, formula in enumerate(formulas):
        if formula.manhattan:
            s[i] = torch.cdist(z[i], z[i], p=1.0)
    return s.clamp_max_(farthest(s.dtype))


def _with_slopes(formula: Formula, s: Tensor, shape: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """f(s, shape), and its derivatives by s, 0 where that is 0, and by the shape, 0 if it has none."""
    function = formula.with_functions(**of_duals(exp=torch.exp, log=torch.log, sqrt=torch.sqrt))
    more = [Dual(shape, None, 1.0)] if formula.shaped else []
    found = function(Dual(s, 1.0, None), *more)
    zero = torch.zeros_like(s)
    by_s, by_shape = (zero if slope is None else zero + slope for slope in found.slopes)
    return found.value, by_s.masked_fill(s == 0, 0), by_shape
