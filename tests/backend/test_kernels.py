"""Kernel values by compiled code on the CPU: squared distances by differences, or from norms and products."""

import numpy as np
import pytest
import torch

from hck.backend.blocks import Blocks
from hck.backend.kernels import DenseCross, fused_cross
from hck.kernels import kernel_names, make_kernel

NAMES = kernel_names()
RNG = np.random.default_rng(0)
TOLERANCE = {torch.float64: 1e-11, torch.float32: 2e-5}


def values(name, scale, x, rows, columns, upper=False):
    kernel = make_kernel(name, scale)
    blocks = [Blocks(torch.as_tensor(index), full=bool((index >= 0).all())) for index in (rows, columns)]
    x = kernel.place(x)
    return fused_cross(DenseCross(kernel.profile(), x, blocks[0], x, blocks[1]), upper)


def by_the_formula(name, scale, x, rows, columns):
    """In double precision, from differences."""
    a, b = x.double()[rows][..., None, :], x.double()[columns][..., None, :, :]
    gap = ((a - b) / scale).abs()
    turns = (torch.pi * (a - b)).sin() / scale
    s1, s2 = gap.sum(-1), gap.square().sum(-1)
    s = s2.sqrt()
    return {
        "gaussian": (-s2 / 2).exp(),
        "laplace": (-s1).exp(),
        "inverse_multiquadric": scale / (1 + s2).sqrt(),
        "matern12": (-s).exp(),
        "matern32": (1 + 3**0.5 * s) * (-(3**0.5) * s).exp(),
        "matern52": (1 + 5**0.5 * s + 5 * s2 / 3) * (-(5**0.5) * s).exp(),
        "rational_quadratic": 1 / (1 + s2 / 2),
        "periodic": (-2 * turns.square().sum(-1)).exp(),
    }[name]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("d", [1, 11, 12, 54, 200])
@pytest.mark.parametrize("name", NAMES)
def test_values(name, d, dtype):
    """Blocks of ragged sizes, with copies and near copies of points, near the origin and far from it."""
    x = torch.from_numpy(RNG.normal(size=(90, d))).to(dtype)
    x[30:40] = x[:10]
    x[40:50] = x[10:20] * (1 + 1e-9)
    rows, columns = RNG.integers(0, 90, (3, 37)), RNG.integers(0, 90, (3, 21))
    rows[:, :20], columns[:, :20] = np.arange(20), np.arange(30, 50)
    for scale in (0.3, 3.0, 30.0):
        for offset in (0.0, 1e3):
            moved = x + offset
            found = values(name, scale, moved, rows, columns)
            expected = by_the_formula(name, scale, moved, rows, columns)
            lost = TOLERANCE[dtype] * (1 if dtype == torch.float64 or offset == 0 else 50)
            assert float((found.double() - expected).abs().max() / expected.max()) < lost


@pytest.mark.parametrize("name", NAMES)
def test_padding_is_0_and_triangles_are_alike(name):
    x = torch.from_numpy(RNG.normal(size=(50, 30)))
    index = RNG.permutation(50)[:44].reshape(2, 22)
    index[1, 17:] = -1
    whole, upper = (values(name, 2.0, x, index, index, upper) for upper in (False, True))
    assert not whole[1, 17:].any()
    assert not whole[1, :, 17:].any()
    torch.testing.assert_close(upper.triu(), whole.triu(), rtol=0, atol=0)
    torch.testing.assert_close(whole, whole.mT, rtol=1e-12, atol=1e-14)


def test_far_from_each_other_nothing_is_lost():
    """An expansion of the square would have no digit left: points a million lengthscales from the centre."""
    x = torch.zeros(40, 20, dtype=torch.float64)
    x[1:] = 1e8
    x[1:, 0] += torch.arange(39)
    index = np.arange(40)[None]
    found = values("gaussian", 10.0, x, index, index)[0, 1:, 1:]
    gap = torch.arange(39.0, dtype=torch.float64)
    expected = (-((gap[:, None] - gap) ** 2) / 200).exp()
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8)


def test_the_expansion_is_used(monkeypatch):
    """Else the tests above would say nothing of it."""
    x = torch.from_numpy(RNG.normal(size=(64, 54)))
    index = np.arange(64)[None]
    expanded = values("gaussian", 10.0, x, index, index)[0]
    wide = torch.cat([x, x.new_zeros(64, 1)], 1)
    wide[0, -1] = 1e9  # now norms are too large
    by_differences = values("gaussian", 10.0, wide, index, index)[0]
    assert float(by_differences[1:, 1:].diagonal().sub(1).abs().max()) == 0
    assert 0 < float((expanded - by_differences)[1:, 1:].abs().max()) < 1e-13
