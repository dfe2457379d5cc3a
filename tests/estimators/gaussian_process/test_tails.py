"""Heavy tails of features, which a process draws in where it chooses for itself."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import hck
from hck import HCKGaussianProcessRegressor
from hck.preparation.scaling import Scaling

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
X = np.stack([np.exp(2 * RNG.normal(size=600)), RNG.normal(size=600) * 20 + 500, RNG.normal(size=600)], 1)
Y = 10 * np.sin(np.log(X[:, 0])) + X[:, 1] / 20 + X[:, 2] ** 2 + 0.5 * RNG.normal(size=600)
NEW = X[:9] * 1.01
STEPS = (1e-4 * NEW[:, 0], np.full(9, 2e-3), np.full(9, 1e-4))


def process(**given):
    return HCKGaussianProcessRegressor(fit_time="fast", random_state=0, **given)


@pytest.fixture(scope="module")
def models():
    return {trend: process(trend=trend).fit(X, Y) for trend in ("auto", "constant", "linear")}


@pytest.fixture
def model(models):
    return models["auto"]


def by_hand(model):
    """The same process of features that were drawn in before."""
    z = model._scaling(model._points(X), torch.float64).x.numpy()
    given = {"noise": model.noise_, "optimizer": None, "rank": len(X), "calibrate": None}
    other = HCKGaussianProcessRegressor(model.kernel_, trend="mean", **given).fit(z, Y)
    other.posterior_.spread = model.posterior_.spread
    return other, lambda x: model._scaling(model._points(x), torch.float64).x.numpy()


def moved(j, sign):
    x = NEW.copy()
    x[:, j] += sign * STEPS[j]
    return x


def test_they_are_drawn_in_where_that_helps(model):
    assert (model._scaling.bend > 0).tolist() == [True, False, False]
    assert model.features_scaled_
    assert not process().fit(np.log(X[:, :1]), Y).features_scaled_
    assert not HCKGaussianProcessRegressor("matern32", max_iter=1).fit(X, Y).features_scaled_


def test_it_is_the_process_of_such_features(model):
    other, placed = by_hand(model)
    for options in ({"return_std": True}, {"return_std": True, "observed": True}, {"return_cov": True}):
        for ours, theirs in zip(
            model.predict(NEW, **options), other.predict(placed(NEW), **options), strict=True
        ):
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-8)
    for ours, theirs in zip(model.loo_predict(True), other.loo_predict(True), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    np.testing.assert_allclose(model.log_marginal_likelihood(model.theta_), other.log_marginal_likelihood())
    np.testing.assert_allclose(model.X_train_, placed(X))
    np.testing.assert_allclose(model.y_train_, Y)
    np.testing.assert_allclose(model.sample_y(NEW, 3), other.sample_y(placed(NEW), 3), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.sample_prior(NEW).shape, (9, 1))


@pytest.mark.parametrize("trend", ["auto", "constant", "linear"])
def test_gradients_are_in_the_units_of_x(models, trend):
    model = models[trend]
    assert model.features_scaled_
    mean, std = model.predict_gradient(NEW, return_std=True)
    np.testing.assert_array_equal(mean, model.predict_gradient(NEW))
    for j in range(3):
        up, down = (model.predict(moved(j, sign)) for sign in (1, -1))
        np.testing.assert_allclose(mean[:, j], (up - down) / (2 * STEPS[j]), rtol=1e-4, atol=1e-5)
        both = np.concatenate([moved(j, 2), moved(j, -2)])
        cov = model.predict(both, return_cov=True)[1]
        up, down, between = cov.diagonal()[:9], cov.diagonal()[9:], cov[:9, 9:].diagonal()
        np.testing.assert_allclose(std[:, j], np.sqrt(up + down - 2 * between) / (4 * STEPS[j]), rtol=2e-2)


def test_functions_are_the_same_at_every_call(model):
    draws = model.draw_functions(2, random_state=0)
    values = draws(NEW)
    np.testing.assert_allclose(draws[1](NEW[4:]), values[4:, 1])
    expected, std = model.predict(NEW, return_std=True)
    assert (np.abs(values - expected[:, None]) < 6 * std[:, None]).all()


def test_updates_are_a_fit_with_all_observations(model, tmp_path):
    once = model.predict(NEW, return_std=True)
    model.save(tmp_path / "model")
    changed = hck.load(tmp_path / "model")
    for ours, theirs in zip(changed.predict(NEW, return_std=True), once, strict=True):
        np.testing.assert_allclose(ours, theirs)
    assert changed.features_scaled_
    changed.forget(np.arange(500, 600)).partial_fit(X[500:], Y[500:])
    for ours, theirs in zip(changed.predict(NEW, return_std=True), once, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    slope = model.predict_gradient(NEW, return_std=True)
    for ours, theirs in zip(changed.predict_gradient(NEW, return_std=True), slope, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_tensors_and_sparse_points(model):
    expected = model.predict(NEW)
    assert isinstance(model.predict(torch.from_numpy(NEW)), torch.Tensor)
    np.testing.assert_allclose(model.predict(torch.from_numpy(NEW)), expected)
    np.testing.assert_allclose(model.predict(sp.csr_matrix(NEW)), expected)


def test_a_refit_forgets_it(model):
    again = process().fit(X, Y)
    assert again.features_scaled_
    assert not again.set_params(kernel="matern32", max_iter=1).fit(X, Y).features_scaled_


def test_models_of_earlier_versions(model):
    plain = process(kernel="matern32", max_iter=1).fit(X, Y)
    assert plain._scaling == Scaling()
    expected = plain.predict(NEW)
    del plain._scaling
    np.testing.assert_array_equal(plain.predict(NEW), expected)
    assert np.isfinite(plain.predict_gradient(NEW)).all()
