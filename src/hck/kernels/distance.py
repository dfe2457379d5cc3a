"""Distances between all rows of two blocks: stacks of dense tensors, or two CSR matrices."""

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.metrics.pairwise import manhattan_distances
from torch import Tensor

from hck.backend.kernels import wants_gradient, without_rounding
from hck.backend.kinds import kind_of
from hck.kernels.placement import Block

_FEW = 64  # features, of which copies cost less than a pass over the distances


def squared_euclidean(a: Block, b: Block) -> Tensor:
    """‖a_i − b_j‖², never negative, and exactly 0 for equal points; differentiable there (with derivative 0).

    It is off by rounding relative to the blocks' diameter, which a root would amplify near 0, to 1e-8 in
    float64. Squared distances below rounding are therefore taken as those of equal points.

    Shapes (*batch, n, d) and (*batch, m, d) give (*batch, n, m).
    """
    return without_rounding(*rounded_squares(a, b))


def sqrt(x: Tensor) -> Tensor:
    """√x, with derivative 0 where x is 0."""
    if not wants_gradient(x):
        return x.sqrt()
    return torch.where(x > 0, x.clamp_min(torch.finfo(x.dtype).tiny).sqrt(), 0)


def manhattan(a: Block, b: Block) -> Tensor:
    """‖a_i − b_j‖₁, for shapes as in `squared_euclidean`."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return torch.cdist(a, b, p=1.0)
    return torch.from_numpy(manhattan_distances(a, b))


def check_finite(largest: float | Tensor, dtype: torch.dtype) -> None:
    """Raise ValueError if coordinates or squared distances, of which the largest is given, overflow."""
    if float(largest) > torch.finfo(dtype).max / 1024:
        raise ValueError(
            f"points are too far apart for the kernel: their distances in lengthscales overflow "
            f"{str(dtype).removeprefix('torch.')}. Scale the features, or use a larger lengthscale"
        )


def rounded_squares(a: Block, b: Block) -> tuple[Tensor, Tensor]:
    """Squared distances, possibly negative by rounding, and the size of that rounding: (*batch, 1, 1)."""
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        return _rounded_squares_sparse(a, b)
    dtype = a.dtype
    a, b = a.double(), b.double()  # the sum below cancels: half the digits are lost for close points
    # Distances do not depend on the origin, but their rounding does: put it amid the points.
    centre = b.detach().mean(-2, keepdim=True)
    a, b = a - centre, b - centre
    a2 = a.square().sum(-1, keepdim=True)
    b2 = b.square().sum(-1, keepdim=True)
    largest = (a2.amax(-2, keepdim=True) + b2.amax(-2, keepdim=True)).detach()  # (*batch, 1, 1)
    if kind_of(a.device).is_host:  # on a device that has a queue, to look is to wait
        check_finite(largest.max(), a.dtype)
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


def _rounded_squares_sparse(a: sp.csr_matrix, b: sp.csr_matrix) -> tuple[Tensor, Tensor]:
    with np.errstate(over="ignore"):
        a2 = np.asarray(a.multiply(a).sum(1))
        b2 = np.asarray(b.multiply(b).sum(1)).T
    largest = float(a2.max()) + float(b2.max())
    check_finite(largest, torch.float64 if a2.dtype == np.float64 else torch.float32)
    squared = torch.from_numpy(a2 + b2 - 2 * (a @ b.T).toarray())
    lost = _rounding(64, squared.dtype) * largest
    return squared, torch.tensor(lost, dtype=squared.dtype, device="cpu")


def _rounding(n_features: int, dtype: torch.dtype) -> float:
    return (4 + n_features**0.5) * torch.finfo(dtype).eps
