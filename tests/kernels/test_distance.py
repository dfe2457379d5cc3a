"""Distances, what rounding does to kernels of near points, gradients, and functions as kernels."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from hck.kernels import CallableKernel, Gaussian, InverseMultiquadric, Matern, kernel_names, make_kernel
from hck.kernels.distance import manhattan, sqrt, squared_euclidean
from hck.kernels.placement import divide


def euclidean(a, b):
    return sqrt(squared_euclidean(a, b))


DISTANCES = {"sqeuclidean": squared_euclidean, "euclidean": euclidean, "cityblock": manhattan}
NAMES = kernel_names()
every_distance = pytest.mark.parametrize("metric", DISTANCES)


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@every_distance
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-13)])
def test_distances_are_those_of_scipy(metric, dtype, tolerance, rng):
    a, b = (torch.tensor(rng.normal(size=(2, n, 4)), dtype=dtype) for n in (6, 5))
    values = DISTANCES[metric](a, b)
    assert values.dtype == dtype
    for i in range(2):
        np.testing.assert_allclose(values[i], cdist(a[i], b[i], metric), rtol=tolerance, atol=tolerance)


@every_distance
def test_sparse_distances_are_the_dense_ones(metric, rng):
    a, b = (rng.normal(size=(n, 9)) * (rng.random((n, 9)) < 0.3) for n in (6, 5))
    values = DISTANCES[metric](sp.csr_matrix(a), sp.csr_matrix(b))
    np.testing.assert_allclose(values, cdist(a, b, metric), rtol=0, atol=1e-13)


@pytest.mark.parametrize("scale", [2.0, torch.tensor([1.0, 2.0, 4.0])], ids=["one", "ard"])
def test_features_are_divided(scale, rng):
    x = rng.normal(size=(5, 3)) * (rng.random((5, 3)) < 0.5)
    divided = x / np.asarray(scale)
    np.testing.assert_allclose(divide(torch.tensor(x), scale), divided)
    np.testing.assert_allclose(divide(sp.csr_matrix(x), scale).toarray(), divided)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 30),
    d=st.integers(1, 200),
    offset=st.sampled_from([0.0, 1.0, 1e4, 1e8]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    sparse=st.booleans(),
)
def test_equal_points_are_at_distance_zero_and_no_distance_is_negative(seed, n, d, offset, dtype, sparse):
    x = torch.tensor(np.random.default_rng(seed).normal(size=(n, d)) + (0 if sparse else offset), dtype=dtype)
    block = sp.csr_matrix(x.numpy()) if sparse else x
    assert (squared_euclidean(block, block) >= 0).all()
    assert (euclidean(block, block).diagonal() == 0).all()
    assert (manhattan(block, block).diagonal() == 0).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [0.7, [0.7, 1.1, 2.3]], ids=["one", "ard"])
def test_far_from_the_origin(name, scale, rng):
    far, kernel = rng.normal(size=(20, 3)) + 1e4, make_kernel(name, scale)
    near = far - 1e4  # exactly
    own = kernel.diagonal(torch.tensor(far)).numpy()
    np.testing.assert_allclose(np.diag(kernel(far)), own, rtol=0, atol=1e-9)
    np.testing.assert_allclose(kernel(far), kernel(near), rtol=0, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [1, 3, 100, 1000])
def test_matern_12_of_equal_points_is_exactly_1(dtype, d, rng):
    x = (rng.normal(size=(30, d)) + 1e4).astype(dtype)
    assert (np.diag(Matern(0.3, nu=0.5)(x)) == 1).all()


def test_inverse_multiquadric_of_equal_points_is_the_lengthscale(rng):
    x = rng.normal(size=(5, 2)) + 1e4
    np.testing.assert_allclose(np.diag(InverseMultiquadric(2.5)(x)), 2.5, rtol=1e-9)
    np.testing.assert_allclose(np.diag(InverseMultiquadric([2.0, 8.0])(x)), 4.0, rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [0.8, [0.8, 1.5, 3.0]], ids=["one", "ard"])
def test_gradient_in_the_lengthscale(name, scale, rng):
    a = torch.tensor(rng.normal(size=(2, 5, 3)))
    b = torch.cat([a[:, :2], torch.tensor(rng.normal(size=(2, 3, 3)))], 1)  # two points coincide
    lengthscale = torch.tensor(scale, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s: make_kernel(name, s).evaluate(a, b), (lengthscale,))
    assert torch.autograd.gradcheck(lambda s: make_kernel(name, s).diagonal(a) * s.sum(), (lengthscale,))


@pytest.mark.parametrize("name", NAMES)
def test_gradient_is_finite_where_all_points_coincide(name):
    x = torch.full((4, 2), 3.7, dtype=torch.float64, requires_grad=True)
    lengthscale = torch.ones(2, dtype=torch.float64, requires_grad=True)
    make_kernel(name, lengthscale).evaluate(x, x).sum().backward()
    assert torch.isfinite(x.grad).all()
    # only the amplitude of the inverse multiquadric, √(σ₁σ₂), depends on σ there
    expected = 16 / 2 if name == "inverse_multiquadric" else 0.0
    np.testing.assert_allclose(lengthscale.grad, expected, atol=1e-12)


def test_gradient_in_a_scale(rng):
    x, kernel = torch.tensor(rng.normal(size=(5, 3))), Gaussian(0.5)
    scale = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    (scale * kernel)(x).sum().backward()
    assert scale.grad.item() == pytest.approx(kernel(x).sum().item())


def test_a_lengthscale_with_gradient_takes_arrays_too(rng):
    x = rng.normal(size=(4, 2))
    lengthscale = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    for block in (x, sp.csr_matrix(x)):
        for name in NAMES:
            values = make_kernel(name, lengthscale)(block)
            assert isinstance(values, np.ndarray)
            np.testing.assert_allclose(values, make_kernel(name, 2.0)(x), rtol=0, atol=1e-12)


@pytest.mark.parametrize("layout", ["reversed", "read-only", "fortran"])
def test_arrays_of_any_layout_are_taken(layout, rng):
    x = np.asfortranarray(rng.normal(size=(5, 2)))
    same = x[::-1].copy()[::-1] if layout == "reversed" else x.copy(order="K")
    same.flags.writeable = layout != "read-only"
    torch.set_warn_always(True)  # else torch warns of read-only arrays once in a process
    try:
        np.testing.assert_array_equal(Gaussian()(same), Gaussian()(x.copy(order="C")))
    finally:
        torch.set_warn_always(False)


# Functions as kernels -----------------------------------------------------------------------------


def shared_letters(a, b):
    return np.array([[len(set(s) & set(t)) for t in b] for s in a], dtype=float)


def test_function_of_arrays_sees_one_block_at_a_time(rng):
    seen = []

    def linear(a, b):
        seen.append((a, b))
        return a @ b.T

    kernel = CallableKernel(linear)
    a, b = rng.normal(size=(2, 3, 5, 2)), rng.normal(size=(2, 3, 4, 2))
    values = kernel(torch.tensor(a), torch.tensor(b))
    np.testing.assert_allclose(values, a @ b.transpose(0, 1, 3, 2))
    assert len(seen) == 6
    assert all(isinstance(x, np.ndarray) and x.ndim == 2 for pair in seen for x in pair)
    assert isinstance(kernel(a[0, 0], b[0, 0]), np.ndarray)
    assert kernel(torch.tensor(a[0]).float(), torch.tensor(b[0]).float()).dtype == torch.float32


def test_batched_function_sees_tensors_and_keeps_gradients(rng):
    a = torch.tensor(rng.normal(size=(3, 5, 2)))
    scale = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    kernel = CallableKernel(lambda x, y: scale * x @ y.mT, batched=True)
    torch.testing.assert_close(kernel(a), 2 * a @ a.mT)
    kernel(a).sum().backward()
    assert scale.grad.item() == pytest.approx((a @ a.mT).sum().item())


def test_function_of_sparse_matrices(rng):
    x = rng.normal(size=(5, 4)) * (rng.random((5, 4)) < 0.5)

    def linear(a, b):
        assert sp.issparse(a)
        assert a.format == b.format == "csr"
        return (a @ b.T).toarray()

    kernel, block = CallableKernel(linear), sp.csr_matrix(x)
    np.testing.assert_allclose(kernel(block), x @ x.T)
    np.testing.assert_allclose(kernel.diagonal(block), (x**2).sum(1))


def test_function_of_objects():
    words = np.array(["tree", "leaf", "root"], dtype=object)
    others = np.array(["trunk", "bark"], dtype=object)
    kernel = CallableKernel(shared_letters)
    assert kernel.evaluate(words, others).tolist() == shared_letters(words, others).tolist()
    assert kernel.diagonal(words).tolist() == [3, 4, 3]  # t r e, l e a f, r o t


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a, b: (a @ b.swapaxes(-1, -2))[..., :-1], "one value for each pair"),
        (lambda a, b: (a @ b.swapaxes(-1, -2)) * float("nan"), "NaN or infinity"),
        (lambda a, b: (a @ b.swapaxes(-1, -2)) / 0.0, "NaN or infinity"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_wrong_values_are_errors_that_name_the_function(batched, function, message):
    function.__name__ = "my_kernel"
    with pytest.raises(ValueError, match=f"my_kernel.*{message}"):
        CallableKernel(function, batched)(np.ones((3, 2)), np.ones((4, 2)))


def test_functions_may_return_views(rng):
    x = rng.normal(size=(4, 2))
    np.testing.assert_allclose(CallableKernel(lambda a, b: (a @ b.T)[::-1].copy()[::-1])(x), x @ x.T)


def test_something_that_is_no_function():
    with pytest.raises(TypeError, match="a function"):
        CallableKernel(3)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_large_blocks_are_small_ones(name, dtype, rng):
    """A formula is applied to large blocks in place and by parts, each with the rounding of its member."""
    x = torch.tensor(rng.normal(size=(2, 300, 4)) * [[[1.0]], [[1e-3]]], dtype=dtype)
    x[:, 200:] = x[:, :100]
    kernel = 2.5 * make_kernel(name, [0.5, 1.0, 1.5, 2.0])
    whole = kernel(x)
    for i in range(2):
        for rows in (slice(0, 10), slice(195, 205), slice(299, 300)):
            part = kernel(x[i, rows], x[i])
            torch.testing.assert_close(
                whole[i, rows], part, rtol=0, atol=1e-5 if x.dtype == torch.float32 else 1e-12
            )
    assert (
        whole[:, :100, 200:].diagonal(dim1=-2, dim2=-1) == whole[:, :100, :100].diagonal(dim1=-2, dim2=-1)
    ).all()
