"""HCKGaussianProcessRegressor against scikit-learn's exact process, dense formulas and its own draws."""

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.gaussian_process.kernels import Matern as SklearnMatern
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hck import HCKGaussianProcessRegressor, metrics
from hck.hierarchy.dense import Definition
from hck.kernels import CallableKernel, Gaussian, InverseMultiquadric, Laplace, Matern
from hck.points import as_points

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
N = 90
X = RNG.uniform(size=(N, 2))
Y = np.sin(5 * X[:, 0]) + X[:, 1] + 0.1 * RNG.standard_normal(N)
NEW = RNG.uniform(size=(15, 2))
NOISE = 0.02
EXACT = {"rank": N, "trend": "zero"}  # a single leaf
TREE = {"rank": 8, "random_state": 0}  # three levels or four


def fixed(kernel=None, **settings):
    """A model that learns nothing."""
    kernel = 1.7 * Matern([0.4, 0.9]) if kernel is None else kernel
    return HCKGaussianProcessRegressor(kernel, **{"noise": NOISE, "optimizer": None, **settings})


def learning(**settings):
    return HCKGaussianProcessRegressor(**{**TREE, "optimizer": "lbfgs", **settings})


@pytest.fixture(scope="module")
def learned():
    """A model with a deep tree that has learned everything. Not to be changed."""
    model = learning().fit(X, Y)
    assert model.tree_.depth > 2
    return model


@pytest.fixture(scope="module")
def fixed_tree():
    """A model with a deep tree and moderate parameters. Not to be changed."""
    return fixed(**TREE).fit(X, Y)


# One leaf is an exact Gaussian process ------------------------------------------------------------------

PAIRS = {
    "gaussian": (1.7 * Gaussian([0.4, 0.9]), ConstantKernel(1.7) * RBF([0.4, 0.9])),
    "matern12": (1.7 * Matern([0.4, 0.9], nu=0.5), ConstantKernel(1.7) * SklearnMatern([0.4, 0.9], nu=0.5)),
    "matern32": (1.7 * Matern([0.4, 0.9]), ConstantKernel(1.7) * SklearnMatern([0.4, 0.9], nu=1.5)),
    "matern52": (1.7 * Matern([0.4, 0.9], nu=2.5), ConstantKernel(1.7) * SklearnMatern([0.4, 0.9], nu=2.5)),
    "isotropic": (1.7 * Matern(0.6), ConstantKernel(1.7) * SklearnMatern(0.6, nu=1.5)),
}
every_pair = pytest.mark.parametrize(("ours", "theirs"), PAIRS.values(), ids=PAIRS)


def our_order(values):
    """From scikit-learn's order, scale and lengthscales and noise, to ours, with the scale after them."""
    return np.concatenate([values[1:-1], values[:1], values[-1:]])


