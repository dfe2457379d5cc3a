"""The periodic kernel: a Gaussian of points on circles."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.gaussian_process.kernels import ExpSineSquared

from hck import HCKGaussianProcessRegressor, HCKRegressor
from hck.approximations import Fourier
from hck.kernels import Gaussian, Periodic, make_kernel
from hck.points import KernelBlocks, as_points

X = np.random.default_rng(0).normal(size=(60, 3))
every_period = pytest.mark.parametrize("period", [0.7, [0.5, 1.0, 3.0]], ids=["one", "each"])
every_scale = pytest.mark.parametrize("scale", [0.8, [0.5, 1.0, 2.0]], ids=["one", "ard"])


def by_the_formula(x, scale, period):
    turns = (x[:, None] - x) / period
    return np.exp(-2 * ((np.sin(np.pi * turns) / scale) ** 2).sum(-1))


@pytest.mark.parametrize("period", [0.3, 1.0, 5.0])
def test_values_are_those_of_scikit_learn(period):
    x = X[:, :1]
    np.testing.assert_allclose(Periodic(0.6, period)(x), ExpSineSquared(0.6, period)(x), rtol=0, atol=1e-12)


@every_period
@every_scale
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_values_by_torch_and_by_compiled_code(form, scale, period):
    x = np.where(np.abs(X) < 0.5, 0, X)
    kernel, points = 2.0 * Periodic(scale, period), as_points(form(x))
    expected = 2 * by_the_formula(x, scale, period)
    np.testing.assert_allclose(kernel(form(x)), expected, rtol=0, atol=1e-12)
    blocks = KernelBlocks.between(kernel, points, points)
    np.testing.assert_allclose(blocks.tensor()[0], expected, rtol=0, atol=1e-12)
    assert (blocks.compilable() is None) == sp.issparse(points.x)
    placed = points.placed(kernel.placement)
    assert placed.n_features == 6
    if sp.issparse(placed.x):
        assert placed.x.nnz == 2 * points.x.nnz


@every_period
@every_scale
def test_repeats_itself(scale, period):
    kernel, whole = Periodic(scale, period), np.array([3, -2, 100]) * period
    np.testing.assert_allclose(kernel(X + whole, X), kernel(X), rtol=0, atol=1e-11)
    np.testing.assert_allclose(np.diag(kernel(X + whole, X)), 1, rtol=0, atol=1e-12)


def test_whole_turns_cost_no_digits_in_single_precision():
    x = (X * 64).round().astype("float32") / 64
    np.testing.assert_array_equal(Periodic(0.5, 2.0)(x + 4096), Periodic(0.5, 2.0)(x))


@every_scale
def test_a_long_period_is_the_gaussian(scale):
    period = 1e4
    near = np.asarray(scale) * 2 * np.pi / period
    np.testing.assert_allclose(Periodic(near, period)(X), Gaussian(scale)(X), rtol=0, atol=1e-5)


@every_scale
def test_its_metric_is_that_of_near_points(scale):
    period = np.array([0.5, 1.0, 3.0])
    np.testing.assert_allclose(1 / Periodic(scale, period).stretch(), scale * period / (2 * np.pi))
    assert Periodic(0.8, 2.0).stretch() is None


@every_period
@every_scale
def test_gradient_by_points_and_parameters(scale, period):
    x = torch.from_numpy(X[:5]).requires_grad_()
    given = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (scale, period)]
    assert torch.autograd.gradcheck(lambda x, s, p: Periodic(s, p).evaluate(x, x[:3]), (x, *given))


def test_the_period_is_a_parameter():
    kernel = 2.0 * Periodic(0.5, period=3.0)
    assert kernel.parameters() == {"lengthscale": 0.5, "period": 3.0, "scale": 2.0}
    other = kernel.with_parameters({"period": [1.0, 2.0]})
    assert repr(other) == "2 * Periodic(lengthscale=0.5, period=[1., 2.])"
    assert other.kernel.label == "Periodic (p = [1., 2.])"
    assert repr(make_kernel("periodic", 0.5)) == "Periodic(lengthscale=0.5, period=1)"
    with pytest.raises(ValueError, match="2 periods but the points have 3 features"):
        other(X)
    with pytest.raises(ValueError, match="period must be positive"):
        Periodic(period=-1.0)
    with pytest.raises(ValueError, match="spectral density of Periodic"):
        Fourier.of(Periodic(), X, 10)


@pytest.fixture(scope="module")
def waves():
    """Three periods of 2.3, with a little noise."""
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 6.9, size=(150, 1))
    return x, np.sin(2 * np.pi * x[:, 0] / 2.3) + 0.05 * rng.normal(size=150)


def test_a_process_learns_the_period(waves):
    model = HCKGaussianProcessRegressor(
        1.0 * Periodic(1.0, period=2.2), noise=0.01, leaf_size=40, rank=30, random_state=0
    ).fit(*waves)
    assert model.theta_names_ == ["lengthscale", "period", "scale", "noise"]
    assert model.kernel_.parameters()["period"] == pytest.approx(2.3, rel=0.01)
    slope = model.log_marginal_likelihood(model.theta_ + 0.01, eval_gradient=True)[1]
    for i, move in enumerate(1e-6 * np.eye(4)):
        ends = [model.log_marginal_likelihood(model.theta_ + 0.01 + sign * move) for sign in (1, -1)]
        assert slope[i] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-3, abs=1e-2)
    far = waves[0][:10] + 23  # ten periods
    np.testing.assert_allclose(model.predict(far), np.sin(2 * np.pi * far[:, 0] / 2.3), atol=0.3)


@pytest.mark.parametrize("partition", ["random_projection", "pca", "kernel"])
def test_a_regressor_repeats_itself(waves, partition):
    model = HCKRegressor(Periodic(1.0, 2.3), alpha=0.01, rank=30, partition=partition, random_state=0)
    assert model.fit(*waves).score(*waves) > 0.98


def test_by_name(waves):
    x, y = waves
    model = HCKRegressor("periodic", lengthscale=1.0, alpha=0.01, rank=30, random_state=0).fit(x / 2.3, y)
    assert model.score(x / 2.3, y) > 0.98
