"""Random waves: functions that can be evaluated anywhere, whose covariance is that of a stationary kernel."""

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from torch import Tensor

from hck.backend.kinds import kind_of
from hck.backend.parallel import chunks, for_each
from hck.backend.random import Random
from hck.kernels import Kernel, Product, Scaled, Sum
from hck.kernels.stationary import Stationary
from hck.points import Points, VectorPoints

_IN_CACHE = 2**17  # numbers that are worked on together where there is a cache
_AT_ONCE = 2**26  # and where there is none
_SHARING = 256  # points for which the numbers of their groups are hashed together

Factor: TypeAlias = tuple[
    Stationary, Tensor
]  # and frequencies (k, functions, waves), where points are placed


@dataclass(frozen=True)
class Term:
    """Waves of a product of kernels: their angles, for which each has its own frequencies, are added."""

    amplitude: float
    factors: tuple[Factor, ...]

    def angles(self, x: VectorPoints) -> Tensor:
        """Shape (points, functions · waves)."""
        found = [x.placed(kernel.placement).scaled(omega.flatten(1)).x for kernel, omega in self.factors]
        return sum(found[1:], found[0])

    def take(self, which: Tensor) -> "Term":
        """For some of the functions, by number."""
        return Term(self.amplitude, tuple((kernel, omega[:, which]) for kernel, omega in self.factors))


@dataclass(frozen=True)
class Waves:
    """For each group of points, here a leaf, functions of their own: √(a/m) Σ R cos(ωᵀx + ψ), over m waves.

    With ω from the kernel's spectral density, R²/2 from the exponential distribution and ψ uniform, the
    covariance of functions of one group is the kernel, and that across groups 0. Given ω they are Gaussian.
    Each function has an ω of its own, so that the covariance is exact, over draws; the more waves, the more
    Gaussian they are. R and ψ are hashes of the group's number: nothing is stored for groups.
    """

    terms: list[Term]
    numbers: Tensor  # (functions,), by which they are told apart
    count: int  # of waves
    random: Random

    @classmethod
    def of(cls, kernel: Kernel, points: Points, waves: int, functions: int, random: Random) -> "Waves":
        """So many functions for each group, with points of this kind."""
        terms = _terms(kernel, _vectors(points), (functions, waves), random.child(0))
        return cls(terms, torch.arange(functions, device=points.device), waves, random)

    def __call__(self, x: Points, group: Tensor) -> Tensor:
        """Values at points, each with the number of its group: shape (points, functions)."""
        at_once = _IN_CACHE if kind_of(x.device).is_host else _AT_ONCE
        most = max(1, at_once // (self.count * max(1, min(len(x), _SHARING))))
        if len(self.numbers) > most:
            parts = torch.arange(len(self.numbers), device=x.device).split(most)
            return torch.cat([self.take(part)(x, group) for part in parts], 1)
        shape = len(self.numbers), self.count
        out = torch.empty(len(x), len(self.numbers), dtype=x.dtype, device=x.device)
        columns = (self.numbers[:, None] * self.count + torch.arange(self.count, device=x.device)).flatten()
        order = group.argsort(stable=True)

        def work(part: slice) -> None:
            rows = order[part]
            near, (groups, which) = _vectors(x.take(rows)), torch.unique(group[rows], return_inverse=True)
            total = out.new_zeros(len(rows), len(self.numbers))
            for i, term in enumerate(self.terms):
                u, v = (self.random.child(1, i, j).grid(groups, columns) for j in range(2))
                radius = torch.log1p(-u).mul_(-2 * term.amplitude / self.count).sqrt_().to(out)
                angles = term.angles(near).add_(v.mul_(2 * math.pi).to(out)[which])
                total += angles.cos_().mul_(radius[which]).unflatten(1, shape).sum(2)
            out[rows] = total

        for_each(work, chunks(0, len(x), max(1, at_once // len(columns))), x.device)
        return out

    def take(self, which: Tensor) -> "Waves":
        """Some of the functions, by number."""
        terms = [term.take(which) for term in self.terms]
        return replace(self, terms=terms, numbers=self.numbers[which])


def _vectors(points: Points) -> VectorPoints:
    if not isinstance(points, VectorPoints):
        raise ValueError("draws that are functions need points with coordinates, not objects")
    return points


def _terms(kernel: Kernel, points: VectorPoints, shape: tuple[int, int], random: Random) -> list[Term]:
    """The products that a kernel is the sum of, for (functions, waves)."""
    if isinstance(kernel, Scaled):
        inside = _terms(kernel.kernel, points, shape, random)
        return [replace(term, amplitude=float(kernel.scale) * term.amplitude) for term in inside]
    if isinstance(kernel, Sum | Product):
        left, right = (
            _terms(each, points, shape, random.child(i)) for i, each in enumerate((kernel.left, kernel.right))
        )
        if isinstance(kernel, Sum):
            return left + right
        return [Term(a.amplitude * b.amplitude, a.factors + b.factors) for a in left for b in right]
    if not isinstance(kernel, Stationary) or not kernel.has_spectral_density:
        raise ValueError(
            f"draws that are functions need a kernel whose spectral density is known, but that of {kernel} "
            "is not: use Gaussian, Laplace and Matérn kernels, their multiples, sums and products, or draw "
            "values at given points"
        )
    width = points.n_features if kernel.metric is None else kernel.metric.shape[1]
    omega = kernel.draw_frequencies(width, math.prod(shape), random) / float(kernel.unit)
    placed = omega.to(points.device, points.dtype).unflatten(1, shape)
    return [Term(float(kernel.amplitude), ((kernel, placed),))]
