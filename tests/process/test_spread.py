"""Factors of variances: those of the largest density of left-out observations."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from hck.hierarchy.leave_one_out import LeftOut
from hck.process import Mixture, Process, Spread
from hck.process.mixture import mix
from hck.process.spread import calibrate

pytestmark = pytest.mark.usefixtures("one_thread")

N = 4000


def observed(function, noise, between, tails=None, trees=4, seed=0, n=N):
    """Observations whose errors have these factors, trees that leave them out, and the noise."""
    rng = np.random.default_rng(seed)
    latent, known = rng.uniform(0.5, 4, n), np.full(n, 1.5)
    means = rng.uniform(0.1, 2, n) * rng.standard_normal((trees, n))
    variance = function * latent + noise * known + between * means.var(0)
    error = rng.standard_normal(n) if tails is None else rng.standard_t(tails, n) * (1 - 2 / tails) ** 0.5
    y = means.mean(0) + np.sqrt(variance) * error
    left_out = [LeftOut(torch.from_numpy(each), torch.from_numpy(latent + known)) for each in means]
    return torch.from_numpy(y), left_out, torch.from_numpy(known)


@pytest.mark.parametrize("factors", [(0.5, 1.0, 0.0), (1.0, 1.0, 1.0), (2.0, 1.2, 1.5), (30.0, 50.0, 20.0)])
def test_factors_are_found(factors):
    found = calibrate(*observed(*factors, n=40_000))
    assert [found.function, found.noise] == pytest.approx(factors[:2], rel=0.15)
    assert found.between == pytest.approx(factors[2], abs=0.15 * max(factors))


def test_no_other_factors_have_a_larger_density():
    y, left_out, noise = observed(0.7, 1.3, 0.8)
    found = calibrate(y, left_out, noise)
    means = torch.stack([each.mean for each in left_out])
    mean, between = means.mean(0), _variance(means)
    latent, square = left_out[0].variance - noise, (y - mean) ** 2

    def negative(factors):
        variance = factors[0] * latent + factors[1] * noise + factors[2] * between
        return float((variance.log() + square / variance).mean())

    best = minimize(negative, [1.0, 1.0, 1.0], method="Nelder-Mead").fun
    assert negative([found.function, found.noise, found.between]) == pytest.approx(best, abs=1e-3)


def _variance(means):
    return means.var(0, correction=0)


@pytest.mark.parametrize("tails", [None, 2.5, 4])
def test_intervals_cover_left_out_observations_whatever_the_tails(tails):
    y, left_out, noise = observed(0.4, 1.0, 0.5, tails)
    found = calibrate(y, left_out, noise)
    mean, variance = mix([one.mean for one in left_out], [one.variance - noise for one in left_out], found)
    inside = (y - mean).abs() < 1.96 * (variance + found.noise * noise).sqrt()
    assert 0.9395 < inside.double().mean() < 0.9605


def test_a_noise_that_is_known_stays():
    found = calibrate(*observed(0.4, 1.0, 0.0), known=True)
    assert found.noise == 1
    assert found.function == pytest.approx(0.4, rel=0.2)


def test_some_rows_only():
    y, left_out, noise = observed(1.0, 1.0, 0.0)
    rows = np.arange(0, N, 2)
    other = y.clone()
    other[1::2] += 1000
    assert calibrate(other, left_out, noise, rows) == calibrate(y, left_out, noise, rows)
    assert calibrate(other, left_out, noise) != calibrate(y, left_out, noise)


@pytest.mark.parametrize("n", [1, 5, 9])
def test_few_observations_say_nothing(n):
    assert calibrate(*observed(5.0, 5.0, 0.0, n=n)) == Spread(1.0, 1.0, 0.0)


def test_what_nothing_is_known_of_does_not_count():
    y, left_out, noise = observed(1.0, 1.0, 0.0, n=200)
    expected = calibrate(y, left_out, noise, np.arange(1, 200))
    left_out = [LeftOut(each.mean, each.variance.clone()) for each in left_out]
    for each in left_out:
        each.variance[0] = torch.inf
    assert calibrate(y, left_out, noise) == expected


def test_errors_of_zero():
    _, left_out, noise = observed(1.0, 1.0, 0.0, n=300)
    left_out = [LeftOut(torch.zeros_like(each.mean), each.variance) for each in left_out]
    found = calibrate(torch.zeros(300, dtype=torch.float64), left_out, noise)
    assert 0 < found.function < 0.01
    assert 0 < found.noise < 0.01


@pytest.mark.parametrize("factors", [(1.0, 1.0, 1.0), (0.5, 2.0, 0.0), (2.0, 0.5, 3.0)])
def test_every_answer_of_a_mixture_has_the_factors(factors):
    """Variances, covariances, left-out values and draws, against what each tree says."""
    from hck.approximations import TreeKernel
    from hck.kernels import Matern

    rng = np.random.default_rng(0)
    x, new = torch.from_numpy(rng.uniform(size=(80, 2))), torch.from_numpy(rng.uniform(size=(7, 2)))
    y, ones = torch.sin(5 * x[:, 0]), torch.ones(80, 1, dtype=torch.float64)
    sources = [TreeKernel.of("hierarchical", Matern(0.3), x, 6, seed) for seed in range(3)]
    members = [Process.of(source, 0.05, y, ones) for source in sources]
    mixture = Mixture(members, Spread(*factors))
    function, noise, between = factors
    at = ones[:7]
    means = torch.stack([each.predict(new, at) for each in members])
    within = torch.stack([each.covariance(new, at) for each in members]).mean(0)
    apart = means - means.mean(0)
    expected = function * within + between * apart.mT @ apart / 3
    torch.testing.assert_close(mixture.covariance(new, at), (means.mean(0), expected))
    torch.testing.assert_close(mixture.variance(new, at), (means.mean(0), expected.diagonal()))
    left_out = [each.leave_one_out() for each in members]
    means = torch.stack([each.mean for each in left_out])
    latent = torch.stack([each.variance for each in left_out]).mean(0) - 0.05
    variance = function * latent + noise * 0.05 + between * _variance(means)
    torch.testing.assert_close(tuple(mixture.leave_one_out()), (means.mean(0), variance))
    from hck.backend.random import as_random

    drawn = mixture.sample(new, at, 20_000, as_random(0))
    std = expected.diagonal().sqrt()
    assert bool(((drawn.mean(1) - mixture.predict(new, at)).abs() < 5 * std / 20_000**0.5).all())
    error = (torch.cov(drawn) - expected).abs() / (std[:, None] * std)
    assert float(error.max()) < 6 * (2 / 20_000) ** 0.5
