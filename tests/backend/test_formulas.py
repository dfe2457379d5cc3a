"""Formulas of kernels in the CPU's vector registers: against torch, and against more digits."""

import numpy as np
import pytest
import torch
from torch import exp, log, sqrt

from hck.backend.blocks import Blocks
from hck.backend.kernels import DenseCross, Formula, Profile, fused_cross
from hck.kernels.stationary import evaluate

TOLERANCE = {torch.float64: 1e-14, torch.float32: 2e-6}
both_types = pytest.mark.parametrize("dtype", TOLERANCE)


def rational(s, shape):
    return exp(-shape * log(1 + s / (2 * shape)))


def every_operation(s):
    r = sqrt(s)
    return (1 - s / 7 + r * (2 - r) - (-r) / (1 + s)) / (3 / (2 + r) + 1) - 0.25


def only_exp(s):
    return exp(s)


def only_log(s):
    return log(s)


def block(n):
    return Blocks(torch.arange(n)[None], full=True)


@both_types
@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("d", [2, 30])
@pytest.mark.parametrize("shape", [0.3, 1.0, 40.0])
def test_a_shape_travels_beside_the_amplitude(d, shape, smooth, dtype):
    x = torch.randn(41, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)
    profile = Profile(Formula(rational, smooth=smooth), 0.7 * d**0.5, 2.5, shape)
    found = fused_cross(DenseCross(profile, x, block(41), x, block(41)))[0]
    expected = evaluate(profile, x.double(), x.double())
    by_hand = 2.5 * (1 + torch.cdist(x.double(), x.double()) ** 2 / (0.49 * d) / (2 * shape)) ** -shape
    torch.testing.assert_close(expected, by_hand, rtol=0, atol=1e-12)
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=10 * TOLERANCE[dtype])


@both_types
def test_every_operation(dtype):
    x = torch.rand(50, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(dtype)
    profile = Profile(Formula(every_operation))
    found = fused_cross(DenseCross(profile, x, block(50), x, block(50)))[0]
    square = (x.double()[:, None] - x.double()).square().sum(-1)
    torch.testing.assert_close(found.double(), every_operation(square), rtol=0, atol=20 * TOLERANCE[dtype])


def applied(function, s):
    """A formula of numbers s: squares of distances from the origin, which is also the centre."""
    x = torch.cat([s.new_zeros(1), s.sqrt()])[:, None]
    origin = Blocks(torch.zeros(1, 1, dtype=torch.long), full=True)
    cross = DenseCross(Profile(Formula(function)), x, block(len(x)), x[:1], origin)
    found = fused_cross(cross)[0, 1:, 0]
    return found.numpy(), (x[1:, 0] ** 2).numpy()


def units(found, exact):
    """How far off, in units of the last digit."""
    return float((np.abs(found - exact) / np.spacing(np.abs(exact).astype(found.dtype))).max())


@both_types
def test_exp_and_log_to_the_last_digit(dtype):
    generator = torch.Generator().manual_seed(2)
    uniform = torch.rand(20_000, generator=generator, dtype=torch.float64)
    found, s = applied(only_exp, ((700 if dtype == torch.float64 else 85) * uniform).to(dtype))
    assert units(found, np.exp(s.astype(np.longdouble))) < 1.5
    wide = torch.cat([10 ** (60 * uniform - 30), 0.5 + uniform]).to(dtype)  # and many near 1
    found, s = applied(only_log, wide)
    assert units(found, np.log(s.astype(np.longdouble))) < 1.5


@both_types
def test_exp_of_what_is_too_large_or_too_small(dtype):
    def fades(s):
        return exp(-s)

    big = torch.tensor([1e3, 1e5, 1e30], dtype=dtype)
    assert np.isinf(applied(only_exp, big)[0]).all()
    assert (applied(fades, big)[0] <= 2 * torch.finfo(dtype).tiny).all()


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda s: torch.exp(-s), ValueError, "'torch'"),
        (lambda s: s.exp(), ValueError, "uses .exp."),
        (lambda: 1.0, TypeError, r"f\(s\) or f\(s, shape\)"),
        (lambda s, a, b: s, TypeError, r"f\(s\) or f\(s, shape\)"),
        (lambda s: (lambda t: t)(s), TypeError, "a function inside"),
        (exp, TypeError, "plain function"),
    ],
)
def test_what_no_machine_could_compute_is_refused(function, error, message):
    with pytest.raises(error, match=message):
        Formula(function)


def test_a_formula_is_known_by_what_it_does():
    def one(s):
        return exp(-s)

    first = Formula(one).fingerprint

    def one(s):
        return exp(-2 * s)

    assert Formula(one).fingerprint != first
