"""How well observations are predicted by the others of a small set, and how that changes with the places.

With P = (scale k + level noise)⁻¹, w = P y and p the diagonal of P, the others predict y − e, e = w/p, with
variance 1/p. The loss ℓ of a set is minus the logarithm of the densities (Rasmussen and Williams 2006, eq.
5.10),

    ℓ = ½ Σ e² p − log p

or, where each column of y stands for a class, of the probabilities, a softmax of slope times y − e in units
in which a class is 1 and others are 0. Unlike the likelihood of all observations together, that does not mind
what a kernel gets wrong but predictions do not need. With q = ∂ℓ/∂e and q' = ∂ℓ/∂p, given e,

    G = ∂ℓ/∂K = P diag(h) P − (P g wᵀ + w gᵀ P)/2,   g = q/p,   h = Σ q w/p² − q'

and with H = scale G ∘ ∂k/∂r² the gradient by the places Z is 4 (diag(H 1) − H) Z.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

import torch
from torch import Tensor

from hck.backend.duals import Dual, of_duals
from hck.backend.kernels import Formula, farthest
from hck.backend.kinds import kind_of
from hck.backend.linalg import inverse, try_factor_

SLOPE = 6.0  # of probabilities: large ones make much of few observations


@dataclass(frozen=True)
class Coding:
    """By which numbers columns of y stand for classes; a single column stands for the second of two."""

    low: Tensor  # (columns,): of other classes
    span: Tensor  # (columns,): how much more the class's own is


@dataclass(frozen=True)
class Placed:
    """Sets of m observations each, and a kernel for each set: scale · f(s, shape), and level · noise."""

    formulas: list[Formula]
    levels: Tensor  # (sets, 3): scale, level and shape
    z: Tensor  # (sets, m, k): the points
    y: Tensor  # (sets, m, columns)
    noise: Tensor  # (sets, m): relative to that of others
    coding: Coding | None = None  # None: y are numbers


Gradient: TypeAlias = Callable[[Placed], tuple[Tensor, Tensor]]


def left_out_gradient(device: torch.device) -> Gradient:
    """A function that returns the gradient of each set's loss, per value of y.

    By the places (sets, m, k), and by the logarithms of the levels (sets, 3); 0 where K is not positive
    definite.
    """
    return kind_of(device).machine().left_out_gradient()


def gradient_by_torch(sets: Placed) -> tuple[Tensor, Tensor]:
    """The same, on any device."""
    z, noise, formulas = sets.z, sets.noise, sets.formulas
    s, (scale, level, shape) = _distances(z, formulas), sets.levels[..., None, None].unbind(1)
    found = [_with_slopes(formulas[part.start], s[part], shape[part]) for part in _alike(formulas)]
    values, slopes, shape_slopes = map(torch.cat, zip(*found, strict=True))
    matrix = values * scale
    matrix.diagonal(dim1=1, dim2=2).add_(level[:, 0] * noise)
    factor, known = try_factor_(matrix)
    weight = _by_matrix(inverse(factor), sets)
    by_noise = (weight.diagonal(dim1=1, dim2=2) * noise).sum(1) * level[:, 0, 0]
    by_scale = (weight * values).sum((1, 2)) * scale[:, 0, 0]
    by_shape = (weight * shape_slopes).sum((1, 2)) * (scale * shape)[:, 0, 0]
    weight.mul_(slopes).mul_(scale)
    by_place = 4 * (weight.sum(2, keepdim=True) * z - weight @ z)
    for i, formula in enumerate(formulas):
        if formula.manhattan:
            by_place[i] = 2 * ((z[i][:, None] - z[i]).sign() * weight[i][..., None]).sum(1)
    known, share = known[:, None], 1 / sets.y[0].numel()
    by_level = torch.stack([by_scale, by_noise, by_shape], 1)
    return (by_place * share).where(known[..., None], 0), (by_level * share).where(known, 0)


def _alike(formulas: list[Formula]) -> Iterator[slice]:
    """Sets one after another that have one formula."""
    start = 0
    for _, same in groupby(formulas):
        stop = start + len(list(same))
        yield slice(start, stop)
        start = stop


def _by_matrix(p: Tensor, sets: Placed) -> Tensor:
    """G (sets, m, m) of P."""
    solved, diagonal = p @ sets.y, p.diagonal(dim1=1, dim2=2)[..., None]
    error = solved / diagonal
    if sets.coding is None:
        by_error, own = error, (error.square() + 1 / diagonal).sum(2, keepdim=True) / 2
    else:
        by_error = _by_error(sets.y, error, sets.coding) / sets.noise[..., None] / diagonal
        own = (by_error * error).sum(2, keepdim=True)
    mixed = (p @ by_error) @ solved.mT
    return p @ (own * p) - (mixed + mixed.mT) / 2


def _by_error(y: Tensor, error: Tensor, coding: Coding) -> Tensor:
    """∂ℓ/∂e of classes."""
    slope = SLOPE / coding.span
    score = slope * (y - error - coding.low)
    own = (y > coding.low + coding.span / 2).to(y)
    if y.shape[2] == 1:  # that of the other class is 1 less
        return 2 * slope * (own - (2 * score - SLOPE).sigmoid())
    return slope * (own - score.softmax(2))


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
