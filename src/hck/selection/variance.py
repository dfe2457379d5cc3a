"""How large a kernel is: what ridge regression does not ask for, and a Gaussian process needs."""

import numpy as np

from hck.kernels import Kernel
from hck.selection.candidate import Shape
from hck.selection.contest import Contest
from hck.selection.left_out import left_out_of

_SIZE, _SHAPE = 8000, Shape(1, 1024, 128)  # observations at most, and the tree over them


def kernel_variance(contest: Contest, kernel: Kernel, alpha: float) -> float:
    """The number c for which c · kernel and the noise c · alpha fit left-out observations best.

    With e the errors and v the variances of observations that all others predict with c = 1, it is the mean
    of e² / v: there the log-density of the errors, −½ Σ (e² / c v + log c v), is largest. Predictions do not
    depend on c. NaN if it cannot be computed.
    """
    comparison = contest.compare_on(_SIZE, _SHAPE)
    noise = 1.0 if comparison.some.noise is None else comparison.some.noise.to(comparison.some.points.device)
    matrix = comparison.matrices(comparison.trees(kernel), kernel)[0]
    found = left_out_of(matrix, comparison.some.columns, alpha * noise)
    if found is None:
        return float("nan")
    mean, variance = (each.double().cpu().numpy()[comparison.counted] for each in found)
    observed = comparison.some.columns.double().cpu().numpy()[comparison.counted]
    return float(np.mean((observed - mean) ** 2 / variance[:, None]))
