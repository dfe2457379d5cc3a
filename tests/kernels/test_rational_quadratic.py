"""The rational quadratic kernel: between the Gaussian and heavier tails, with an exponent to be learned."""

import numpy as np
import pytest
import torch
from sklearn.gaussian_process.kernels import RationalQuadratic as SklearnRationalQuadratic

from hck import HCKGaussianProcessRegressor, HCKRegressor
from hck.kernels import Gaussian, RationalQuadratic, make_kernel
from hck.points import KernelBlocks, as_points
from hck.selection.tuning import stretched

X = np.random.default_rng(0).normal(size=(60, 3))
Y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * np.random.default_rng(1).normal(size=60)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 7.0])
def test_values_are_those_of_scikit_learn(alpha):
    expected = SklearnRationalQuadratic(0.6, alpha)(X)
    np.testing.assert_allclose(RationalQuadratic(0.6, alpha)(X), expected, rtol=0, atol=1e-13)
    compiled = KernelBlocks.between(RationalQuadratic(0.6, alpha), as_points(X), as_points(X))
    assert compiled.compilable() is not None
    np.testing.assert_allclose(compiled.tensor()[0], expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 2e-6)])
@pytest.mark.parametrize("scale", [0.8, [0.5, 1.0, 2.0]], ids=["one", "ard"])
def test_tends_to_the_gaussian(scale, dtype, tolerance):
    """Digits of s are not lost where s/2α is small beside 1."""
    points = as_points(torch.tensor(X, dtype=dtype))
    kernels = RationalQuadratic(scale, 1e10), Gaussian(scale)
    by_torch = [kernel(points.x) for kernel in kernels]
    torch.testing.assert_close(*by_torch, rtol=0, atol=tolerance)
    compiled = [KernelBlocks.between(kernel, points, points).tensor() for kernel in kernels]
    torch.testing.assert_close(*compiled, rtol=0, atol=tolerance)


@pytest.mark.parametrize("alpha", [0.4, torch.tensor(3.0, dtype=torch.float64)], ids=["number", "tensor"])
@pytest.mark.parametrize("scale", [0.8, [0.5, 1.0, 2.0]], ids=["one", "ard"])
def test_gradient_in_closed_form_where_alpha_is_fixed(scale, alpha):
    points = as_points(X)
    scale = torch.tensor(scale, dtype=torch.float64, requires_grad=True)
    kernel = RationalQuadratic(scale, alpha)
    weight = torch.randn(60, 60, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    with torch.no_grad():
        (found,) = kernel.gradient_of_sum(KernelBlocks.between(kernel, points, points), weight[None])
    (expected,) = torch.autograd.grad((kernel(points.x) * weight).sum(), scale)
    assert kernel.slope is not None
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)


def test_alpha_is_a_parameter():
    kernel = 2.0 * RationalQuadratic(0.5, alpha=3.0)
    assert kernel.parameters() == {"lengthscale": 0.5, "alpha": 3.0, "scale": 2.0}
    other = kernel.with_parameters({"alpha": 0.25})
    assert repr(other) == "2 * RationalQuadratic(lengthscale=0.5, alpha=0.25)"
    assert stretched(other, 2.0).parameters() == {"lengthscale": 1.0, "alpha": 0.25, "scale": 2.0}
    assert other.kernel.label == "Rational quadratic (α = 0.25)"
    assert repr(make_kernel("rational_quadratic", 0.5)) == "RationalQuadratic(lengthscale=0.5, alpha=1)"
    for wrong in (0.0, -1.0, [1.0, 2.0]):
        with pytest.raises(ValueError, match="alpha must be"):
            RationalQuadratic(alpha=wrong)


def test_a_process_learns_alpha():
    model = HCKGaussianProcessRegressor("rational_quadratic", leaf_size=20, rank=10, random_state=0).fit(X, Y)
    names = ["lengthscale[0]", "lengthscale[1]", "lengthscale[2]", "alpha", "scale", "noise"]
    assert model.theta_names_ == names
    assert model.kernel_.parameters()["alpha"] != 1
    slope = model.log_marginal_likelihood(model.theta_, eval_gradient=True)[1]
    step = 1e-4 * np.eye(6)[3]
    ends = [model.log_marginal_likelihood(model.theta_ + move) for move in (step, -step)]
    assert slope[3] == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=1e-4, abs=1e-5)


def test_a_regressor_keeps_the_alpha_that_it_has_learned():
    model = HCKRegressor("rational_quadratic", random_state=0).fit(X, Y)
    assert model.score(X, Y) > 0.9
    learned = [each.kernel for each in model.selection_.candidates if each.many]
    assert learned
    assert all(kernel.alpha != 1 for kernel in learned)
