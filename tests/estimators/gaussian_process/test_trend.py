"""Trends: their coefficients, their uncertainty, functions of one's own."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone

from hck import HCKGaussianProcessRegressor
from hck.kernels import Matern
from process_problem import NEW, NOISE, TREE, N, X, Y, fixed, learning

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_coefficients_are_those_of_the_features_as_given(offset):
    x = 10 * X + offset
    y = 3 + x @ [2.0, -5.0] + 1e-4 * np.random.default_rng(1).standard_normal(N)
    model = learning(trend="linear").fit(x, y)
    np.testing.assert_allclose(model.coefficients_[1:], [2, -5], rtol=1e-4)
    assert model.coefficients_[0] == pytest.approx(3, abs=1e-3 + 1e-3 * offset)
    far = 10 * NEW + offset + 500
    np.testing.assert_allclose(model.predict(far), 3 + far @ [2.0, -5.0], rtol=1e-3)


def test_coefficients_of_a_constant():
    y = 42 + 0.01 * np.random.default_rng(1).standard_normal(N)
    model = learning().fit(X, y)
    assert model.coefficients_ == pytest.approx([42], abs=0.01)
    np.testing.assert_allclose(model.predict(NEW + 100), 42, atol=0.01)
    nothing = fixed(trend="zero", **TREE).fit(X, y)
    assert nothing.coefficients_.shape == (0,)
    np.testing.assert_allclose(nothing.predict(NEW + 100), 0, atol=1e-9)


def test_a_mean_is_known():
    """As if it had been taken away by hand: the same for all trees, and certain."""
    y = Y + 42
    for given in (TREE, {**TREE, "n_trees": 3, "normalize_y": True}):
        model, zero = (
            fixed(trend="mean", **given).fit(X, y),
            fixed(trend="zero", **given).fit(X, y - y.mean()),
        )
        for options in ({"return_std": True}, {"return_cov": True}):
            ours, theirs = (each.predict(NEW, **options) for each in (model, zero))
            np.testing.assert_allclose(ours[0], theirs[0] + y.mean(), rtol=1e-9)
            np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-6, atol=1e-9)
        assert model.coefficients_ == pytest.approx([y.mean()])
        assert model.log_marginal_likelihood() == pytest.approx(zero.log_marginal_likelihood())
        np.testing.assert_allclose(model.loo_predict(), zero.loo_predict() + y.mean())
        np.testing.assert_allclose(model.predict_gradient(NEW), zero.predict_gradient(NEW), atol=1e-9)
        drawn = model.draw_functions(2)(NEW), zero.draw_functions(2)(NEW) + y.mean()
        np.testing.assert_allclose(*drawn, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(model.predict(NEW + 100), y.mean())
        np.testing.assert_allclose(model.y_train_, y)


def test_a_mean_stays_when_observations_come_and_go():
    model = fixed(trend="mean", **TREE).fit(X[:80], Y[:80])
    model.partial_fit(X[80:], Y[80:] + 1).update([0, 3], [5.0, 6.0])
    assert model.coefficients_ == pytest.approx([Y[:80].mean()])
    expected = np.append(Y[:80], Y[80:] + 1)
    expected[[0, 3]] = 5, 6
    np.testing.assert_allclose(model.y_train_, expected)
    np.testing.assert_allclose(model.predict(NEW + 100), Y[:80].mean())


def test_it_is_a_mean_where_candidates_compete():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(80, 2))
    y = 3 + np.sin(6 * x[:, 0]) + 0.1 * rng.standard_normal(80)
    model = HCKGaussianProcessRegressor(fit_time="fast", random_state=0).fit(x, y)
    assert model.coefficients_ == pytest.approx([y.mean()])
    others = [
        HCKGaussianProcessRegressor(trend="constant", fit_time="fast", random_state=0).fit(x, y),
        HCKGaussianProcessRegressor(max_iter=2).fit(x[:30], y[:30]),
        HCKGaussianProcessRegressor(max_iter=2).fit(x, y, noise_variance=np.full(80, 0.01)),
        HCKGaussianProcessRegressor("matern52", max_iter=2).fit(x, y),
    ]
    assert [other._trend.kind for other in others] == ["constant"] * 4


def powers(x):
    """A trend: 1, x₀, 100 x₀²."""
    first = np.asarray(x)[:, 0]
    return np.stack([np.ones_like(first), first, 100 * first**2], 1)


@pytest.mark.parametrize("form", [np.asarray, torch.from_numpy], ids=["array", "tensor"])
def test_a_trend_of_ones_own(form):
    y = powers(X) @ [4.0, -2.0, 0.07] + 1e-4 * np.random.default_rng(1).standard_normal(N)
    model = learning(trend=powers).fit(form(X), y)
    np.testing.assert_allclose(model.coefficients_, [4, -2, 0.07], rtol=1e-3)
    far = NEW + 5
    found = model.predict(form(far))
    assert isinstance(found, type(form(far)))
    np.testing.assert_allclose(found, powers(far) @ [4.0, -2.0, 0.07], rtol=1e-3)


def test_a_function_can_make_the_linear_trend():
    def linear(x):
        return np.column_stack([np.ones(len(x)), x])

    named, made = (fixed(trend=trend, **TREE).fit(X, Y) for trend in ("linear", linear))
    np.testing.assert_allclose(made.coefficients_, named.coefficients_, rtol=1e-8)
    far = np.concatenate([NEW, NEW + 10])
    np.testing.assert_allclose(
        made.predict(far, return_std=True), named.predict(far, return_std=True), rtol=1e-7
    )
    assert made.log_marginal_likelihood() == pytest.approx(named.log_marginal_likelihood(), rel=1e-9)


def test_trends_are_those_of_universal_kriging():
    """One leaf, and every matrix written out."""
    model = fixed(trend="linear", rank=N).fit(X, Y)
    kernel = 1.7 * Matern([0.4, 0.9])
    far = np.concatenate([NEW, NEW + 3])
    h, h_new = (np.column_stack([np.ones(len(x)), x]) for x in (X, far))
    inverse = np.linalg.inv(kernel(X) + NOISE * np.eye(N))
    of_beta = np.linalg.inv(h.T @ inverse @ h)
    beta = of_beta @ h.T @ inverse @ Y
    cross = kernel(X, far)
    rest = h_new - cross.T @ inverse @ h
    cov = kernel(far) - cross.T @ inverse @ cross + rest @ of_beta @ rest.T
    np.testing.assert_allclose(model.coefficients_, beta, rtol=1e-8)
    mean, found = model.predict(far, return_cov=True)
    np.testing.assert_allclose(mean, h_new @ beta + cross.T @ inverse @ (Y - h @ beta), rtol=1e-7)
    np.testing.assert_allclose(found, cov, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(model.predict(far, return_std=True)[1] ** 2, np.diag(cov), rtol=1e-6)


def test_far_away_a_linear_trend_is_ever_less_certain():
    steps = np.array([[0.5, 0.5], [5, 5], [50, 50], [500, 500], [5000, 5000]])
    linear, constant = (
        fixed(trend=trend, **TREE).fit(X, Y).predict(steps, return_std=True)[1]
        for trend in ("linear", "constant")
    )
    assert all(after > before for before, after in pairwise(linear))
    assert linear[-1] / linear[-2] == pytest.approx(10, rel=0.05)
    np.testing.assert_allclose(constant[2:], constant[-1], rtol=1e-6)


@pytest.mark.parametrize("trend", ["constant", "linear"])
@pytest.mark.parametrize(
    ("dtype", "offset", "close"), [("float64", 1e4, 1e-4), ("float64", 1e8, 1e-2), ("float32", 1e4, 0.1)]
)
def test_a_large_offset_of_y_changes_nothing_else(trend, dtype, offset, close):
    """The trend takes it up."""
    model = fixed(trend=trend, dtype=dtype, jitter=1e-4, **TREE)
    plain, moved = (clone(model).fit(X, Y + shift) for shift in (0, offset))
    assert moved.log_marginal_likelihood() == pytest.approx(plain.log_marginal_likelihood(), abs=close)
    slopes = [m.log_marginal_likelihood(eval_gradient=True)[1] for m in (moved, plain)]
    np.testing.assert_allclose(*slopes, atol=close)
    np.testing.assert_allclose(moved.predict(NEW) - offset, plain.predict(NEW), atol=close)
    np.testing.assert_allclose(moved.loo_predict() - offset, plain.loo_predict(), atol=close)


def test_a_large_offset_of_y_does_not_spoil_learning():
    plain, moved = (HCKGaussianProcessRegressor("matern32", rank=N).fit(X, Y + shift) for shift in (0, 1e8))
    np.testing.assert_allclose(moved.theta_, plain.theta_, atol=0.05)


def test_y_that_the_trend_explains():
    model = learning(trend="linear").fit(X, 1 + X @ [2.0, 3.0])
    np.testing.assert_allclose(model.coefficients_, [1, 2, 3], rtol=1e-6)
    mean, std = model.predict(10 * NEW, return_std=True)
    np.testing.assert_allclose(mean, 1 + 10 * NEW @ [2.0, 3.0], rtol=1e-6)
    assert (std < 0.1).all()


def test_a_linear_trend_needs_dense_vectors():
    with pytest.raises(ValueError, match="trend='linear' needs dense vectors"):
        learning(trend="linear").fit(sp.csr_matrix(X), Y)


def test_a_trend_function_that_fails_later():
    calls = []

    def fickle(x):
        calls.append(len(x))
        return np.ones((len(x) + (len(x) == 15), 1))

    model = fixed(trend=fickle, **TREE).fit(X, Y)
    with pytest.raises(ValueError, match=r"trend function must return an array of shape \(15, n_trends\)"):
        model.predict(NEW)
    assert calls


def test_what_is_not_known_of_the_mean_counts_where_there_is_little_else():
    """Of pure noise: the function is nearly constant, and known as well as the mean is."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(size=(100, 2)), rng.standard_normal(100)
    model = HCKGaussianProcessRegressor(fit_time="fast", random_state=0).fit(x, y)
    assert model.kernel_(x[:1], x[:1]).item() < 0.1  # so little that the mean was not taken as known
    mean, std = model.predict(rng.uniform(size=(50, 2)), return_std=True)
    np.testing.assert_allclose(mean, y.mean(), atol=0.05)
    assert std.min() > 0.8 * y.std() / 10
    with_structure = HCKGaussianProcessRegressor(fit_time="fast", random_state=0).fit(x, y + 5 * x[:, 0])
    assert len(with_structure.posterior_.coefficients) == 0  # the mean is known
