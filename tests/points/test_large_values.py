"""Points so large, or lengthscales so small, that squared distances overflow: right, or a named error."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import hck
from hck.approximations import make_approximation
from hck.kernels import Gaussian, Matern, kernel_names, make_kernel
from hck.points import KernelBlocks, as_points, check_reach

LARGE = {"float64": (1e100, 1e155, 1e300), "float32": (1e12, 1e19, 1e30, 1e38)}
X = np.array([[1.0, 2.0, 0.0], [3.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 2.0, 0.0]])
EXPECTED = np.array([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1]])


def given(x, kind):
    return sp.csr_matrix(x) if kind == "sparse" else x


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("dtype", LARGE)
@pytest.mark.parametrize("name", [name for name in kernel_names() if name != "periodic"])
def test_kernels(name, dtype, kind):
    """Points that are far apart have nothing in common, unless they are refused."""
    number, tiny = getattr(torch, dtype), 1e-150 if dtype == "float64" else 1e-20
    for kernel in (make_kernel(name), make_kernel(name, np.ones(3)), make_kernel(name) * Gaussian(1.0)):
        for size in LARGE[dtype]:
            if size > LARGE[dtype][0]:
                with pytest.raises(ValueError, match="Scale the features"):
                    check_reach(as_points(given(X * size, kind), number))
                continue
            points = as_points(given(X * size, kind), number)
            values = KernelBlocks.between(kernel, points, points).tensor()[0]
            np.testing.assert_allclose(values.numpy(), EXPECTED, atol=1e-6)
    for scale in (tiny, np.full(3, tiny)):
        kernel, points = make_kernel(name, scale), as_points(given(X, kind), number)
        values = KernelBlocks.between(kernel, points, points).tensor()[0] / kernel.diagonal(points.x).max()
        np.testing.assert_allclose(values.numpy(), EXPECTED, atol=1e-6)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_lengthscale_that_is_too_small(kind):
    for scale in (1e-300, np.full(3, 1e-300)):
        points = as_points(given(X * 1e30, kind))
        with pytest.raises(ValueError, match="larger lengthscale"):
            KernelBlocks.between(Matern(scale), points, points).tensor()


@pytest.mark.parametrize("dtype", LARGE)
@pytest.mark.parametrize(
    "approximation",
    ["hierarchical", "compositional", "independent", "exact", "nystrom", "fourier", "tapered"],
)
def test_approximations_refuse(approximation, dtype):
    x = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match="Scale the features"):
        make_approximation(
            approximation, "gaussian", as_points(x * LARGE[dtype][1], getattr(torch, dtype)), 4
        )


MODELS = {
    "regressor": lambda **more: hck.HCKRegressor("matern52", lengthscale=1.0, alpha=0.1, rank=8, **more),
    "classifier": lambda **more: hck.HCKClassifier("matern52", lengthscale=1.0, alpha=0.1, rank=8, **more),
    "process": lambda **more: hck.HCKGaussianProcessRegressor(
        lengthscale=1.0, optimizer=None, rank=8, **more
    ),
    "components": lambda **more: hck.HCKKernelPCA(kernel="matern32", rank=8, **more),
}


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("dtype", LARGE)
@pytest.mark.parametrize("model", MODELS)
def test_estimators_refuse(model, dtype, kind):
    """When they are fitted, and when they predict."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    made = MODELS[model](dtype=dtype, random_state=0)
    for size in LARGE[dtype][1:3]:
        with pytest.raises(ValueError, match="Scale the features"):
            made.fit(given(x * size, kind), y)
    made.fit(given(x, kind), y)
    use = made.transform if model == "components" else made.predict
    for size in LARGE[dtype][1:]:
        with pytest.raises(ValueError, match=r"Scale the features|infinity"):
            use(given(x * size, kind))
    assert np.isfinite(use(given(x * LARGE[dtype][0], kind))).all()
