"""Metrics that are learned: a lengthscale for each feature, and from there a matrix."""

from dataclasses import replace

import torch

from hck.backend.parallel import parallel_map
from hck.backend.random import as_random
from hck.hierarchy.blueprint import mean_variance
from hck.kernels import make_kernel
from hck.points import DensePoints
from hck.selection.candidate import Candidate
from hck.selection.contest import Comparison, Contest
from hck.selection.likelihood import start_lengthscales
from hck.selection.metric import Lesson, Metric, learn_metrics
from hck.selection.neighbourhoods import Neighbourhoods
from hck.selection.tuning import tune
from hck.selection.work import Effort

MOST_LENGTHSCALES = 256
_MOST_ROWS = 128  # features of which a matrix is learned
_RATE, _MATRIX_RATE = 0.15, 0.015


def anisotropic(
    contest: Contest, comparison: Comparison, names: list[str], alpha: float | None, effort: Effort
) -> list[Candidate]:
    """Kernels with a lengthscale for each feature, and the best of them with a matrix.

    Of each kernel, the best that has lengthscales, and the best that has a matrix.
    """
    data = contest.shaping()
    points = data.points
    assert isinstance(points, DensePoints)
    near = Neighbourhoods.of(data, as_random(contest.rng.randint(2**31 - 1)))
    unit = torch.from_numpy(1 / start_lengthscales(points, contest.ties))
    given = 0.1 if alpha is None else alpha
    starts = [Metric(name, unit, alpha=given, mixed=mixed) for name in names for mixed in (False, True)]
    each = Lesson(
        "each", max(100, effort.steps // 2), _RATE, effort.size, fixed=alpha is not None, ties=contest.ties
    )
    learned = learn_metrics(starts, each, near)
    found = _tuned(comparison, learned, alpha, effort.tries)
    if points.n_features > _MOST_ROWS or not effort.matrices:
        return _best_of_each(found)
    order = sorted(range(len(starts)), key=lambda i: found[i].loss)[: effort.matrices]
    starts = [replace(learned[i], mixed=mixed) for i in order for mixed in (False, True)]
    lesson = replace(each, form="matrix", steps=effort.steps, rate=_MATRIX_RATE)
    whole = learn_metrics(starts, lesson, near)
    return _best_of_each(found) + _best_of_each(_tuned(comparison, whole, alpha, effort.tries))


def _best_of_each(found: list[Candidate]) -> list[Candidate]:
    """The best of each kernel, the best first."""
    best: dict[str, Candidate] = {}
    for candidate in sorted(found, key=lambda candidate: candidate.loss):
        best.setdefault(candidate.name, candidate)
    return list(best.values())


def _tuned(comparison: Comparison, learned: list[Metric], alpha: float | None, tries: int) -> list[Candidate]:
    def tuned(metric: Metric) -> Candidate:
        return tune(comparison, _candidate(metric, comparison, alpha), tries, alpha is None)

    return list(parallel_map(tuned, learned, comparison.some.points.device))


def _candidate(metric: Metric, comparison: Comparison, alpha: float | None) -> Candidate:
    matrix, name = metric.matrix.cpu(), metric.name
    if matrix.ndim == 1:
        kernel, form = make_kernel(name, 1 / matrix), "a lengthscale per feature"
    else:
        kernel, form = make_kernel(name, 1.0, matrix), "a matrix as its metric"
    other = [each for each in kernel.parameters() if each != "lengthscale"]
    kernel = kernel.with_parameters(dict.fromkeys(other, metric.shape))
    ridge = metric.alpha * mean_variance(kernel, comparison.some.points) if alpha is None else alpha
    form += ", learned near and far" if metric.mixed else ""
    return Candidate(kernel, ridge, f"{name} with {form}", name, many=True)
