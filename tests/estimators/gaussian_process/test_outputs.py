"""Several targets share kernel, noise and factorization, and are else processes of their own."""

import numpy as np
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel
from sklearn.gaussian_process.kernels import Matern as SklearnMatern

from hck import HCKGaussianProcessRegressor
from hck.kernels import Matern
from process_problem import NEW, NOISE, TREE, N, X, Y, fixed, learning

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore:y has one value only"),
]

RNG = np.random.default_rng(3)
BOTH = np.stack([Y, 300 * np.cos(4 * X[:, 1]) + 7 + 20 * RNG.standard_normal(N)], 1)
SIZES = pytest.mark.parametrize(
    "settings",
    [
        {"rank": N},
        TREE,
        {**TREE, "n_trees": 3, "calibrate": None},
        {"approximation": "nystrom", "rank": 20, "random_state": 0},
    ],
    ids=["one_leaf", "tree", "forest", "nystrom"],
)
USES = {
    "mean": lambda model: model.predict(NEW),
    "std": lambda model: model.predict(NEW, return_std=True)[1],
    "observed": lambda model: model.predict(NEW, return_std=True, observed=True)[1],
    "cov": lambda model: model.predict(NEW, return_cov=True, observed=True)[1],
    "loo": lambda model: model.loo_predict(),
    "loo_std": lambda model: model.loo_predict(return_std=True)[1],
    "coefficients": lambda model: model.coefficients_,
    "rmse": lambda model: model.loo_metrics()["rmse"],
    "lpd": lambda model: model.loo_metrics()["lpd"],
    "targets": lambda model: model.y_train_,
}


@SIZES
@pytest.mark.parametrize("trend", ["zero", "linear"])
@pytest.mark.parametrize("normalize_y", [False, True])
def test_they_are_processes_with_the_same_parameters(settings, trend, normalize_y):
    model = fixed(trend=trend, normalize_y=normalize_y, **settings)
    alone = [fixed(trend=trend, normalize_y=normalize_y, **settings).fit(X, y) for y in BOTH.T]
    model.fit(X, BOTH)
    for name, use in USES.items():
        expected = np.stack([use(one) for one in alone], -1)
        np.testing.assert_allclose(use(model), expected, rtol=1e-7, atol=1e-9, err_msg=name)
    total = sum(one.log_marginal_likelihood_value_ for one in alone)
    assert model.log_marginal_likelihood_value_ == pytest.approx(total, rel=1e-9)
    value, slope = model.log_marginal_likelihood(model.theta_ + 0.1, eval_gradient=True)
    each = [one.log_marginal_likelihood(one.theta_ + 0.1, eval_gradient=True) for one in alone]
    assert value == pytest.approx(sum(one for one, _ in each), rel=1e-9)
    np.testing.assert_allclose(slope, sum(one for _, one in each), rtol=1e-6, atol=1e-8)


def test_targets_share_the_calibration():
    """The factors of parts of variances are those that fit the left-out observations of all targets best."""
    settings = {**TREE, "n_trees": 3, "calibrate": "loo", "normalize_y": True}
    twice = fixed(**settings).fit(X, np.stack([Y, 5 - 3 * Y], 1))
    once = fixed(**settings).fit(X, Y)
    assert twice.posterior_.spread != once.posterior_.spread.__class__()
    for name, use in USES.items():
        if name not in ("coefficients", "targets", "lpd", "cov"):
            np.testing.assert_allclose(use(twice)[..., 0], use(once), rtol=2e-2, atol=1e-6, err_msg=name)
    draws = twice.draw_functions(2000, random_state=0)(NEW)
    np.testing.assert_allclose(draws.std(-1), twice.predict(NEW, return_std=True)[1], rtol=0.1)
    sample = twice.sample_y(NEW, 4000, random_state=0)
    np.testing.assert_allclose(sample.std(-1), twice.predict(NEW, return_std=True)[1], rtol=0.1)


