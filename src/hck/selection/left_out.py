"""Observations predicted from all others: with trees, or in small samples with the exact kernel.

And what follows from that for the weights of several models.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.optimize import nnls
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
def left_out_means(data: Observations, alphas: list[float], trees: Iterable[Blueprint]) -> list[np.ndarray]:
    """For each alpha, every observation predicted from all others: arrays of shape (n, columns).

    Averaged over trees. Tree, landmarks and the kernel's blocks are computed once for all alphas. NaN where
    the matrix is not positive definite.
    """
    y, count = data.columns, 0
    total = [np.zeros(tuple(y.shape)) for _ in alphas]
    relative = 1.0 if data.noise is None else data.noise.to(data.points.device)
    for tree in trees:
        count += 1
        found = left_out_each(tree, y, [alpha * relative for alpha in alphas])
        for each, left_out in zip(total, found, strict=True):
            each += np.nan if left_out is None else left_out.mean.double().cpu().numpy()
    return [each / count for each in total]


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
) -> tuple[float, np.ndarray]:
    """The loss of left-out observations with the exact kernel, and its gradient by theta.

    ::

        Q = (K + noise)⁻¹,   w = Q y,   μ_i = y_i − w_i / Q_ii
        ∂loss/∂K = Q (g/q) wᵀ − Q diag(g w / q²) Q,   with g = ∂loss/∂μ and q the diagonal of Q

    It takes O(n³) operations and O(n²) memory. If the sample has a noise for each observation, that of the
    space is relative to it.
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


def blend_weights(
    predicted: Sequence[np.ndarray], y: np.ndarray, weight: ArrayLike | None = None
) -> np.ndarray:
    """Weights, none negative and 1 in all, with which a mean of predictions has the least squared error.

    Stacking (Wolpert, 1992; Breiman, 1996), with what each model predicts (n, columns) of left-out
    observations, which may have weights (n,). Those below a hundredth are 0.

    Examples
    --------
    >>> y = np.array([[1.0], [2.0], [3.0]])
    >>> blend_weights([y + 1, y - 1], y).round(6)
    array([0.5, 0.5])
    """
    scale = np.ones((len(y), 1)) if weight is None else np.sqrt(np.asarray(weight))[:, None]
    rest = np.stack([((each - y) * scale).ravel() for each in predicted], 1)
    # Σ w = 1, so that the error of the mean is the mean of errors: minimise ‖rest w‖ with a heavy row for Σ w
    root = np.asarray(np.linalg.qr(rest, mode="r"))
    heavy = 1e4 * max(float(np.abs(root).max()), 1e-300)
    found = nnls(np.vstack([root, np.full((1, root.shape[1]), heavy)]), np.r_[np.zeros(len(root)), heavy])[0]
    found = np.where(found < 0.01, 0, found)
    return found / found.sum()
