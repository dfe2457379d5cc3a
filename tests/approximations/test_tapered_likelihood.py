"""The likelihood of tapered kernels, its gradient, and draws."""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from hck.approximations.tapered import Tapered
from hck.kernels import Gaussian, Laplace, Matern
from hck.process import log_likelihood
from tapered_problem import NOISE, B, N, X, _noisy, close

pytestmark = pytest.mark.usefixtures("one_thread")

LEARNED = {
    "gaussian": lambda scale, c: c * Gaussian(scale),
    "matern": lambda scale, c: c * Matern(scale, nu=1.5),
    "matern, rough": lambda scale, c: c * Matern(scale, nu=0.5),
    "laplace": lambda scale, c: c * Laplace(scale),
    "sum": lambda scale, c: c * (Gaussian(scale) + Matern(0.4)),
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("name", LEARNED)
def test_gradient_of_the_likelihood(name, noise):
    start = Tapered.of(Gaussian([0.3, 0.6, 1.2]), X, 20)
    trend = torch.from_numpy(np.c_[np.ones(N), X[:, :1]])
    values = [torch.tensor([0.4, 0.7, 1.1]).double(), torch.tensor(1.7).double()]
    values.append(torch.as_tensor(NOISE[noise], dtype=torch.float64))

    def at(values, gradient=False):
        parameters = scale, c, variance = [value.clone().requires_grad_() for value in values]
        made = start.with_kernel(LEARNED[name](scale, c))
        return log_likelihood(made, variance, B, parameters if gradient else (), trend)

    found = at(values, gradient=True)
    assert found.coefficients.shape == (2, 2)
    for k, gradient in enumerate(found.gradient):
        assert gradient.shape == values[k].shape
        for place in list(np.ndindex(gradient.shape))[:3]:
            ends = []
            for step in (1e-5, -1e-5):
                moved = [value.clone() for value in values]
                moved[k][place] += step
                ends.append(at(moved).value)
            close(gradient[place], (ends[0] - ends[1]) / 2e-5, 1e-5)


def test_value_of_the_likelihood():
    made, y = Tapered.of(2.0 * Matern(0.5), X, 20), B[:, 0]
    expected = multivariate_normal(cov=_noisy(made, 0.1).numpy()).logpdf(y.numpy())
    assert float(log_likelihood(made, 0.1, y).value) == pytest.approx(expected, abs=1e-8)


def test_gradient_in_single_precision():
    scales = [
        torch.tensor([0.4, 0.7, 1.1], dtype=t, requires_grad=True) for t in (torch.float32, torch.float64)
    ]
    found, expected = (
        log_likelihood(
            Tapered.of(Gaussian(1.0), torch.from_numpy(X).to(scale.dtype), 20, radius=0.5).with_kernel(
                Matern(scale)
            ),
            0.1,
            B,
            [scale],
        ).gradient[0]
        for scale in scales
    )
    assert found.dtype == torch.float32
    close(found.double(), expected, 1e-3)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_draws(dtype):
    made = Tapered.of(2.0 * Gaussian(0.5), torch.from_numpy(X[:60]).to(dtype), 20)
    drawn = made.draw(20_000, torch.Generator().manual_seed(0))
    assert drawn.shape == (60, 20_000)
    assert drawn.dtype == dtype
    k = made.matrix.to_dense()
    deviation = ((k.diagonal()[:, None] * k.diagonal() + k.square()) / 20_000).sqrt()
    # draws are around 0, so that their products estimate the covariance
    assert float(((drawn @ drawn.mT / 20_000 - k) / deviation).abs().max()) < 5.5
    again = made.draw(3, torch.Generator().manual_seed(1))
    assert torch.equal(again, made.draw(3, torch.Generator().manual_seed(1)))


def test_draws_at_repeated_points():
    x = np.repeat(X[:40], 2, axis=0)
    drawn = Tapered.of(Matern(0.5), x, 20).draw(50, torch.Generator().manual_seed(0))
    close(drawn[::2], drawn[1::2], 1e-4)
    assert float(drawn.std()) == pytest.approx(1, abs=0.1)
