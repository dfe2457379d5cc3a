"""The log-likelihood against the dense formula, and its gradient against central differences."""

import math

import pytest
import torch

from hck.approximations import TreeKernel
from hck.backend.moments import moments_of
from hck.hierarchy.blueprint import Blueprint
from hck.hierarchy.likelihood import half_covariance
from hck.kernels import Gaussian, Laplace, Matern
from hck.process import log_likelihood
from hck.settings import Settings

pytestmark = pytest.mark.usefixtures("one_thread")

X = torch.rand(60, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
Y = torch.randn(60, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_value(problem):
    covariance, b = problem.noisy, problem.b.double()
    blueprint = Blueprint.of(problem.kernel, problem.points, Settings(**problem.options))
    found = log_likelihood(TreeKernel(blueprint), torch.tensor(problem.alpha, dtype=problem.dtype), problem.b)
    assert found.gradient == []
    half = torch.linalg.slogdet(covariance).logabsdet / 2 + problem.n * math.log(2 * math.pi) / 2
    expected = -(b * torch.linalg.solve(covariance, b)).sum() / 2 - b.shape[1] * half
    tolerance = 1e-9 if problem.dtype == torch.float64 else 1e-3
    assert abs(float(found.value - expected)) <= tolerance * max(problem.n, abs(float(expected)))


def kernel(scales, amplitude, other):
    return amplitude * Matern(scales, nu=1.5) * Gaussian(1.0) + Laplace(other)


@pytest.mark.parametrize(
    "options", [{}, {"leaf_size": 9}, {"leaf_size": 100}, {"partition": "kmeans"}], ids=str
)
@pytest.mark.parametrize("each", [False, True])
def test_gradient(options, each):
    noise = torch.full((60,) if each else (), 0.2, dtype=torch.float64)
    parameters = [
        torch.tensor([0.4, 0.9], dtype=torch.float64),
        torch.tensor(1.7, dtype=torch.float64),
        torch.tensor(2.0, dtype=torch.float64),
        noise,
    ]
    for parameter in parameters:
        parameter.requires_grad_()

    def value(*values, wanted=()):
        blueprint = Blueprint.of(kernel(*values[:3]), X, Settings(8, jitter=1e-6, **options))
        return log_likelihood(TreeKernel(blueprint), values[3], Y, wanted)

    gradient = value(*parameters, wanted=parameters).gradient
    for k, parameter in enumerate(parameters):
        assert gradient[k].shape == parameter.shape
        for i in range(min(3, parameter.numel())):
            ends = []
            for step in (1e-5, -1e-5):
                moved = [p.detach().clone() for p in parameters]
                moved[k].view(-1)[i] += step
                ends.append(float(value(*moved).value))
            expected = (ends[0] - ends[1]) / 2e-5
            assert float(gradient[k].view(-1)[i]) == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_parameters_must_require_a_gradient():
    with pytest.raises(ValueError, match="require a gradient"):
        log_likelihood(
            TreeKernel(Blueprint.of(Gaussian(0.5), X, Settings(8))), torch.tensor(0.1), Y, [torch.tensor(1.0)]
        )


def test_threads_change_nothing():
    x = torch.rand(2000, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    scale, noise = (torch.tensor(value, dtype=torch.float64).requires_grad_() for value in (0.5, 0.1))
    found, before = [], torch.get_num_threads()
    for threads in (1, 4):
        torch.set_num_threads(threads)
        try:
            blueprint = Blueprint.of(Gaussian(scale), x, Settings(16, memory_budget="1 MB"))
            result = log_likelihood(TreeKernel(blueprint), noise, x[:, 0], [scale, noise])
            found.append([result.value, *result.gradient])
        finally:
            torch.set_num_threads(before)
    torch.testing.assert_close(*found, rtol=1e-9, atol=1e-9)


def test_trends_that_say_the_same_by_their_moments():
    """The precision alone tells them apart: by rounding errors, which K has made large."""
    generator = torch.Generator().manual_seed(2)
    different = torch.stack([torch.ones(60, dtype=torch.float64), X[:, 0]], 1)
    trend = different @ torch.rand(2, 6, generator=generator, dtype=torch.float64)
    noise = 1e-8 * torch.randn(6, 6, generator=generator, dtype=torch.float64)
    precision = 5 * trend.mT @ trend + noise + noise.mT
    found = half_covariance(precision, moments_of(trend))
    assert found.shape == (6, 2)
    projection = different @ torch.linalg.pinv(different)
    torch.testing.assert_close(trend @ found @ found.mT @ trend.mT, projection / 5, rtol=0, atol=1e-8)
    assert half_covariance(precision).shape[1] > 2


def test_the_covariance_of_coefficients():
    trend = torch.stack([torch.ones(60, dtype=torch.float64), X[:, 0], X[:, 1].square()], 1)
    precision = trend.mT @ trend / 0.3
    for moments in (None, moments_of(trend)):
        half = half_covariance(precision, moments)
        torch.testing.assert_close(half @ half.mT, torch.linalg.inv(precision))
    assert half_covariance(precision[:0, :0]).shape == (0, 0)
    nothing = torch.zeros(3, 3, dtype=torch.float64)
    for moments in (None, nothing):
        assert half_covariance(nothing, moments).shape == (3, 0)


def test_coefficients_of_trends_that_are_none():
    y, trend = Y[:, :1], torch.zeros(60, 2, dtype=torch.float64)
    source = TreeKernel(Blueprint.of(Gaussian(0.5), X, Settings(8)))
    plain, found = (log_likelihood(source, 0.1, y, (), h) for h in (None, trend))
    assert found.value == plain.value
    assert (found.coefficients == 0).all()
