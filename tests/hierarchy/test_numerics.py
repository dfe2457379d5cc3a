"""Accuracy where matrices are ill-conditioned, and what happens where they are not positive definite.

Warnings are errors here: none of the problems may need more jitter than it was given.
"""

import numpy as np
import pytest
import torch

from hck.branches.ridge import ridge
from hck.errors import NotPositiveDefiniteError, NumericalWarning
from hck.hierarchy import HierarchicalKernel
from hck.hierarchy.blueprint import Blueprint
from hck.kernels import CallableKernel, Gaussian, InverseMultiquadric, Laplace, Matern
from hck.partition import KMeans, known_partitions
from hck.points import as_points
from hck.settings import Settings

pytestmark = pytest.mark.usefixtures("one_thread")

N, RANK = 503, 40
# Largest relative error of fitted values K_h w and largest error per point of the log-determinant, both with
# a part that grows with the condition number: no dense solver does without it either.
FITTED = {torch.float64: 1e-8, torch.float32: 2e-4}
LOG_DETERMINANT = {torch.float64: 1e-10, torch.float32: 2e-6}
KERNELS = {
    "gaussian": Gaussian,
    "imq": InverseMultiquadric,
    "matern52": lambda lengthscale: Matern(lengthscale, nu=2.5),
    "laplace": Laplace,
}
LENGTHSCALES = [0.2, 1.0, 3.0, 10.0]


def data(n=N):
    rng = np.random.default_rng(11)
    x = rng.normal(size=(n, 4))
    y = np.sin(x[:, 0]) + x[:, 1] * x[:, 2] + 0.1 * rng.normal(size=n)
    return x, torch.from_numpy(y)


def check_fitted_values(problem, y, alphas):
    eigenvalues, vectors = torch.linalg.eigh(problem.dense)
    h, eps = problem.hierarchical, torch.finfo(problem.dtype).eps
    for alpha in alphas:
        expected = vectors @ (eigenvalues / (eigenvalues + alpha) * (vectors.mT @ y))
        rounding = eps * float(eigenvalues[-1]) / alpha
        factor = h.factor(alpha)
        got = h @ factor.solve(y)
        error = (got.double() - expected).abs().max() / expected.abs().max()
        bound = FITTED[problem.dtype] + 2 * rounding
        assert error < bound, f"α = {alpha}: fitted values off by {error:.1e}, more than {bound:.1e}"
        error = (factor.log_determinant - (eigenvalues + alpha).log().sum()).abs() / problem.n
        bound = LOG_DETERMINANT[problem.dtype] + rounding / 50
        assert error < bound, f"α = {alpha}: log-determinant off by {error:.1e}, more than {bound:.1e}"


@pytest.mark.parametrize("lengthscale", LENGTHSCALES)
@pytest.mark.parametrize(
    ("kernel", "jitter"), [(name, 1e-8) for name in KERNELS] + [("gaussian", 1e-6), ("gaussian", 1e-10)]
)
def test_fitted_values_in_float64(make, kernel, lengthscale, jitter):
    x, y = data()
    options = {"rank": RANK, "jitter": jitter}
    problem = make(kernel, torch.float64, KERNELS[kernel](lengthscale), x, x[:1], options)
    check_fitted_values(problem, y, [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6])


