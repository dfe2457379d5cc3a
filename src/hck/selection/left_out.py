"""A lengthscale for each feature by the loss of left-out observations, on small samples."""

import numpy as np
import torch
from torch import Tensor

from hck.backend import linalg
from hck.points import Values
from hck.selection.likelihood import Observations
from hck.selection.loss import Loss
from hck.selection.space import Space


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
    y = (sample.y if sample.y.ndim == 2 else sample.y[:, None]).to(points.device, points.dtype)
    kernel, noise, tensors = space.tensors_at(theta, points.device, points.dtype)
    assert noise is not None
    pairs = Values.between(kernel, points, points)
    matrix, relative = pairs.tensor()[0], _relative_noise(sample, y)
    matrix.diagonal().add_(noise.detach() * relative)
    inverse = torch.cholesky_inverse(linalg.cholesky(matrix, "the kernel's matrix on a sample"))
    solved, diagonal = inverse @ y, inverse.diagonal()
    predicted = (y - solved / diagonal[:, None]).double().cpu().numpy()
    slope = torch.from_numpy(loss.gradient(predicted)).to(y)
    weight = (inverse @ (slope / diagonal[:, None])) @ solved.mT
    weight -= inverse @ ((slope * solved).sum(1) / diagonal.square())[:, None].mul(inverse)
    weight = (weight + weight.mT) / 2
    found = kernel.pull(pairs, weight[None])
    at_noise = (weight.diagonal() * relative).sum()
    known = {id(tensor): part for tensor, part in zip(kernel.tensors(), found, strict=True)}
    gradient = [at_noise if tensor is noise else known[id(tensor)] for tensor in tensors]
    return loss(predicted), space.log_gradient(theta, gradient)


def _relative_noise(sample: Observations, like: Tensor) -> Tensor:
    return like.new_ones(len(like)) if sample.noise is None else sample.noise.to(like)