@every_pair
@pytest.mark.parametrize("size", [{"rank": N}, {"rank": 5, "leaf_size": N}], ids=str)
def test_one_leaf_predicts_like_scikit_learn(ours, theirs, size):
    model = fixed(ours, trend="zero", **size).fit(X, Y)
    assert model.tree_.n_leaves == 1
    exact = GaussianProcessRegressor(theirs, alpha=NOISE, optimizer=None).fit(X, Y)
    mean, std = exact.predict(NEW, return_std=True)
    _, cov = exact.predict(NEW, return_cov=True)
    np.testing.assert_allclose(model.predict(NEW), mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(model.predict(NEW, return_std=True), [mean, std], rtol=1e-6, atol=1e-8)
    found = model.predict(NEW, return_cov=True)
    np.testing.assert_allclose(found[0], mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found[1], cov, rtol=1e-6, atol=1e-8)


@every_pair
def test_one_leaf_has_the_likelihood_of_scikit_learn(ours, theirs):
    model = fixed(ours, **EXACT).fit(X, Y)
    noisy = theirs + WhiteKernel(NOISE)
    exact = GaussianProcessRegressor(noisy, alpha=0.0, optimizer=None).fit(X, Y)
    assert model.log_marginal_likelihood() == pytest.approx(exact.log_marginal_likelihood_value_, abs=1e-6)
    assert model.log_marginal_likelihood_value_ == model.log_marginal_likelihood()
    np.testing.assert_allclose(model.theta_, our_order(noisy.theta), rtol=1e-12)
    for move in (0, 0.3, -0.5):
        value, gradient = exact.log_marginal_likelihood(noisy.theta + move, eval_gradient=True)
        found = model.log_marginal_likelihood(model.theta_ + move, eval_gradient=True)
        assert found[0] == pytest.approx(value, rel=1e-6)
        np.testing.assert_allclose(found[1], our_order(gradient), rtol=1e-6, atol=1e-6)
        assert model.log_marginal_likelihood(model.theta_ + move) == found[0]


@pytest.mark.parametrize("kind", ["matern32", "gaussian"])
def test_what_is_learned_is_what_scikit_learn_learns(kind):
    ours, theirs = PAIRS[kind]
    exact = GaussianProcessRegressor(theirs + WhiteKernel(NOISE), alpha=0.0).fit(X, Y)
    model = HCKGaussianProcessRegressor(ours, noise=NOISE, **EXACT).fit(X, Y)
    np.testing.assert_allclose(np.exp(model.theta_), np.exp(our_order(exact.kernel_.theta)), rtol=0.01)
    assert model.log_marginal_likelihood() == pytest.approx(exact.log_marginal_likelihood_value_, abs=1e-3)
    # the noise is part of scikit-learn's kernel, so its deviations are those of observations
    mean, std = exact.predict(NEW, return_std=True)
    found = model.predict(NEW, return_std=True, observed=True)
    np.testing.assert_allclose(found[0], mean, atol=0.01 * Y.std())
    np.testing.assert_allclose(found[1], std, rtol=0.01)


def test_named_kernels_start_with_a_scale_and_a_lengthscale_per_feature():
    model = HCKGaussianProcessRegressor("gaussian", optimizer=None, **TREE).fit(X, Y)
    assert model.theta_names_ == ["lengthscale[0]", "lengthscale[1]", "scale", "noise"]
    np.testing.assert_allclose(model.kernel_.parameters()["lengthscale"], 2**0.5 * X.std(0), rtol=1e-12)
    assert model.kernel_.parameters()["scale"] == pytest.approx(Y.var())
    assert model.noise_ == pytest.approx(0.1 * Y.var())
    one = model.set_params(ard=False).fit(X, Y)
    assert one.theta_names_ == ["lengthscale", "scale", "noise"]
    assert one.kernel_.parameters()["lengthscale"] == pytest.approx(2**0.5 * np.prod(X.std(0)) ** 0.5)
    given = model.set_params(ard=True, lengthscale=0.3, noise=0.7).fit(X, Y)
    assert given.kernel_.parameters()["lengthscale"].tolist() == pytest.approx([0.3, 0.3])
    assert given.noise_ == pytest.approx(0.7)


@pytest.mark.parametrize("value", [0.0, 0.7, -3.1])
def test_a_constant_feature_gets_a_lengthscale_of_one(value):
    wide = np.column_stack([X, np.full(N, value)])
    model = learning(optimizer=None).fit(wide, Y)
    assert model.kernel_.parameters()["lengthscale"][2] == 1.0


# The likelihood and its gradient, on a tree -------------------------------------------------------------

KERNELS = {
    "scaled": 1.7 * Matern([0.4, 0.9]),
    "sum": 1.7 * Gaussian([0.4, 0.9]) + 0.3 * Laplace(0.5),
    "product": (1.7 * Matern([0.4, 0.9], nu=2.5)) * InverseMultiquadric(2.0),
    "both": 0.5 * (Matern(0.6, nu=0.5) * Gaussian([1.0, 2.0]) + 2.0 * Laplace([0.7, 0.4])),
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


@every_kernel
@pytest.mark.parametrize("trend", ["zero", "linear"])
@pytest.mark.parametrize("known", [False, True])
def test_gradient_against_differences(kernel, trend, known):
    variance = np.linspace(0.01, 0.05, N) if known else None
    model = fixed(kernel, trend=trend, **TREE).fit(X, Y, noise_variance=variance)
    assert model.tree_.depth > 2
    assert ("noise" in model.theta_names_) != known
    theta = model.theta_ + 0.1
    value, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
    assert value == model.log_marginal_likelihood(theta)
    differences = [
        (model.log_marginal_likelihood(theta + move) - model.log_marginal_likelihood(theta - move)) / 2e-4
        for move in 1e-4 * np.eye(len(theta))
    ]
    np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-4)


def dense(model, x, new):
    """K_h of all points by its definition."""
    blueprint, tree = model.posterior_.members[0].blueprint, model.tree_
    every = as_points(np.concatenate([x, new]))
    leaf = torch.cat([tree.leaf_of_point, tree.route(as_points(new))])
    definition = Definition(blueprint.kernel, tree, blueprint.landmarks, blueprint.jitter)
    return definition.matrix(every, leaf, every, leaf).numpy()


@pytest.mark.parametrize("settings", [{"rank": N}, TREE], ids=["one_leaf", "tree"])
def test_a_variance_for_each_observation(settings):
    variance = np.random.default_rng(1).uniform(0.001, 1.0, N)
    model = fixed(trend="zero", **settings).fit(X, Y, noise_variance=variance)
    k = dense(model, X, NEW)
    noisy, cross = k[:N, :N] + np.diag(variance), k[:N, N:]
    solved = np.linalg.solve(noisy, np.column_stack([Y, cross]))
    mean, std = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, cross.T @ solved[:, 0], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(std**2, np.diag(k[N:, N:] - cross.T @ solved[:, 1:]), rtol=1e-6, atol=1e-9)
    value = -(Y @ solved[:, 0] + np.linalg.slogdet(noisy)[1] + N * np.log(2 * np.pi)) / 2
    assert model.log_marginal_likelihood() == pytest.approx(value, abs=1e-7)
    np.testing.assert_array_equal(model.noise_, variance)
    assert model.theta_names_ == ["lengthscale[0]", "lengthscale[1]", "scale"]
    left_out, deviation = model.loo_predict(return_std=True)
    inverse = np.linalg.inv(noisy)
    np.testing.assert_allclose(left_out, Y - solved[:, 0] / np.diag(inverse), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(deviation, np.diag(inverse) ** -0.5, rtol=1e-7)


def test_equal_variances_are_one_noise():
    alone = fixed(**TREE).fit(X, Y)
    each = fixed(**TREE).fit(X, Y, noise_variance=np.full(N, NOISE))
    tensor = fixed(**TREE).fit(X, Y, noise_variance=torch.full((N,), NOISE, dtype=torch.float64))
    for model in (each, tensor):
        np.testing.assert_allclose(
            model.predict(NEW, return_std=True), alone.predict(NEW, return_std=True), rtol=1e-10
        )
        assert model.log_marginal_likelihood() == pytest.approx(alone.log_marginal_likelihood(), rel=1e-12)


def test_known_variances_while_learning():
    """Where half of the observations are bad, and known to be, the others are believed."""
    bad = np.arange(N) % 2 == 0
    y = np.sin(5 * X[:, 0]) + X[:, 1]
    spoilt = y + np.where(bad, 3.0, 0.01) * np.random.default_rng(1).standard_normal(N)
    told = learning().fit(X, spoilt, noise_variance=np.where(bad, 9.0, 1e-4))
    untold = learning().fit(X, spoilt)
    truth = np.sin(5 * NEW[:, 0]) + NEW[:, 1]
    errors = [np.abs(model.predict(NEW) - truth).max() for model in (told, untold)]
    assert errors[0] < 0.1 < errors[1]


# Learning -----------------------------------------------------------------------------------------------


def test_learning_raises_the_likelihood(learned):
    before = learning(optimizer=None).fit(X, Y)
    assert learned.log_marginal_likelihood() > before.log_marginal_likelihood() + 5
    assert len(learned.history_) > 2
    assert learned.history_[-1] > learned.history_[0]
    assert 0.7 * 0.1 < learned.noise_**0.5 < 1.4 * 0.1


def test_one_leaf_ends_where_the_gradient_vanishes():
    model = HCKGaussianProcessRegressor(rank=N).fit(X, Y)
    _, gradient = model.log_marginal_likelihood(eval_gradient=True)
    assert np.abs(gradient).max() < 0.002 * N
    assert (np.diff(model.history_) >= -1e-12).all()
    assert model.history_[-1] == pytest.approx(model.log_marginal_likelihood() / N, rel=1e-6)


def test_what_was_learned_is_in_theta(learned):
    values = dict(zip(learned.theta_names_, np.exp(learned.theta_), strict=True))
    assert values["noise"] == pytest.approx(learned.noise_)
    assert values["scale"] == pytest.approx(learned.kernel_.parameters()["scale"])
    lengthscales = learned.kernel_.parameters()["lengthscale"].tolist()
    assert [values["lengthscale[0]"], values["lengthscale[1]"]] == pytest.approx(lengthscales)
    value = learned.log_marginal_likelihood(learned.theta_)
    assert value == pytest.approx(learned.log_marginal_likelihood_value_, rel=1e-9)


def test_no_optimizer_learns_nothing():
    model = fixed(**TREE).fit(X, Y)
    assert repr(model.kernel_) == repr(1.7 * Matern([0.4, 0.9]))
    assert model.noise_ == pytest.approx(NOISE)
    assert model.history_ == []


def test_stochastic_steps_find_the_noise():
    rng = np.random.default_rng(3)
    x = rng.uniform(size=(400, 2))
    y = np.sin(5 * x[:, 0]) + x[:, 1] + 0.1 * rng.standard_normal(400)
    model = HCKGaussianProcessRegressor(
        optimizer="stochastic", max_iter=60, rank=16, learn_size=150, random_state=0
    ).fit(x, y)
    assert len(model.history_) == 60
    assert np.mean(model.history_[-10:]) > np.mean(model.history_[:10])
    assert 0.08 < model.noise_**0.5 < 0.125
    again = clone(model).fit(x, y)
    np.testing.assert_array_equal(again.theta_, model.theta_)


def test_restarts_are_never_worse_than_none():
    x = np.linspace(0, 1, 40)[:, None]
    y = np.sin(20 * x[:, 0]) + 0.05 * np.random.default_rng(0).standard_normal(40)
    # with such a lengthscale everything looks like noise
    model = HCKGaussianProcessRegressor("gaussian", lengthscale=0.5, rank=40, random_state=0)
    alone = model.fit(x, y).log_marginal_likelihood()
    for number in (1, 4):
        model.set_params(n_restarts=number)
        assert model.fit(x, y).log_marginal_likelihood() >= alone - 1e-6
    assert model.log_marginal_likelihood() > alone + 10
    assert model.kernel_.parameters()["lengthscale"][0] < 0.2


def test_few_iterations(learned):
    model = learning(max_iter=1).fit(X, Y)
    assert len(model.history_) == 1
    assert model.log_marginal_likelihood() < learned.log_marginal_likelihood()


def test_bounds_are_respected():
    bounds = {"lengthscale": (0.2, 0.5), "noise": (0.05, 0.2)}
    model = learning(lengthscale=0.3, noise=0.1, bounds=bounds).fit(X, Y)
    lengthscale = model.kernel_.parameters()["lengthscale"].numpy()
    assert (lengthscale >= 0.2 * (1 - 1e-12)).all()
    assert (lengthscale <= 0.5 * (1 + 1e-12)).all()
    assert model.noise_ == pytest.approx(0.05)  # without bounds it would be 0.01
    assert model.kernel_.parameters()["scale"] != pytest.approx(Y.var())


@pytest.mark.parametrize("optimizer", ["lbfgs", "stochastic"])
def test_fixed_parameters_stay(optimizer):
    bounds = {"noise": "fixed", "scale": "fixed"}
    model = HCKGaussianProcessRegressor(
        1.7 * Matern([0.4, 0.9]), noise=0.3, bounds=bounds, optimizer=optimizer, max_iter=5, **TREE
    ).fit(X, Y)
    assert model.noise_ == 0.3
    assert model.kernel_.scale == 1.7
    assert model.theta_names_ == ["lengthscale[0]", "lengthscale[1]"]
    assert not np.allclose(model.theta_, np.log([0.4, 0.9]))
    assert list(model.standard_errors()) == ["lengthscale"]


def test_parts_of_a_kernel_can_be_fixed():
    kernel = 2.0 * Gaussian(0.5) + 0.1 * Laplace(0.3)
    model = HCKGaussianProcessRegressor(
        kernel, noise=0.05, bounds={"left.lengthscale": "fixed", "right.scale": (0.05, 0.2)}, **TREE
    ).fit(X, Y)
    assert model.theta_names_ == ["left.scale", "right.lengthscale", "right.scale", "noise"]
    assert model.kernel_.left.kernel.lengthscale == 0.5
    assert 0.05 * (1 - 1e-12) <= model.kernel_.right.scale <= 0.2 * (1 + 1e-12)


def test_priors_pull():
    free = learning().fit(X, Y)
    weak = learning(priors={"noise": (1.0, 0.3)}).fit(X, Y)
    strong = learning(priors={"noise": (1.0, 0.003)}).fit(X, Y)
    assert free.noise_ < 0.02
    assert free.noise_ < weak.noise_ < strong.noise_
    assert strong.noise_ == pytest.approx(1.0, rel=0.01)
    each = learning(priors={"lengthscale": (0.25, 0.001)}).fit(X, Y)
    assert each.kernel_.parameters()["lengthscale"].tolist() == pytest.approx([0.25] * 2, rel=0.01)


def test_the_likelihood_leaves_priors_out():
    settings = {"rank": N, "optimizer": None}
    prior = HCKGaussianProcessRegressor(priors={"noise": (1.0, 0.01)}, **settings).fit(X, Y)
    flat = HCKGaussianProcessRegressor(**settings).fit(X, Y)
    assert prior.log_marginal_likelihood(flat.theta_) == flat.log_marginal_likelihood(flat.theta_)


def test_learning_on_a_part_of_the_points():
    rows = []

    def rational(a, b):
        rows.append(a.shape[-2])
        return 1 / (1 + (a[..., :, None, :] - b[..., None, :, :]).square().sum(-1))

    kernel = 2.0 * CallableKernel(rational, batched=True)
    model = HCKGaussianProcessRegressor(kernel, noise=0.1, learn_size=30, rank=N, random_state=0).fit(X, Y)
    assert set(rows) <= {1, 30, N}
    assert rows.count(30) > 5
    assert 30 not in rows[rows.index(N) :]  # all points only after learning
    assert model.loo_predict().shape == (N,)
    whole = HCKGaussianProcessRegressor(kernel, noise=0.1, learn_size=None, rank=N).fit(X, Y)
    assert not np.allclose(model.theta_, whole.theta_, rtol=1e-3)
    assert model.log_marginal_likelihood() < whole.log_marginal_likelihood()
    np.testing.assert_allclose(model.theta_, whole.theta_, atol=1.5)
    assert model.log_marginal_likelihood(whole.theta_) == pytest.approx(whole.log_marginal_likelihood())


def test_learning_on_a_part_with_known_variances():
    model = learning(learn_size=40).fit(X, Y, noise_variance=np.full(N, 0.01))
    assert model.theta_names_ == ["lengthscale[0]", "lengthscale[1]", "scale"]
    np.testing.assert_allclose(model.predict(X), Y, atol=0.5)


def test_a_tree_of_ones_own(learned):
    tree = learned.tree_
    with pytest.raises(ValueError, match="learn_size=None"):
        learning(partition=tree, learn_size=N - 1).fit(X, Y)
    for size in (None, N, 20_000):
        model = learning(partition=tree, learn_size=size).fit(X, Y)
        assert model.tree_ is tree or torch.equal(model.tree_.leaf_of_point, tree.leaf_of_point)
    without = learning(partition=tree, learn_size=10, optimizer=None).fit(X, Y)
    assert torch.equal(without.tree_.leaf_of_point, tree.leaf_of_point)


@pytest.mark.parametrize("optimizer", ["lbfgs", "stochastic"])
def test_same_seed_same_result(optimizer):
    model = HCKGaussianProcessRegressor(optimizer=optimizer, max_iter=4, rank=8, learn_size=60, n_restarts=1)
    first, again, other = (clone(model).set_params(random_state=s).fit(X, Y) for s in (5, 5, 6))
    np.testing.assert_array_equal(again.theta_, first.theta_)
    np.testing.assert_array_equal(again.predict(NEW, return_std=True), first.predict(NEW, return_std=True))
    assert not np.array_equal(other.theta_, first.theta_)


def test_progress_is_shown_when_asked_for(capsys):
    learning(max_iter=2).fit(X, Y).predict(NEW, return_std=True)
    assert capsys.readouterr().out == ""
    learning(max_iter=2, verbose=1).fit(X, Y).predict(NEW, return_std=True)
    assert "Learning" in capsys.readouterr().out


# Trends -------------------------------------------------------------------------------------------------


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
    plain, moved = (HCKGaussianProcessRegressor(rank=N).fit(X, Y + shift) for shift in (0, 1e8))
    np.testing.assert_allclose(moved.theta_, plain.theta_, atol=0.05)


# Predictions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trend", ["zero", "constant", "linear"])
def test_covariances_have_the_deviations_on_their_diagonal(trend):
    model = fixed(trend=trend, **TREE).fit(X, Y)
    every = np.concatenate([X[:20], NEW, NEW + 3])
    mean, std = model.predict(every, return_std=True)
    again, cov = model.predict(every, return_cov=True)
    np.testing.assert_array_equal(model.predict(every), mean)
    np.testing.assert_array_equal(again, mean)
    np.testing.assert_allclose(np.diag(cov), std**2, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(cov, cov.T, rtol=1e-12, atol=1e-14)
    assert np.linalg.eigvalsh(cov).min() > -1e-8


def test_observations_have_noise(fixed_tree):
    mean, std = fixed_tree.predict(NEW, return_std=True)
    again, observed = fixed_tree.predict(NEW, return_std=True, observed=True)
    np.testing.assert_array_equal(again, mean)
    np.testing.assert_allclose(observed**2, std**2 + NOISE, rtol=1e-10)
    _, cov = fixed_tree.predict(NEW, return_cov=True)
    _, noisy = fixed_tree.predict(NEW, return_cov=True, observed=True)
    np.testing.assert_allclose(noisy, cov + NOISE * np.eye(len(NEW)), rtol=1e-10, atol=1e-12)


def test_the_noise_of_new_observations_must_be_known():
    model = fixed(**TREE).fit(X, Y, noise_variance=np.full(N, NOISE))
    assert (model.predict(NEW, return_std=True)[1] > 0).all()
    with pytest.raises(ValueError, match="observed=True needs the noise of new observations"):
        model.predict(NEW, return_std=True, observed=True)
    with pytest.raises(ValueError, match="observed=True needs the noise of new observations"):
        model.sample_posterior(NEW, observed=True)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("rank", [8, N])
def test_deviations_are_never_negative(dtype, rank):
    """At the training points of a very smooth function with next to no noise they are rounding errors."""
    model = fixed(
        100.0 * Gaussian(1.0), noise=1e-4, rank=rank, dtype=dtype, jitter=1e-4, random_state=0, trend="zero"
    ).fit(X, np.sin(X[:, 0]))
    std = model.predict(np.concatenate([X, NEW]), return_std=True)[1]
    assert np.isfinite(std).all()
    assert (std >= 0).all()
    assert std.max() < 0.2


def test_means_do_not_pay_for_the_uncertainty():
    model = fixed(**TREE).fit(X, Y)
    model.predict(NEW)
    model.predict(NEW, observed=True)
    model.log_marginal_likelihood()
    assert "uncertainty" not in model.posterior_.members[0].__dict__
    model.predict(NEW, return_std=True)
    assert "uncertainty" in model.posterior_.members[0].__dict__


def test_intervals_hold_what_they_should(learned):
    rng = np.random.default_rng(7)
    x = rng.uniform(size=(2000, 2))
    y = np.sin(5 * x[:, 0]) + x[:, 1] + 0.1 * rng.standard_normal(2000)
    mean, std = learned.predict(x, return_std=True, observed=True)
    assert 0.9 < metrics.coverage(y, mean, std) < 0.99
    assert learned.score(x, y) > 0.95


def test_leave_one_out(learned):
    mean, std = learned.loo_predict(return_std=True)
    assert mean.shape == std.shape == (N,)
    np.testing.assert_array_equal(learned.loo_predict(), mean)
    found = learned.loo_metrics()
    assert found == pytest.approx(
        {
            "rmse": np.sqrt(np.mean((Y - mean) ** 2)),
            "lpd": np.mean(-0.5 * ((Y - mean) / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi)),
            "crps": metrics.crps(Y, mean, std),
            "coverage": np.mean(np.abs(Y - mean) < 1.959964 * std),
        }
    )
    assert (std**2 > learned.noise_).all()
    assert 0.08 < found["rmse"] < 0.15
    assert found["coverage"] > 0.85


# Draws --------------------------------------------------------------------------------------------------


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


# Standard errors ----------------------------------------------------------------------------------------


def test_standard_errors_of_pure_noise():
    """The variance of n normal numbers is known up to a factor of about 1 ± √(2/n)."""
    y = 3 * np.random.default_rng(1).standard_normal(N)
    model = fixed(
        1e-9 * Matern(1.0),
        noise=5.0,
        optimizer="lbfgs",
        bounds={"lengthscale": "fixed", "scale": "fixed"},
        trend="zero",
        **TREE,
    ).fit(X, y)
    assert model.noise_ == pytest.approx(np.mean(y**2), rel=1e-2)
    found = model.standard_errors()
    assert list(found) == ["noise"]
    assert found["noise"].shape == ()
    assert float(found["noise"]) == pytest.approx((2 / N) ** 0.5, rel=0.02)


def test_standard_errors_are_those_of_the_second_derivatives():
    model = HCKGaussianProcessRegressor(rank=N).fit(X, Y)
    value, size = model.log_marginal_likelihood, len(model.theta_)
    steps, hessian = 1e-2 * np.eye(size), np.empty((size, size))
    for i, a in enumerate(steps):
        for j, b in enumerate(steps):
            ends = [s * t * value(model.theta_ + s * a + t * b) for s in (1, -1) for t in (1, -1)]
            hessian[i, j] = sum(ends) / 4e-4
    expected = np.sqrt(np.diag(np.linalg.inv(-hessian)))
    found = model.standard_errors()
    assert list(found) == ["lengthscale", "scale", "noise"]
    assert found["lengthscale"].shape == (2,)
    together = np.concatenate([np.ravel(part) for part in found.values()])
    np.testing.assert_allclose(together, expected, rtol=0.02)


def test_standard_errors_of_what_is_not_determined():
    """Pure noise says nothing of the lengthscale of what is not there, but much of the noise."""
    y = np.random.default_rng(1).standard_normal(N)
    model = HCKGaussianProcessRegressor(
        1e-12 * Gaussian(1.0), noise=1.0, bounds={"scale": "fixed"}, rank=N, trend="zero"
    ).fit(X, y)
    found = model.standard_errors()
    assert np.isnan(found["lengthscale"]) or found["lengthscale"] > 10
    assert float(found["noise"]) == pytest.approx((2 / N) ** 0.5, rel=0.02)


# Where there is nothing to learn ------------------------------------------------------------------------


def rational(a, b):
    return 1 / (1 + ((a[:, None] - b[None]) ** 2).sum(-1))


@pytest.fixture(scope="module")
def nothing():
    """A function as the kernel, and a fixed noise."""
    return HCKGaussianProcessRegressor(rational, noise=0.01, bounds={"noise": "fixed"}, **TREE).fit(X, Y)


def test_nothing_to_learn(nothing):
    assert nothing.theta_.shape == (0,)
    assert nothing.theta_names_ == []
    assert nothing.history_ == []
    assert nothing.noise_ == 0.01
    assert np.isfinite(nothing.log_marginal_likelihood())
    np.testing.assert_allclose(nothing.predict(X), Y, atol=0.5)
    assert nothing.log_marginal_likelihood([]) == pytest.approx(nothing.log_marginal_likelihood())


def test_gradient_of_nothing(nothing):
    value, gradient = nothing.log_marginal_likelihood(eval_gradient=True)
    assert value == pytest.approx(nothing.log_marginal_likelihood())
    assert gradient.shape == (0,)


def test_standard_errors_of_nothing(nothing):
    assert nothing.standard_errors() == {}


def test_only_the_noise_of_a_function_is_learned():
    model = HCKGaussianProcessRegressor(rational, **TREE).fit(X, Y)
    assert model.theta_names_ == ["noise"]
    assert 0.07 < model.noise_**0.5 < 0.14


def test_history_can_be_drawn(learned, nothing):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    axes = learned.plot_history()
    np.testing.assert_array_equal(axes.get_lines()[0].get_ydata(), learned.history_)
    assert axes.get_xlabel() == "step"
    _, mine = plt.subplots()
    assert learned.plot_history(ax=mine) is mine
    with pytest.raises(ValueError, match="learn"):
        nothing.plot_history(mine)
    plt.close("all")


# What people do with estimators -------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [False, True], ids=["before_std", "after_std"])
def test_a_pickled_model_predicts_the_same(asked):
    model = learning(max_iter=3, trend="linear").fit(X, Y)
    if asked:
        model.predict(NEW, return_std=True)
    again = pickle.loads(pickle.dumps(model))
    assert "uncertainty" not in again.posterior_.__dict__
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
    for settings in ({"return_std": True}, {"return_cov": True}):
        for found, expected in zip(
            again.predict(NEW, **settings), model.predict(NEW, **settings), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(again.loo_predict(), model.loo_predict(), rtol=1e-10)
    np.testing.assert_allclose(again.sample_posterior(NEW), model.sample_posterior(NEW), rtol=1e-9)
    assert again.log_marginal_likelihood(model.theta_) == model.log_marginal_likelihood(model.theta_)


def test_clones_are_unfitted_and_alike():
    kernel = 2.0 * Gaussian(0.5) + Matern(1.0, nu=2.5)
    model = learning(kernel=kernel, bounds={"noise": "fixed"}, priors={"left.scale": (1, 1)}, max_iter=2)
    model.fit(X, Y)
    copy = clone(model)
    with pytest.raises(NotFittedError):
        copy.predict(X)
    assert repr(copy.kernel) == repr(kernel) == repr(model.kernel)  # and fit has not changed it
    assert copy.get_params()["bounds"] == {"noise": "fixed"}
    np.testing.assert_array_equal(copy.fit(X, Y).predict(NEW), model.predict(NEW))


def test_fit_changes_neither_parameters_nor_data():
    x, y, variance = X.copy(), Y.copy(), np.full(N, 0.1)
    model = learning(max_iter=2, bounds={"scale": (0.1, 10)}, priors={"scale": (1, 1)})
    before = model.get_params()
    model.fit(x, y, noise_variance=variance).predict(x, return_std=True)
    assert model.get_params() == before
    assert before["bounds"] == {"scale": (0.1, 10)}
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(y, Y)
    np.testing.assert_array_equal(variance, 0.1)


@pytest.fixture
def all_warnings():
    """torch gives some warnings once in a process: then the order of tests would matter."""
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(before)


def test_arrays_that_cannot_be_written_to(all_warnings):
    """Series of pandas give such arrays."""
    arrays = X.copy(), Y.copy(), np.full(N, 0.1)
    for array in arrays:
        array.setflags(write=False)
    model = fixed(**TREE).fit(*arrays)
    np.testing.assert_array_equal(
        model.predict(arrays[0]), fixed(**TREE).fit(X, Y, np.full(N, 0.1)).predict(X)
    )


def test_every_parameter_is_described():
    for name in HCKGaussianProcessRegressor().get_params():
        assert f"\n    {name} : " in HCKGaussianProcessRegressor.__doc__
    assert "{settings}" not in HCKGaussianProcessRegressor.__doc__


def test_frames_pipelines_and_cross_validation():
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = learning(max_iter=5).fit(frame, pd.Series(Y))
    assert list(model.feature_names_in_) == ["a", "b"]
    np.testing.assert_array_equal(model.predict(frame), learning(max_iter=5).fit(X, Y).predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"a": "z"}), return_std=True)
    pipeline = make_pipeline(StandardScaler(), learning(max_iter=5))
    assert cross_val_score(pipeline, X, Y, cv=3).mean() > 0.9
    mean, std = pipeline.fit(X, Y).predict(NEW, return_std=True)
    assert mean.shape == std.shape == (15,)


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


@pytest.mark.parametrize("kernel", ["matern32", "gaussian", "laplace", "inverse_multiquadric"])
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
        HCKGaussianProcessRegressor(rank=N, dtype=dtype, jitter=1e-4).fit(X, Y)
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


# Little to go by ----------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(("n", "trend"), [(1, "zero"), (2, "constant"), (4, "linear")])
def test_leave_one_out_of_few(n, trend):
    model = HCKGaussianProcessRegressor(trend=trend, random_state=0).fit(X[:n], Y[:n])
    mean, std = model.loo_predict(return_std=True)
    assert np.isfinite(mean).all()
    assert (std > 0).all()
    assert np.isfinite(list(model.loo_metrics().values())).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("n", "trend"), [(1, "constant"), (2, "linear"), (3, "linear")])
def test_without_a_point_there_may_be_no_trend(n, trend, dtype):
    """What is left says nothing of it: deviations are infinite, not undefined, nor left to rounding."""
    model = HCKGaussianProcessRegressor(trend=trend, dtype=dtype, random_state=0).fit(X[:n], Y[:n])
    mean, std = model.loo_predict(return_std=True)
    assert np.isfinite(mean).all()
    assert np.isposinf(std).all()


@pytest.mark.parametrize("value", [0.0, 0.3, -7.7, 1e6])
def test_constant_y(value):
    model = learning().fit(X, np.full(N, value))
    mean, std = model.predict(np.concatenate([NEW, NEW + 3]), return_std=True)
    np.testing.assert_allclose(mean, value, rtol=1e-6, atol=1e-6)
    assert (std >= 0).all()
    assert (std < 0.1).all()
    np.testing.assert_allclose(model.loo_predict(), value, rtol=1e-6, atol=1e-6)


def test_y_that_the_trend_explains():
    model = learning(trend="linear").fit(X, 1 + X @ [2.0, 3.0])
    np.testing.assert_allclose(model.coefficients_, [1, 2, 3], rtol=1e-6)
    mean, std = model.predict(10 * NEW, return_std=True)
    np.testing.assert_allclose(mean, 1 + 10 * NEW @ [2.0, 3.0], rtol=1e-6)
    assert (std < 0.1).all()


def test_repeated_points():
    x = np.repeat(X[:9], 10, axis=0)
    y = np.sin(5 * x[:, 0]) + 0.1 * np.random.default_rng(1).standard_normal(N)
    model = learning().fit(x, y)
    assert 0.07 < model.noise_**0.5 < 0.14
    means = y.reshape(9, 10).mean(1)
    np.testing.assert_allclose(model.predict(X[:9]), means, atol=0.1)


# Bad input ----------------------------------------------------------------------------------------------


def changed(array, value):
    bad = array.copy()
    bad.flat[3] = value
    return bad


@pytest.mark.parametrize(
    ("points", "targets", "message"),
    [
        (changed(X, np.nan), Y, "NaN"),
        (changed(X, np.inf), Y, "infinity"),
        (torch.from_numpy(changed(X, np.nan)), Y, "NaN"),
        (X, changed(Y, np.nan), "NaN"),
        (X, changed(Y, -np.inf), "infinity"),
        (X, np.stack([Y, Y], 1), "y should be a 1d array"),
        (torch.from_numpy(X), torch.from_numpy(np.stack([Y, Y], 1)), "y should be a 1d array"),
        (X, Y[:-1], "inconsistent numbers of samples"),
        (torch.from_numpy(X), Y[:-1], "90 points but y has 89"),
        (X, None, "requires y to be passed"),
        (np.empty((0, 2)), np.empty(0), "0 sample"),
        (X[:, 0], Y, "1D array"),
    ],
)
def test_bad_training_data(points, targets, message):
    model = HCKGaussianProcessRegressor()
    with pytest.raises(ValueError, match=message):
        model.fit(points, targets)
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"noise": 0.0}, "'noise' parameter"),
        ({"noise": -1.0}, "'noise' parameter"),
        ({"noise": np.nan}, "'noise' parameter"),
        ({"noise": [0.1] * N}, "'noise' parameter"),
        ({"trend": "quadratic"}, "'trend' parameter"),
        ({"trend": None}, "'trend' parameter"),
        ({"optimizer": "adam"}, "'optimizer' parameter"),
        ({"max_iter": 0}, "'max_iter' parameter"),
        ({"n_restarts": -1}, "'n_restarts' parameter"),
        ({"learn_size": 0}, "'learn_size' parameter"),
        ({"bounds": [("noise", "fixed")]}, "'bounds' parameter"),
        ({"priors": "wide"}, "'priors' parameter"),
        ({"ard": "yes"}, "'ard' parameter"),
        ({"lengthscale": 0.0}, "lengthscale"),
        ({"lengthscale": [1.0, -1.0]}, "lengthscale must be positive"),
        ({"lengthscale": [1.0, 1.0, 1.0]}, "3 lengthscales but the points have 2 features"),
        ({"kernel": Gaussian(1.0), "lengthscale": 2.0}, "lengthscale=None"),
        ({"kernel": "gauss"}, "unknown kernel 'gauss'; known kernels: gaussian"),
        ({"kernel": Gaussian([1.0, 1.0, 1.0])}, "3 lengthscales but the points have 2 features"),
        ({"noise": 0.1, "bounds": {"noise": (10, 20)}}, "bounds of 'noise', 10 to 20, exclude its start"),
        (
            {"lengthscale": 1.0, "bounds": {"lengthscale": (10, 20)}},
            "bounds of 'lengthscale', 10 to 20, exclude its start",
        ),
        ({"bounds": {"sigma": (1, 2)}}, "'sigma', .* there are: lengthscale, scale, noise"),
        ({"bounds": {"noise": "free"}}, "bounds of 'noise' must be .* 'fixed', got 'free'"),
        ({"bounds": {"noise": (2, 1)}}, "bounds of 'noise' must be two positive numbers, low < high"),
        ({"bounds": {"noise": 3}}, "bounds of 'noise' must be two positive numbers, low < high"),
        ({"priors": {"sigma": (1, 2)}}, "'sigma', .* there are: lengthscale, scale, noise"),
        ({"priors": {"noise": (1,)}}, r"prior of 'noise' must be \(median, spread\)"),
        ({"priors": {"noise": (-1, 1)}}, r"prior of 'noise' must be \(median, spread\)"),
        ({"priors": {"noise": "small"}}, r"prior of 'noise' must be \(median, spread\)"),
        ({"kernel": rational, "bounds": {"lengthscale": (1, 2)}}, "'lengthscale', .* there are: noise"),
        ({"trend": lambda x: x[:, 0]}, r"trend function must return an array of shape \(90, n_trends\)"),
        ({"trend": lambda x: x[:3]}, r"trend function must return .* got \(3, 2\)"),
        ({"trend": lambda x: x * np.nan}, "trend function returned NaN"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        HCKGaussianProcessRegressor(**parameters).fit(X, Y)


@pytest.mark.parametrize(
    ("variance", "message"),
    [
        (np.ones(N - 1), r"noise_variance must have shape \(90,\), got \(89,\)"),
        (np.ones((N, 1)), r"noise_variance must have shape \(90,\)"),
        (0.1, r"noise_variance must have shape \(90,\)"),
        (np.zeros(N), "noise_variance must be positive"),
        (changed(np.ones(N), -1), "noise_variance must be positive"),
        (changed(np.ones(N), np.nan), "noise_variance must be positive and finite"),
        (changed(np.ones(N), np.inf), "noise_variance must be positive and finite"),
    ],
)
def test_bad_variances(variance, message):
    with pytest.raises(ValueError, match=message):
        learning().fit(X, Y, noise_variance=variance)


def test_bounds_of_a_noise_that_is_known():
    with pytest.raises(ValueError, match="'noise', which is not a parameter here"):
        learning(bounds={"noise": "fixed"}).fit(X, Y, noise_variance=np.ones(N))


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


def test_deviations_or_covariances(fixed_tree):
    with pytest.raises(ValueError, match="return_std or for return_cov, not for both"):
        fixed_tree.predict(NEW, return_std=True, return_cov=True)


@pytest.mark.parametrize("theta", [np.zeros(3), np.zeros(5), np.zeros((1, 4)), 0.0], ids=np.shape)
def test_theta_of_the_wrong_shape(fixed_tree, theta):
    with pytest.raises(ValueError, match=r"theta must have shape \(4,\)"):
        fixed_tree.log_marginal_likelihood(theta)
    with pytest.raises(ValueError, match=r"theta must have shape \(4,\)"):
        fixed_tree.log_marginal_likelihood(theta, eval_gradient=True)


@pytest.mark.parametrize("points", [X, torch.from_numpy(X)], ids=["array", "tensor"])
def test_wrong_number_of_features(fixed_tree, points):
    message = "X has 1 features, but HCKGaussianProcessRegressor is expecting 2 features"
    for use in (fixed_tree.predict, fixed_tree.sample_prior, fixed_tree.sample_posterior):
        with pytest.raises(ValueError, match=message):
            use(points[:, :1])


@pytest.mark.parametrize(
    "use",
    [
        lambda model: model.predict(X),
        lambda model: model.predict(X, return_std=True),
        lambda model: model.sample_posterior(X),
        lambda model: model.log_marginal_likelihood(),
        lambda model: model.standard_errors(),
        lambda model: model.loo_predict(),
        lambda model: model.loo_metrics(),
        lambda model: model.plot_history(),
        lambda model: model.score(X, Y),
    ],
)
def test_before_fit(use):
    with pytest.raises(NotFittedError):
        use(HCKGaussianProcessRegressor())


def test_bad_points_for_draws_before_fit():
    with pytest.raises(ValueError, match="NaN"):
        HCKGaussianProcessRegressor().sample_prior(changed(X, np.nan))
    with pytest.raises(ValueError, match="'noise' parameter"):
        HCKGaussianProcessRegressor(noise=0.0).sample_prior(X)


@pytest.mark.parametrize(
    "failure",
    [{"kernel": "nope"}, {"bounds": {"sigma": "fixed"}}, {"trend": lambda x: x[:, 0]}],
    ids=lambda failure: next(iter(failure)),
)
def test_a_failed_refit_keeps_the_old_model(failure):
    model = fixed("matern32", **TREE).fit(X, Y)
    before = model.predict(NEW, return_std=True)
    with pytest.raises(ValueError):
        model.set_params(**failure).fit(X, Y + 100)
    np.testing.assert_array_equal(model.predict(NEW, return_std=True), before)
