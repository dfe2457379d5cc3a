"""Parameters of kernels by name, and the gradient of a weighted sum of values against autograd."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from hck.backend.blocks import Blocks
from hck.kernels import (
    CallableKernel,
    Gaussian,
    InverseMultiquadric,
    Laplace,
    Matern,
    kernel_names,
    make_kernel,
)
from hck.points import KernelBlocks, as_points

NAMES = kernel_names()
SCALES = {"one": 0.7, "ard": [0.5, 1.0, 2.5]}
every_kernel = pytest.mark.parametrize("name", NAMES)
every_scale = pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)


def dot(a, b):
    """A kernel with nothing to learn."""
    return 1 + a @ b.T


# Each kernel made of others, and the names of its parameters.
COMPOSED = {
    "scaled": (2.0 * Gaussian(0.5), ["lengthscale", "scale"]),
    "sum": (
        Gaussian(0.5) + Laplace([1.0, 2.0, 3.0]),
        ["left.lengthscale", "right.lengthscale"],
    ),
    "product": (Matern(0.5) * Laplace(3.0), ["left.lengthscale", "right.lengthscale"]),
    "scaled_sum": (
        2.0 * (3.0 * Gaussian(0.5) + Matern(2.0, nu=2.5)),
        ["left.lengthscale", "left.scale", "right.lengthscale", "scale"],
    ),
    "deep": (
        0.5 * (2.0 * Gaussian(0.5) + Laplace(1.5) * (3.0 * InverseMultiquadric([1.0, 2.0, 0.5]))),
        [
            "left.lengthscale",
            "left.scale",
            "right.left.lengthscale",
            "right.right.lengthscale",
            "right.right.scale",
            "scale",
        ],
    ),
    "scaled_twice": (2.0 * (3.0 * Gaussian(0.5)), ["lengthscale", "inner.scale", "scale"]),
    "scaled_product_of_scaled": (
        2.0 * ((3.0 * Gaussian(0.5)) * (4.0 * Laplace(1.5))),
        ["left.lengthscale", "left.scale", "right.lengthscale", "right.scale", "scale"],
    ),
    "function": (2.0 * CallableKernel(dot) + Gaussian(1.0), ["left.scale", "right.lengthscale"]),
}
every_composed = pytest.mark.parametrize(("kernel", "names"), COMPOSED.values(), ids=COMPOSED)
X = np.random.default_rng(0).normal(size=(6, 3))


def plain(kernel):
    """Parameters as lists and floats."""
    return {name: np.asarray(value).tolist() for name, value in kernel.parameters().items()}


# Names and values ---------------------------------------------------------------------------------------


@every_kernel
@every_scale
def test_a_kernel_has_its_lengthscale(name, scale):
    kernel = make_kernel(name, scale)
    assert plain(kernel) == {"lengthscale": scale}
    other = kernel.with_parameters({"lengthscale": 3 * np.asarray(scale)})
    assert type(other) is type(kernel)
    np.testing.assert_allclose(other(X), make_kernel(name, 3 * np.asarray(scale))(X), rtol=1e-12)
    assert plain(kernel) == {"lengthscale": scale}


@every_composed
def test_names_of_kernels_made_of_kernels(kernel, names):
    assert list(kernel.parameters()) == names


@every_composed
def test_its_own_parameters_change_nothing(kernel, names):
    again = kernel.with_parameters(kernel.parameters())
    assert repr(again) == repr(kernel)
    np.testing.assert_array_equal(again(X), kernel(X))


@every_composed
def test_each_parameter_can_be_changed_alone(kernel, names):
    before, shape = plain(kernel), kernel(X)
    for name in names:
        value = (1.5 * np.asarray(before[name])).tolist()
        changed = kernel.with_parameters({name: value})
        assert plain(changed) == {**before, name: value}
        assert not np.allclose(changed(X), shape)
        assert plain(kernel) == before


@every_composed
def test_all_parameters_can_be_changed_at_once(kernel, names):
    values = {name: (1.5 * np.asarray(value)).tolist() for name, value in plain(kernel).items()}
    assert plain(kernel.with_parameters(values)) == values


def test_the_numbers_that_parameters_mean():
    kernel = 2.0 * (3.0 * Gaussian(0.5) + Laplace(1.5))
    changed = kernel.with_parameters({"left.scale": 5.0, "right.lengthscale": 0.7, "scale": 4.0})
    np.testing.assert_allclose(changed(X), 4 * (5 * Gaussian(0.5)(X) + Laplace(0.7)(X)), rtol=1e-12)
    kernel = 2.0 * (3.0 * Gaussian(0.5))
    np.testing.assert_allclose(
        kernel.with_parameters({"inner.scale": 5.0})(X), 2 * 5 * Gaussian(0.5)(X), rtol=1e-12
    )


def test_three_scales_of_one_kernel_are_three_parameters():
    kernel = 2.0 * (3.0 * (4.0 * Gaussian(0.5)))
    assert sorted(v for name, v in kernel.parameters().items() if "scale" in name.split(".")) == [2, 3, 4]
    again = kernel.with_parameters(kernel.parameters())
    np.testing.assert_allclose(again(X), 24 * Gaussian(0.5)(X), rtol=1e-12)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_smoothness_is_kept(nu):
    assert Matern(1.0, nu=nu).with_parameters({"lengthscale": 2.0}).nu == nu


def test_a_function_has_no_parameters():
    kernel = CallableKernel(dot)
    assert kernel.parameters() == {}
    assert kernel.with_parameters({}) is kernel


@pytest.mark.parametrize(
    ("kernel", "known"),
    [
        (Gaussian(1.0), "lengthscale"),
        (2.0 * Gaussian(1.0) + Laplace(1.0), "left.lengthscale, left.scale, right.lengthscale"),
        (CallableKernel(dot), "none"),
    ],
    ids=["one", "sum", "function"],
)
@pytest.mark.parametrize("name", ["sigma", "left.sigma", "scale.lengthscale", ""])
def test_unknown_names(kernel, known, name):
    with pytest.raises(ValueError, match=rf"no parameter '{name}'; it has: {known}$"):
        kernel.with_parameters({name: 1.0})


@pytest.mark.parametrize(
    "values", [{"lengthscale": 0.0}, {"lengthscale": [1.0, -1.0]}, {"scale": -2.0}, {"scale": np.nan}]
)
def test_values_must_be_positive(values):
    with pytest.raises(ValueError, match="positive"):
        (2.0 * Gaussian(1.0)).with_parameters(values)


# Tensors and gradients ----------------------------------------------------------------------------------


def with_gradients(kernel, dtype=torch.float64):
    """The kernel with tensors that require a gradient as parameters, and these."""
    tensors = {
        name: torch.tensor(np.asarray(value), dtype=dtype).requires_grad_()
        for name, value in kernel.parameters().items()
    }
    return kernel.with_parameters(tensors), list(tensors.values())


@every_composed
def test_tensors_are_the_parameters_that_require_a_gradient(kernel, names):
    assert kernel.tensors() == []
    learnt, tensors = with_gradients(kernel)
    assert len(learnt.tensors()) == len(names)
    assert all(any(tensor is found for found in learnt.tensors()) for tensor in tensors)
    for name in names:
        alone = torch.tensor(np.asarray(plain(kernel)[name])).requires_grad_()
        (found,) = kernel.with_parameters({name: alone}).tensors()
        assert found is alone


def table(rows, width, full):
    """Blocks of positions, padded with −1."""
    index = torch.full((len(rows), width), -1)
    for row, positions in zip(index, rows, strict=True):
        row[: len(positions)] = torch.tensor(positions)
    return Blocks(index, full)


FULL = (table([[0, 1, 2], [3, 4, 5], [6, 7, 8]], 3, True), table([[0, 1], [2, 3], [8, 4]], 2, True))
PADDED = (table([[0, 1, 2], [3, 4], [6]], 4, False), table([[0, 1], [2], [8, 4, 6]], 3, False))


@pytest.fixture
def points():
    x = np.random.default_rng(1).normal(size=(9, 3))
    x[1] = x[0]  # equal points, and each point meets itself
    return as_points(x)


def gradients(kernel, points, rows, columns, dtype=torch.float64):
    """Gradients by `gradient_of_sum`, and by autograd of `evaluate` on what is no padding."""
    learnt, tensors = with_gradients(kernel, dtype)
    size = (len(rows), rows.index.shape[1], columns.index.shape[1])
    weight = torch.randn(size, generator=torch.Generator().manual_seed(2), dtype=torch.float64).to(dtype)
    with torch.no_grad():
        found = learnt.gradient_of_sum(KernelBlocks(learnt, points, rows, points, columns), weight)
    total = torch.zeros((), dtype=dtype)
    for i, j, w in zip(rows.index, columns.index, weight, strict=True):
        i, j = i[i >= 0], j[j >= 0]
        total = total + (learnt.evaluate(points.x[i], points.x[j]) * w[: len(i), : len(j)]).sum()
    expected = torch.autograd.grad(total, tensors)
    order = [next(k for k, t in enumerate(learnt.tensors()) if t is tensor) for tensor in tensors]
    return [found[k] for k in order], list(expected)


@every_kernel
@every_scale
@pytest.mark.parametrize("blocks", [FULL, PADDED], ids=["full", "padded"])
def test_gradient_of_base_kernels(name, scale, blocks, points):
    found, expected = gradients(make_kernel(name, scale), points, *blocks)
    assert float(expected[0].abs().max()) > 0.01
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)


@every_composed
@pytest.mark.parametrize("blocks", [FULL, PADDED], ids=["full", "padded"])
def test_gradient_of_kernels_made_of_kernels(kernel, names, blocks, points):
    found, expected = gradients(kernel, points, *blocks)
    assert len(found) == len(names)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)


@every_kernel
def test_gradient_far_from_the_origin(name, points):
    found, expected = gradients(make_kernel(name, [0.5, 1.0, 2.5]), as_points(points.x + 1e3), *PADDED)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-8)


@every_kernel
def test_gradient_in_single_precision(name, points):
    found, expected = gradients(
        make_kernel(name, [0.5, 1.0, 2.5]), as_points(points.x.float()), *PADDED, dtype=torch.float32
    )
    assert found[0].dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@every_kernel
@every_scale
def test_gradient_against_differences(name, scale, points):
    """Autograd of `evaluate` could be wrong in the same way."""
    rows, columns = PADDED
    kernel = 1.5 * make_kernel(name, scale)
    found, _ = gradients(kernel, points, rows, columns)
    size = (len(rows), rows.index.shape[1], columns.index.shape[1])
    weight = torch.randn(size, generator=torch.Generator().manual_seed(2), dtype=torch.float64)

    def total(values):
        other = kernel.with_parameters(values)
        return float((KernelBlocks(other, points, rows, points, columns).tensor() * weight).sum())

    for (parameter, value), gradient in zip(plain(kernel).items(), found, strict=True):
        for i in range(np.size(value)):
            move = 1e-5 * np.eye(np.size(value))[i].reshape(np.shape(value))
            ends = [total({parameter: np.asarray(value) + sign * move}) for sign in (1, -1)]
            expected = (ends[0] - ends[1]) / 2e-5
            assert float(gradient.reshape(-1)[i]) == pytest.approx(expected, rel=1e-6, abs=1e-7)


def test_only_what_requires_a_gradient_has_one(points):
    rows, columns = PADDED
    weight = torch.ones(3, 4, 3, dtype=torch.float64)
    fixed = 2.0 * Gaussian(0.5) + Laplace(1.5)
    assert fixed.gradient_of_sum(KernelBlocks(fixed, points, rows, points, columns), weight) == []
    scale = torch.tensor(1.5, dtype=torch.float64).requires_grad_()
    partly = fixed.with_parameters({"right.lengthscale": scale})
    (found,) = partly.gradient_of_sum(KernelBlocks(partly, points, rows, points, columns), weight)
    pairs = KernelBlocks(Laplace(scale), points, rows, points, columns)
    (alone,) = Laplace(scale).gradient_of_sum(pairs, weight)
    torch.testing.assert_close(found, alone)
    product = (Gaussian(0.5) * Laplace(1.5)).with_parameters({"right.lengthscale": scale})
    pairs = KernelBlocks(product, points, rows, points, columns)
    (found,) = product.gradient_of_sum(pairs, weight)
    (alone,) = Laplace(scale).gradient_of_sum(pairs, pairs.of(Gaussian(0.5)) * weight)
    torch.testing.assert_close(found, alone)


def test_gradient_leaves_weights_alone(points):
    rows, columns = PADDED
    weight = torch.ones(3, 4, 3, dtype=torch.float64)
    for kernel in (Gaussian(0.5), Gaussian(0.5) * Laplace(1.5), 2.0 * Matern(1.0) + Laplace(2.0)):
        learnt, _ = with_gradients(kernel)
        with torch.no_grad():
            learnt.gradient_of_sum(KernelBlocks(learnt, points, rows, points, columns), weight)
        assert torch.equal(weight, torch.ones_like(weight))


@pytest.mark.parametrize("blocks", [FULL, PADDED], ids=["full", "padded"])
def test_gradient_of_the_scale_of_a_function(blocks, points):
    scaled = 3.0 * CallableKernel(dot)
    found, expected = gradients(scaled, points, *blocks)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


@every_kernel
@every_scale
def test_gradient_on_sparse_points_is_that_on_dense_ones(name, scale, points):
    x = np.where(np.abs(points.x.numpy()) < 0.5, 0, points.x.numpy())
    rows, columns = PADDED
    weight = torch.randn(3, 4, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    found = []
    for form in (np.asarray, sp.csr_matrix):
        learnt, _ = with_gradients(2.0 * make_kernel(name, scale))
        same = as_points(form(x))
        with torch.no_grad():
            found.append(learnt.gradient_of_sum(KernelBlocks(learnt, same, rows, same, columns), weight))
    torch.testing.assert_close(found[1], found[0], rtol=1e-8, atol=1e-10)
