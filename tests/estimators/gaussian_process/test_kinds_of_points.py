"""Tensors, sparse points, single precision and strings."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from hck import HCKGaussianProcessRegressor
from hck.kernels import CallableKernel, Matern, kernel_names
from process_problem import NEW, NOISE, N, X, Y, fixed, learning

pytestmark = pytest.mark.usefixtures("one_thread")


def test_tensors_in_tensors_out():
    arrays, model = learning(max_iter=3).fit(X, Y), learning(max_iter=3)
    model.fit(torch.from_numpy(X), torch.from_numpy(Y))
    new = torch.from_numpy(NEW)
    np.testing.assert_array_equal(model.theta_, arrays.theta_)
    for settings in ({"return_std": True}, {"return_cov": True}, {"return_std": True, "observed": True}):
        found, expected = model.predict(new, **settings), arrays.predict(NEW, **settings)
        for part, other in zip(found, expected, strict=True):
            assert isinstance(part, torch.Tensor)
            assert not part.requires_grad
            np.testing.assert_array_equal(part.numpy(), other)
    for tensor, array in (
        (model.predict(new), arrays.predict(NEW)),
        (model.sample_prior(new), arrays.sample_prior(NEW)),
        (model.sample_posterior(new), arrays.sample_posterior(NEW)),
    ):
        assert isinstance(tensor, torch.Tensor)
        np.testing.assert_array_equal(tensor.numpy(), array)
    assert isinstance(model.predict(NEW), np.ndarray)
    assert isinstance(arrays.predict(new), torch.Tensor)


@pytest.mark.parametrize("rank", [8, N])
def test_sparse_is_dense(rank):
    x, new = np.where(X < 0.3, 0, X), np.where(NEW < 0.3, 0, NEW)
    dense_model, model = (
        fixed(rank=rank, random_state=0).fit(form(x), Y) for form in (np.asarray, sp.csr_matrix)
    )
    expected = dense_model.predict(new, return_std=True)
    for form in (sp.csr_matrix, sp.csc_array, np.asarray):
        np.testing.assert_allclose(model.predict(form(new), return_std=True), expected, rtol=1e-6)
    np.testing.assert_allclose(dense_model.predict(sp.csr_matrix(new), return_std=True), expected, rtol=1e-6)
    np.testing.assert_allclose(
        model.predict(sp.csr_matrix(new), return_cov=True)[1],
        dense_model.predict(new, return_cov=True)[1],
        rtol=1e-6,
        atol=1e-9,
    )
    assert model.sample_posterior(sp.csr_matrix(new), 2).shape == (15, 2)
    assert model.sample_prior(sp.csr_matrix(new), 2).shape == (15, 2)


def test_scale_and_noise_are_learned_on_sparse_points():
    x = np.where(X < 0.3, 0, X)
    settings = {"noise": NOISE, "bounds": {"lengthscale": "fixed"}, "rank": N}
    both = [
        HCKGaussianProcessRegressor(1.7 * Matern([0.4, 0.9]), **settings).fit(form(x), Y)
        for form in (np.asarray, sp.csr_matrix)
    ]
    assert both[0].theta_names_ == ["scale", "noise"]
    np.testing.assert_allclose(both[1].theta_, both[0].theta_, rtol=1e-6)


@pytest.mark.parametrize("kernel", kernel_names())
def test_lengthscales_are_learned_on_sparse_points(kernel):
    x = np.where(X < 0.3, 0, X)
    dense_model, model = (
        HCKGaussianProcessRegressor(kernel, rank=N, max_iter=5).fit(form(x), Y)
        for form in (np.asarray, sp.csr_matrix)
    )
    np.testing.assert_allclose(model.theta_, dense_model.theta_, rtol=1e-4)


def test_single_precision():
    single, double = (fixed(rank=N, dtype=dtype, jitter=1e-4).fit(X, Y) for dtype in ("float32", "float64"))
    found, expected = single.predict(NEW, return_std=True), double.predict(NEW, return_std=True)
    assert found[0].dtype == found[1].dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    assert single.log_marginal_likelihood() == pytest.approx(double.log_marginal_likelihood(), abs=0.05)
    gradients = [m.log_marginal_likelihood(eval_gradient=True)[1] for m in (single, double)]
    np.testing.assert_allclose(*gradients, rtol=1e-2, atol=0.05)
    assert single.sample_posterior(NEW).dtype == np.float32
    assert single.predict(NEW.astype(np.float32)).dtype == np.float32


def test_learning_in_single_precision():
    single, double = (
        HCKGaussianProcessRegressor("matern32", rank=N, dtype=dtype, jitter=1e-4).fit(X, Y)
        for dtype in ("float32", "float64")
    )
    assert single.noise_ == pytest.approx(double.noise_, rel=0.05)
    np.testing.assert_allclose(single.predict(NEW), double.predict(NEW), atol=0.02)


WORDS = ["".join(row) for row in np.random.default_rng(0).choice(list("abcdefgh"), (100, 5))]
COUNTS = np.array([7 + w.count("a") + 2.0 * ("b" in w) for w in WORDS])


def shared_letters(a, b):
    """A kernel on strings: the number of letters in common, and a constant."""
    return np.array([[1 + len(set(s) & set(t)) for t in b] for s in a], dtype=float)


def lengths(words):
    """A trend on strings: 1, and how often there is an a."""
    return np.array([[1, w.count("a")] for w in words], dtype=float)


@pytest.mark.parametrize(
    "kernel", [shared_letters, 0.5 * CallableKernel(shared_letters)], ids=["f", "scaled"]
)
def test_strings_with_a_kernel_of_their_own(kernel):
    model = learning(kernel=kernel, partition="kernel").fit(WORDS[:80], COUNTS[:80])
    assert model.tree_.depth > 1
    mean, std = model.predict(WORDS[80:], return_std=True, observed=True)
    assert np.abs(mean - COUNTS[80:]).max() < 2
    assert (std > 0).all()
    again, cov = model.predict(WORDS[80:], return_cov=True)
    np.testing.assert_array_equal(again, mean)
    assert cov.shape == (20, 20)
    assert model.sample_posterior(WORDS[80:], 3).shape == (20, 3)
    assert model.sample_prior(WORDS[80:], 3).shape == (20, 3)
    assert model.loo_predict().shape == (80,)
    assert np.isfinite(model.loo_metrics()["lpd"])
    assert learning(kernel=kernel, partition="kernel").sample_prior(WORDS, 2).shape == (100, 2)


def test_strings_with_a_trend_of_their_own():
    model = learning(kernel=shared_letters, partition="kernel", trend=lengths).fit(WORDS, COUNTS)
    assert model.coefficients_[1] == pytest.approx(1, abs=0.3)
    with pytest.raises(ValueError, match="trend='linear' needs dense vectors"):
        learning(kernel=shared_letters, partition="kernel", trend="linear").fit(WORDS, COUNTS)
