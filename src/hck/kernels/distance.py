"""Distances between all rows of two blocks: stacks of dense tensors, or two CSR matrices."""

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.metrics.pairwise import manhattan_distances
from torch import Tensor

_FEW = 64  # features, of which copies cost less than a pass over the distances
Block = Any  # a Tensor or a csr_matrix, both sides the same


def scale_features(x: Block, lengthscale: Tensor | float) -> Block:
    """Divide each feature by its lengthscale (or all by one)."""
    if isinstance(x, Tensor):
        return x / lengthscale
    divisor = np.asarray(lengthscale.detach().cpu() if isinstance(lengthscale, Tensor) else lengthscale)
    each = divisor[x.indices] if divisor.ndim else divisor
    return sp.csr_matrix((x.data / each, x.indices, x.indptr), shape=x.shape)


def squared_euclidean(a: Block, b: Block) -> Tensor:
    """‖a_i − b_j‖², never negative; off by rounding relative to the blocks' diameter.

    Shapes (*batch, n, d) and (*batch, m, d) give (*batch, n, m).
    """
    return _squared_euclidean(a, b)[0].clamp_min_(0)


def euclidean(a: Block, b: Block) -> Tensor:
    """‖a_i − b_j‖, exactly 0 for equal points and differentiable there (with derivative 0).

    The rounding of a squared distance is amplified by the root near 0, to 1e-8 in float64. Squared
    distances below rounding are therefore taken as those of equal points.
    """
    squared, rounding = _squared_euclidean(a, b)
    tiny = torch.finfo(squared.dtype).tiny
    apart = squared > rounding
    return torch.where(apart, squared.clamp_min(tiny).sqrt(), 0)


def manhattan(a: Block, b: Block) -> Tensor:
    """‖a_i − b_j‖₁, for shapes as in `squared_euclidean`."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return torch.cdist(a, b, p=1.0)
    return torch.from_numpy(manhattan_distances(a, b))


def _squared_euclidean(a: Block, b: Block) -> tuple[Tensor, Tensor]:
    """Squared distances, possibly negative by rounding, and the size of that rounding."""
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        return _squared_euclidean_sparse(a, b)
    dtype = a.dtype
    a, b = a.double(), b.double()  # the sum below cancels: half the digits are lost for close points
    # Distances do not depend on the origin, but their rounding does: put it amid the points.
    centre = b.detach().mean(-2, keepdim=True)
    a, b = a - centre, b - centre
    a2 = a.square().sum(-1, keepdim=True)
    b2 = b.square().sum(-1, keepdim=True)
    largest = (a2.amax(-2, keepdim=True) + b2.amax(-2, keepdim=True)).detach()  # (*batch, 1, 1)
    squared = _expanded(a, a2, b, b2)
    return squared.to(dtype), (_rounding(a.shape[-1], a.dtype) * largest).to(dtype)


def _expanded(a: Tensor, a2: Tensor, b: Tensor, b2: Tensor) -> Tensor:
    """‖a‖² + ‖b‖² − 2⟨a, b⟩."""
    if a.shape[-1] > _FEW and a.ndim == b.ndim == 3:
        return torch.baddbmm(a2 + b2.mT, a, b.mT, alpha=-2)
    # as one product, with no further pass over the result
    left = torch.cat([a * -2, a2, torch.ones_like(a2)], -1)
    right = torch.cat([b, torch.ones_like(b2), b2], -1)
    return left @ right.mT


def _squared_euclidean_sparse(a: sp.csr_matrix, b: sp.csr_matrix) -> tuple[Tensor, Tensor]:
    a2 = np.asarray(a.multiply(a).sum(1))
    b2 = np.asarray(b.multiply(b).sum(1)).T
    squared = torch.from_numpy(a2 + b2 - 2 * (a @ b.T).toarray())
    return squared, torch.tensor(_rounding(64, squared.dtype) * float(a2.max() + b2.max()))


def _rounding(n_features: int, dtype: torch.dtype) -> float:
    return (4 + n_features**0.5) * torch.finfo(dtype).eps
