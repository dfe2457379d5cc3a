"""Kernels differentiated by a point, against differences of their values and formulas written out."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from hck.backend.blocks import Blocks
from hck.backend.kernels import Formula
from hck.errors import NoGradientError
from hck.kernels import (
    CallableKernel,
    Gaussian,
    InverseMultiquadric,
    Laplace,
    Matern,
    Periodic,
    RationalQuadratic,
    kernel_names,
    make_kernel,
)
from hck.kernels.families import matern32
from hck.kernels.slope import check_slope, slope_of_sum, slope_values, slope_variance
from hck.kernels.stationary import Stationary
from hck.points import KernelBlocks, as_points

RNG = np.random.default_rng(0)
METRIC = np.array([[1.0, 0.3], [0.2, -0.8], [0.0, 0.5]])


def polynomial(a, b):
    """A kernel of no differences."""
    return (1 + a @ b.mT) ** 2


ROUGH = {
    "laplace": Laplace(0.8),
    "matern12": Matern([0.7, 1.0, 1.3], nu=0.5),
    "rough": Gaussian() + Laplace(),
}
SMOOTH = {
    **{name: make_kernel(name, 0.9) for name in kernel_names() if name not in ("laplace", "matern12")},
    "per feature": Matern([0.5, 1.0, 2.0], nu=2.5),
    "matrix": RationalQuadratic(0.7, alpha=1.5, metric=METRIC),
    "matrix and lengthscales": Matern([0.7, 1.4], nu=1.5, metric=METRIC),
    "circles": Periodic([0.7, 1.0, 1.2], period=[2.0, 3.0, 2.5]),
    "multiquadric": InverseMultiquadric([0.7, 1.0, 1.2]),
    "sum": 0.5 * Gaussian(0.6) + 2.0 * Matern([0.5, 1.0, 2.0], nu=1.5),
    "product": 3.0 * (Matern(1.0, nu=1.5) * InverseMultiquadric([1.0, 2.0, 0.5])),
    "function": CallableKernel(polynomial, batched=True),
    "of a function": CallableKernel(polynomial, batched=True) * Gaussian(2.0),
}
ALL = {**ROUGH, **SMOOTH, "laplace in a metric": Laplace(0.8, metric=METRIC)}


def pairs_of(kernel, x, z):
    return KernelBlocks.between(kernel, as_points(x), as_points(z))


def moved(x, m, step):
    other = x.copy()
    other[:, m] += step
    return other


@pytest.mark.parametrize("name", ALL)
def test_slopes_are_those_of_differences(name):
    kernel, x, z, h = ALL[name], RNG.normal(size=(5, 3)), RNG.normal(size=(7, 3)), 1e-5
    expected = np.stack([kernel(moved(x, m, h), z) - kernel(moved(x, m, -h), z) for m in range(3)], 1) / (
        2 * h
    )
    pairs = pairs_of(kernel, x, z)
    found = slope_values(kernel, pairs)[0].numpy()
    np.testing.assert_allclose(found, expected, atol=2e-8 * abs(expected).max())
    weight = RNG.normal(size=(7, 2))
    total = slope_of_sum(kernel, pairs, torch.from_numpy(weight)[None])[0].numpy()
    np.testing.assert_allclose(total, found @ weight, atol=1e-12 * abs(found).max() * 10)


@pytest.mark.parametrize(
    "name", ["gaussian", "laplace", "sum", "product", "function", "inverse_multiquadric"]
)
def test_padding_counts_for_nothing(name):
    kernel = ALL[name]
    x, z = as_points(RNG.normal(size=(5, 3))), as_points(RNG.normal(size=(6, 3)))
    rows = Blocks(torch.tensor([[0, 1, 2], [3, 4, -1]]), full=False)
    columns = Blocks(torch.tensor([[0, 1, -1, -1], [2, 3, 4, 5]]), full=False)
    weight = torch.from_numpy(RNG.normal(size=(2, 4, 2)))
    every = slope_values(kernel, KernelBlocks.between(kernel, x, z))[0]
    pairs = KernelBlocks(kernel, x, rows, z, columns)
    found, total = slope_values(kernel, pairs), slope_of_sum(kernel, pairs, weight)
    for block, (own, others) in enumerate((([0, 1, 2], [0, 1]), ([3, 4], [2, 3, 4, 5]))):
        part = every[own][:, :, others]
        torch.testing.assert_close(found[block, : len(own), :, : len(others)], part)
        torch.testing.assert_close(total[block, : len(own)], part @ weight[block, : len(others)])
    assert not found[0, :, :, 2:].any()
    assert not found[1, 2:].any()


PRIORS = {  # ∂²k(x, x')/∂x∂x' at x' = x for a lengthscale of 0.9
    "gaussian": 1 / 0.81,
    "matern32": 3 / 0.81,
    "matern52": 5 / 3 / 0.81,
    "rational_quadratic": 1 / 0.81,
    "inverse_multiquadric": 0.9 / 0.81,
    "periodic": (2 * math.pi / 0.9) ** 2,
}


@pytest.mark.parametrize("name", PRIORS)
def test_prior_variances_by_formula(name):
    found = slope_variance(SMOOTH[name], torch.zeros(2, 3, dtype=torch.float64))
    np.testing.assert_allclose(found, np.full((2, 3), PRIORS[name]), rtol=1e-7)


@pytest.mark.parametrize("name", SMOOTH)
def test_prior_variances_by_differences(name):
    """E (f(x + h) − f(x − h))² / 4h², of the smoothest to four digits and of matern32 to h."""
    kernel, x, h = SMOOTH[name], RNG.normal(size=(4, 3)), 1e-4
    found = slope_variance(kernel, torch.from_numpy(x)).numpy()
    for m in range(3):
        up, down = (torch.from_numpy(moved(x, m, step)).unsqueeze(-2) for step in (h, -h))
        k = [kernel.evaluate(a, b)[:, 0, 0].numpy() for a, b in ((up, up), (up, down), (down, down))]
        np.testing.assert_allclose(found[:, m], (k[0] - 2 * k[1] + k[2]) / (4 * h * h), rtol=2e-3)


class HalfGone(Stationary):
    """Matérn-3/2 once more, as a user may write it: without a slope of its own."""

    formula = Formula(matern32, smooth=True)


def test_a_formula_alone_is_enough():
    mine, known, x, z = HalfGone(0.7), Matern(0.7, nu=1.5), RNG.normal(size=(4, 2)), RNG.normal(size=(6, 2))
    found, expected = (slope_values(kernel, pairs_of(kernel, x, z)) for kernel in (mine, known))
    torch.testing.assert_close(found, expected)
    point = torch.zeros(1, 2, dtype=torch.float64)
    torch.testing.assert_close(slope_variance(mine, point), slope_variance(known, point), rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", [name for name in ALL if "function" not in name])
def test_equal_points_are_flat(name):
    x = RNG.normal(size=(3, 3))
    found = slope_values(ALL[name], pairs_of(ALL[name], x, x))[0]
    scale = found.abs().max()
    assert all(found[i, :, i].abs().max() < 1e-6 * scale for i in range(3))


@pytest.mark.parametrize("name", ROUGH)
def test_processes_with_kinks_have_no_gradient(name):
    for check in (check_slope, lambda kernel: slope_variance(kernel, torch.zeros(1, 3))):
        with pytest.raises(NoGradientError, match="use a kernel whose functions are smooth"):
            check(ROUGH[name])
    assert all(check_slope(kernel) is None for kernel in SMOOTH.values())


def test_functions_without_derivatives_are_named():
    plain = CallableKernel(lambda a, b: np.exp(-((a[:, None] - b) ** 2).sum(-1)))
    flat = CallableKernel(lambda a, b: torch.ones(*a.shape[:-1], b.shape[-2], dtype=a.dtype), batched=True)
    kink = CallableKernel(lambda a, b: torch.exp(-torch.cdist(a, b)), batched=True)
    x = RNG.normal(size=(3, 2))
    for kernel in (plain, flat):
        with pytest.raises(NoGradientError, match="must be batched"):
            slope_values(kernel, pairs_of(kernel, x, x + 1))
        with pytest.raises(NoGradientError, match="must be batched"):
            slope_variance(kernel, torch.from_numpy(x))
    assert torch.isfinite(slope_values(kink, pairs_of(kink, x, x + 1))).all()


def test_sparse_points_and_objects_are_refused():
    points = as_points(sp.csr_matrix(np.eye(3)))
    with pytest.raises(NoGradientError, match="dense ones alone"):
        slope_values(Gaussian(), KernelBlocks.between(Gaussian(), points, points))
