"""A metric for a kernel, learned on neighbourhoods: one lengthscale, one per feature, or a matrix.

Each step takes a fresh neighbourhood and moves along the gradient of how well its points are predicted, each
by the others, so that all shape the metric (`hck.selection.learning`).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from hck.backend.kernels import Formula
from hck.backend.kinds import kind_of
from hck.backend.parallel import parallel_map
from hck.kernels import make_kernel
from hck.kernels.stationary import Stationary
from hck.selection.learning import Learning, Lesson, Starts
from hck.selection.neighbourhoods import Neighbourhoods

_AT_ONCE = 3  # metrics at most that share the steps' overhead; of any number of cores, for the same results


@dataclass(frozen=True)
class Metric:
    """A kernel k(‖Lᵀ(x − x')‖) with its ridge; L is a matrix (d, k), or the diagonal (d,) of one."""

    name: str  # of the kernel
    matrix: Tensor
    scale: float = 1.0  # times k, where y has the variance 1
    alpha: float = 0.1  # the noise over the scale
    shape: float = 1.0  # the formula's other number, if it has one
    mixed: bool = False  # every other step of learning takes points from everywhere


def learn_metrics(starts: list[Metric], lesson: Lesson, data: Neighbourhoods) -> list[Metric]:
    """Learn some metrics of one shape: on a CPU a few at once, side by side, on a GPU all."""
    device, n = data.x.device, len(starts)
    count = max(min(2, n), math.ceil(n / _AT_ONCE)) if kind_of(device).is_host else 1
    groups = [starts[i * n // count : (i + 1) * n // count] for i in range(count)]
    return [
        each
        for found in parallel_map(lambda few: _learn(few, lesson, data), groups, device)
        for each in found
    ]


def can_learn(name: str) -> bool:
    """Whether a kernel's points are but divided by lengthscales."""
    kernel = make_kernel(name, 1.0)
    if not isinstance(kernel, Stationary) or kernel.placement is not None:
        return False
    return len(kernel.parameters()) == 1 + kernel.formula.shaped


@torch.no_grad()
def _learn(starts: list[Metric], lesson: Lesson, data: Neighbourhoods) -> list[Metric]:
    known = [(each.scale, max(each.alpha, 1e-12) * each.scale, each.shape) for each in starts]
    matrix = torch.stack([each.matrix.to(data.x) for each in starts])
    levels = torch.tensor(known, dtype=matrix.dtype, device=matrix.device)
    begin = Starts([_formula(each.name) for each in starts], matrix, levels, [each.mixed for each in starts])
    return list(_found(starts, *Learning(begin, lesson, data).run(), lesson.fixed))


def _found(starts: list[Metric], metric: Tensor, levels: Tensor, fixed: bool) -> Iterator[Metric]:
    for start, matrix, (scale, noise, shape) in zip(starts, metric, levels.tolist(), strict=True):
        if matrix.isfinite().all():
            alpha = start.alpha if fixed else noise / scale
            yield replace(start, matrix=matrix, scale=scale, alpha=alpha, shape=shape)
        else:
            yield start


def _formula(name: str) -> Formula:
    kernel = make_kernel(name, 1.0)
    assert isinstance(kernel, Stationary)
    return kernel.formula
