"""Gaussian processes with approximate kernels, against dense algebra with a trend."""

import numpy as np
import pytest
import torch

from hck.approximations import Exact, Fourier, Nystrom, TreeKernel
from hck.kernels import Gaussian, Laplace, Matern
from hck.points import as_points
from hck.process import Process, log_likelihood

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
N, M = 91, 13
X, NEW = RNG.uniform(size=(N, 3)), RNG.uniform(size=(M, 3))
Y = torch.from_numpy(np.sin(4 * X[:, 0]) + 2 * X[:, 1] + 0.1 * RNG.normal(size=N))
NOISE = torch.from_numpy(RNG.uniform(0.05, 0.2, N))
MADE = {
    "nystrom": lambda k, x: Nystrom.of(k, x, 20),
    "fourier": lambda k, x: Fourier.of(k, x, 40),
    "exact, by iteration": lambda k, x: Exact(k, as_points(x), [Nystrom.of(k, x, 20)], tolerance=1e-12),
}
TRENDS = {"none": lambda x: x[:, :0], "linear": lambda x: np.c_[np.ones(len(x)), x[:, :2]]}
KERNEL = 1.5 * Matern(0.8)


def close(found, expected, tolerance=1e-7):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


@pytest.fixture(params=MADE)
def made(request):
    return MADE[request.param](KERNEL, X)


def dense(made):
    """K̃ on old and new points together."""
    if isinstance(made, Exact):
        return torch.from_numpy(KERNEL(np.concatenate([X, NEW])))
    phi = made.features(as_points(np.concatenate([X, NEW])))
    return phi @ phi.mT


@pytest.mark.parametrize("trend", TRENDS)
def test_process(made, trend):
    """Generalised least squares by its textbook formulas."""
    k, h, new = dense(made), *(torch.from_numpy(TRENDS[trend](x)) for x in (X, NEW))
    inverse = torch.linalg.inv(k[:N, :N] + NOISE.diag())
    across, spread = k[:N, N:], torch.linalg.pinv(h.mT @ inverse @ h)
    beta = spread @ h.mT @ inverse @ Y
    mean = new @ beta + across.mT @ inverse @ (Y - h @ beta)
    rest = new - across.mT @ inverse @ h
    cov = k[N:, N:] - across.mT @ inverse @ across + rest @ spread @ rest.mT
    found = Process.of(made, NOISE, Y, h)
    close(found.predict(NEW, new), mean)
    close(found.variance(NEW, new), cov.diagonal())
    close(found.covariance(NEW, new), cov)
    close(found.coefficients[:, 0], beta)
    drawn = found.sample(NEW, new, 3000, torch.Generator().manual_seed(0))
    assert (drawn.mean(1) - mean).abs().max() < 6 * (cov.diagonal().max() / 3000) ** 0.5
    close(torch.cov(drawn), cov, 0.1 * float(cov.abs().max()))
    if isinstance(made, Exact):
        assert np.isnan(found.log_likelihood)
        return
    q = inverse - inverse @ h @ spread @ h.mT @ inverse
    others = found.leave_one_out()
    close(others.mean, Y - q @ Y / q.diagonal())
    close(others.variance, 1 / q.diagonal())
    rest = Y - h @ beta
    value = -(rest @ inverse @ rest - torch.linalg.slogdet(inverse).logabsdet + N * np.log(2 * np.pi)) / 2
    close(torch.tensor(found.log_likelihood, dtype=torch.float64), value)
    close(log_likelihood(made, NOISE, Y, (), h).value, value)


@pytest.mark.parametrize("kernel", [Gaussian, Laplace, Matern], ids=lambda k: k.__name__)
@pytest.mark.parametrize("name", ["nystrom", "fourier"])
def test_gradient_of_the_likelihood(name, kernel, monkeypatch):
    monkeypatch.setattr("hck.approximations.features._AT_ONCE", 500)  # several chunks
    start = MADE[name](1.0 * kernel(0.8), X)
    h = torch.from_numpy(TRENDS["linear"](X))

    def value(theta, gradient=False):
        scales, amplitude, noise = (
            torch.tensor(v, requires_grad=True) for v in (theta[:3], theta[3], theta[4])
        )
        made = start.with_kernel(amplitude * kernel(scales))
        y = torch.stack([Y, Y.square()], 1)
        found = log_likelihood(made, noise, y, (scales, amplitude, noise) if gradient else (), h)
        return torch.cat([g.reshape(-1) for g in found.gradient]).numpy() if gradient else float(found.value)

    at = np.array([0.5, 0.8, 1.5, 1.3, 0.1])
    slopes = value(at, gradient=True)
    for i, slope in enumerate(slopes):
        step = 1e-5 * np.eye(5)[i]
        difference = (value(at + step) - value(at - step)) / 2e-5
        assert slope == pytest.approx(difference, rel=1e-5, abs=1e-5 * np.abs(slopes).max())


@pytest.mark.parametrize("name", ["nystrom", "fourier"])
def test_draws(name):
    made = MADE[name](KERNEL, X)
    drawn = made.draw(4000, torch.Generator().manual_seed(0))
    close(drawn @ drawn.mT / 4000, dense(made)[:N, :N], 0.15)


def test_noise_for_each_point():
    for made in (Nystrom.of(KERNEL, X, 20), TreeKernel.of("hierarchical", KERNEL, X, 20)):
        with pytest.raises(ValueError, match="noise must be a number or have shape"):
            made.factor(torch.ones(5))
        with pytest.raises(ValueError, match="none negative"):
            made.factor(-1.0)
