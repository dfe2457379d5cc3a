"""Draws of functions, before and after observations."""

import numpy as np
import pytest

from hck import HCKGaussianProcessRegressor
from hck.kernels import Matern
from process_problem import NEW, TREE, N, X, Y, changed, fixed

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("after", [False, True], ids=["before_fit", "after_fit"])
def test_prior_draws_have_the_covariance_of_the_kernel(after):
    count, few = 20_000, X[:12]
    kernel = 1.7 * Matern([0.4, 0.9])
    model = fixed(kernel, rank=N)
    if after:
        model.fit(X, Y + 100)  # neither trend nor observations matter
    drawn = model.sample_prior(few, count)
    assert drawn.shape == (12, count)
    assert np.abs(drawn @ drawn.T / count - kernel(few)).max() < 5 * 1.7 * (2 / count) ** 0.5
    assert np.abs(drawn.mean(1)).max() < 5 * (1.7 / count) ** 0.5


def test_prior_draws_follow_what_was_learned():
    y = 30 * Y
    model = HCKGaussianProcessRegressor(rank=N, random_state=0)
    before = model.sample_prior(X, 2000)
    after = model.fit(X, y).sample_prior(X, 2000)
    assert before.std() == pytest.approx(1, rel=0.1)
    assert after.std() == pytest.approx(model.kernel_.parameters()["scale"] ** 0.5, rel=0.2)


def test_draws_on_a_tree_and_their_seeds(fixed_tree):
    for draw in (fixed_tree.sample_prior, fixed_tree.sample_posterior, fixed(**TREE).sample_prior):
        assert draw(NEW).shape == (15, 1)
        first = draw(NEW, 3)
        assert first.shape == (15, 3)
        np.testing.assert_array_equal(draw(NEW, 3), first)
        np.testing.assert_array_equal(draw(NEW, 3, random_state=0), first)
        assert not np.array_equal(draw(NEW, 3, random_state=1), first)
        assert len(np.unique(first)) == 45
        state = np.random.RandomState(4)
        assert not np.array_equal(draw(NEW, 1, random_state=state), draw(NEW, 1, random_state=state))


@pytest.mark.parametrize("trend", ["zero", "linear"])
@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize("settings", [{"rank": N}, TREE], ids=["one_leaf", "tree"])
def test_posterior_draws_have_mean_and_covariance_of_predictions(trend, observed, settings):
    count = 8_000
    model = fixed(trend=trend, **settings).fit(X, Y)
    few = np.concatenate([X[:4], NEW[:4], NEW[4:7] + 1])
    mean, cov = model.predict(few, return_cov=True, observed=observed)
    drawn = model.sample_posterior(few, count, random_state=1, observed=observed)
    std = np.sqrt(np.diag(cov))
    assert (np.abs(drawn.mean(1) - mean) < 5 * std / count**0.5).all()
    allowed = 5 * (2 / count) ** 0.5 * np.outer(std, std) + 1e-6
    assert (np.abs(np.cov(drawn) - cov) < allowed).all()


@pytest.mark.parametrize("count", [0, -1, 1.5])
def test_number_of_draws(fixed_tree, count):
    for draw in (fixed_tree.sample_prior, fixed_tree.sample_posterior):
        with pytest.raises(ValueError, match="at least 1"):
            draw(NEW, count)


def test_bad_points_for_draws_before_fit():
    with pytest.raises(ValueError, match="NaN"):
        HCKGaussianProcessRegressor().sample_prior(changed(X, np.nan))
    with pytest.raises(ValueError, match="'noise' parameter"):
        HCKGaussianProcessRegressor(noise=0.0).sample_prior(X)
