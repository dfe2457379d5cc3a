"""How good predictions of left-out observations are."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from torch import Tensor

from hck.errors import NotPositiveDefiniteError
from hck.hierarchy.blueprint import Blueprint
from hck.hierarchy.kernel import HierarchicalKernel
from hck.hierarchy.leave_one_out import LeftOut, leave_one_out
from hck.kernels import Kernel
from hck.points import Points
from hck.selection.likelihood import Observations


class Loss(Protocol):
    """The loss of predictions of some targets, arrays of shape (n, columns)."""

    def __call__(self, predicted: np.ndarray) -> float: ...

    def gradient(self, predicted: np.ndarray) -> np.ndarray:
        """The derivative by each prediction: shape (n, columns)."""
        ...


@torch.no_grad()
def left_out_means(
    data: Observations,
    kernel: Kernel,
    alphas: list[float],
    plan: Callable[[Kernel, Points, int], Blueprint],
    seeds: list[int],
) -> list[np.ndarray]:
    """For each alpha, every observation predicted from all others: arrays of shape (n, columns).

    Averaged over trees, one for each seed. Tree, landmarks and the kernel's blocks are computed once for all
    alphas. NaN where the matrix is not positive definite.
    """
    y = data.y if data.y.ndim == 2 else data.y[:, None]
    total = [np.zeros(tuple(y.shape)) for _ in alphas]
    relative = 1.0 if data.noise is None else data.noise.to(data.points.device)
    for seed in seeds:
        found = left_out_each(plan(kernel, data.points, seed), y, [alpha * relative for alpha in alphas])
        for each, left_out in zip(total, found, strict=True):
            each += np.nan if left_out is None else left_out.mean.double().cpu().numpy() / len(seeds)
    return total


def left_out_each(
    blueprint: Blueprint, y: Tensor, noises: Sequence[float | Tensor]
) -> Iterator[LeftOut | None]:
    """What all others say about each observation, for one noise after another.

    The kernel's blocks are computed once. None where the matrix is not positive definite.
    """
    hierarchical = HierarchicalKernel.of(blueprint)
    for noise in noises:
        try:
            factor = hierarchical.factor(noise)
            yield leave_one_out(y, factor.solve(y.to(factor.device, factor.dtype)), factor.inverse_diagonal())
        except NotPositiveDefiniteError:
            yield None


class SquaredError:
    """The mean squared error, of each column relative to the variance of y; weighted, if there are weights.

    Parameters
    ----------
    y : ndarray of shape (n, columns)
    weight : ndarray of shape (n,), optional
    """

    def __init__(self, y: np.ndarray, weight: np.ndarray | None = None) -> None:
        self.y = np.asarray(y, dtype=float)
        share = _shares(weight, len(y))[:, None]
        spread = (share * (self.y - (share * self.y).sum(0)) ** 2).sum(0)
        self.unit = share / np.where(spread > 0, spread, 1.0) / self.y.shape[1]

    def __call__(self, predicted: np.ndarray) -> float:
        return float((self.unit * (predicted - self.y) ** 2).sum())

    def gradient(self, predicted: np.ndarray) -> np.ndarray:
        return 2 * self.unit * (predicted - self.y)


class LogLoss:
    """The mean of −log p(class), after calibration; weighted, if there are weights.

    Parameters
    ----------
    code : ndarray of shape (n,)
        The number of each observation's class.
    weight : ndarray of shape (n,), optional
    """

    def __init__(self, code: np.ndarray, weight: np.ndarray | None = None) -> None:
        self.code, self.weight = code, weight

    def __call__(self, predicted: np.ndarray) -> float:
        return Calibration.fit(predicted, self.code, self.weight).loss

    def gradient(self, predicted: np.ndarray) -> np.ndarray:
        calibration = Calibration.fit(predicted, self.code, self.weight)
        rest = calibration(predicted)
        rest[np.arange(len(rest)), self.code] -= 1
        rest *= calibration.slope * _shares(self.weight, len(rest))[:, None]
        return rest if predicted.shape[1] > 1 else rest[:, 1:]


@dataclass(frozen=True)
class InUnits:
    """A loss of predictions that are made in another unit: of predicted · spread + centre."""

    loss: Loss
    spread: np.ndarray
    centre: np.ndarray

    def __call__(self, predicted: np.ndarray) -> float:
        return self.loss(predicted * self.spread + self.centre)

    def gradient(self, predicted: np.ndarray) -> np.ndarray:
        return self.loss.gradient(predicted * self.spread + self.centre) * self.spread


def _shares(weight: np.ndarray | None, n: int) -> np.ndarray:
    """Weights whose sum is 1."""
    return np.full(n, 1 / n) if weight is None else weight / weight.sum()


@dataclass(frozen=True)
class Calibration:
    """Probabilities of classes from decision values: a softmax of slope · value.

    Two classes have one column of values, that of the second class against the first. There are no biases, so
    that the most probable class is the one with the largest value.

    Attributes
    ----------
    slope : float
    loss : float
        The mean of −log p(class) on the observations that it was fitted to.
    """

    slope: float
    loss: float = np.nan

    @classmethod
    def fit(
        cls, decision: np.ndarray, code: np.ndarray, weight: np.ndarray | None = None
    ) -> "Calibration":  # fmt: skip
        """The slope of the largest likelihood.

        Parameters
        ----------
        decision : ndarray of shape (n, classes), or (n, 1) for two classes
            Of observations that were left out: others are too sure of themselves.
        code : ndarray of shape (n,)
            The number of each observation's class.
        weight : ndarray of shape (n,), optional
        """
        scores, every, share = _scores(decision), np.arange(len(code)), _shares(weight, len(code))

        def loss(log_slope: float) -> float:
            return -float(share @ log_softmax(np.exp(log_slope) * scores, 1)[every, code])

        found = minimize_scalar(loss, bounds=(-5, 7), method="bounded")
        return cls(float(np.exp(found.x)), float(found.fun))

    def __call__(self, decision: np.ndarray) -> np.ndarray:
        """Probabilities: shape (n, classes)."""
        return softmax(self.slope * _scores(decision), 1)


def _scores(decision: np.ndarray) -> np.ndarray:
    """A column for each class, from one column for two."""
    decision = np.asarray(decision, dtype=float)
    return np.hstack([np.zeros_like(decision), decision]) if decision.shape[1] == 1 else decision
