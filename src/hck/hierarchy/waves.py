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

Factor: TypeAlias = tuple[Stationary, Tensor]  # and its frequencies (k, waves), where points are placed


@dataclass(frozen=True)
class Term:
    """Waves of a product of kernels: their angles, for which each has its own frequencies, are added."""

    amplitude: float
    factors: tuple[Factor, ...]

    def angles(self, x: VectorPoints) -> Tensor:
        """Shape (points, waves)."""
        found = [x.placed(kernel.placement).scaled(omega).x for kernel, omega in self.factors]
        return sum(found[1:], found[0])


@dataclass(frozen=True)
class Waves:
    """For each group of points, here a leaf, functions of their own: √(a/m) Σ R cos(ωᵀx + ψ), over m waves.

    With ω from the kernel's spectral density, R²/2 from the exponential distribution and ψ uniform, the
    covariance of functions of one group is the kernel, and that across groups 0. Given ω they are Gaussian.
    Each function has an ω of its own, so that the covariance is exact, over draws; the more waves, the more
    Gaussian they are. R and ψ are hashes of the group's number: nothing is stored for groups.
    """

    terms: list[list[Term]]  # of each function
    keys: list[Random]

    @classmethod
    def of(cls, kernel: Kernel, points: Points, waves: int, count: int, random: Random) -> "Waves":
        """So many functions for each group, with points of this kind."""
        vectors, keys = _vectors(points), [random.child(number) for number in range(count)]
        return cls([_terms(kernel, vectors, waves, key.child(0)) for key in keys], keys)

    def __call__(self, x: Points, group: Tensor) -> Tensor:
        """Values at points, each with the number of its group: shape (points, functions)."""
        out = torch.empty(len(x), len(self.keys), dtype=x.dtype, device=x.device)
        order = group.argsort(stable=True)
        waves = self.terms[0][0].factors[0][1].shape[1]
        step = _IN_CACHE if kind_of(x.device).is_host else _AT_ONCE

        def work(part: slice) -> None:
            rows = order[part]
            near, (groups, which) = _vectors(x.take(rows)), torch.unique(group[rows], return_inverse=True)
            for column, (terms, key) in enumerate(zip(self.terms, self.keys, strict=True)):
                values = [
                    self._waves(term, near, key.child(1 + i), groups, which) for i, term in enumerate(terms)
                ]
                out[rows, column] = sum(values[1:], values[0])

        for_each(work, chunks(0, len(x), max(1, step // waves)), x.device)
        return out

    @staticmethod
    def _waves(term: Term, x: VectorPoints, random: Random, groups: Tensor, which: Tensor) -> Tensor:
        angles = term.angles(x)
        count = angles.shape[1]
        u, v = (random.child(i).rows(groups, count) for i in range(2))
        radius = torch.log1p(-u).mul_(-2 * term.amplitude / count).sqrt_().to(angles)
        phase = v.mul_(2 * math.pi).to(angles)
        return angles.add_(phase[which]).cos_().mul_(radius[which]).sum(1)

    def take(self, which: Tensor) -> "Waves":
        """Some of the functions, by number."""
        chosen = which.tolist()
        return replace(self, terms=[self.terms[i] for i in chosen], keys=[self.keys[i] for i in chosen])


def _vectors(points: Points) -> VectorPoints:
    if not isinstance(points, VectorPoints):
        raise ValueError("draws that are functions need points with coordinates, not objects")
    return points


def _terms(kernel: Kernel, points: VectorPoints, waves: int, random: Random) -> list[Term]:
    """The products that a kernel is the sum of."""
    if isinstance(kernel, Scaled):
        inside = _terms(kernel.kernel, points, waves, random)
        return [replace(term, amplitude=float(kernel.scale) * term.amplitude) for term in inside]
    if isinstance(kernel, Sum | Product):
        left, right = (
            _terms(each, points, waves, random.child(i)) for i, each in enumerate((kernel.left, kernel.right))
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
    omega = kernel.draw_frequencies(width, waves, random) / float(kernel.unit)
    return [Term(float(kernel.amplitude), ((kernel, omega.to(points.device, points.dtype)),))]
