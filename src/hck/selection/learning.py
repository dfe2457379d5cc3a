"""Steps by which metrics are learned, each along the gradient on a fresh set of points.

Given the gradient by the placed points Z = X L (`hck.backend.left_out`), that by the matrix L is Xᵀ times it.
All that changes is in tensors, and changes in place: so that a device may record a step, and play it back.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from hck.backend.kernels import Formula
from hck.backend.left_out import Placed, left_out_gradient
from hck.backend.repeated import repeat
from hck.preparation.ties import Ties
from hck.selection.neighbourhoods import Neighbourhoods, placed

_LEAST_NOISE = 1e-9  # of y, whose variance is 1
_LEVEL_RATE = 0.05  # at most
_WARM_UP = 0.3  # of the steps, while the rate grows
_FIRST, _SECOND = 0.9, 0.99  # moments of Adam


@dataclass(frozen=True)
class Lesson:
    """How a metric is learned."""

    form: str  # "one", "each" or "matrix": what differs between features
    steps: int = 100
    rate: float = 0.1  # of logarithms of lengthscales, or of a matrix's elements relative to them
    size: int = 200  # of a neighbourhood
    fixed: bool = False  # the ridge
    ties: Ties | None = None  # features with one lengthscale


@dataclass(frozen=True)
class Starts:
    """Where metrics of one shape begin."""

    formulas: list[Formula]
    matrix: Tensor  # (metrics, d, k), or diagonals (metrics, d)
    levels: Tensor  # (metrics, 3): scale, level of the noise and shape
    mixed: list[bool]  # whether every other step takes points from everywhere


class Learning:
    """Some metrics on their way."""

    def __init__(self, starts: Starts, lesson: Lesson, data: Neighbourhoods) -> None:
        self.starts, self.lesson, self.data = starts, lesson, data
        self.whole, matrix = lesson.form == "matrix", starts.matrix
        # A matrix is learned relative to where it starts, the identity in units of the lengthscales.
        one = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
        self.theta = one.repeat(len(matrix), 1, 1) if self.whole else matrix.log()
        self.levels = starts.levels.log()
        self.gradient = left_out_gradient(matrix.device)
        self.size = min(lesson.size, data.widest)
        self.centres, self.anywhere = data.draws(lesson.steps, self.size)
        mixed = torch.tensor(starts.mixed, dtype=torch.bool, device=matrix.device)
        odd = torch.arange(lesson.steps, device=matrix.device) % 2 == 1
        self.far = odd[:, None] & mixed if any(starts.mixed) else None  # (steps, metrics)
        self.done = torch.zeros(1, dtype=torch.int64, device=matrix.device)
        self.moves = _Adam(self.theta, lesson.rate, lesson.steps)
        self.level_moves = _Adam(self.levels, min(lesson.rate, _LEVEL_RATE), lesson.steps)

    def run(self) -> tuple[Tensor, Tensor]:
        """Take all steps; the metrics, as the starts have them, and their levels."""
        repeat(self._step, self.lesson.steps, self.theta.device)
        return self._metric(), self.levels.exp()

    def _metric(self) -> Tensor:
        """What theta stands for."""
        start = self.starts.matrix
        if not self.whole:
            return self.theta.exp()
        return start[..., None] * self.theta if start.ndim == 2 else start @ self.theta

    def _step(self) -> None:
        data, metric = self.data, self._metric()
        rows = data.near(self.centres[self.done], metric, self.size)
        if self.far is not None:
            rows = torch.where(self.far[self.done].mT, self.anywhere[self.done], rows)
        x = data.x[rows]
        x = x - x.mean(1, keepdim=True)
        z, levels = placed(x, metric), self.levels.exp()
        sets = Placed(self.starts.formulas, levels, z, data.y[rows], data.noise[rows], data.coding)
        by_place, by_level = self.gradient(sets)
        if self.lesson.fixed:  # the noise goes with the scale
            by_level[:, 0] += by_level[:, 1]
            by_level[:, 1] = 0
        self.moves(self.done, self._by_theta(x, z, by_place))
        self.level_moves(self.done, by_level)
        self.levels[:, 1].clamp_(min=math.log(_LEAST_NOISE))
        self.done += 1

    def _by_theta(self, x: Tensor, z: Tensor, by_place: Tensor) -> Tensor:
        if self.whole:
            return placed(x, self.starts.matrix).mT @ by_place
        slope, ties = (z * by_place).sum(1), self.lesson.ties
        if self.lesson.form == "one":
            slope = slope.mean(1, keepdim=True).expand_as(slope)
        return slope if ties is None else ties.mean(slope)


class _Adam:
    """Moves some numbers along noisy gradients; the rate grows, and falls to 0."""

    def __init__(self, numbers: Tensor, rate: float, steps: int) -> None:
        self.numbers, self.mean, self.square = numbers, torch.zeros_like(numbers), torch.zeros_like(numbers)
        rates = [_part(i / steps) * rate / (1 - _FIRST ** (i + 1)) for i in range(steps)]
        known = [1 - _SECOND ** (i + 1) for i in range(steps)]
        self.rates, self.known = torch.tensor([rates, known], dtype=numbers.dtype, device=numbers.device)

    def __call__(self, step: Tensor, gradient: Tensor) -> None:
        """Take a step (1,), whose number says how fast."""
        self.mean.lerp_(gradient, 1 - _FIRST)
        self.square.lerp_(gradient.square(), 1 - _SECOND)
        spread = (self.square / self.known[step]).sqrt_()
        self.numbers.sub_(self.rates[step] * self.mean / spread.add_(1e-12))


def _part(done: float) -> float:
    """Of the rate, after a part of the steps."""
    if done < _WARM_UP:
        return done / _WARM_UP
    return (1 + math.cos(math.pi * (done - _WARM_UP) / (1 - _WARM_UP))) / 2
