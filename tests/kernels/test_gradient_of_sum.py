"""Gradients by a kernel's parameters."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from block_tables import FULL, PADDED
from composed_kernels import dot, every_composed, every_kernel, every_scale, plain
from hck.kernels import CallableKernel, Gaussian, Laplace, Matern, make_kernel
from hck.points import KernelBlocks, as_points


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


def test_only_what_requires_a_gradient_is_pulled(points):
    rows, columns = PADDED
    weight = torch.ones(3, 4, 3, dtype=torch.float64)
    fixed = 2.0 * Gaussian(0.5) + Laplace(1.5)
    assert fixed.gradient_of_sum(KernelBlocks(fixed, points, rows, points, columns), weight) == []
    scale = torch.tensor(1.5, dtype=torch.float64).requires_grad_()
    partly = fixed.with_parameters({"right.lengthscale": scale})
    (found,) = partly.gradient_of_sum(KernelBlocks(partly, points, rows, points, columns), weight)
    (alone,) = Laplace(scale).gradient_of_sum(
        KernelBlocks(Laplace(scale), points, rows, points, columns), weight
    )
    torch.testing.assert_close(found, alone)
    product = (Gaussian(0.5) * Laplace(1.5)).with_parameters({"right.lengthscale": scale})
    (found,) = product.gradient_of_sum(KernelBlocks(product, points, rows, points, columns), weight)
    near = KernelBlocks(product, points, rows, points, columns).of(Gaussian(0.5))
    (alone,) = Laplace(scale).gradient_of_sum(
        KernelBlocks(product, points, rows, points, columns), near * weight
    )
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