@pytest.mark.parametrize("lengthscale", LENGTHSCALES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_fitted_values_in_float32(make, kernel, lengthscale):
    x, y = data()
    problem = make(kernel, torch.float32, KERNELS[kernel](lengthscale), x, x[:1], {"rank": RANK})
    check_fitted_values(problem, y, [1e-1, 1e-2, 1e-3])


@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_float32_far_from_the_origin(make, shift):
    """Distances are computed about the points' centre, so that a shift costs no digits of the kernel."""
    x = np.round(data(97)[0], 2)
    x = np.round(x * 64) / 64  # exact in float32 after the shift, too
    problem = make("shifted", torch.float32, Gaussian(1.0), x + shift, x[:5] + shift, {"rank": 10})
    error = (problem.hierarchical.to_dense().double() - problem.dense).abs().max()
    assert error < 2e-5


def test_threads_change_nothing(make):
    x, y = data()
    problem = make("threads", torch.float64, Gaussian(1.0), x, x[:50], {"rank": RANK})
    results = []
    for threads in (1, 4):
        torch.set_num_threads(threads)
        h = problem.build()
        w = h.factor(1e-3).solve(y)
        results.append((h @ y, w, h.extend(w)(problem.new)))
    for one, four in zip(*results, strict=True):
        torch.testing.assert_close(one, four, rtol=1e-8, atol=1e-10)


# Repeated points ----------------------------------------------------------------------------------------

CUTTERS = [KMeans(3) if name == "kmeans" else name for name in known_partitions()]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("partition", CUTTERS)
@pytest.mark.parametrize("distinct", [1, 5, 30])
def test_repeated_points(make, distinct, partition, dtype):
    """Also more often than a leaf has room for, and all of them the same; landmarks are repeated too."""
    x = np.repeat(data(distinct)[0], 90 // distinct, axis=0)
    options = {"rank": 9, "leaf_size": 11, "partition": partition}
    problem = make("repeated", dtype, Gaussian(1.0), x, data(7)[0] + 0.1, options)
    h = problem.hierarchical
    assert h.tree.size[h.tree.leaves].max() <= 11
    problem.assert_close(h.to_dense(), problem.dense, "matrix")
    y = problem.b + 1
    w = torch.linalg.solve(problem.noisy, y.double())
    problem.assert_close(problem.factor.solve(y), w, "solve")
    padded = h.matrix.layout.pad(y, y)
    predicted = h.predictor(problem.factor.solve_padded(padded))(problem.new_points)
    problem.assert_close(predicted, problem.dense_cross.mT @ w, "solve")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Matern(1.0, nu=1.5), Laplace(1.0)], ids=str)
def test_repeated_landmarks(make, kernel, dtype):
    x = data(97)[0]
    landmarks = np.repeat(x[:4], 3, axis=0)
    options = {"rank": 12, "leaf_size": 13, "landmarks": landmarks}
    problem = make("landmarks", dtype, kernel, x, x[:9] + 0.1, options)
    problem.assert_close(problem.hierarchical.to_dense(), problem.dense, "matrix")
    w = torch.linalg.solve(problem.noisy, problem.b.double())
    problem.assert_close(problem.factor.solve(problem.b), w, "solve")
    problem.assert_close(problem.hierarchical.cross(problem.new), problem.dense_cross, "matrix")


def test_repeated_landmarks_without_jitter():
    """Said, and mended by a jitter too small to see."""
    x = data(40)[0]
    twice = x[[0, 0]]
    with pytest.warns(NumericalWarning, match="landmark matrix.*1 of 1 blocks.*jitter"):
        h = HierarchicalKernel.build(Laplace(1.0), x, 2, 20, landmarks=twice, jitter=0.0)
    once = HierarchicalKernel.build(Laplace(1.0), x, 1, partition=h.tree, landmarks=x[:1], jitter=0.0)
    torch.testing.assert_close(h.to_dense(), once.to_dense(), rtol=0, atol=1e-9)


# What is not positive definite --------------------------------------------------------------------------


def indefinite(a, b):
    """Minus the distance: a conditionally positive definite function, but no kernel."""
    return -np.sqrt(((a[:, None] - b[None]) ** 2).sum(-1))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("leaf_size", [7, 30])
def test_indefinite_kernel(leaf_size, dtype):
    """The error says what was tried and what to change, whether landmarks or a leaf show it."""
    x = as_points(data(30)[0], dtype)
    with pytest.raises(NotPositiveDefiniteError, match=r"matrix.*not positive definite") as caught:
        HierarchicalKernel.build(CallableKernel(indefinite), x, 5, leaf_size).factor(0.0)
    message = str(caught.value)
    for word in ("alpha", "jitter", "dtype", "kernel is positive definite", str(dtype)):
        assert word in message
    assert ("landmark" if leaf_size == 7 else "leaf") in message


def test_nan_where_nobody_has_looked():
    x = as_points(data(30)[0])
    x.x[3, 1] = np.nan
    with pytest.raises(NotPositiveDefiniteError, match="NaN"):
        ridge(Blueprint.of(Gaussian(1.0), x, Settings(5, leaf_size=30)), 0.1, x.x[:, :1])
