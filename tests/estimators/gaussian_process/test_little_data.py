"""Little to go by: one observation, a constant y, repeated points."""

import numpy as np
import pytest

from hck import HCKGaussianProcessRegressor
from process_problem import NEW, N, X, learning

pytestmark = pytest.mark.usefixtures("one_thread")


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
