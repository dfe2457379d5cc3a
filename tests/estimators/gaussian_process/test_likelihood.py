"""The likelihood, its gradient and the standard errors that its curvature gives."""

import numpy as np
import pytest

from hck import HCKGaussianProcessRegressor
from hck.kernels import Gaussian, InverseMultiquadric, Laplace, Matern
from process_problem import TREE, N, X, Y, fixed

pytestmark = pytest.mark.usefixtures("one_thread")

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


def test_what_was_learned_is_in_theta(learned):
    values = dict(zip(learned.theta_names_, np.exp(learned.theta_), strict=True))
    assert values["noise"] == pytest.approx(learned.noise_)
    assert values["scale"] == pytest.approx(learned.kernel_.parameters()["scale"])
    lengthscales = learned.kernel_.parameters()["lengthscale"].tolist()
    assert [values["lengthscale[0]"], values["lengthscale[1]"]] == pytest.approx(lengthscales)
    value = learned.log_marginal_likelihood(learned.theta_)
    assert value == pytest.approx(learned.log_marginal_likelihood_value_, rel=1e-9)


def test_the_likelihood_leaves_priors_out():
    settings = {"rank": N, "optimizer": None}
    prior = HCKGaussianProcessRegressor(priors={"noise": (1.0, 0.01)}, **settings).fit(X, Y)
    flat = HCKGaussianProcessRegressor(**settings).fit(X, Y)
    assert prior.log_marginal_likelihood(flat.theta_) == flat.log_marginal_likelihood(flat.theta_)


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
    model = HCKGaussianProcessRegressor("matern32", rank=N).fit(X, Y)
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


@pytest.mark.parametrize("value", [np.nan, np.inf, 900.0, -900.0])
def test_theta_that_is_no_logarithm(fixed_tree, value):
    with pytest.raises(ValueError, match="theta are logarithms of parameters, between"):
        fixed_tree.log_marginal_likelihood([0.0, value, 0.0, 0.0])


@pytest.mark.parametrize("theta", [np.zeros(3), np.zeros(5), np.zeros((1, 4)), 0.0], ids=np.shape)
def test_theta_of_the_wrong_shape(fixed_tree, theta):
    with pytest.raises(ValueError, match=r"theta must have shape \(4,\)"):
        fixed_tree.log_marginal_likelihood(theta)
    with pytest.raises(ValueError, match=r"theta must have shape \(4,\)"):
        fixed_tree.log_marginal_likelihood(theta, eval_gradient=True)
