"""Base kernels against their formulas, written out, and against scikit-learn."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import Matern as SklearnMatern
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from hck.kernels import (
    CallableKernel,
    Gaussian,
    InverseMultiquadric,
    Kernel,
    Laplace,
    Matern,
    Product,
    Scaled,
    Sum,
    make_kernel,
)

TOLERANCE = {np.dtype("float32"): 2e-6, np.dtype("float64"): 1e-12}


def geometric_mean(scale):
    return math.prod(np.atleast_1d(scale)) ** (1 / np.size(scale))


def root(u):
    return math.sqrt(sum(c * c for c in u))


# k as a function of u = (x − x')/σ and of σ
FORMULAS = {
    "gaussian": lambda u, scale: math.exp(-sum(c * c for c in u) / 2),
    "laplace": lambda u, scale: math.exp(-sum(abs(c) for c in u)),
    "inverse_multiquadric": lambda u, scale: geometric_mean(scale) / math.sqrt(1 + sum(c * c for c in u)),
    "matern12": lambda u, scale: math.exp(-root(u)),
    "matern32": lambda u, scale: (1 + math.sqrt(3) * root(u)) * math.exp(-math.sqrt(3) * root(u)),
    "matern52": lambda u, scale: (
        (1 + math.sqrt(5) * root(u) + 5 * root(u) ** 2 / 3) * math.exp(-math.sqrt(5) * root(u))
    ),
    "rational_quadratic": lambda u, scale: 1 / (1 + sum(c * c for c in u) / 2),
    "periodic": lambda u, scale: math.exp(-2 * sum((np.sin(np.pi * u * scale) / scale) ** 2)),
}
SCALES = [1.7, np.array([0.6, 1.0, 2.5])]
every_kernel = pytest.mark.parametrize("name", FORMULAS)
every_scale = pytest.mark.parametrize("scale", SCALES, ids=["one", "ard"])


def naive(name, a, b, scale):
    return np.array([[FORMULAS[name]((x - y) / scale, scale) for y in b] for x in a])


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@every_kernel
@every_scale
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_are_those_of_the_formula(name, scale, dtype, rng):
    a, b = rng.normal(size=(7, 3)).astype(dtype), rng.normal(size=(4, 3)).astype(dtype)
    values = make_kernel(name, scale)(a, b)
    assert isinstance(values, np.ndarray)
    assert values.dtype == dtype
    np.testing.assert_allclose(values, naive(name, a, b, scale), rtol=0, atol=TOLERANCE[values.dtype])


@pytest.mark.parametrize("scale", [0.4, 3.0])
def test_values_are_those_of_scikit_learn(scale, rng):
    a, b = rng.normal(size=(7, 3)), rng.normal(size=(4, 3))
    np.testing.assert_allclose(
        Gaussian(scale)(a, b), rbf_kernel(a, b, gamma=1 / (2 * scale**2)), rtol=0, atol=1e-13
    )
    np.testing.assert_allclose(
        Laplace(scale)(a, b), laplacian_kernel(a, b, gamma=1 / scale), rtol=0, atol=1e-13
    )
    for nu in (0.5, 1.5, 2.5):
        for lengthscale in (scale, scale * np.array([1.0, 2.0, 0.5])):
            expected = SklearnMatern(lengthscale, nu=nu)(a, b)
            np.testing.assert_allclose(Matern(lengthscale, nu=nu)(a, b), expected, rtol=0, atol=1e-13)


def test_inverse_multiquadric_is_that_of_the_paper(rng):
    a, b, scale = rng.normal(size=(5, 3)), rng.normal(size=(6, 3)), 0.7
    square = ((a[:, None] - b) ** 2).sum(-1)
    np.testing.assert_allclose(InverseMultiquadric(scale)(a, b), scale**2 / np.sqrt(square + scale**2))


@every_kernel
@every_scale
def test_a_batch_is_its_members(name, scale, rng):
    kernel = make_kernel(name, scale)
    a, b = torch.tensor(rng.normal(size=(2, 3, 5, 3))), torch.tensor(rng.normal(size=(2, 3, 4, 3)))
    values = kernel(a, b)
    assert values.shape == (2, 3, 5, 4)
    for i in np.ndindex(2, 3):
        torch.testing.assert_close(
            values[i], torch.from_numpy(naive(name, a[i].numpy(), b[i].numpy(), scale))
        )


@every_kernel
@every_scale
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sparse_points_give_what_dense_points_give(name, scale, dtype, rng):
    a, b = (rng.normal(size=(n, 3)) * (rng.random((n, 3)) < 0.5) for n in (8, 5))
    a[0], b[1] = 0, a[2]  # an empty row, and equal points
    a, b = a.astype(dtype), b.astype(dtype)
    kernel = make_kernel(name, scale)
    for form in (sp.csr_matrix, sp.csr_array, sp.coo_matrix):
        values = kernel(form(a), form(b))
        assert isinstance(values, np.ndarray)
        np.testing.assert_allclose(values, kernel(a, b), rtol=0, atol=TOLERANCE[np.dtype(dtype)])
    np.testing.assert_allclose(kernel.diagonal(sp.csr_matrix(a)), kernel.diagonal(torch.from_numpy(a)))


@every_kernel
def test_what_goes_in_comes_out(name, rng):
    kernel, x = make_kernel(name), rng.normal(size=(5, 2))
    assert isinstance(kernel(x), np.ndarray)
    assert isinstance(kernel(x.tolist()), np.ndarray)
    for dtype in (torch.float32, torch.float64):
        values = kernel(torch.tensor(x, dtype=dtype))
        assert isinstance(values, torch.Tensor)
        assert values.dtype == dtype
    assert kernel(torch.tensor(x), x.astype("float32")).dtype == torch.float64
    integers = np.array([[0, 1], [2, 5]])
    np.testing.assert_array_equal(kernel(integers), kernel(integers.astype(float)))
    np.testing.assert_array_equal(kernel(x), kernel(x, x))


@every_kernel
@pytest.mark.parametrize("form", [float, int, np.float32, torch.tensor, lambda v: torch.tensor(float(v))])
def test_lengthscales_of_any_type_mean_the_same(name, form, rng):
    x = rng.normal(size=(4, 3))
    np.testing.assert_allclose(make_kernel(name, form(7))(x), naive(name, x, x, 7.0), rtol=0, atol=1e-12)


@every_kernel
@pytest.mark.parametrize("form", [list, tuple, np.array, torch.tensor, lambda v: torch.tensor(v).float()])
def test_several_lengthscales_of_any_type_mean_the_same(name, form, rng):
    x, scale = rng.normal(size=(4, 3)), [3, 5, 7]
    np.testing.assert_allclose(
        make_kernel(name, form(scale))(x), naive(name, x, x, scale), rtol=0, atol=1e-12
    )


ZOO = [
    *(make_kernel(name, scale) for name in FORMULAS for scale in SCALES),
    2.5 * Gaussian(0.5) + Laplace(2.0) * InverseMultiquadric([1.0, 2.0, 3.0]),
    CallableKernel(lambda a, b: a @ b.T),
    CallableKernel(lambda a, b: (1 + a @ b.mT) ** 2, batched=True),
]


@pytest.mark.parametrize("kernel", ZOO, ids=repr)
def test_diagonal(kernel, rng):
    for shape in [(6, 3), (2, 6, 3)]:
        x = torch.tensor(rng.normal(size=shape))
        expected = kernel.evaluate(x, x).diagonal(dim1=-2, dim2=-1)
        torch.testing.assert_close(kernel.diagonal(x), expected, rtol=0, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 20),
    spread=st.sampled_from([1e-3, 1.0, 1e3]),
    kernel=st.sampled_from(ZOO),
)
def test_positive_semidefinite(seed, n, spread, kernel):
    x = spread * np.random.default_rng(seed).normal(size=(n, 3))
    values = kernel(x)
    np.testing.assert_allclose(values, values.T, rtol=1e-9, atol=1e-12)
    assert np.linalg.eigvalsh((values + values.T) / 2).min() >= -1e-11 * np.trace(values)


def test_sums_products_and_scales(rng):
    x, k, l = rng.normal(size=(5, 3)), Gaussian(0.5), Laplace([1.0, 2.0, 3.0])
    np.testing.assert_allclose((k + l)(x), k(x) + l(x))
    np.testing.assert_allclose((k * l)(x), k(x) * l(x))
    for scaled in (3 * k, k * 3.0, np.float64(3) * k, k * torch.tensor(3.0), Scaled(k, 3)):
        assert isinstance(scaled, Scaled)
        np.testing.assert_allclose(scaled(x), 3 * k(x))
    assert isinstance(k + l, Sum)
    assert isinstance(k * l, Product)


@pytest.mark.parametrize("wrong", [0, -1.0, math.nan, math.inf])
def test_scales_must_be_positive(wrong):
    with pytest.raises(ValueError, match="positive, finite"):
        wrong * Gaussian()


@pytest.mark.parametrize("operation", [lambda k: k + 1, lambda k: k * "two", lambda k: k * None])
def test_other_operands_are_type_errors(operation):
    with pytest.raises(TypeError):
        operation(Gaussian())


def test_repr():
    assert repr(Gaussian(0.5)) == "Gaussian(lengthscale=0.5)"
    assert repr(Matern([1.0, 2.0], nu=0.5)) == "Matern(lengthscale=[1., 2.], nu=0.5)"
    total = 2.0 * (Gaussian() + Laplace(3.0)) * InverseMultiquadric()
    assert repr(total) == (
        "2 * (Gaussian(lengthscale=1) + Laplace(lengthscale=3)) * InverseMultiquadric(lengthscale=1)"
    )
    assert repr(CallableKernel(geometric_mean)) == "CallableKernel(geometric_mean)"


@every_kernel
def test_make_kernel_by_name(name, rng):
    x = rng.normal(size=(4, 2))
    np.testing.assert_array_equal(make_kernel(name)(x), make_kernel(name, 1.0)(x))
    assert isinstance(make_kernel(name), Kernel)


def test_make_kernel_passes_kernels_and_wraps_functions():
    kernel = Gaussian()
    assert make_kernel(kernel) is kernel
    assert isinstance(make_kernel(geometric_mean), CallableKernel)


def test_make_kernel_errors():
    with pytest.raises(ValueError, match="gaussain") as unknown:
        make_kernel("gaussain")
    assert all(name in str(unknown.value) for name in FORMULAS)
    for given_kernel in (Gaussian(), geometric_mean):
        with pytest.raises(ValueError, match="lengthscale=None"):
            make_kernel(given_kernel, 2.0)
    with pytest.raises(TypeError, match="a name, a Kernel or a function"):
        make_kernel(3)


@pytest.mark.parametrize("wrong", [0, -1.0, math.nan, math.inf, [1.0, -2.0], torch.tensor(-1.0)])
def test_lengthscales_must_be_positive(wrong):
    with pytest.raises(ValueError, match="lengthscale must be positive and finite"):
        Gaussian(wrong)


@pytest.mark.parametrize("wrong", ["long", None, [], [[1.0]], True])
def test_lengthscales_must_be_numbers(wrong):
    with pytest.raises(ValueError, match="a number or one number per feature"):
        Laplace(wrong)


@every_kernel
def test_as_many_lengthscales_as_features(name):
    for x in (np.ones((4, 3)), sp.csr_matrix(np.ones((4, 3)))):
        with pytest.raises(ValueError, match="2 lengthscales but the points have 3 features"):
            make_kernel(name, [1.0, 2.0])(x)


def test_points_that_do_not_fit():
    with pytest.raises(ValueError, match="3 features on one side and 2"):
        Gaussian()(np.ones((4, 3)), np.ones((4, 2)))
    with pytest.raises(ValueError, match=r"got \(3,\)"):
        Gaussian()(np.ones(3))
    with pytest.raises(TypeError, match="sparse"):
        Gaussian()(np.ones((4, 3)), sp.csr_matrix(np.ones((4, 3))))
    with pytest.raises(ValueError, match=r"nu must be 0.5, 1.5 or 2.5"):
        Matern(nu=2)