@pytest.mark.parametrize("settings", [{}, {"normalize_y": True}, {"trend": "linear", "n_trees": 2}], ids=str)
def test_one_column_is_one_target_bit_by_bit(settings):
    plain, column = (learning(max_iter=4, **settings).fit(X, y) for y in (Y, Y[:, None]))
    assert column.predict(NEW).shape == (15,)
    for name, use in USES.items():
        np.testing.assert_array_equal(use(column), use(plain), err_msg=name)
    np.testing.assert_array_equal(column.theta_, plain.theta_)
    np.testing.assert_array_equal(column.sample_y(NEW, 2), plain.sample_y(NEW, 2))
    np.testing.assert_array_equal(column.draw_functions(2)(NEW), plain.draw_functions(2)(NEW))
    assert column.log_marginal_likelihood_value_ == plain.log_marginal_likelihood_value_


@pytest.mark.parametrize("normalize_y", [False, True])
@pytest.mark.parametrize("targets", [Y, BOTH], ids=["one", "two"])
def test_one_leaf_is_scikit_learn(normalize_y, targets):
    theirs = GaussianProcessRegressor(
        ConstantKernel(1.7) * SklearnMatern([0.4, 0.9], nu=1.5),
        alpha=NOISE,
        optimizer=None,
        normalize_y=normalize_y,
    ).fit(X, targets)
    ours = fixed(trend="zero", rank=N, normalize_y=normalize_y).fit(X, targets)
    close = {"rtol": 1e-6, "atol": 1e-7}
    for settings in ({"return_std": True}, {"return_cov": True}):
        for found, expected in zip(
            ours.predict(NEW, **settings), theirs.predict(NEW, **settings), strict=True
        ):
            np.testing.assert_allclose(found, expected, **close)
    assert ours.sample_y(NEW, 4).shape == theirs.sample_y(NEW, 4).shape
    assert ours.log_marginal_likelihood_value_ == pytest.approx(
        theirs.log_marginal_likelihood_value_, rel=1e-6
    )
    assert ours.score(X, targets) == pytest.approx(theirs.score(X, targets), rel=1e-6)


