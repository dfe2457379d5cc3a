"""What a process chooses for itself: kernel, noise, sizes, and how wide its intervals are."""

import numpy as np
import pytest
from sklearn.base import clone

import hck
from hck import HCKGaussianProcessRegressor, HCKRegressor, metrics
from hck.kernels import Matern
from process_problem import NEW, NOISE, TREE, N, X, Y, fixed

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(1)
MANY = RNG.uniform(-1, 1, (700, 4)) * [1, 10, 0.1, 1] + [0, 100, 0, 0]


def truth(x):
    return np.sin(3 * x[:, 0]) * np.cos(0.3 * (x[:, 1] - 100))


VALUES = truth(MANY) + 0.1 * RNG.standard_normal(700)
FRESH = RNG.uniform(-1, 1, (2000, 4)) * [1, 10, 0.1, 1] + [0, 100, 0, 0]
OBSERVED = truth(FRESH) + 0.1 * RNG.standard_normal(2000)


@pytest.fixture(scope="module")
def chosen():
    return HCKGaussianProcessRegressor(fit_time="fast", random_state=0).fit(MANY, VALUES)


def test_it_chooses_what_the_regressor_chooses(chosen):
    other = HCKRegressor(fit_time="fast", random_state=0).fit(MANY, VALUES).selection_
    found = chosen.selection_
    assert [each.origin for each in found.candidates] == [each.origin for each in other.candidates]
    variance = chosen.kernel_.parameters()["scale"]
    assert chosen.noise_ / variance == pytest.approx(other.alpha, rel=1e-6)
    scaled = (MANY - MANY.mean(0)) / MANY.std(0)
    np.testing.assert_allclose(chosen.kernel_(MANY), variance * other.kernel(scaled), rtol=1e-6, atol=1e-9)


def test_its_mean_and_its_intervals(chosen):
    mean, std = chosen.predict(FRESH, return_std=True, observed=True)
    assert metrics.rmse(truth(FRESH), mean) < 0.06
    assert 0.93 < metrics.coverage(OBSERVED, mean, std) < 0.97
    assert 0.45 < np.mean(np.abs(OBSERVED - mean) < 0.6745 * std) < 0.55
    assert 0.08 < chosen.noise_**0.5 < 0.12


def test_small_data_are_exact(chosen):
    assert chosen.selection_.n_trees == 1
    assert chosen.tree_.n_leaves == 1
    learned = HCKGaussianProcessRegressor("matern32", max_iter=1).fit(MANY, VALUES)
    assert learned.tree_.n_leaves == 1


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        ({"rank": 16}, (1, None, 16)),
        ({"rank": 16, "n_trees": 3}, (3, None, 16)),
        ({"leaf_size": 100}, (8, 100, 12)),
        ({"leaf_size": 100, "n_trees": 2}, (2, 100, 12)),
        ({"rank": 16, "leaf_size": 64}, (1, 64, 16)),
    ],
    ids=str,
)
def test_sizes_that_are_given(given, shape):
    model = fixed(Matern(1.0), **given, random_state=0).fit(MANY[:300], VALUES[:300])
    found = model.selection_
    assert (found.n_trees, found.leaf_size, found.rank) == shape
    assert len(model.trees_) == shape[0]


def test_the_likelihood_belongs_to_what_was_chosen(chosen):
    value = chosen.log_marginal_likelihood()
    assert chosen.log_marginal_likelihood(chosen.theta_) == pytest.approx(value, rel=1e-9)
    assert chosen.history_ == [value / 700]
    assert chosen.n_iter_ == 1
    assert set(chosen.standard_errors()) == {*chosen.kernel_.parameters(), "noise"}


def test_saved_and_loaded(chosen, tmp_path):
    chosen.save(tmp_path / "model")
    again = hck.load(tmp_path / "model")
    assert again.posterior_.spread == chosen.posterior_.spread
    assert again.selection_.n_trees == 1
    expected = chosen.predict(FRESH[:50], return_std=True, observed=True)
    np.testing.assert_allclose(again.predict(FRESH[:50], return_std=True, observed=True), expected)


