"""Gradients through factors and solutions, against finite differences."""

import pytest
import torch
from torch.autograd import gradcheck

from hck.branches.ridge import ridge
from hck.hierarchy import HierarchicalKernel
from hck.hierarchy.blueprint import Blueprint
from hck.kernels import Gaussian
from hck.settings import Settings

pytestmark = pytest.mark.usefixtures("one_thread")

X = torch.rand(40, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
B = torch.rand(40, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
NOISE = 0.1 + torch.rand(40, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


def wanted(value):
    return value.clone().requires_grad_()


def factor(lengthscale=0.5, noise=NOISE):
    kernel = Gaussian(lengthscale)
    return HierarchicalKernel.build(kernel, X, 5, jitter=1e-6).factor(noise)


def test_solution_by_right_hand_sides():
    assert gradcheck(lambda b: factor().solve(b), wanted(B))


def test_solution_and_log_determinant_by_noise():
    assert gradcheck(lambda noise: factor(noise=noise).solve(B), wanted(NOISE))
    assert gradcheck(lambda noise: factor(noise=noise).log_determinant, wanted(NOISE))


def test_solution_and_log_determinant_by_lengthscales():
    scales = torch.tensor([0.4, 0.7], dtype=torch.float64)
    assert gradcheck(lambda scale: factor(scale).log_determinant, wanted(scales))
    assert gradcheck(lambda scale: factor(scale).solve(B), wanted(scales))


@pytest.mark.parametrize("depth", [0, 2])
def test_ridge_by_lengthscales(depth):
    def weights(scale):
        return ridge(Blueprint.of(Gaussian(scale), X, Settings(5, jitter=1e-6)), NOISE, B, depth).weights

    assert gradcheck(weights, wanted(torch.tensor([0.4, 0.7], dtype=torch.float64)))