def test_units_decide_nothing():
    """Each target in its own units: those of y do not matter, nor how many targets there are of a kind."""
    model = learning().fit(X, BOTH)
    other = learning().fit(X, BOTH * [1e-3, 50] + [5, -1e3])
    np.testing.assert_allclose(other.theta_, model.theta_, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(other.predict(NEW), model.predict(NEW) * [1e-3, 50] + [5, -1e3], rtol=1e-4)
    np.testing.assert_allclose(model.y_scale_, BOTH.std(0))
    assert model.score(X, BOTH) > 0.97
    twice = learning().fit(X, np.stack([Y, Y, Y], 1))
    once = learning(normalize_y=True).fit(X, Y)
    np.testing.assert_allclose(twice.theta_, once.theta_, rtol=0.02, atol=0.02)


def test_draws_of_several_targets():
    count = 3000
    model = fixed(**TREE).fit(X, BOTH)
    mean, cov = model.predict(NEW[:6], return_cov=True)
    noisy = model.predict(NEW[:6], return_cov=True, observed=True)[1]
    for drawn, expected in (
        (model.sample_posterior(NEW[:6], count, random_state=1), cov),
        (model.sample_posterior(NEW[:6], count, random_state=1, observed=True), noisy),
        (model.draw_functions(count, random_state=1, n_waves=16)(NEW[:6]), cov),
    ):
        assert drawn.shape == (6, 2, count)
        for k in range(2):
            std = np.sqrt(np.diag(expected[..., k]))
            assert (np.abs(drawn[:, k].mean(1) - mean[:, k]) < 5 * std / count**0.5).all()
            allowed = 5.5 * (2 / count) ** 0.5 * np.outer(std, std)
            assert (np.abs(np.cov(drawn[:, k]) - expected[..., k]) < allowed).all()
    prior = model.sample_prior(NEW[:6], count)
    assert prior.shape == (6, 2, count)
    np.testing.assert_allclose(prior.std((0, 2)), 1.7**0.5 * model.y_scale_, rtol=0.1)


def test_constant_targets_teach_nothing_and_are_predicted():
    mixed = np.stack([np.full(N, 1e6), Y, np.zeros(N)], 1)
    model = learning().fit(X, mixed)
    np.testing.assert_allclose(
        model.theta_, learning(normalize_y=True).fit(X, Y).theta_, rtol=1e-3, atol=1e-3
    )
    mean, std = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean[:, [0, 2]], [[1e6, 0]] * len(NEW), rtol=1e-9, atol=1e-9)
    assert np.isfinite(std).all()
    np.testing.assert_allclose(model.y_scale_, [1, Y.std(), 1])
    nothing = learning().fit(X, mixed[:, [0, 2]])
    np.testing.assert_allclose(nothing.predict(NEW), mean[:, [0, 2]], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("trend", ["zero", "mean", "constant", "linear"])
def test_one_observation_of_two_targets(trend):
    model = HCKGaussianProcessRegressor(trend=trend, random_state=0).fit([[1.0, 2.0]], [[5.0, -3.0]])
    mean, std = model.predict([[1.0, 2.0], [9.0, 9.0]], return_std=True)
    np.testing.assert_allclose(mean[0], [5, -3], rtol=1e-6)
    assert np.isfinite(std).all()
    assert model.draw_functions(2)([[0.0, 1.0]]).shape == (1, 2, 2)


def test_repeated_points_with_conflicting_targets():
    x = np.repeat(X[:9], 10, axis=0)
    y = np.stack([RNG.standard_normal(N), 100 * RNG.standard_normal(N)], 1)
    model = learning().fit(x, y)
    assert (np.abs(model.predict(X[:9]) - y.reshape(9, 10, 2).mean(1)) < [[0.8, 80.0]]).all()
    assert (model.predict(X[:9], return_std=True, observed=True)[1] > [[0.5, 50.0]]).all()
    drawn = model.draw_functions(3)(x).reshape(9, 10, 2, 3)
    assert (drawn.std(1) < [[0.001], [0.1]]).all()


def test_a_noise_for_each_observation_is_in_the_units_of_y():
    variance = np.linspace(0.01, 0.05, N)
    model = fixed(**TREE).fit(X, BOTH, noise_variance=variance)
    alone = fixed(**TREE).fit(X, Y, noise_variance=variance)
    np.testing.assert_allclose(model.predict(NEW)[:, 0], alone.predict(NEW), rtol=1e-8)
    np.testing.assert_array_equal(model.y_scale_, 1)
    with pytest.raises(ValueError, match="normalize_y=True and noise_variance exclude each other"):
        fixed(normalize_y=True, **TREE).fit(X, BOTH, noise_variance=variance)
    with pytest.raises(ValueError, match="must be positive"):
        fixed(**TREE).fit(X, BOTH, noise_variance=np.zeros(N))


def test_tensors_and_float32():
    model = fixed(Matern(0.5), dtype="float32", **TREE).fit(torch.from_numpy(X), torch.from_numpy(BOTH))
    mean, std = model.predict(torch.from_numpy(NEW), return_std=True)
    assert mean.shape == std.shape == (15, 2)
    assert mean.dtype == torch.float32
    exact = fixed(Matern(0.5), **TREE).fit(X, BOTH).predict(NEW)
    np.testing.assert_allclose(mean, exact, atol=1e-2 * BOTH.std())


def test_a_failed_refit_with_targets_keeps_the_old_model():
    model = fixed(**TREE).fit(X, Y)
    before = model.predict(NEW, return_std=True)
    with pytest.raises(ValueError, match="y must have the shape"):
        model.fit(X, np.empty((N, 0)))
    for settings in ({}, {"normalize_y": False}):
        with pytest.raises(ValueError, match="y is too large"):
            model.set_params(**settings).fit(X, np.stack([Y, 1e200 * Y], 1))
    model.set_params(normalize_y=None)
    np.testing.assert_array_equal(model.predict(NEW, return_std=True), before)
    model.fit(X, BOTH)
    model.fit(X, Y)  # and nothing is left of the units
    np.testing.assert_array_equal(model.predict(NEW, return_std=True), before)
