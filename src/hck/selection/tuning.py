"""The scale of a metric and the ridge, by predictions of observations that did not shape it."""

from dataclasses import replace

import numpy as np

from hck.hierarchy.kernel import HierarchicalKernel
from hck.kernels import Kernel
from hck.kernels.stationary import Stationary
from hck.selection.candidate import Candidate
from hck.selection.contest import Comparison

_SCALE, _RIDGE = 2**0.5, 3.0  # the least steps, as factors
_GAIN = 0.999  # a step has to lower the loss to: less leads to where nothing is predicted


def tune(comparison: Comparison, candidate: Candidate, tries: int, ridge_too: bool = True) -> Candidate:
    """The candidate with its best multiple of lengthscales and, perhaps, of alpha.

    One is changed after the other, in steps of 2 and then of √2, and of 3 for alpha, as long as the loss
    falls and there are tries left.
    """
    trees = comparison.trees(candidate.kernel)
    matrices: dict[int, list[HierarchicalKernel]] = {}
    losses: dict[tuple[int, int], float] = {}

    def at(i: int, j: int) -> float:
        if (i, j) not in losses and len(losses) < tries:
            if i not in matrices:
                matrices[i] = comparison.matrices(trees, _of_placed(candidate.kernel, _SCALE**i))
            losses[i, j] = comparison.loss_of(matrices[i], candidate.alpha * _RIDGE**j)
        return losses.get((i, j), np.inf)

    best, moved = (0, 0), True
    at(*best)
    for stride in (2, 1):
        moved = True
        while moved:
            moved = False
            ridges = ((0, 1), (0, -1)) if ridge_too else ()
            for step in (*ridges, (stride, 0), (-stride, 0)):
                there = best[0] + step[0], best[1] + step[1]
                while at(*there) < _GAIN * at(*best):
                    best, moved = there, True
                    there = best[0] + step[0], best[1] + step[1]
    return replace(
        candidate,
        kernel=stretched(candidate.kernel, _SCALE ** best[0]),
        alpha=candidate.alpha * _RIDGE ** best[1],
        loss=at(*best),
    )


def tune_ridge(comparison: Comparison, candidate: Candidate, factors: tuple[float, ...]) -> Candidate:
    """The candidate with its best alpha among multiples, and, where that is at an end, those beyond it."""
    matrices = comparison.matrices(comparison.trees(candidate.kernel), candidate.kernel)
    losses: dict[float, float] = {}

    def at(factor: float) -> Candidate:
        alpha = candidate.alpha * factor
        predicted = comparison.predicted(matrices, alpha)
        losses[factor] = comparison.judge(predicted)
        return replace(candidate, alpha=alpha, loss=losses[factor], predicted=predicted)

    found = min(map(at, factors), key=lambda tried: tried.loss)
    step = factors[-1] / factors[-2] if len(factors) > 1 else 1.0
    best = min(losses, key=lambda factor: losses[factor])
    while len(losses) > 1 and len(losses) < 2 * len(factors) and best in (min(losses), max(losses)):
        best *= step if best == max(losses) else 1 / step
        beyond = at(best)
        if beyond.loss >= found.loss:
            break
        found = beyond
    return found


def _of_placed(kernel: Kernel, factor: float) -> Kernel:
    """The same as stretched, for points that were placed for the kernel."""
    other = stretched(kernel, factor)
    if isinstance(kernel, Stationary) and isinstance(other, Stationary):
        return kernel.alongside(other, factor)
    return other


def stretched(kernel: Kernel, factor: float) -> Kernel:
    """The kernel with all lengthscales times a factor."""
    scales = {name: value for name, value in kernel.parameters().items() if name.endswith("lengthscale")}
    return kernel.with_parameters({name: value * factor for name, value in scales.items()})
