"""All pairs of cutters, kernels and sizes, small: product, solution, log-determinant and prediction."""

import numpy as np
import pytest
import torch

from hck.hierarchy import HierarchicalKernel
from hck.hierarchy.dense import Definition
from hck.kernels import Gaussian, InverseMultiquadric, Laplace, Matern
from hck.partition import known_partitions
from hck.points import as_points

CUTTERS = known_partitions()
KERNELS = [
    Gaussian(0.6),
    Laplace([0.8, 1.0]),
    InverseMultiquadric(0.5),
    Matern(0.7, nu=0.5),
    Matern([0.7, 1.1], nu=1.5),
    2.0 * Matern(0.8, nu=2.5) + Laplace(1.0) * Gaussian(2.0),
]
SIZES = [
    (1, 4, None),
    (3, 8, None),
    (16, 8, None),
    (23, 4, 2),
    (61, 7, None),
    (64, 16, 16),
]  # n, rank, leaf size
# Every pair of two of the three, in 36 cases instead of 180.
CASES = [
    (CUTTERS[(i + j) % len(CUTTERS)], kernel, size)
    for i, kernel in enumerate(KERNELS)
    for j, size in enumerate(SIZES)
]
SOLVE = {torch.float64: 1e-9, torch.float32: 1e-3}
LOG_DETERMINANT = {torch.float64: 1e-10, torch.float32: 1e-4}
ALPHA = 0.1


def _name(value):
    return "n={},r={},leaf={}".format(*value) if isinstance(value, tuple) else str(value).split("(")[0]


def _error(found, expected):
    return ((found.double() - expected).norm() / expected.norm()).item()


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("dtype", SOLVE, ids=str)
@pytest.mark.parametrize(("cutter", "kernel", "size"), CASES, ids=_name)
def test_combination(cutter, kernel, size, dtype):
    n, rank, leaf_size = size
    rng = np.random.default_rng(n)
    x, x_new = (torch.from_numpy(rng.uniform(size=(m, 2))).to(dtype) for m in (n, 5))
    b = torch.from_numpy(rng.normal(size=(n, 2))).to(dtype)
    h = HierarchicalKernel.build(kernel, x, rank, leaf_size, cutter, jitter=1e-4)
    factor = h.factor(ALPHA)
    points, new = as_points(x), as_points(x_new)
    exact = Definition(kernel, h.tree, h.landmarks, h.jitter)
    K, k = exact.square(points), exact.cross(points, new)
    regular = K + ALPHA * torch.eye(n, dtype=torch.float64)
    w = torch.linalg.solve(regular, b.double())
    assert _error(h @ b, K @ b.double()) < SOLVE[dtype]
    assert _error(factor.solve(b), w) < SOLVE[dtype]
    assert _error(h.solution(factor, b)(new), k.mT @ w) < SOLVE[dtype]
    assert abs(factor.log_determinant - torch.logdet(regular)) < LOG_DETERMINANT[dtype] * n
