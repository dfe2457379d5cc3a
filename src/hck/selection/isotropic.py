"""One lengthscale for all features: the best multiple of a typical distance."""

from dataclasses import replace
from typing import TypeAlias

import numpy as np
import torch
from sklearn.metrics.pairwise import euclidean_distances
from torch import Tensor

from hck.backend.parallel import parallel_map
from hck.hierarchy.blueprint import mean_variance
from hck.kernels import make_kernel
from hck.points import DensePoints, Points, SparsePoints, VectorPoints
from hck.selection.candidate import Candidate
from hck.selection.contest import Comparison
from hck.selection.tuning import tune

_ALPHA = 0.03  # to start from, times the mean of k(x, x)

# Units of the features (d,) in which there is one lengthscale for all, by what they are called; None for the
# features as they are.
Units: TypeAlias = dict[str, Tensor | None]


def isotropic(
    comparison: Comparison, names: list[str], units: Units, alpha: float | None, tries: int
) -> list[Candidate]:
    """For each kernel its best unit, lengthscale and alpha; the best first.

    The first kernel tries all units, the others that in which the first was best, from where it ended. An
    alpha that is None is to be chosen.
    """
    points = comparison.some.points

    def start(name: str, called: str, scale: float | Tensor) -> Candidate:
        kernel = make_kernel(name, scale)
        ridge = _ALPHA * mean_variance(kernel, points) if alpha is None else alpha
        return Candidate(kernel, ridge, f"{name} with one lengthscale{called}", name)

    def tuned(candidate: Candidate) -> Candidate:
        return tune(comparison, candidate, tries, alpha is None)

    firsts = [start(names[0], called, _typical(points, unit)) for called, unit in units.items()]
    first = min(parallel_map(tuned, firsts, points.device), key=lambda candidate: candidate.loss)
    scale, ridge = first.kernel.parameters()["lengthscale"], first.alpha / mean_variance(first.kernel, points)
    called = first.origin.partition("one lengthscale")[2]
    others = [start(name, called, scale) for name in names[1:]]
    if alpha is None:
        others = [replace(each, alpha=ridge * mean_variance(each.kernel, points)) for each in others]
    found = [first, *parallel_map(tuned, others, points.device)]
    return sorted(found, key=lambda candidate: candidate.loss)


def _typical(points: Points, unit: Tensor | None) -> float | Tensor:
    """Half of the typical distance between points, in some units of the features, times these."""
    if unit is None:
        return typical_distance(points) / 2
    assert isinstance(points, VectorPoints)
    return typical_distance(points.scaled(1 / unit)) / 2 * unit.cpu().double()


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
