"""A metric for a kernel, learned on neighbourhoods: one lengthscale, one per feature, or a matrix.

Each step takes a fresh neighbourhood and moves along the gradient of how well its points are predicted, each
by the others, so that all shape the metric. Given the gradient by the placed points Z = X L
(`hck.backend.left_out`), that by the matrix L is Xᵀ times it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from hck.backend.kernels import Formula
from hck.backend.kinds import kind_of
from hck.backend.left_out import Placed, left_out_gradient
from hck.backend.parallel import parallel_map
from hck.kernels import make_kernel
from hck.kernels.stationary import Stationary
from hck.preparation.ties import Ties
from hck.selection.neighbourhoods import Neighbourhoods, placed

_LEAST_NOISE = 1e-9  # of y, whose variance is 1
_AT_ONCE = 3  # metrics at most that share the steps' overhead; of any number of cores, for the same results
_WARM_UP = 0.3  # of the steps, while the rate grows
_FIRST, _SECOND = 0.9, 0.99  # moments of Adam


@dataclass(frozen=True)
class Metric:
    """A kernel k(‖Lᵀ(x − x')‖) with its ridge; L is a matrix (d, k), or the diagonal (d,) of one."""

    name: str  # of the kernel
    matrix: Tensor
    scale: float = 1.0  # times k, where y has the variance 1
    alpha: float = 0.1  # the noise over the scale
    shape: float = 1.0  # the formula's other number, if it has one
    mixed: bool = False  # every other step of learning takes points from everywhere


@dataclass(frozen=True)
class Lesson:
    """How a metric is learned."""

    form: str  # "one", "each" or "matrix": what differs between features
    steps: int = 100
    rate: float = 0.1  # of logarithms of lengthscales, or of a matrix's elements relative to them
    size: int = 200  # of a neighbourhood
    fixed: bool = False  # the ridge
    ties: Ties | None = None  # features with one lengthscale


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
    start = torch.stack([each.matrix.to(data.x) for each in starts])
    formulas = [_formula(each.name) for each in starts]
    known = [(each.scale, max(each.alpha, 1e-12) * each.scale, each.shape) for each in starts]
    levels = torch.tensor(known, dtype=data.x.dtype, device=data.x.device).log()
    whole = lesson.form == "matrix"
    # A matrix is learned relative to where it starts, the identity in units of the lengthscales.
    theta = torch.eye(start.shape[-1], dtype=start.dtype, device=start.device) if whole else start.log()
    theta = theta.repeat(len(start), 1, 1) if whole else theta

    def at(theta: Tensor) -> Tensor:
        """The metrics that theta stands for."""
        if not whole:
            return theta.exp()
        return start[..., None] * theta if start.ndim == 2 else start @ theta

    gradient = left_out_gradient(data.x.device)
    steps = _Adam(lesson), _Adam(replace(lesson, rate=min(lesson.rate, 0.05)))
    size = min(lesson.size, len(data.x))
    mixed = torch.tensor([[each.mixed] for each in starts], dtype=torch.bool, device=data.x.device)
    centres, anywhere = data.draws(lesson.steps, size)
    for step, centre in enumerate(centres):
        metric = at(theta)
        rows = data.near(centre, metric, size)
        if step % 2:
            rows = torch.where(mixed, anywhere[step, : rows.shape[1]], rows)
        x, y, noise = data.x[rows], data.y[rows], data.noise[rows]
        x = x - x.mean(1, keepdim=True)
        z = placed(x, metric)
        by_place, by_level = gradient(Placed(formulas, levels.exp(), z, y, noise, data.coding))
        if lesson.fixed:  # the noise goes with the scale
            by_level[:, 0] += by_level[:, 1]
            by_level[:, 1] = 0
        if whole:
            slope = placed(x, start).mT @ by_place
        else:
            slope = (z * by_place).sum(1)
            slope = slope if lesson.form == "each" else slope.mean(1, keepdim=True).expand_as(slope)
            slope = slope if lesson.ties is None else lesson.ties.mean(slope)
        theta = theta - steps[0](step, slope)
        levels = levels - steps[1](step, by_level)
        levels[:, 1].clamp_(min=math.log(_LEAST_NOISE))
    return list(_found(starts, at(theta), levels, lesson.fixed))


def _found(starts: list[Metric], metric: Tensor, levels: Tensor, fixed: bool) -> Iterator[Metric]:
    for start, matrix, (scale, noise, shape) in zip(starts, metric, levels.exp().tolist(), strict=True):
        if matrix.isfinite().all():
            alpha = start.alpha if fixed else noise / scale
            yield replace(start, matrix=matrix, scale=scale, alpha=alpha, shape=shape)
        else:
            yield start


def _formula(name: str) -> Formula:
    kernel = make_kernel(name, 1.0)
    assert isinstance(kernel, Stationary)
    return kernel.formula


class _Adam:
    """Steps along noisy gradients; their rate grows, and falls to 0."""

    def __init__(self, lesson: Lesson) -> None:
        self.lesson = lesson
        self.mean: Tensor | float = 0.0
        self.square: Tensor | float = 0.0

    def __call__(self, step: int, gradient: Tensor) -> Tensor:
        done = step / self.lesson.steps
        rise = done / _WARM_UP
        fall = (1 + math.cos(math.pi * (done - _WARM_UP) / (1 - _WARM_UP))) / 2
        self.mean = _FIRST * self.mean + (1 - _FIRST) * gradient
        self.square = _SECOND * self.square + (1 - _SECOND) * gradient.square()
        mean = self.mean / (1 - _FIRST ** (step + 1))
        spread = (self.square / (1 - _SECOND ** (step + 1))).sqrt()
        return self.lesson.rate * (rise if rise < 1 else fall) * mean / (spread + 1e-12)
