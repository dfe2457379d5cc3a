"""One lengthscale for all features: a grid, refined once."""

from typing import TypeAlias

import numpy as np
import torch
from sklearn.metrics.pairwise import euclidean_distances
from torch import Tensor

from hck.hierarchy.blueprint import mean_variance
from hck.kernels import Kernel, make_kernel
from hck.points import DensePoints, Points, SparsePoints, VectorPoints
from hck.selection.candidate import Candidate
from hck.selection.contest import SCOUTS, Contest

_FACTORS = tuple(2.0**k for k in range(-4, 3))  # lengthscales, times a typical distance
ALPHAS = (1e-3, 1e-2, 1e-1, 1.0)  # times the mean of k(x, x)

# Units of the features (d,) in which there is one lengthscale for all, by what they are called; None for the
# features as they are.
Units: TypeAlias = dict[str, Tensor | None]


def isotropic(
    contest: Contest, names: list[str], units: Units, alphas: list[float] | None
) -> list[Candidate]:
    """For each kernel the best unit, lengthscale and alpha of a grid that is refined once; the best first.

    The first kernel tries all units, the others those in which the first was best. Alphas that are None are
    to be chosen.
    """
    comparison = contest.compare_on(contest.sample(SCOUTS))
    points = comparison.some.points

    def attempt(name: str, kernel: Kernel, called: str, ridges: tuple[float, ...]) -> Candidate:
        given = alphas or [alpha * mean_variance(kernel, points) for alpha in ridges]
        alpha, loss = comparison.best(kernel, given)
        return Candidate(kernel, alpha, f"{name} with one lengthscale{called}", name, loss)

    found: list[Candidate] = []
    where = {called: _lengthscales(points, unit) for called, unit in units.items()}
    for name in names:
        tried = {
            called: _best([attempt(name, make_kernel(name, scale), called, ALPHAS) for scale in scales])
            for called, scales in where.items()
        }
        best, called = min(((each, called) for called, each in tried.items()), key=lambda pair: pair[0].loss)
        usual = best.alpha / mean_variance(best.kernel, points)
        near = [stretched(best.kernel, step) for step in (2**-0.5, 2**0.5)]
        around = (usual / 3, usual, usual * 3)
        found.append(_best([best, *(attempt(name, kernel, called, around) for kernel in near)]))
        where = {called: where[called]}
    return sorted(found, key=lambda candidate: candidate.loss)


def _best(candidates: list[Candidate]) -> Candidate:
    return min(candidates, key=lambda candidate: candidate.loss)


def _lengthscales(points: Points, unit: Tensor | None) -> list[float | Tensor]:
    """Lengthscales around the typical distance between points whose features are in some units."""
    if unit is None:
        typical = typical_distance(points)
        return [factor * typical for factor in _FACTORS]
    assert isinstance(points, VectorPoints)
    typical = typical_distance(points.scaled(1 / unit))
    return [factor * typical * unit.cpu().double() for factor in _FACTORS]


def stretched(kernel: Kernel, factor: float) -> Kernel:
    """The kernel with all lengthscales times a factor."""
    scales = {name: value for name, value in kernel.parameters().items() if name.endswith("lengthscale")}
    return kernel.with_parameters({name: value * factor for name, value in scales.items()})


def typical_distance(points: Points, most: int = 1000) -> float:
    """The median distance between points."""
    last, count = len(points) - 1, min(len(points), most)
    index = torch.linspace(0, last, count, dtype=torch.float32, device=points.device).long().clamp(max=last)
    some = points.take(index)
    if not isinstance(some, DensePoints | SparsePoints):
        raise TypeError("points without coordinates have no lengthscale")
    x = some.x if isinstance(some, SparsePoints) else some.x.double().cpu().numpy()
    distance = euclidean_distances(x)[np.triu_indices(len(index), 1)]
    distance = distance[distance > 0]
    return float(np.median(distance)) if len(distance) else 1.0
