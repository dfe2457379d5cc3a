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
_SCALES = 6  # scales of frequencies, from that of the kernel upwards
_SHARING = 256  # points for which the numbers of their groups are hashed together

Factor: TypeAlias = tuple[
    Stationary, Tensor
]  # and frequencies (k, functions, waves), where points are placed


@dataclass(frozen=True)
class Term:
    """Waves of a product of kernels: their angles, for which each has its own frequencies, are added."""

    power: Tensor  # of each wave (functions, waves): times 1/m, their share of the variance
    factors: tuple[Factor, ...]

    def angles(self, x: VectorPoints) -> Tensor:
        """Shape (points, functions · waves)."""
        found = [x.placed(kernel.placement).scaled(omega.flatten(1)).x for kernel, omega in self.factors]
        return sum(found[1:], found[0])

    def take(self, which: Tensor) -> "Term":
        """For some of the functions, by number."""
        return Term(self.power[which], tuple((kernel, omega[:, which]) for kernel, omega in self.factors))


@dataclass(frozen=True)
class Waves:
    """For each group of points, here a leaf, functions of their own: Σ √(a/m) R cos(ωᵀx + ψ), over m waves.

    With ω from the kernel's spectral density p, R²/2 from the exponential distribution, ψ uniform and a of
    k(x, x), the covariance of functions of one group is the kernel, and that across groups 0. Given ω they
    are Gaussian. Each function has an ω of its own, so that the covariance is exact, over draws; the more
    waves, the more Gaussian they are. R and ψ are hashes of the group's number: nothing is stored for groups.

    What neighbours leave open is mainly due to high frequencies, of which p has few. So the waves take turns:
    ω is from p, or from p stretched by 2, 4, … 32, and what is thus more frequent counts less: a is times
    p(ω)/q(ω), with q the mean of these densities, which is at most 6.
    """

    terms: list[Term]
    numbers: Tensor  # (functions,), by which they are told apart
    count: int  # of waves
    random: Random

    @classmethod
    def of(cls, kernel: Kernel, points: Points, waves: int, functions: int, random: Random) -> "Waves":
        """So many functions for each group, with points of this kind."""
        vectors, shape, products = _vectors(points), (functions, waves), _products(kernel)
        terms = [_term(*each, vectors, shape, random.child(0, i)) for i, each in enumerate(products)]
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
                radius = torch.log1p(-u).mul_(-2 / self.count * term.power.flatten()).sqrt_().to(out)
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


def _products(kernel: Kernel) -> list[tuple[float, list[Stationary]]]:
    """The products of stationary kernels that a kernel is the sum of, and what they are multiplied by."""
    if isinstance(kernel, Scaled):
        return [(float(kernel.scale) * scale, factors) for scale, factors in _products(kernel.kernel)]
    if isinstance(kernel, Sum):
        return _products(kernel.left) + _products(kernel.right)
    if isinstance(kernel, Product):
        left, right = _products(kernel.left), _products(kernel.right)
        return [(a * b, first + then) for a, first in left for b, then in right]
    if not isinstance(kernel, Stationary) or not kernel.has_spectral_density:
        raise ValueError(
            f"draws that are functions need a kernel whose spectral density is known, but that of {kernel} "
            "is not: use Gaussian, Laplace, Matérn and rational quadratic kernels, their multiples, sums and "
            "products, or draw values at given points"
        )
    return [(float(kernel.amplitude), [kernel])]


def _term(
    scale: float, kernels: list[Stationary], points: VectorPoints, shape: tuple[int, int], random: Random
) -> Term:
    """Waves of a product, (functions, waves) of them."""
    stretch = 2.0 ** (torch.arange(shape[1], dtype=torch.float64, device="cpu") % _SCALES)
    drawn = []
    for i, kernel in enumerate(kernels):
        width = points.n_features if kernel.metric is None else kernel.metric.shape[1]
        omega = kernel.draw_frequencies(width, math.prod(shape), random.child(i)).unflatten(1, shape)
        drawn.append((kernel, omega * stretch))
    power = scale * _weights(drawn, stretch)
    placed = [(k, (omega / float(k.unit)).to(points.device, points.dtype)) for k, omega in drawn]
    return Term(power.to(points.device), tuple(placed))


def _weights(drawn: list[Factor], stretch: Tensor) -> Tensor:
    """p(ω)/q(ω) for the frequencies of waves, (k, functions, waves), where q is the density of all waves.

    These belong to strata, by what their frequencies were multiplied by, (waves,).
    """
    values, counts = stretch.unique(return_counts=True)
    parts = []
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        each = [k.log_spectral_density(w / value) - len(w) * math.log(value) for k, w in drawn]
        parts.append(math.log(count / len(stretch)) + sum(each[1:], each[0]))
    return (parts[0] - math.log(int(counts[0]) / len(stretch)) - torch.stack(parts).logsumexp(0)).exp()
