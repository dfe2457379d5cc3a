"""Measures of quality against dense algebra."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from hck.approximations import Iterative, make_approximation
from hck.approximations.eigenvectors import leading
from hck.approximations.make import NAMES
from hck.approximations.quality import effective_rank, error, spectrum
from hck.kernels import Gaussian

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(130, 3))
KERNEL = 2.0 * Gaussian(0.4)
EVERY = [*NAMES, Iterative("nystrom")]


@pytest.fixture(params=EVERY, ids=str)
def made(request, monkeypatch):
    monkeypatch.setattr("hck.approximations.features._AT_ONCE", 500)  # several chunks
    monkeypatch.setattr("hck.approximations.quality._AT_ONCE", 5000)
    return make_approximation(request.param, KERNEL, X, 20)


def dense(approximation):
    return approximation @ torch.eye(len(approximation.points), dtype=torch.float64)


def test_at_training_points_the_kernel_is_its_matrix(made):
    """With its diagonal; nothing that is added to it for stability shows."""
    torch.testing.assert_close(made.cross(X), dense(made), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("norm", "order"), [("fro", "fro"), ("2", 2)])
def test_error(made, norm, order):
    k, approximate = KERNEL(X, X), dense(made).numpy()
    expected = np.linalg.norm(k - approximate, order) / np.linalg.norm(k, order)
    assert error(made, norm=norm) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    index = np.random.RandomState(3).choice(130, 40, replace=False)
    k, approximate = k[np.ix_(index, index)], approximate[np.ix_(index, index)]
    expected = np.linalg.norm(k - approximate, order) / np.linalg.norm(k, order)
    found = error(made, sample=40, norm=norm, random_state=3)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_error_of_the_kernel_itself():
    for how in ("exact", Iterative()):
        assert error(make_approximation(how, KERNEL, X, 20)) < 1e-12
    for how in ("hierarchical", "nystrom"):
        assert error(make_approximation(how, KERNEL, X, 130)) < 1e-6


@pytest.mark.parametrize("lanczos", [False, True])
def test_spectrum(made, lanczos, monkeypatch):
    if lanczos:
        monkeypatch.setattr("hck.approximations.eigenvectors._DENSE", 10)
    expected = np.linalg.eigvalsh(dense(made).numpy())[::-1]
    np.testing.assert_allclose(spectrum(made, count=7), expected[:7], rtol=1e-8)
    everything = spectrum(made, count=130)
    np.testing.assert_allclose(everything, expected, rtol=1e-8, atol=1e-9)
    assert (everything >= 0).all()


@pytest.mark.parametrize("lanczos", [False, True])
@pytest.mark.parametrize("centred", [False, True])
def test_eigenvectors(made, centred, lanczos, monkeypatch):
    if lanczos:
        monkeypatch.setattr("hck.approximations.eigenvectors._DENSE", 10)
    k = dense(made).numpy()
    if centred:
        k = k - k.mean(0)
        k = k - k.mean(1)[:, None]
    values, vectors = leading(made, 4, centred)
    np.testing.assert_allclose(k @ vectors, vectors * values, rtol=0, atol=1e-8)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(4), rtol=0, atol=1e-8)


def test_spectrum_of_a_kernel():
    expected = np.linalg.eigvalsh(KERNEL(X, X))[::-1]
    for x in (X, torch.from_numpy(X), sp.csr_matrix(X)):
        np.testing.assert_allclose(spectrum(KERNEL, x, count=5), expected[:5], rtol=1e-6)
    named = np.linalg.eigvalsh(Gaussian(1.0)(X, X))[::-1]
    np.testing.assert_allclose(spectrum("gaussian", X, count=5), named[:5], rtol=1e-8)
    np.testing.assert_allclose(spectrum(KERNEL, X, count=3, sample=100), expected[:3], rtol=0.2)
    assert spectrum(KERNEL, X, count=130)[-1] >= 0


def test_effective_rank(made):
    k = dense(made).numpy()
    for noise in (1e-3, 0.1, 10.0):
        expected = np.trace(np.linalg.solve(k + noise * np.eye(130), k))
        values = np.linalg.eigvalsh(k)
        assert effective_rank(values, noise) == pytest.approx(expected, rel=1e-8)
        if type(made).__name__ == "Exact":  # whose inverse is not known
            with pytest.raises(ValueError, match="need a factorization"):
                effective_rank(made, noise)
        else:
            assert effective_rank(made, noise) == pytest.approx(expected, rel=1e-8)


def test_single_precision():
    for how in ("hierarchical", "nystrom", "fourier"):
        double, single = (
            make_approximation(how, KERNEL, torch.from_numpy(X).to(dtype), 20, jitter=1e-4)
            for dtype in (torch.float64, torch.float32)
        )
        np.testing.assert_allclose(spectrum(single, count=3), spectrum(double, count=3), rtol=1e-2)
        assert effective_rank(single, 0.1) == pytest.approx(effective_rank(double, 0.1), rel=1e-2)


def test_bad_arguments():
    approximation = make_approximation("nystrom", KERNEL, X, 20)
    with pytest.raises(ValueError, match="norm must be"):
        error(approximation, norm="1")
    for sample in (0, 2.5):
        with pytest.raises(ValueError, match="sample must be"):
            error(approximation, sample=sample)
    for count in (0, 131, 2.5):
        with pytest.raises(ValueError, match="count must be"):
            spectrum(approximation, count=count)
    with pytest.raises(ValueError, match="count must be"):
        spectrum(KERNEL, X, count=50, sample=40)
    with pytest.raises(ValueError, match="leave x=None"):
        spectrum(approximation, X)
    with pytest.raises(ValueError, match="x is needed"):
        spectrum(KERNEL)
    for noise in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="noise must be positive"):
            effective_rank(approximation, noise)
    for values in (np.eye(2), [1.0, np.nan]):
        with pytest.raises(ValueError, match="eigenvalues must be finite"):
            effective_rank(values, 1.0)
