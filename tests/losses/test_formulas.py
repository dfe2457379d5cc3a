"""What losses say of themselves: derivatives, the best constant, and what they refuse."""

import numpy as np
import pytest
import torch

from hck.losses import Absolute, Gamma, Huber, Logistic, Poisson, Problem, Quantile, Tweedie


def at_random(problem, seed=3):
    size = len(problem.y), problem.loss.columns
    return torch.tensor(np.random.default_rng(seed).standard_normal(size))


def test_slopes_are_those_of_the_value(problem):
    f = at_random(problem).requires_grad_()
    total = (problem.weight * problem.loss.value(f + problem.intercept, problem.y)).sum()
    total.backward()
    torch.testing.assert_close(problem.slope(f.detach()), f.grad, rtol=1e-9, atol=1e-9)
    assert problem.value(f.detach()) == pytest.approx(float(total.detach()))


def test_curvature_is_that_of_the_slope_or_bounds_it(problem):
    if not problem.loss.smooth:
        with pytest.raises(NotImplementedError, match="not smooth"):
            problem.curvature(at_random(problem))
        return
    f, move = at_random(problem), at_random(problem, 4)
    slope = torch.autograd.functional.jvp(problem.slope, f, move)[1]
    bent = problem.bend(f, move)
    torch.testing.assert_close(bent, slope, rtol=1e-9, atol=1e-9)
    bound = problem.curvature(f)[:, None]
    if problem.loss.exact:
        torch.testing.assert_close(bent, bound * move)
    else:
        assert ((move * bent).sum(1) <= (bound * move.square()).sum(1) * (1 + 1e-12)).all()


def test_the_intercept_is_the_best_constant(problem):
    zero = torch.zeros(len(problem.y), problem.loss.columns, dtype=torch.float64)
    least = problem.value(zero)
    rng = np.random.default_rng(5)
    for size in (1e-3, 1e-1, 1.0):
        for _ in range(4):
            shift = torch.tensor(size * rng.standard_normal(problem.loss.columns))
            if isinstance(problem.loss, Huber):  # whose start is the median: near, not best
                continue
            assert problem.value(zero + shift) >= least - 1e-9


def test_probabilities_and_means():
    f = torch.tensor([[-2.0], [0.0], [800.0]], dtype=torch.float64)
    p = Logistic().mean(f)
    torch.testing.assert_close(p.sum(1), torch.ones(3, dtype=torch.float64))
    assert p[2, 1] == 1
    assert Poisson().mean(f[:1]).item() == pytest.approx(np.exp(-2))
    assert torch.isfinite(Poisson().mean(f)).all()
    assert torch.isfinite(Logistic().value(f, torch.tensor([1, 0, 0]))).all()


@pytest.mark.parametrize(("kind", "power"), [(Poisson, 1.0), (Gamma, 2.0)])
def test_poisson_and_gamma_are_limits_of_tweedie(kind, power):
    rng = np.random.default_rng(6)
    f, y = torch.tensor(rng.standard_normal((9, 1))), torch.tensor(rng.gamma(2, size=9))
    near = Tweedie(power + (1e-7 if power == 1 else -1e-7))
    torch.testing.assert_close(near.slope(f, y), kind().slope(f, y), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(near.curvature(f, y), kind().curvature(f, y), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: Quantile(0.0), "between 0 and 1"),
        (lambda: Quantile(1.0), "between 0 and 1"),
        (lambda: Quantile(float("nan")), "between 0 and 1"),
        (lambda: Huber(-1.0), "delta must be positive"),
        (lambda: Tweedie(0.5), "power must be between 1"),
        (lambda: Tweedie(2.5), "power must be between 1"),
    ],
)
def test_parameters_that_cannot_be(make, what):
    with pytest.raises(ValueError, match=what):
        make()


@pytest.mark.parametrize(
    ("loss", "y", "what"),
    [
        (Poisson(), [1.0, -1.0], "loss='poisson' needs no negative numbers, but y is -1 in row 1"),
        (Gamma(), [1.0, 0.0], "loss='gamma' needs positive numbers, but y is 0 in row 1"),
        (Tweedie(), [0.0, 0.0], "all of them are 0"),
    ],
)
def test_observations_that_cannot_be(loss, y, what):
    with pytest.raises(ValueError, match=what):
        Problem.of(loss, torch.tensor(y, dtype=torch.float64))


def test_huber_needs_its_delta():
    with pytest.raises(ValueError, match="delta=None is not known yet"):
        Huber().value(torch.zeros(1, 1), torch.zeros(1))


def test_outliers_do_not_stand_in():
    y = torch.tensor([*np.linspace(0, 1, 99), 1e9], dtype=torch.float64)
    assert Absolute().stand_in(y).max() < 5
    assert Absolute().stand_in(torch.ones(3, dtype=torch.float64)).tolist() == [1, 1, 1]
