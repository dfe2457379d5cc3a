"""Nyström and Fourier features against their dense formulas and against scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import Ridge

from hck.approximations import Fourier, Nystrom
from hck.errors import NotPositiveDefiniteError
from hck.kernels import Gaussian, InverseMultiquadric, Laplace, Matern
from hck.points import as_points
from hck.process import Process

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
X, NEW = RNG.uniform(size=(83, 3)), RNG.uniform(size=(17, 3))
B = torch.from_numpy(RNG.normal(size=(83, 2)))
NOISE = {"one": 0.1, "each": torch.from_numpy(RNG.uniform(0.05, 0.2, 83))}
MADE = {
    "nystrom": lambda x: Nystrom.of(Matern(0.5), x, 20),
    "nystrom, all points": lambda x: Nystrom.of(Laplace(1.0), x, 83),
    "nystrom, k-means": lambda x: Nystrom.of(Gaussian(0.3), x, 20, "kmeans"),
    "nystrom, farthest": lambda x: Nystrom.of(2.0 * Gaussian(0.3), x, 20, "farthest"),
    "nystrom, repeated": lambda x: Nystrom.of(Gaussian(0.3), x, 20, np.repeat(X[:10], 2, axis=0)),
    "fourier": lambda x: Fourier.of(Matern([0.5, 1.0, 2.0]), x, 31),
    "fourier, scaled": lambda x: Fourier.of(3.0 * Laplace(1.0), x, 20),
}


@pytest.fixture(params=MADE)
def made(request, monkeypatch):
    monkeypatch.setattr("hck.approximations.features._AT_ONCE", 500)  # several chunks
    return MADE[request.param](X)


def dense(made):
    """K̃ on old and new points together."""
    phi = made.features(as_points(np.concatenate([X, NEW])))
    return phi @ phi.mT


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("noise", NOISE)
def test_against_dense_algebra(made, noise):
    k, n = dense(made), len(X)
    noisy = k[:n, :n] + torch.diag(torch.as_tensor(NOISE[noise], dtype=torch.float64).expand(n))
    inverse, across = torch.linalg.inv(noisy), k[:n, n:]
    factor = made.factor(NOISE[noise])
    close(made @ B, k[:n, :n] @ B)
    close(made @ B[:, 0], k[:n, :n] @ B[:, 0])
    close(made.cross(NEW), across)
    close(factor.solve(B), inverse @ B)
    close(factor.solve(B[:, 0]), inverse @ B[:, 0])
    close(factor.log_determinant, torch.linalg.slogdet(noisy).logabsdet)
    close(factor.inverse_diagonal(), inverse.diagonal())
    close(factor.predictor(B)(NEW), across.mT @ inverse @ B)
    close(factor.variance(NEW), k[n:, n:].diagonal() - (across * (inverse @ across)).sum(0))
    assert made.nbytes > 0


@pytest.mark.parametrize("name", MADE)
def test_sparse_points(name):
    found, expected = (MADE[name](x).factor(0.1).predictor(B) for x in (sp.csr_matrix(X), X))
    close(found(sp.csr_matrix(NEW)), expected(NEW))


def test_nystrom_is_exact_at_landmarks():
    made, kernel = Nystrom.of(Matern(0.5), X, 20), Matern(0.5)
    z = made.landmarks.x
    np.testing.assert_allclose(made.cross(z).numpy(), kernel(X, z.numpy()), rtol=0, atol=1e-9)
    assert made.landmarks.x.shape == (20, 3)


def test_repeated_landmarks_lower_the_rank():
    assert Nystrom.of(Matern(0.5), X, 20, np.repeat(X[:10], 2, axis=0)).rank == 10


def test_nystrom_as_in_scikit_learn():
    sigma, alpha = 0.4, 0.05
    features = Nystroem(gamma=1 / (2 * sigma**2), n_components=25, random_state=0).fit(X)
    ridge = Ridge(alpha=alpha, fit_intercept=False).fit(features.transform(X), B.numpy())
    ours = Nystrom.of(Gaussian(sigma), X, 25, landmarks=features.components_).factor(alpha).predictor(B)
    np.testing.assert_allclose(ours(NEW).numpy(), ridge.predict(features.transform(NEW)), rtol=0, atol=1e-6)


KERNELS = [Gaussian(0.5), Gaussian([0.3, 1.0, 2.0]), Laplace(1.5), Laplace([1.0, 2.0, 4.0])]
KERNELS += [Matern(0.7, nu=nu) for nu in (0.5, 1.5, 2.5)]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_many_frequencies_give_the_kernel(kernel):
    made = Fourier.of(1.5 * kernel, X, 200_000)
    error = made.cross(NEW).numpy() - 1.5 * kernel(X, NEW)
    assert np.abs(error).max() < 6 * 1.5 / np.sqrt(2 * 100_000)


def test_fourier_as_good_as_in_scikit_learn():
    """The same density; a cosine and a sine instead of two cosines with random phases vary less."""
    kernel, errors = Gaussian(0.5), {"ours": [], "theirs": []}
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        errors["ours"].append(
            Fourier.of(kernel, X, 200, generator=generator).cross(NEW).numpy() - kernel(X, NEW)
        )
        phi = RBFSampler(gamma=2.0, n_components=200, random_state=seed).fit(X)
        errors["theirs"].append(phi.transform(X) @ phi.transform(NEW).T - kernel(X, NEW))
    ours, theirs = (np.sqrt(np.mean(np.square(errors[who]))) for who in errors)
    assert 0.5 * theirs < ours < theirs


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("noise", [1e-2, 1e-6])
@pytest.mark.parametrize("name", ["nystrom", "nystrom, all points", "fourier"])
def test_little_noise(name, noise, dtype):
    """Left-out values and means keep their digits where the inverse has large numbers that cancel."""
    smooth = torch.sin(3 * torch.from_numpy(X).sum(1))
    made = MADE[name](torch.from_numpy(X).to(dtype))
    phi = MADE[name](X).features(as_points(X))
    k = phi @ phi.mT + noise * torch.eye(len(X), dtype=torch.float64)
    inverse = torch.linalg.inv(k)
    expected = smooth - inverse @ smooth / inverse.diagonal()
    predictor, others = made.ridge(noise, smooth[:, None].to(dtype), left_out=True)
    single = dtype == torch.float32
    new = torch.from_numpy(NEW).to(dtype)
    torch.testing.assert_close(others[:, 0].double(), expected, rtol=0, atol=0.3 if single else 1e-6)
    mean = Process.of(made, noise, smooth.to(dtype), smooth[:, None][:, :0].to(dtype))
    tolerance = {"rtol": 0, "atol": 1e-2 if single else 1e-7}
    torch.testing.assert_close(predictor(new)[:, 0], mean.predict(new, new[:, :0]), **tolerance)
    exact = (phi @ MADE[name](X).features(as_points(NEW)).mT).mT @ inverse @ smooth
    torch.testing.assert_close(predictor(new)[:, 0].double(), exact, rtol=0, atol=0.05 if single else 1e-6)


def test_errors():
    with pytest.raises(ValueError, match="spectral density of InverseMultiquadric"):
        Fourier.of(InverseMultiquadric(1.0), X, 10)
    with pytest.raises(ValueError, match="spectral density"):
        Fourier.of(Gaussian(1.0) + Gaussian(2.0), X, 10)
    with pytest.raises(NotPositiveDefiniteError, match="the noise, must be positive"):
        Nystrom.of(Gaussian(1.0), X, 10).factor(0.0)
    with pytest.raises(ValueError, match="unknown landmarks"):
        Nystrom.of(Gaussian(1.0), X, 10, "random")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_right_hand_sides_of_another_type(dtype):
    made = Nystrom.of(Gaussian(0.5), torch.from_numpy(X).to(dtype), 10)
    other = torch.float64 if dtype == torch.float32 else torch.float32
    assert (made @ B.to(other)).dtype == dtype
    assert made.factor(0.1).solve(B[:, 0].to(other)).dtype == dtype
    with pytest.raises(ValueError, match="b has 5 rows"):
        made @ B[:5]


def test_landmarks_as_a_list():
    assert Nystrom.of(Gaussian(0.5), X, 2, [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]).rank == 2


def test_a_frequency_at_least_and_a_lengthscale_for_each_feature():
    with pytest.raises(ValueError, match="rank must be at least 1"):
        Fourier.of(Gaussian(1.0), X, 0)
    with pytest.raises(ValueError, match="lengthscales"):
        Fourier.of(Gaussian([1.0, 2.0]), X, 10)
