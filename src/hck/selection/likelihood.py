"""Parameters of the largest likelihood."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hck.approximations import Approximation
from hck.kernels import Kernel
from hck.points import Points
from hck.process import log_likelihood
from hck.selection.maximise import Function, Learned, climb, maximise_in_rounds
from hck.selection.space import Space


@dataclass
class Observations:
    """What is learned from.

    Attributes
    ----------
    points : Points
    y : Tensor of shape (n,) or (n, columns)
    trend : Tensor of shape (n, trends), or None
        Features in which the mean is linear.
    noise : Tensor of shape (n,), or None
        Variances of the noise, where they are known.
    """

    points: Points
    y: Tensor
    trend: Tensor | None = None
    noise: Tensor | None = None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: np.ndarray) -> "Observations":
        """Some of them."""
        index = torch.from_numpy(rows)
        rest = (None if part is None else part[index.to(part.device)] for part in (self.trend, self.noise))
        return Observations(
            self.points.take(index.to(self.points.device)), self.y[index.to(self.y.device)], *rest
        )  # fmt: skip

    def draw(self, size: int, rng: np.random.RandomState) -> "tuple[Observations, np.ndarray]":
        """`size` of them at random, in their order, and which; all if there are no more."""
        if size >= len(self):
            return self, np.arange(len(self))
        rows = np.sort(rng.permutation(len(self))[:size])
        return self.take(rows), rows


@torch.no_grad()
def evaluate(
    space: Space,
    source: Approximation,
    data: Observations,
    theta: Any,
    jitter: float | None = None,
    gradient: bool = True,
) -> tuple[float, np.ndarray]:
    """The log-likelihood at theta and its gradient, with the tree and the landmarks that there are."""
    kernel, noise, tensors = space.tensors_at(theta, source.device, source.dtype)
    variance = noise if data.noise is None else data.noise.to(source.device, source.dtype)
    assert variance is not None
    made = source.with_kernel(kernel, jitter)
    found = log_likelihood(made, variance, data.y, tensors if gradient else (), data.trend)
    slope = space.log_gradient(theta, found.gradient) if gradient else np.empty(0)
    return float(found.value), slope


def learn(
    space: Space,
    data: Observations,
    plan: Callable[[Kernel, Points, int], Approximation],
    rng: np.random.RandomState,
    optimizer: str = "stochastic",
    max_iter: int = 100,
    restarts: int = 0,
    size: int | None = None,
    jitter: float | None = None,
    start: np.ndarray | None = None,
    verbose: bool = False,
) -> Learned:
    """theta of the largest likelihood, with priors if there are any; the objective is per observation.

    Parameters
    ----------
    plan : callable
        (kernel, points, seed) ↦ what stands in for the kernel.
    optimizer : {"lbfgs", "stochastic"}
        L-BFGS on one sample of the points, with a tree that is made anew a few times; or Adam with a fresh
        sample and a fresh tree at every step.
    max_iter : int
        The most iterations, or the number of steps.
    size : int, optional
        The most points to learn on.
    start : ndarray, optional
        theta to start from, if not that of the space.
    """
    start = space.start if start is None else start
    size = len(data) if size is None else min(size, len(data))

    def value(source: Approximation, part: Observations, theta: np.ndarray) -> tuple[float, np.ndarray]:
        found, gradient = evaluate(space, source, part, theta, jitter)
        prior, slope = space.log_prior(theta)
        return (found + prior) / size, (gradient + slope) / size

    if optimizer == "lbfgs":
        part = data.draw(size, rng)[0]
        seed = rng.randint(2**31 - 1)

        def around(theta: np.ndarray) -> Function:
            source = plan(space.at(theta)[0], part.points, seed)
            return lambda theta: value(source, part, theta)

        return maximise_in_rounds(around, start, space.bounds, max_iter, restarts, rng, verbose=verbose)

    def fresh(theta: np.ndarray, _: int) -> tuple[float, np.ndarray]:
        part = data.draw(size, rng)[0]
        return value(plan(space.at(theta)[0], part.points, rng.randint(2**31 - 1)), part, theta)

    return climb(fresh, start, space.bounds, max_iter, verbose=verbose)