def test_the_same_seed_chooses_the_same():
    model = HCKGaussianProcessRegressor(fit_time="fast", random_state=3)
    first, again = (clone(model).fit(X, Y) for _ in range(2))
    np.testing.assert_array_equal(again.theta_, first.theta_)
    np.testing.assert_array_equal(again.predict(NEW, return_std=True), first.predict(NEW, return_std=True))


@pytest.mark.parametrize(
    "given",
    [
        {"kernel": "matern32"},
        {"lengthscale": 0.5},
        {"noise": 0.1},
        {"bounds": {"noise": (1e-3, 1.0)}},
        {"priors": {"noise": (0.01, 1.0)}},
        {"ard": False},
        {"optimizer": "lbfgs"},
        {"optimizer": None},
    ],
    ids=lambda given: next(iter(given)),
)
def test_what_is_given_is_learned_by_likelihood(given):
    model = HCKGaussianProcessRegressor(**given, max_iter=2, **TREE).fit(X, Y)
    assert model.selection_.candidates == []
    assert model.posterior_.spread.function == 1
    assert isinstance(model.kernel_.kernel, Matern)
    assert model.kernel_.kernel.metric is None


def test_known_variances_are_learned_with_by_likelihood():
    model = HCKGaussianProcessRegressor(max_iter=2, **TREE).fit(X, Y, noise_variance=np.full(N, 0.01))
    assert model.selection_.candidates == []
    forest = fixed(n_trees=3, **TREE).fit(X, Y, noise_variance=np.full(N, 0.01))
    assert forest.posterior_.spread.noise == 1
    assert forest.posterior_.spread.function != 1


def test_when_intervals_are_calibrated():
    def spread(**given):
        return fixed(**TREE, **given).fit(X, Y).posterior_.spread

    assert spread() == spread(calibrate=None) == spread(n_trees=3, calibrate=None) == hck.process.Spread()
    assert spread(calibrate="loo") != spread()
    assert spread(n_trees=3) == spread(n_trees=3, calibrate="loo") != spread()


@pytest.mark.parametrize("n_trees", [1, 8])
def test_forests_cover_draws_of_a_known_process(n_trees):
    """With the parameters of the process itself."""
    rng = np.random.default_rng(5)
    x = rng.uniform(size=(2400, 3))
    kernel = Matern(0.35)
    values = np.linalg.cholesky(kernel(x) + 1e-9 * np.eye(2400)) @ rng.standard_normal(2400)
    y = values + NOISE**0.5 * rng.standard_normal(2400)
    model = fixed(kernel, n_trees=n_trees, rank=16, leaf_size=100, calibrate="loo", random_state=0)
    model.fit(x[:1200], y[:1200])
    for observed, target in ((True, y), (False, values)):
        mean, std = model.predict(x[1200:], return_std=True, observed=observed)
        away = np.abs(target[1200:] - mean) / std
        assert 0.92 < np.mean(away < 1.96) < 0.98
        assert 0.44 < np.mean(away < 0.6745) < 0.57
    mean, std = model.loo_predict(return_std=True)
    assert 0.935 < np.mean(np.abs(y[:1200] - mean) < 1.96 * std) < 0.965


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"fit_time": "slow"}, "'fit_time' parameter"),
        ({"fit_time": 0}, "'fit_time' parameter"),
        ({"calibrate": "yes"}, "'calibrate' parameter"),
        ({"rank": "large"}, "'rank' parameter"),
        ({"n_trees": "many"}, "'n_trees' parameter"),
        ({"learn_size": "all"}, "'learn_size' parameter"),
        ({"lengthscale": "long"}, "'lengthscale' parameter"),
        ({"noise": "little"}, "'noise' parameter"),
    ],
    ids=str,
)
def test_bad_choices(given, message):
    with pytest.raises(ValueError, match=message):
        HCKGaussianProcessRegressor(**given).fit(X, Y)
