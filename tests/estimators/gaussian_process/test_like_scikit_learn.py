"""The names of scikit-learn's GaussianProcessRegressor do what its users expect."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from hck import HCKGaussianProcessRegressor
from hck.kernels import Gaussian
from process_problem import NEW, NOISE, TREE, N, X, Y, fixed, learning

pytestmark = pytest.mark.usefixtures("one_thread")

NAMES = ("log_marginal_likelihood", "sample_y", "predict", "fit", "score")


@pytest.fixture(scope="module")
def both():
    """The same exact process, ours and theirs, with the noise in their kernel."""
    theirs = GaussianProcessRegressor(
        ConstantKernel(1.7) * RBF([0.4, 0.9]) + WhiteKernel(NOISE), alpha=0.0, optimizer=None
    )
    return fixed(1.7 * Gaussian([0.4, 0.9]), trend="zero", rank=N).fit(X, Y), theirs.fit(X, Y)


@pytest.mark.parametrize("name", NAMES)
def test_what_they_take(name):
    ours, theirs = (
        inspect.signature(getattr(cls, name)).parameters
        for cls in (HCKGaussianProcessRegressor, GaussianProcessRegressor)
    )
    assert [*ours][: len(theirs)] == [*theirs] or name == "score"
    for key in set(theirs) - {"X", "y", "self"}:
        assert ours[key].default == theirs[key].default or name == "score"


def test_theta_and_its_likelihood(both):
    ours, theirs = both
    order = [1, 2, 0, 3]  # lengthscales, scale, noise
    np.testing.assert_allclose(ours.theta_, theirs.kernel_.theta[order])
    np.testing.assert_allclose(ours.theta_, [*ours.kernel_.theta, np.log(ours.noise_)])
    assert ours.theta_bounds_.shape == (4, 2)
    value = theirs.log_marginal_likelihood(
        theirs.kernel_.theta + 0.2
    )  # which would change theirs without a clone
    assert ours.log_marginal_likelihood(ours.theta_ + 0.2, clone_kernel=False) == pytest.approx(value)
    assert ours.log_marginal_likelihood_value_ == ours.log_marginal_likelihood()
    moved = fixed(ours.kernel_.clone_with_theta(ours.kernel_.theta + 0.2), trend="zero", rank=N)
    moved.set_params(noise=float(np.exp(0.2) * NOISE)).fit(X, Y)
    assert moved.log_marginal_likelihood_value_ == pytest.approx(value)


def test_an_optimiser_of_ones_own():
    model = HCKGaussianProcessRegressor(optimizer=None, rank=N).fit(X, Y)

    def objective(theta):
        value, slope = model.log_marginal_likelihood(theta, eval_gradient=True)
        return -value, -slope

    found = minimize(objective, model.theta_, jac=True, bounds=model.theta_bounds_)
    learned = HCKGaussianProcessRegressor(optimizer="lbfgs", rank=N).fit(X, Y)
    assert -found.fun == pytest.approx(learned.log_marginal_likelihood_value_, abs=0.01)
    assert (learned.theta_bounds_[:, 0] <= learned.theta_).all()
    assert (learned.theta_ <= learned.theta_bounds_[:, 1]).all()


def test_fixed_parameters_are_no_part_of_theta():
    model = learning(bounds={"scale": "fixed", "noise": (1e-3, 1.0)}, max_iter=2).fit(X, Y)
    assert model.theta_names_ == ["lengthscale[0]", "lengthscale[1]", "noise"]
    np.testing.assert_allclose(model.theta_[:2], model.kernel_.theta[:2])
    np.testing.assert_allclose(model.theta_bounds_[2], np.log([1e-3, 1.0]))
    assert model.kernel_.n_dims == 3


def test_std_is_of_the_function_and_observed_of_observations(both):
    ours, theirs = both
    mean, std = ours.predict(NEW, return_std=True)
    exact = GaussianProcessRegressor(ConstantKernel(1.7) * RBF([0.4, 0.9]), alpha=NOISE, optimizer=None)
    np.testing.assert_allclose([mean, std], exact.fit(X, Y).predict(NEW, return_std=True), rtol=1e-6)
    observed = ours.predict(NEW, return_std=True, observed=True)
    np.testing.assert_allclose(observed, theirs.predict(NEW, return_std=True), rtol=1e-6)
    np.testing.assert_allclose(observed[1] ** 2 - std**2, NOISE, rtol=1e-6)
    text = inspect.getdoc(HCKGaussianProcessRegressor.predict)
    assert "of the function, unless `observed`" in text


def test_sample_y(both):
    count, (ours, theirs) = 20_000, both
    model = fixed(1.7 * Gaussian([0.4, 0.9]), rank=N)
    prior = model.sample_y(NEW[:5], count)
    assert np.abs(np.cov(prior) - model.kernel(NEW[:5])).max() < 5 * 1.7 * (2 / count) ** 0.5
    np.testing.assert_array_equal(prior, model.sample_prior(NEW[:5], count))
    mean, cov = ours.predict(NEW[:5], return_cov=True)
    drawn = ours.sample_y(NEW[:5], count, random_state=1)
    std = np.sqrt(np.diag(cov))
    assert (np.abs(drawn.mean(1) - mean) < 5 * std / count**0.5).all()
    assert (np.abs(np.cov(drawn) - cov) < 5 * (2 / count) ** 0.5 * np.outer(std, std)).all()
    np.testing.assert_array_equal(drawn, ours.sample_posterior(NEW[:5], count, random_state=1))
    assert theirs.sample_y(NEW, 3).shape == ours.sample_y(NEW, 3).shape


@pytest.mark.parametrize("settings", [TREE, {"approximation": "nystrom", "rank": 10}], ids=str)
def test_training_data(settings):
    model = fixed(trend="linear", **settings).fit(X, Y + 50)
    np.testing.assert_array_equal(model.X_train_, X)
    np.testing.assert_allclose(model.y_train_, Y + 50, rtol=1e-13)
    model.X_train_[:] = 0  # which is a copy
    np.testing.assert_array_equal(model.X_train_, X)
    sparse = fixed(**settings).fit(sp.csr_matrix(X), Y)
    np.testing.assert_array_equal(sparse.X_train_.toarray(), X)


def test_noise_of_zero_is_named():
    for noise in (0, 0.0, -0.0):
        with pytest.raises(ValueError, match=r"'noise' parameter .* range \(0"):
            fixed(noise=noise, **TREE).fit(X, Y)
    with pytest.raises(ValueError, match="noise_variance must be positive"):
        fixed(**TREE).fit(X, Y, noise_variance=np.zeros(N))
