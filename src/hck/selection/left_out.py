"""Observations predicted from all others: with trees, or in small samples with the exact kernel."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from hck.backend import linalg
from hck.errors import NotPositiveDefiniteError
from hck.hierarchy.blueprint import Blueprint
from hck.hierarchy.kernel import HierarchicalKernel
from hck.hierarchy.leave_one_out import LeftOut, leave_one_out
from hck.points import KernelBlocks
from hck.selection.loss import Loss
from hck.selection.observations import Observations
from hck.selection.space import Space


@torch.no_grad()
def left_out_means(
    data: Observations, alphas: list[float], plans: Iterable[Blueprint]
) -> list[np.ndarray]:  # fmt: skip
    """For each alpha, every observation predicted from all others: arrays of shape (n, columns).

    Averaged over trees. Tree, landmarks and the kernel's blocks are computed once for all alphas. NaN where
    the matrix is not positive definite.
    """
    y, trees = data.columns, 0
    total = [np.zeros(tuple(y.shape)) for _ in alphas]
    relative = 1.0 if data.noise is None else data.noise.to(data.points.device)
    for plan in plans:
        trees += 1
        found = left_out_each(plan, y, [alpha * relative for alpha in alphas])
        for each, left_out in zip(total, found, strict=True):
            each += np.nan if left_out is None else left_out.mean.double().cpu().numpy()
    return [each / trees for each in total]


def left_out_each(
    blueprint: Blueprint, y: Tensor, noises: Sequence[float | Tensor]
) -> Iterator[LeftOut | None]:
    """What all others say about each observation, for one noise after another.

    The kernel's blocks are computed once. None where the matrix is not positive definite.
    """
    hierarchical = HierarchicalKernel.of(blueprint)
    for noise in noises:
        try:
            factor = hierarchical.factor(noise)
            yield leave_one_out(y, factor.solve(y.to(factor.device, factor.dtype)), factor.inverse_diagonal())
        except NotPositiveDefiniteError:
            yield None


@torch.no_grad()
def left_out_loss(
    space: Space, theta: np.ndarray, sample: Observations, loss: Loss
) -> tuple[float, np.ndarray]:  # fmt: skip
    """The loss of left-out observations with the exact kernel, and its gradient by theta.

    ::

        Q = (K + noise)⁻¹,   w = Q y,   μ_i = y_i − w_i / Q_ii
        ∂loss/∂K = Q (g/q) wᵀ − Q diag(g w / q²) Q,   with g = ∂loss/∂μ and q the diagonal of Q

    It takes O(n³) operations and O(n²) memory.

    Parameters
    ----------
    space : Space
        With the noise relative to that of each observation, if `sample` has any.
    """
    points = sample.points
    y = sample.columns.to(points.device, points.dtype)
    kernel, noise, tensors = space.tensors_at(theta, points.device, points.dtype)
    assert noise is not None
    pairs = KernelBlocks.between(kernel, points, points)
    matrix = pairs.tensor()[0]
    relative = y.new_ones(len(y)) if sample.noise is None else sample.noise.to(y)
    matrix.diagonal().add_(noise.detach() * relative)
    inverse = torch.cholesky_inverse(linalg.cholesky(matrix, "the kernel's matrix on a sample"))
    solved, diagonal = inverse @ y, inverse.diagonal()
    predicted = (y - solved / diagonal[:, None]).double().cpu().numpy()
    value, by_prediction = loss.with_gradient(predicted)
    slope = torch.from_numpy(by_prediction).to(y)
    weight = (inverse @ (slope / diagonal[:, None])) @ solved.mT
    weight -= inverse @ ((slope * solved).sum(1) / diagonal.square())[:, None].mul(inverse)
    weight = (weight + weight.mT) / 2
    found = kernel.gradient_of_sum(pairs, weight[None])
    at_noise = (weight.diagonal() * relative).sum()
    known = {id(tensor): part for tensor, part in zip(kernel.tensors(), found, strict=True)}
    gradient = [at_noise if tensor is noise else known[id(tensor)] for tensor in tensors]
    return value, space.log_gradient(theta, gradient)
