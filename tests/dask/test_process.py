"""Gaussian processes on a cluster, against the one tree that the branches are."""

import numpy as np
import pytest
import torch

pytest.importorskip("distributed")
import dask
import dask.array as da
from sklearn.base import clone

import hck
from hck.dask import DaskHCKGaussianProcessRegressor
from hck.kernels import Gaussian
from hck.process import Mixture, Process

pytestmark = pytest.mark.usefixtures("one_thread", "client")

GIVEN = {"kernel": "matern32", "rank": 12, "leaf_size": 30, "n_branches": 4}
GIVEN |= {"learn_size": 200, "max_iter": 2, "random_state": 0}


def squares(x):
    return np.column_stack([np.ones(len(x)), np.asarray(x)[:, 0] ** 2])


@pytest.mark.parametrize(("trend", "n_trees"), [("zero", 1), ("mean", 1), ("linear", 2), (squares, 1)])
def test_it_is_the_process_of_one_machine(data, trend, n_trees, tmp_path):
    x, y = data
    X, Y = da.from_array(x, chunks=((300, 0, 400), 3)), da.from_array(y + 50, chunks=350)
    model = DaskHCKGaussianProcessRegressor(**GIVEN, trend=trend, n_trees=n_trees).fit(X, Y)
    local = model.to_local()
    assert isinstance(local, hck.HCKGaussianProcessRegressor)
    whole = []
    for member in local.posterior_.members:  # conditioned again, in one piece
        both = member.y
        np.testing.assert_allclose(both[:, 1:], model._trend(x))
        restored = model._trend.restore(both[:, 1:], both[:, 0])
        np.testing.assert_allclose(restored, y + 50)
        again = Process.of(member.source, model.noise_, both[:, 0], both[:, 1:])
        assert member.log_likelihood == pytest.approx(again.log_likelihood, rel=1e-8)
        torch.testing.assert_close(member.coefficients, again.coefficients, rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(member.mean.weights, again.mean.weights, rtol=1e-7, atol=1e-7)
        whole.append(again)
    assert model.log_marginal_likelihood_value_ == pytest.approx(Mixture(whole).log_likelihood, rel=1e-8)
    assert model.log_marginal_likelihood() == model.log_marginal_likelihood_value_

    new = np.random.default_rng(5).uniform(size=(60, 3))
    features = model._trend(new)
    spread = local.posterior_.spread
    assert (spread.function == 1) == (n_trees == 1)
    mean, variance = Mixture(whole, spread).variance(torch.from_numpy(new), features)
    mean = model._trend.restore(features, mean).numpy()
    lazy = model.predict(da.from_array(new, chunks=((25, 0, 35), 3)), return_std=True)
    assert lazy[0].chunks == lazy[1].chunks == ((25, 0, 35),)
    for found in (dask.compute(*lazy), model.predict(new, return_std=True)):
        np.testing.assert_allclose(found[0], mean, rtol=1e-8)
        np.testing.assert_allclose(found[1], variance.sqrt().numpy(), rtol=1e-6, atol=1e-9)
    observed = model.predict(new, return_std=True, observed=True)[1]
    np.testing.assert_allclose(observed, local.predict(new, return_std=True, observed=True)[1], rtol=1e-6)
    assert model.score(X, Y) == pytest.approx(local.score(x, y + 50))
    assert local.sample_posterior(new[:5], 2).shape == (5, 2)
    assert local.draw_functions(2)(new[:5]).shape == (5, 2)
    np.testing.assert_allclose(local.y_train_, y + 50)
    assert np.isfinite(local.loo_metrics()["lpd"])
    if not callable(trend):
        model.save(tmp_path / "model")
        np.testing.assert_allclose(hck.load(tmp_path / "model").predict(new), mean, rtol=1e-8)


def test_trends_that_say_the_same(data):
    """By their moments, which come from all branches: rounding errors of the precision tell them apart."""
    x, y = data

    def two(x):
        return np.column_stack([np.ones(len(x)), np.asarray(x)[:, 0]])

    def six(x):
        return two(x) @ np.random.default_rng(2).uniform(size=(2, 6))

    given = {**GIVEN, "kernel": Gaussian(3.0), "noise": 1e-8, "optimizer": None}
    plain, model = (DaskHCKGaussianProcessRegressor(**given, trend=trend).fit(x, y) for trend in (two, six))
    size = abs(plain.predict(x)).max()
    for one, other in zip(*(each.predict(x, return_std=True) for each in (plain, model)), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6 * size)
    assert model.log_marginal_likelihood() == pytest.approx(plain.log_marginal_likelihood(), rel=1e-6)
    local = model.to_local()
    np.testing.assert_allclose(model.predict(x), local.predict(x), rtol=0, atol=1e-7 * size)


def test_it_learns_as_one_machine_does(data):
    """With one sample of all points, in the order in which they are drawn."""
    x, y = data
    given = {**GIVEN, "learn_size": None, "max_iter": 3, "optimizer": "lbfgs"}
    model = DaskHCKGaussianProcessRegressor(**given).fit(x, y)
    assert 0.05 < model.noise_**0.5 < 0.2
    assert model.n_iter_ == len(model.history_) > 0
    assert model.plot_history().get_ylabel() == "log-likelihood per observation"
    assert len(model.coefficients_) == 1
    assert model.score(x, y) > 0.97


def test_what_needs_one_machine_says_so(client, data):
    x, y = data
    model = DaskHCKGaussianProcessRegressor(**GIVEN, client=client, optimizer=None).fit(x, y)
    for call in (
        model.loo_predict,
        model.loo_metrics,
        model.standard_errors,
        lambda: model.sample_posterior(x[:3]),
        lambda: model.sample_prior(x[:3]),
        lambda: model.sample_y(x[:3]),
        lambda: model.draw_functions(),
        lambda: model.log_marginal_likelihood(model.theta_),
    ):
        with pytest.raises(NotImplementedError, match="to_local"):
            call()
    for what in ({"return_cov": True}, {"interval": 0.9}):
        with pytest.raises(ValueError, match="to_local"):
            model.predict(x, **what)
    with pytest.raises(ValueError, match=r"one axis, .*several targets are not possible here"):
        model.fit(x, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="known variances of the noise are not supported"):
        model.fit(x, y, np.ones(700))
    with pytest.raises(ValueError, match=r"normalize_y=True\) are not supported"):
        clone(model).set_params(normalize_y=True).fit(x, y)
    with pytest.raises(AttributeError, match=r"to_local\(\)\.tree_"):
        _ = model.tree_
    assert clone(model).client is client


def test_heavy_tails_are_drawn_in_everywhere():
    rng = np.random.default_rng(0)
    x = np.stack([np.exp(2 * rng.normal(size=900)), rng.normal(size=900)], 1)
    y = 10 * np.sin(np.log(x[:, 0])) + x[:, 1] + 0.5 * rng.normal(size=900)
    given = {"fit_time": "fast", "rank": 24, "leaf_size": 120, "n_trees": 2, "n_branches": 4}
    model = DaskHCKGaussianProcessRegressor(**given, random_state=0)
    model.fit(da.from_array(x[:800], chunks=(300, 2)), da.from_array(y[:800], chunks=300))
    local = model.to_local()
    assert model.features_scaled_
    assert local.features_scaled_
    assert np.sqrt(np.mean((model.predict(x[800:]) - y[800:]) ** 2)) < 1
    for ours, theirs in zip(
        *(each.predict(x[800:], return_std=True) for each in (model, local)), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9)
    assert local.predict_gradient(x[800:]).shape == (100, 2)
