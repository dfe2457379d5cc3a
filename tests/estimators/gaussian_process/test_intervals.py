"""Intervals of processes, by left-out observations."""

import pickle

import numpy as np
import pytest
import torch
from scipy.special import ndtri

from hck import HCKGaussianProcessRegressor, load
from hck.approximations import Iterative
from hck.conformal import as_if_held, threshold
from process_problem import NEW, TREE, N, X, Y, fixed

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
POINTS = RNG.uniform(size=(2500, 2))
HEAVY = np.sin(5 * POINTS[:, 0]) + POINTS[:, 1] + 0.1 * RNG.standard_t(2, size=2500)


@pytest.fixture(scope="module")
def heavy():
    """Fitted to errors with heavy tails, with nothing chosen. Not to be changed."""
    return fixed(n_trees=2, calibrate="loo", **TREE).fit(POINTS[:1000], HEAVY[:1000])


def inside(model, level, x=POINTS[1000:], y=HEAVY[1000:]):
    mean, lower, upper = model.predict(x, interval=level)
    np.testing.assert_array_equal(mean, model.predict(x))
    np.testing.assert_allclose(mean - lower, upper - mean, rtol=1e-6)
    return np.mean((lower <= y) & (y <= upper))


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_they_hold_what_they_should_where_errors_are_not_gaussian(heavy, level):
    assert abs(inside(heavy, level) - level) < 0.035


def test_a_gaussian_would_not(heavy):
    mean, std = heavy.predict(POINTS[1000:], return_std=True, observed=True)
    assert np.mean(abs(HEAVY[1000:] - mean) < ndtri(0.75) * std) > 0.6


def test_they_are_multiples_of_deviations(heavy):
    mean, std = heavy.predict(NEW, return_std=True, observed=True)
    left_out, spread = heavy.loo_predict(return_std=True)
    reach = threshold(abs(HEAVY[:1000] - left_out)[:, None] / spread[:, None], None, 0.7)[0]
    np.testing.assert_allclose(heavy.predict(NEW, interval=0.7)[2], mean + reach * std, rtol=1e-8)


def test_observations_that_shaped_the_metric_count_as_others_do():
    model = HCKGaussianProcessRegressor(fit_time="fast", n_trees=1, random_state=0)
    model.fit(POINTS[:300], HEAVY[:300])
    held, (mean, std) = model.selection_.held, model.loo_predict(return_std=True)
    assert 0 < len(held) < 300
    size = (abs(HEAVY[:300] - mean) / std)[:, None]
    reach = threshold(as_if_held(size, np.isin(np.arange(300), held), None), None, 0.7)[0]
    mean, std = model.predict(NEW, return_std=True, observed=True)
    np.testing.assert_allclose(model.predict(NEW, interval=0.7)[1], mean - reach * std, rtol=1e-8)


def test_several_targets_have_each_their_own():
    both = np.stack([HEAVY, np.sin(POINTS[:, 0]) + RNG.normal(size=2500)], 1)
    model = fixed(**TREE).fit(POINTS[:1000], both[:1000])
    parts = model.predict(POINTS[1000:], interval=0.5)
    assert {part.shape for part in parts} == {(1500, 2)}
    held = (parts[1] <= both[1000:]) & (both[1000:] <= parts[2])
    np.testing.assert_allclose(held.mean(0), 0.5, atol=0.05)


def test_tensors_stay_tensors(heavy):
    parts = heavy.predict(torch.from_numpy(NEW), interval=0.9)
    for part, expected in zip(parts, heavy.predict(NEW, interval=0.9), strict=True):
        torch.testing.assert_close(part, torch.from_numpy(expected))


@pytest.mark.parametrize("level", [0, 1, 1.5, "0.9", True, np.nan])
def test_levels_that_are_none(heavy, level):
    with pytest.raises(ValueError, match="a number between 0 and 1"):
        heavy.predict(NEW, interval=level)


@pytest.mark.parametrize("other", ["return_std", "return_cov"])
def test_one_thing_at_a_time(heavy, other):
    with pytest.raises(ValueError, match="one of return_std, return_cov and interval"):
        heavy.predict(NEW, interval=0.9, **{other: True})


def test_known_noise_of_training_points_says_nothing_of_new_ones():
    model = fixed(noise=None, **TREE).fit(X, Y, noise_variance=np.full(N, 0.01))
    with pytest.raises(ValueError, match="needs the noise of new observations"):
        model.predict(NEW, interval=0.9)


@pytest.mark.parametrize("n", [1, 2, 6])
def test_few_points_are_a_gaussians_or_the_largest(n):
    model = fixed(trend="zero").fit(X[:n], Y[:n])
    mean, std = model.predict(NEW, return_std=True, observed=True)
    left_out, spread = model.loo_predict(return_std=True)
    reach = max(ndtri(0.975), (abs(Y[:n] - left_out) / spread).max())
    np.testing.assert_allclose(model.predict(NEW, interval=0.95)[2], mean + reach * std)


def test_where_nothing_can_be_left_out_they_are_a_gaussians():
    model = fixed(approximation=Iterative(tolerance=1e-8)).fit(X, Y)
    mean, std = model.predict(NEW[:5], return_std=True, observed=True)
    np.testing.assert_allclose(model.predict(NEW[:5], interval=0.9)[2], mean + ndtri(0.95) * std, rtol=1e-5)


def test_they_are_saved_and_go_on_with_updates(tmp_path):
    model = HCKGaussianProcessRegressor(fit_time="fast", n_trees=1, rank=20, random_state=0)
    model.fit(POINTS[:300], HEAVY[:300])
    before, held = model.predict(NEW, interval=0.9), model.selection_.held
    model.save(tmp_path / "model")
    for again in (pickle.loads(pickle.dumps(model)), load(tmp_path / "model")):
        np.testing.assert_allclose(again.predict(NEW, interval=0.9), before, rtol=1e-6)
    model.partial_fit(POINTS[300:400], HEAVY[300:400]).forget(np.arange(50))
    expected = np.concatenate([held[held >= 50] - 50, np.arange(250, 350)])
    np.testing.assert_array_equal(model._held(), expected)
    model.save(tmp_path / "updated")
    settled = load(tmp_path / "updated")
    np.testing.assert_array_equal(settled._held(), expected)
    np.testing.assert_allclose(settled.predict(NEW, interval=0.9), model.predict(NEW, interval=0.9))
    assert abs(inside(model, 0.9) - 0.9) < 0.05
