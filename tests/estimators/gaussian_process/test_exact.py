"""One leaf is scikit-learn's exact process."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.gaussian_process.kernels import Matern as SklearnMatern

from hck import HCKGaussianProcessRegressor
from hck.kernels import Gaussian, Matern
from process_problem import NEW, NOISE, TREE, N, X, Y, fixed, learning

pytestmark = pytest.mark.usefixtures("one_thread")

EXACT = {"rank": N, "trend": "zero"}  # a single leaf
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
