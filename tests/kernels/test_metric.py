"""A linear metric: k(‖Lᵀ(x − x')‖ / σ)."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from block_tables import FULL, PADDED
from hck.kernels import (
    Gaussian,
    InverseMultiquadric,
    Laplace,
    Matern,
    Periodic,
    RationalQuadratic,
    make_kernel,
)
from hck.points import DensePoints, KernelBlocks, as_points, cross

RNG = np.random.default_rng(0)
X, Z, L = RNG.normal(size=(12, 4)), RNG.normal(size=(7, 4)), RNG.normal(size=(4, 3))
KERNELS = {
    "gaussian": Gaussian,
    "laplace": Laplace,
    "inverse_multiquadric": InverseMultiquadric,
    **{f"matern{round(2 * nu)}2": lambda *a, nu=nu, **k: Matern(*a, nu=nu, **k) for nu in (0.5, 1.5, 2.5)},
    "rational_quadratic": lambda *a, **k: RationalQuadratic(*a, alpha=0.7, **k),
}
every_kernel = pytest.mark.parametrize("make", KERNELS.values(), ids=KERNELS)
every_scale = pytest.mark.parametrize("scale", [1.0, 0.6, [0.5, 1.0, 2.0]], ids=["unit", "one", "each"])


@every_kernel
@every_scale
def test_points_are_multiplied_first(make, scale):
    kernel = make(scale, metric=L)
    expected = make(scale)(X @ L, Z @ L)
    np.testing.assert_allclose(kernel(X, Z), expected, rtol=0, atol=1e-13)
    sparse = kernel(sp.csr_matrix(X), sp.csr_matrix(Z))
    np.testing.assert_allclose(sparse, expected, rtol=0, atol=1e-12)
    whole = (X[:, :] * 4).round().astype(int)
    np.testing.assert_allclose(kernel(sp.csr_matrix(whole)), make(scale)(whole @ L), rtol=0, atol=1e-12)
    for points, others in ((X, Z), (sp.csr_matrix(X), sp.csr_matrix(Z))):
        blocks = KernelBlocks.between(3.0 * kernel, as_points(points), as_points(others))
        assert blocks.compilable() is not None
        np.testing.assert_allclose(blocks.tensor()[0], 3 * expected, rtol=0, atol=3e-12)
    batch = torch.from_numpy(np.stack([X[:5], X[5:10]]))
    np.testing.assert_allclose(kernel(batch)[1], kernel(X[5:10]), rtol=0, atol=1e-13)
    np.testing.assert_allclose(kernel.diagonal(torch.from_numpy(X)), np.diag(kernel(X)), rtol=1e-12)


@every_kernel
def test_a_diagonal_metric_is_a_lengthscale_for_each_feature(make):
    scale = np.array([0.5, 1.0, 2.0, 3.0])
    kernel, expected = make(1.0, metric=np.diag(1 / scale)), make(scale)
    size = float(expected.amplitude)  # inverse multiquadrics have their lengthscales there
    np.testing.assert_allclose(kernel(X) * size, expected(X), rtol=0, atol=1e-12)
    np.testing.assert_allclose(kernel.importances(), expected.importances(), rtol=1e-12)


def test_placed_once_whatever_the_lengthscale():
    kernel = 2.0 * Matern(1.0, metric=L)
    for given in (X, sp.csr_matrix(X)):
        points = as_points(given)
        placed = points.placed(kernel.placement)
        assert isinstance(placed, DensePoints)
        np.testing.assert_allclose(placed.x, X @ L, rtol=1e-12, atol=1e-14)
        others = (
            kernel.with_parameters({"lengthscale": 3.0, "scale": 0.5}),
            kernel.kernel.slope,
            3.0 * kernel,
        )
        for other in (*others, kernel.to(points.device, points.dtype)):
            assert points.placed(other.placement) is placed
        several = kernel.with_parameters({"lengthscale": torch.tensor([1.0, 2.0, 3.0])})
        assert points.placed(several.placement) is not placed
        assert several.kernel.metric is kernel.kernel.metric


def test_a_kernel_has_a_copy():
    for given in (L.copy(), torch.from_numpy(L.copy())):
        kernel = Gaussian(1.0, metric=given)
        before = kernel(X)
        given *= 2
        np.testing.assert_array_equal(kernel(X), before)
    learned = torch.from_numpy(L.copy()).requires_grad_()
    assert Gaussian(1.0, metric=learned).metric is learned
    assert Gaussian(1.0, metric=learned).tensors()[0] is learned


def test_a_metric_that_is_written_to_places_points_anew():
    metric = torch.from_numpy(L.copy()).requires_grad_()
    kernel, points = Matern(1.0, metric=metric), as_points(X)
    with torch.no_grad():
        KernelBlocks.between(kernel, points, points).tensor()
        metric.mul_(2)
        found = KernelBlocks.between(kernel, points, points).tensor()[0]
    np.testing.assert_allclose(found, Matern(1.0, metric=2 * L)(X), rtol=0, atol=1e-13)


def test_copies_and_types():
    kernel = Matern([0.5, 1.0, 2.0], 2.5, L)
    for again in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
        np.testing.assert_array_equal(again(X), kernel(X))
    single = kernel.to(torch.device("cpu"), torch.float32)
    assert single.metric.dtype == torch.float32
    found = single(X.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, kernel(X), rtol=0, atol=1e-5)


def test_shown_in_short():
    assert repr(Matern(2.0)) == "Matern(lengthscale=2, nu=1.5)"
    assert repr(Matern(2.0, metric=L)) == "Matern(lengthscale=2, nu=1.5, metric=4 × 3)"
    assert repr(Gaussian(1.0, metric=[[1, 0.5], [0, 2]])) == (
        "Gaussian(lengthscale=1, metric=[[1. , 0.5], [0. , 2. ]])"
    )


# What is wrong ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (np.ones(4), r"metric must be a matrix .* shape \(4,\)"),
        (np.ones((4, 3, 1)), r"metric must be a matrix .* shape \(4, 3, 1\)"),
        (np.ones((4, 0)), r"shape \(4, 0\)"),
        (2.0, r"shape \(\)"),
        ("pca", "metric must be a matrix"),
        (np.ones((4, 3)) * 1j, "complex"),
        (np.full((4, 3), np.nan), "finite"),
        (torch.full((4, 3), torch.inf), "finite"),
        (np.full((4, 3), 1e200), "at most"),
        (torch.full((4, 3), 1e30), "at most"),
        (np.array([[1.0], ["a"]], dtype=object), "metric must be a matrix"),
    ],
)
def test_no_metric(given, match):
    with pytest.raises(ValueError, match=match):
        Gaussian(1.0, metric=given)


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"2 lengthscales but a metric of shape \(4, 3\)"):
        Matern([1.0, 2.0], metric=L)
    with pytest.raises(ValueError, match=r"4 lengthscales but a metric of shape \(4, 3\)"):
        Matern(1.0, metric=L).with_parameters({"lengthscale": torch.ones(4)})
    for x in (X[:, :3], sp.csr_matrix(X[:, :3])):
        with pytest.raises(ValueError, match=r"metric has the shape \(4, 3\) but the points have 3 features"):
            Gaussian(1.0, metric=L)(x)
    with pytest.raises(TypeError, match="metric"):
        Periodic(1.0, metric=L)


@pytest.mark.parametrize("given", [L, L.tolist(), torch.from_numpy(L), torch.tensor(L, requires_grad=True)])
def test_a_matrix_is_no_lengthscale(given):
    with pytest.raises(ValueError, match=r"\(4, 3\).*metric=L"):
        make_kernel("gaussian", given)


def test_points_that_are_carried_too_far():
    points = DensePoints(torch.from_numpy(1e160 * X))
    with pytest.raises(ValueError, match="too far apart"):
        KernelBlocks.between(Gaussian(1.0, metric=L * 1e150), points, points).tensor()
    points = as_points(1e150 * X)
    found = KernelBlocks.between(Gaussian(1.0, metric=L * 1e150), points, points).tensor()[0]
    np.testing.assert_allclose(found, np.eye(12), rtol=0, atol=1e-300)


# Gradients ----------------------------------------------------------------------------------------------


every_block = pytest.mark.parametrize("blocks", [FULL, PADDED], ids=["full", "padded"])


def some_points(sparse, dtype=np.float64):
    x = X.copy()
    x[1] = x[0]  # equal points, and each point meets itself
    x[np.abs(x) < 0.5] = 0
    return as_points(sp.csr_matrix(x) if sparse else torch.from_numpy(x.astype(dtype)))


def weights(rows, columns):
    size = (len(rows), rows.index.shape[1], columns.index.shape[1])
    return torch.randn(size, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


@every_kernel
@every_scale
@every_block
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_gradients_of_metric_and_lengthscale(make, scale, blocks, sparse):
    rows, columns = blocks
    points, weight = some_points(sparse), weights(rows, columns)
    sigma, metric = (torch.tensor(value, dtype=torch.float64).requires_grad_() for value in (scale, L))
    kernel = 1.5 * make(sigma, metric=metric)
    pairs = KernelBlocks(kernel, points, rows, points, columns)
    total = (pairs.recorded(kernel) * weight).sum()
    expected = torch.autograd.grad(total, [sigma, metric])
    with torch.no_grad():
        found = kernel.gradient_of_sum(pairs, weight)
        torch.testing.assert_close(found, list(expected), rtol=1e-9, atol=1e-11)
        fixed = 1.5 * make(scale, metric=L)
        torch.testing.assert_close(
            fixed.gradient_of_metric(pairs, weight), expected[1], rtol=1e-9, atol=1e-11
        )
        alone = 1.5 * make(sigma, metric=L)
        torch.testing.assert_close(alone.gradient_of_sum(pairs, weight), [expected[0]], rtol=1e-9, atol=1e-11)
    assert float(expected[1].abs().max()) > 1e-3


@every_kernel
def test_gradient_of_metric_against_differences(make):
    rows, columns = PADDED
    points, weight = some_points(False), weights(rows, columns)
    found = make(0.7, metric=L).gradient_of_metric(
        KernelBlocks(make(0.7, metric=L), points, rows, points, columns), weight
    )

    def total(metric):
        return float((cross(make(0.7, metric=metric), points, rows, points, columns) * weight).sum())

    for i, j in np.ndindex(L.shape):
        move = np.zeros_like(L)
        move[i, j] = 1e-5
        expected = (total(L + move) - total(L - move)) / 2e-5
        assert float(found[i, j]) == pytest.approx(expected, rel=1e-6, abs=1e-7)


@every_kernel
def test_gradient_of_metric_in_single_precision(make):
    rows, columns = PADDED
    metric = torch.tensor(L, dtype=torch.float32)
    single, double = some_points(False, np.float32), some_points(False)
    weight = weights(rows, columns)
    kernel = make(0.7, metric=metric)
    found = kernel.gradient_of_metric(KernelBlocks(kernel, single, rows, single, columns), weight.float())
    kernel = make(0.7, metric=L)
    expected = kernel.gradient_of_metric(KernelBlocks(kernel, double, rows, double, columns), weight)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected.float(), rtol=2e-4, atol=2e-5)


def test_gradient_of_metric_needs_one():
    points = as_points(X)
    for kernel in (Gaussian(1.0), 2.0 * Matern([1.0] * 4), Gaussian(1.0, metric=L) + Laplace(1.0)):
        pairs = KernelBlocks.between(kernel, points, points)
        with pytest.raises(ValueError, match="no metric of its own"):
            kernel.gradient_of_metric(pairs, torch.ones(1, 12, 12, dtype=torch.float64))


# Where distances are measured -----------------------------------------------------------------------------


def test_kernels_of_kernels_measure_by_all_of_them():
    assert Gaussian(3.0).stretch() is None
    np.testing.assert_allclose(Gaussian(2.0, metric=L).stretch(), L / 2)
    np.testing.assert_allclose(Gaussian([1.0, 2.0, 4.0], metric=L).stretch(), L / [1.0, 2.0, 4.0])
    matrix, each = Matern(2.0, metric=L), Laplace([1.0, 2.0, 3.0, 4.0])
    for kernel in (matrix + each, 2.0 * (each * matrix), Gaussian(1.0) + matrix * each):
        factor = kernel.stretch().numpy()
        np.testing.assert_allclose(
            factor @ factor.T, L @ L.T / 4 + np.diag(np.array([1.0, 2.0, 3.0, 4.0]) ** -2)
        )
        np.testing.assert_allclose(kernel.importances(), np.diag(factor @ factor.T))
    np.testing.assert_allclose((Gaussian(1.0) + matrix).stretch(), L / 2)
    assert (Gaussian(1.0) * Laplace(2.0)).importances() is None
