"""Metrics that are learned: a lengthscale for each feature, and from there a matrix.

Of many features a matrix is learned on their principal directions, in the units of a kernel that has one
lengthscale.
"""

import time
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from hck.backend.parallel import parallel_map
from hck.backend.random import as_random
from hck.hierarchy.blueprint import mean_variance
from hck.kernels import make_kernel
from hck.points import DensePoints
from hck.selection.candidate import Candidate
from hck.selection.contest import Comparison, Contest
from hck.selection.learning import Lesson
from hck.selection.likelihood import start_lengthscales
from hck.selection.metric import Metric, learn_metrics
from hck.selection.neighbourhoods import Neighbourhoods
from hck.selection.observations import Observations
from hck.selection.tuning import tune
from hck.selection.work import Effort

MOST_FEATURES = 4096  # of which any metric but one lengthscale is learned
MOST_LENGTHSCALES = 256
MOST_ROWS = 128  # features of which a matrix is learned as they are
_DIRECTIONS = 64  # of more features
_SAMPLE = 4000  # points by which directions are found
_FLAT = 1e-10  # of the largest variance: what rounding leaves of none
_RATE, _MATRIX_RATE = 0.15, 0.015
_LEARNED = 0.6  # of the time that may be over when metrics are learned
_MATRIX_TAKES = 2.0  # times as long as lengthscales


@dataclass(frozen=True)
class Course:
    """What metrics are learned with: kernels by name, and an alpha, unless it is to be learned too."""

    contest: Contest
    comparison: Comparison
    names: list[str]
    alpha: float | None
    effort: Effort

    def metrics(self, first: Candidate) -> list[Candidate]:
        """Kernels with a lengthscale for each feature, and the best of them with a matrix.

        Of each kernel the best that has lengthscales, and all that have a matrix, or, where there are many
        features or two classes, the best of each. The first candidate has one lengthscale: it says in which
        units many features are compared.
        """
        data = self.contest.data
        points, found = data.points, []
        assert isinstance(points, DensePoints)
        if points.n_features <= MOST_LENGTHSCALES:
            unit = torch.from_numpy(1 / start_lengthscales(points, self.contest.ties))
            found = self._learned(data, unit, points.n_features <= MOST_ROWS)
        if points.n_features > MOST_ROWS:
            directions = principal(points, 1 / first.kernel.parameters()["lengthscale"])
            if not directions.shape[1]:  # all points are the same
                return found
            data = replace(data, points=DensePoints(points.x @ directions.to(points.x)))
            found += self._learned(data, directions.new_ones(directions.shape[1]), True, directions)
        return found

    def _learned(
        self, data: Observations, unit: Tensor, as_matrix: bool, directions: Tensor | None = None
    ) -> list[Candidate]:
        """Metrics of points that are, perhaps, what others are along directions (d, k)."""
        effort, given = self.effort, 0.1 if self.alpha is None else self.alpha
        random = as_random(self.contest.rng.randint(2**31 - 1))
        near = Neighbourhoods.of(self.contest.shaping(data), random, self.contest.loss.of_classes)
        starts = [
            Metric(name, unit, alpha=given, mixed=mixed) for name in self.names for mixed in (False, True)
        ]
        steps, fixed = max(100, effort.steps // 2), self.alpha is not None
        ties = self.contest.ties if directions is None else None
        each, begin = Lesson("each", steps, _RATE, effort.size, fixed, ties), time.perf_counter()
        learned = learn_metrics(starts, each, near)
        found = self._tuned(learned, directions)
        matrix_takes = _MATRIX_TAKES * (time.perf_counter() - begin)
        if not as_matrix or not effort.matrices or not self.contest.limits.allow(matrix_takes, by=_LEARNED):
            return _best_of_each(found)
        order = sorted(range(len(starts)), key=lambda i: found[i].loss)[: effort.matrices]
        starts = [replace(learned[i], mixed=mixed) for i in order for mixed in (False, True)]
        if effort.matrices > 1:  # lengthscales may have lost directions that are no feature's
            starts.append(replace(learned[order[0]], matrix=unit, mixed=False))
        lesson = replace(each, form="matrix", steps=effort.steps, rate=_MATRIX_RATE)
        whole = self._tuned(learn_metrics(starts, lesson, near), directions)
        # So few points tell matrices apart badly, but with many features more of them take long, and two
        # classes gain nothing by them.
        two_classes = self.contest.loss.of_classes and data.columns.shape[1] == 1
        best_only = directions is not None or two_classes
        return _best_of_each(found) + (_best_of_each(whole) if best_only else whole)

    def _tuned(self, learned: list[Metric], directions: Tensor | None) -> list[Candidate]:
        def tuned(metric: Metric) -> Candidate:
            start = self._candidate(metric, directions)
            return tune(self.comparison, start, self.effort.tries, self.alpha is None)

        return list(parallel_map(tuned, learned, self.comparison.some.points.device))

    def _candidate(self, metric: Metric, directions: Tensor | None) -> Candidate:
        matrix, name = metric.matrix.cpu(), metric.name
        feature = "feature" if directions is None else "principal direction"
        form = f"a lengthscale per {feature}" if matrix.ndim == 1 else "a matrix as its metric"
        if directions is not None:
            matrix = directions @ (matrix.diag() if matrix.ndim == 1 else matrix)
        kernel = make_kernel(name, 1 / matrix) if matrix.ndim == 1 else make_kernel(name, 1.0, matrix)
        other = [each for each in kernel.parameters() if each != "lengthscale"]
        kernel = kernel.with_parameters(dict.fromkeys(other, metric.shape))
        alpha, points = self.alpha, self.comparison.some.points
        ridge = metric.alpha * mean_variance(kernel, points) if alpha is None else alpha
        form += ", learned near and far" if metric.mixed else ""
        return Candidate(kernel, ridge, f"{name} with {form}", name, many=directions is None)


def principal(points: DensePoints, unit: float | Tensor) -> Tensor:
    """Directions (d, k) along which points differ most, in some units of their features (or all in one).

    Points times these are in such units, too.
    """
    count = min(len(points), _SAMPLE)
    every = torch.linspace(0, len(points) - 1, count, dtype=torch.float64, device=points.device).long()
    x = points.x[every].double().cpu() * unit
    x = x - x.mean(0)
    if len(x) < x.shape[1]:
        values, vectors = (each[..., -_DIRECTIONS:] for each in torch.linalg.eigh(x @ x.T))
        there = values > _FLAT * values[-1]
        found = x.T @ vectors[:, there] / values[there].sqrt()
    else:
        found = torch.linalg.eigh(x.T @ x)[1][:, -_DIRECTIONS:]
    found = found.flip(1)
    return found * (unit[:, None] if isinstance(unit, Tensor) and unit.ndim else unit)


def _best_of_each(found: list[Candidate]) -> list[Candidate]:
    """The best of each kernel, the best first."""
    best: dict[str, Candidate] = {}
    for candidate in sorted(found, key=lambda candidate: candidate.loss):
        best.setdefault(candidate.name, candidate)
    return list(best.values())
