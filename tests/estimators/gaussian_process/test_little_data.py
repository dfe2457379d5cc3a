"""Little to go by: one observation, a constant y, repeated points."""

import warnings

import numpy as np
import pytest

from hck import HCKGaussianProcessRegressor, NumericalWarning
from hck.kernels import Matern
from process_problem import NEW, N, X, learning

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore:y has one value only"),
]


@pytest.mark.parametrize("trend", ["zero", "constant", "linear"])
def test_one_observation(trend):
    model = HCKGaussianProcessRegressor(trend=trend, random_state=0).fit([[1.0, 2.0]], [5.0])
    mean, std = model.predict([[1.0, 2.0], [1.5, 2.0], [9.0, 9.0]], return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert std[0] < std[1] <= std[2]
    assert np.isfinite(model.log_marginal_likelihood())
    if trend == "zero":
        assert 5 > mean[0] > mean[1] > mean[2] >= 0
    else:
        np.testing.assert_allclose(mean, 5, rtol=1e-6)


@pytest.mark.parametrize("value", [0.0, 0.3, -7.7, 1e6])
def test_constant_y(value):
    model = learning().fit(X, np.full(N, value))
    mean, std = model.predict(np.concatenate([NEW, NEW + 3]), return_std=True)
    np.testing.assert_allclose(mean, value, rtol=1e-6, atol=1e-6)
    assert (std >= 0).all()
    assert (std < 0.1).all()
    np.testing.assert_allclose(model.loo_predict(), value, rtol=1e-6, atol=1e-6)


def test_repeated_points():
    x = np.repeat(X[:9], 10, axis=0)
    y = np.sin(5 * x[:, 0]) + 0.1 * np.random.default_rng(1).standard_normal(N)
    model = learning().fit(x, y)
    assert 0.07 < model.noise_**0.5 < 0.14
    means = y.reshape(9, 10).mean(1)
    np.testing.assert_allclose(model.predict(X[:9]), means, atol=0.1)


@pytest.mark.parametrize("n", [1, 2, 3, 49, 50])
def test_defaults_take_any_number_of_observations(n):
    """Below fifty, parameters are those of the largest likelihood; an exact process either way."""
    model = HCKGaussianProcessRegressor(fit_time="fast", random_state=0).fit(X[:n], X[:n, 0])
    mean, std = model.predict(NEW, return_std=True, observed=True)
    assert np.isfinite(mean).all()
    assert (std > 0).all()
    assert model.tree_.n_leaves == 1
    assert bool(model.selection_.candidates) == (n >= 50)


@pytest.mark.parametrize(("n", "d"), [(15, 30), (40, 30), (40, 5)])
def test_few_observations_do_not_find_features_among_noise(n, d):
    """With a lengthscale for each, half of the observations were outside of 80 % intervals."""
    inside, error = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x, y, unit = rng.normal(size=(n + 300, d)), rng.normal(size=n + 300), 10.0 ** rng.uniform(-3, 3, d)
        model = HCKGaussianProcessRegressor(random_state=0).fit(unit * x[:n], y[:n])
        mean, lower, upper = model.predict(unit * x[n:], interval=0.8)
        inside.append(np.mean((lower <= y[n:]) & (y[n:] <= upper)))
        error.append(np.mean((mean - y[n:]) ** 2) / np.var(y[n:]))
        scales = np.asarray(model.kernel_.parameters()["lengthscale"]) / (unit * x[:n].std(0))
        np.testing.assert_allclose(scales, scales[0], rtol=1e-6)  # in any units
    assert 0.72 < np.mean(inside) < 0.92
    assert np.mean(error) < 1.15


def test_few_observations_find_the_feature_that_matters():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(40, 6))
    model = HCKGaussianProcessRegressor(random_state=0).fit(x, np.sin(9 * x[:, 2]))
    scales = np.asarray(model.kernel_.parameters()["lengthscale"])
    assert scales.argmin() == 2
    assert np.sort(scales)[1] > 5 * scales[2]


@pytest.mark.parametrize("value", [0.0, -7.7])
def test_defaults_of_a_constant(value):
    model = HCKGaussianProcessRegressor(fit_time="fast", random_state=0).fit(X, np.full(N, value))
    mean, std = model.predict(np.concatenate([NEW, NEW + 3]), return_std=True, observed=True)
    np.testing.assert_allclose(mean, value, atol=1e-8)
    assert ((std >= 0) & (std < 1e-3)).all()
    assert np.isfinite(model.log_marginal_likelihood())


@pytest.mark.filterwarnings("ignore:.*are copies of others")
def test_defaults_of_repeated_points_that_contradict_each_other():
    """What they agree on is predicted, and the rest is noise."""
    x, error = np.repeat(X[:30], 4, axis=0), np.tile([-1.0, 1.0, -1.0, 1.0], 30)
    model = HCKGaussianProcessRegressor(fit_time="fast", random_state=0).fit(x, 10 * x[:, 0] + error)
    mean, std = model.predict(X[:30], return_std=True)
    np.testing.assert_allclose(mean, 10 * X[:30, 0], atol=0.7)
    assert 0.7 < model.noise_**0.5 < 1.4
    assert (std < 0.7).all()


def test_one_point_many_times():
    x, y = np.ones((60, 2)), np.random.default_rng(2).standard_normal(60)
    model = HCKGaussianProcessRegressor(fit_time="fast", random_state=0).fit(x, y)
    mean, std = model.predict(x[:1], return_std=True, observed=True)
    assert mean[0] == pytest.approx(y.mean(), abs=0.05)
    assert 0.8 * y.std() < std[0] < 1.3 * y.std()


@pytest.mark.parametrize("given", [{"noise": 0.0}, {"noise": -1.0}])
def test_there_is_always_some_noise(given):
    with pytest.raises(ValueError, match=r"'noise' parameter .* \(0.0, inf\)"):
        HCKGaussianProcessRegressor(**given).fit(X, X[:, 0])


def test_variances_of_zero_are_refused():
    with pytest.raises(ValueError, match="noise_variance must be positive"):
        HCKGaussianProcessRegressor().fit(X, X[:, 0], noise_variance=np.zeros(N))


def test_observations_without_noise():
    """Where nothing tells it from 0, the noise is next to nothing."""
    y = np.sin(3 * X[:, 0]) + X[:, 1]
    model = HCKGaussianProcessRegressor(fit_time="fast", random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=0.02)
    assert model.noise_**0.5 < 0.05


@pytest.mark.parametrize("y", [[5.0], [5.0, 5.0], [[1.0, 2.0]] * 3])
def test_one_value_says_nothing_of_others(y):
    x = np.arange(2.0 * len(y)).reshape(-1, 2)
    with pytest.warns(NumericalWarning, match="y has one value only"):
        HCKGaussianProcessRegressor(random_state=0).fit(x, y)


@pytest.mark.parametrize(
    "given",
    [
        {"trend": "zero"},
        {"kernel": 2.0 * Matern(1.0), "noise": 0.1, "optimizer": None},
        {"kernel": "matern32", "optimizer": None},
    ],
    ids=str,
)
def test_where_enough_is_known_one_value_is_no_matter(given):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        HCKGaussianProcessRegressor(**given, random_state=0).fit([[1.0, 2.0]], [5.0])
