"""Estimators on a GPU: with a single leaf they agree with the CPU, with trees they learn as well."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKRegressor
from hck.kernels import Matern

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]

RNG = np.random.default_rng(0)
X, NEW = RNG.uniform(0, 1, (900, 3)) * [1, 100, 0.01], RNG.uniform(0, 1, (300, 3)) * [1, 100, 0.01]


def smooth(x):
    return np.sin(6 * x[:, 0]) + x[:, 1] / 100


Y, TRUTH = smooth(X) + 0.1 * RNG.normal(size=900), smooth(NEW)
LABELS, TRUE_LABELS = (np.digitize(values, [0.3, 1.0]) for values in (Y, TRUTH))


def fit_both(make, x, y):
    return [make(device).fit(x, y) for device in ("cpu", "cuda")]


@pytest.mark.parametrize("forest", [{"n_trees": 1, "rank": 900}, {"n_trees": 3, "rank": 24, "leaf_size": 96}])
@pytest.mark.parametrize("matrix", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("scale", [None, "standard"])
def test_ridge(forest, matrix, scale):
    kernel = Matern([0.5, 2.0, 1.0] if scale else [0.2, 50.0, 0.01])
    here, there = fit_both(
        lambda device: HCKRegressor(
            kernel=kernel, alpha=0.01, scale=scale, device=device, random_state=0, **forest
        ),
        matrix(X),
        Y,
    )
    expected, got = here.predict(matrix(NEW)), there.predict(matrix(NEW))
    assert np.sqrt(np.mean((got - TRUTH) ** 2)) <= 0.08
    if forest["n_trees"] == 1:
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-8)
        np.testing.assert_allclose(there.loo_predict(), here.loo_predict(), rtol=0, atol=1e-8)


@pytest.mark.parametrize("matrix", [np.asarray, sp.csr_matrix])
def test_everything_automatic(matrix):
    """Small data have a single leaf: nothing is left to chance."""
    here, there = fit_both(lambda device: HCKRegressor(device=device, random_state=0), matrix(X), Y)
    expected, got = here.predict(matrix(NEW)), there.predict(matrix(NEW))
    np.testing.assert_allclose(got, expected, rtol=0, atol=0.02)
    assert np.sqrt(np.mean((got - TRUTH) ** 2)) <= 0.06


@pytest.mark.parametrize("matrix", [np.asarray, sp.csr_matrix])
def test_classes(matrix):
    """A GPU tries more, so that other candidates may share the trees."""
    here, there = fit_both(lambda device: HCKClassifier(device=device, random_state=0), matrix(X), LABELS)
    for model in (here, there):
        assert model.score(matrix(NEW), TRUE_LABELS) >= 0.88
    q, p = (model.predict_proba(matrix(NEW)) for model in (here, there))
    np.testing.assert_allclose(p.sum(1), 1, rtol=0, atol=1e-9)
    assert np.abs(p - q).mean() < 0.02
    loss, known = (-np.log(each[np.arange(300), TRUE_LABELS]).mean() for each in (p, q))
    assert loss < 1.05 * known


def test_process_with_a_single_leaf():
    options = {"kernel": Matern([0.5, 50.0, 0.01]), "rank": 900, "trend": "linear", "random_state": 0}
    here, there = fit_both(
        lambda device: HCKGaussianProcessRegressor(**options, optimizer="lbfgs", device=device), X, Y
    )
    assert there.log_marginal_likelihood_value_ == pytest.approx(
        here.log_marginal_likelihood_value_, abs=0.05
    )
    theta = here.theta_
    for one, other in zip(
        there.log_marginal_likelihood(theta, eval_gradient=True),
        here.log_marginal_likelihood(theta, eval_gradient=True),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-5)
    for one, other in zip(
        there.predict(NEW, return_std=True), here.predict(NEW, return_std=True), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=0, atol=0.01)


def test_process_with_a_forest():
    model = HCKGaussianProcessRegressor(rank=24, leaf_size=96, n_trees=3, device="cuda", random_state=0)
    mean, std = model.fit(X, Y).predict(NEW, return_std=True)
    assert np.sqrt(np.mean((mean - TRUTH) ** 2)) <= 0.08
    assert (std > 0).all()
    drawn = model.sample_posterior(NEW, 200, random_state=0)
    assert drawn.shape == (300, 200)
    assert np.abs(drawn.mean(1) - mean).max() <= 0.1


@pytest.mark.parametrize("forest", [{"n_trees": 1, "rank": 900}, {"n_trees": 3, "rank": 24, "leaf_size": 96}])
def test_gradients_and_intervals(forest):
    here, there = fit_both(
        lambda device: HCKRegressor(
            Matern([0.2, 50.0, 0.01]), alpha=0.01, device=device, random_state=0, **forest
        ),
        X,
        Y,
    )
    slopes = here.predict_gradient(NEW)
    np.testing.assert_allclose(there.predict_gradient(NEW), slopes, atol=1e-6 * abs(slopes).max())
    for got, expected in zip(there.predict(NEW, interval=0.9), here.predict(NEW, interval=0.9), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-6)


def test_errors_of_gradients():
    settings = {"optimizer": None, "noise": 0.01, "rank": 24, "random_state": 0}
    here, there = fit_both(
        lambda device: HCKGaussianProcessRegressor(Matern([0.2, 50.0, 0.01]), device=device, **settings), X, Y
    )
    both = zip(there.predict_gradient(NEW, True), here.predict_gradient(NEW, True), strict=True)
    for got, expected in both:
        np.testing.assert_allclose(got, expected, atol=1e-6 * abs(expected).max())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_far_more_features_than_points(dtype):
    """Candidates are compared in the span of the points, as on the CPU."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 5)) @ rng.normal(size=(5, 6000)) + 0.3 * rng.normal(size=(150, 6000))
    y = x[:, :10].sum(1)
    found = [
        HCKRegressor(fit_time="fast", dtype=dtype, device=device, random_state=0).fit(x[:100], y[:100])
        for device in ("cpu", "cuda")
    ]
    here, there = (np.square(each.predict(x[100:]) - y[100:]).mean() / y.var() for each in found)
    assert there < max(0.1, 1.2 * here)
