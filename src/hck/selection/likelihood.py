"""Parameters of the largest likelihood."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from hck.approximations import Approximation
from hck.kernels import Kernel
from hck.points import Points
from hck.process import log_likelihood
from hck.selection.maximise import Effort, Function, Learned, climb, maximise_in_rounds
from hck.selection.observations import Observations
from hck.selection.space import Space


@dataclass(frozen=True)
class Learning:
    """How to learn.

    Attributes
    ----------
    optimizer : {"lbfgs", "stochastic"}
        L-BFGS on one sample of the points, with a tree that is made anew a few times; or Adam with a fresh
        sample and a fresh tree at every step.
    steps : int
        The most iterations, or the number of steps.
    restarts : int
        Further starts of L-BFGS.
    size : int, optional
        The most points to learn on.
    start : ndarray, optional
        theta to start from, if not that of the space.
    """

    optimizer: str = "stochastic"
    steps: int = 100
    restarts: int = 0
    size: int | None = None
    jitter: float | None = None
    start: np.ndarray | None = None
    verbose: bool = False


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
    how: Learning,
) -> Learned:
    """theta of the largest likelihood, with priors if there are any; the objective is per observation.

    Parameters
    ----------
    plan : callable
        (kernel, points, seed) ↦ what stands in for the kernel.
    """
    start = space.start if how.start is None else how.start
    size = len(data) if how.size is None else min(how.size, len(data))

    def value(source: Approximation, part: Observations, theta: np.ndarray) -> tuple[float, np.ndarray]:
        found, gradient = evaluate(space, source, part, theta, how.jitter)
        prior, slope = space.log_prior(theta)
        return (found + prior) / size, (gradient + slope) / size

    if how.optimizer == "lbfgs":
        part = data.draw(size, rng)[0]
        seed = rng.randint(2**31 - 1)

        def around(theta: np.ndarray) -> Function:
            source = plan(space.at(theta)[0], part.points, seed)
            return lambda theta: value(source, part, theta)

        effort = Effort(how.steps, how.restarts, rng, verbose=how.verbose)
        return maximise_in_rounds(around, start, space.bounds, effort)

    def fresh(theta: np.ndarray, _: int) -> tuple[float, np.ndarray]:
        part = data.draw(size, rng)[0]
        return value(plan(space.at(theta)[0], part.points, rng.randint(2**31 - 1)), part, theta)

    return climb(fresh, start, space.bounds, how.steps, verbose=how.verbose)
