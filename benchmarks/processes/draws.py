"""Observations of a process with known parameters, and the best predictions possible."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hck import HCKGaussianProcessRegressor
from hck.backend.memory import resolve_budget
from hck.kernels import Kernel, Matern
from processes.common import Options, Prediction, make_process, observe

SCALE, NOISE = 1.0, 0.05  # variances


@dataclass(frozen=True)
class Drawn:
    """Observations of a known process, and what can be said of the last ones if the first are given."""

    X: np.ndarray
    y: np.ndarray
    points: int  # to learn from
    best: Prediction
    how: str

    @property
    def train(self) -> tuple[np.ndarray, np.ndarray]:
        return self.X[: self.points], self.y[: self.points]

    @property
    def test(self) -> tuple[np.ndarray, np.ndarray]:
        return self.X[self.points :], self.y[self.points :]


def draw_process(options: Options, seed: int) -> Drawn:
    """Uniform points and observations; exact if a dense matrix fits into memory."""
    train, test = (2000, 500) if options.quick else (20_000, 5000)
    device = torch.device(options.device)
    generator = torch.Generator(device).manual_seed(seed)
    shape = (train + test, len(options.lengthscales))
    x = torch.rand(shape, generator=generator, dtype=torch.float64, device=device)
    if 8 * len(x) ** 2 <= resolve_budget(None, device):
        y, best = draw_exactly(true_kernel(options).to(device, x.dtype), x, train, generator)
        return Drawn(x.cpu().numpy(), y, train, best, "exactly")
    return draw_with_hck(options, x.cpu().numpy(), train, seed)


def true_kernel(options: Options) -> Kernel:
    return SCALE * Matern(options.lengthscales, nu=1.5)


@torch.no_grad()
def draw_exactly(
    kernel: Kernel, x: Tensor, train: int, generator: torch.Generator
) -> tuple[np.ndarray, Prediction]:
    """y = L z with L Lᵀ = K + noise.

    The rows of L that belong to the test points also have their distribution given the training points: the
    mean is what z of the training points contributes, the variance comes from the rest.
    """
    n, step = len(x), 1000
    factor = x.new_empty(n, n)
    for start in range(0, n, step):
        factor[start : start + step] = kernel.evaluate(x[start : start + step], x)
    factor.diagonal().add_(NOISE)
    factor_in_place(factor, step)
    z = torch.randn(n, generator=generator, dtype=x.dtype, device=x.device)
    y = torch.cat([factor[start : start + step].tril(start) @ z for start in range(0, n, step)])
    mean = factor[train:, :train] @ z[:train]
    std = factor[train:, train:].tril().square().sum(1).sqrt()
    return y.cpu().numpy(), (mean.cpu().numpy(), std.cpu().numpy())


def factor_in_place(a: Tensor, step: int) -> None:
    """Cholesky's factor in the lower triangle, by columns, so that there is one matrix and no more."""
    for start in range(0, len(a), step):
        stop = start + step
        a[start:, start:stop] -= a[start:, :start] @ a[start:stop, :start].mT
        own = torch.linalg.cholesky(a[start:stop, start:stop])
        a[start:stop, start:stop] = own
        a[stop:, start:stop] = torch.linalg.solve_triangular(
            own.mT, a[stop:, start:stop], upper=True, left=False
        )


def draw_with_hck(options: Options, X: np.ndarray, train: int, seed: int) -> Drawn:
    model = know_the_truth(options, rank=1000, leaf_size=2000)
    rng = np.random.default_rng(seed)
    y = model.sample_prior(X, random_state=seed)[:, 0] + math.sqrt(NOISE) * rng.standard_normal(len(X))
    best = observe(model.fit(X[:train], y[:train]), X[train:])
    return Drawn(X, y, train, best, "by hck with rank 1,000 and leaves of 2,000")


def know_the_truth(options: Options, **changes: Any) -> HCKGaussianProcessRegressor:
    fixed = {"kernel": true_kernel(options), "noise": NOISE, "trend": "zero", "optimizer": None}
    return make_process(options, "recover", **(fixed | changes))
