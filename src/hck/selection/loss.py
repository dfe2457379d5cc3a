"""How good predictions of left-out observations are."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from hck.errors import NotPositiveDefiniteError
from hck.hierarchy.blueprint import Blueprint
from hck.hierarchy.kernel import HierarchicalKernel
from hck.hierarchy.leave_one_out import leave_one_out
from hck.kernels import Kernel
from hck.points import Points
from hck.selection.likelihood import Observations

Loss = Callable[[np.ndarray], float]


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
    for seed in seeds:
        hierarchical = HierarchicalKernel.of(plan(kernel, data.points, seed))
        for each, alpha in zip(total, alphas, strict=True):
            noise = torch.full((len(data),), float(alpha), dtype=torch.float64)
            if data.noise is not None:  # relative to alpha
                noise = noise * data.noise.cpu()
            try:
                factor = hierarchical.factor(noise.to(hierarchical.points.device))
            except NotPositiveDefiniteError:
                each += np.nan
                continue
            each += leave_one_out(factor, y).mean.double().cpu().numpy() / len(seeds)
    return total


def squared_error(y: np.ndarray) -> Loss:
    """The mean squared error, of each column relative to the variance of y."""
    observed = np.asarray(y, dtype=float).reshape(len(y), -1)
    spread = observed.var(0)
    spread = np.where(spread > 0, spread, 1.0)
    return lambda predicted: float((((predicted - observed) ** 2).mean(0) / spread).mean())


def log_loss(code: np.ndarray) -> Loss:
    """The mean of −log p(class), after calibration; `code` has the number of each observation's class."""

    def loss(decision: np.ndarray) -> float:
        return Calibration.fit(decision, code).loss

    return loss


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
    def fit(cls, decision: np.ndarray, code: np.ndarray) -> "Calibration":
        """The slope of the largest likelihood.

        Parameters
        ----------
        decision : ndarray of shape (n, classes), or (n, 1) for two classes
            Of observations that were left out: others are too sure of themselves.
        code : ndarray of shape (n,)
            The number of each observation's class.
        """
        scores, every = _scores(decision), np.arange(len(code))

        def loss(log_slope: float) -> float:
            return -float(log_softmax(np.exp(log_slope) * scores, 1)[every, code].mean())

        found = minimize_scalar(loss, bounds=(-5, 7), method="bounded")
        return cls(float(np.exp(found.x)), float(found.fun))

    def __call__(self, decision: np.ndarray) -> np.ndarray:
        """Probabilities: shape (n, classes)."""
        return softmax(self.slope * _scores(decision), 1)


def _scores(decision: np.ndarray) -> np.ndarray:
    """A column for each class, from one column for two."""
    decision = np.asarray(decision, dtype=float)
    return np.hstack([np.zeros_like(decision), decision]) if decision.shape[1] == 1 else decision
