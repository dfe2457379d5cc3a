"""Parameters as one vector of logarithms, by scikit-learn's names."""

import numpy as np
import pytest
import torch
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from hck.kernels import Gaussian, Laplace, Matern, Periodic, RationalQuadratic, make_kernel

KERNELS = {
    "one": Gaussian(0.5),
    "each": 2.0 * Matern([0.4, 0.9]),
    "sum": 0.5 * (Matern(0.6, nu=0.5) * Gaussian([1.0, 2.0]) + 2.0 * Laplace([0.7, 0.4])),
    "shape": RationalQuadratic(0.5, alpha=2.0) + Periodic([1.0, 2.0], period=3.0),
    "metric": 3.0 * Matern([1.0, 0.3], metric=[[1.0, 2.0], [0.0, 1.0], [4.0, 1.0]]),
    "tensor": torch.tensor(2.0, requires_grad=True) * Gaussian(torch.tensor([1.0, 2.0], requires_grad=True)),
}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_theta_and_back(kernel):
    values = [np.atleast_1d(torch.as_tensor(v).detach().numpy()) for v in kernel.parameters().values()]
    np.testing.assert_allclose(np.exp(kernel.theta), np.concatenate(values), rtol=1e-6)
    assert kernel.n_dims == len(kernel.theta) == len(kernel.bounds)
    assert (kernel.bounds[:, 0] < kernel.theta).all()
    assert (kernel.theta < kernel.bounds[:, 1]).all()
    moved = kernel.clone_with_theta(kernel.theta + np.arange(kernel.n_dims))
    assert type(moved) is type(kernel)
    np.testing.assert_allclose(moved.theta, kernel.theta + np.arange(kernel.n_dims), rtol=1e-12, atol=1e-12)
    d = 3 if kernel is KERNELS["metric"] else 2
    x = torch.from_numpy(np.random.default_rng(0).uniform(size=(5, d)))
    again = kernel.clone_with_theta(kernel.theta)
    torch.testing.assert_close(again.evaluate(x, x), kernel.evaluate(x, x).detach().double())


def test_it_is_that_of_scikit_learn():
    ours, theirs = 1.7 * Gaussian([0.4, 0.9]), ConstantKernel(1.7) * RBF([0.4, 0.9])
    order = [1, 2, 0]  # here the scale comes last
    np.testing.assert_allclose(ours.theta, theirs.theta[order])
    x, theta = np.random.default_rng(0).uniform(size=(5, 2)), np.array([0.1, -0.2, 0.3])
    moved = theirs.clone_with_theta(theta)
    np.testing.assert_allclose(ours.clone_with_theta(theta[order])(x), moved(x), rtol=1e-12)


def test_nothing_to_learn():
    kernel = make_kernel(lambda a, b: a @ b.T)
    assert kernel.theta.shape == (0,)
    assert kernel.bounds.shape == (0, 2)
    assert kernel.clone_with_theta([]) is kernel


@pytest.mark.parametrize("theta", [0.0, [0.0], np.zeros(3), np.zeros((1, 2))], ids=np.shape)
def test_theta_of_the_wrong_shape(theta):
    with pytest.raises(ValueError, match=r"theta must have shape \(2,\)"):
        (2.0 * Gaussian(1.0)).clone_with_theta(theta)
