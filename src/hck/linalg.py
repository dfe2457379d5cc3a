"""Batched dense linear algebra: the only place where matrices are factored.

Every function takes stacks (*batch, n, n) and works on CPU and GPU, float32 and float64.
"""

import warnings

import torch
from torch import Tensor

from hck.errors import NotPositiveDefiniteError, NumericalWarning

# Relative jitter for members that fail: where it starts, and where we stop believing in it.
_FIRST_JITTER = {torch.float64: 1e-13, torch.float32: 1e-6}
_LAST_JITTER = {torch.float64: 1e-7, torch.float32: 1e-3}


def cholesky(matrix: Tensor, what: str) -> Tensor:
    """Lower Cholesky factors of a stack of symmetric matrices; only lower triangles are read.

    Members that fail, and only they, get a jitter that grows tenfold until they pass.

    Parameters
    ----------
    matrix : Tensor of shape (*batch, n, n)
    what : str
        What the matrices are, for the warning or the error.

    Raises
    ------
    NotPositiveDefiniteError
        If a member still fails at a jitter that would visibly change the result.
    """
    factor, info = torch.linalg.cholesky_ex(matrix)
    if not info.any():
        return factor
    jitter = _needed_jitter(matrix.detach(), info, what)  # (*batch, 1)
    shifted = matrix + torch.diag_embed(jitter.expand(matrix.shape[:-1]))
    return torch.linalg.cholesky_ex(shifted)[0]


def _needed_jitter(matrix: Tensor, info: Tensor, what: str) -> Tensor:
    """The jitter that each member of a stack needs: shape (*batch, 1). `info` says which members failed."""
    jitter = matrix.new_zeros(info.numel())
    failed = info.reshape(-1).nonzero().squeeze(1)
    members = matrix.reshape(-1, *matrix.shape[-2:])[failed]
    if not torch.isfinite(members.tril()).all():
        raise NotPositiveDefiniteError(
            f"{what} contains NaN or infinity in {len(failed)} of {info.numel()} blocks: "
            "check the kernel's values on this data"
        )
    scale = members.diagonal(dim1=-2, dim2=-1).abs().mean(-1)
    left = torch.arange(len(failed), device=matrix.device)
    relative, last = _FIRST_JITTER[matrix.dtype], _LAST_JITTER[matrix.dtype]
    while len(left) and relative <= last * 1.5:
        jitter[failed[left]] = relative * scale[left]
        attempt = members[left]
        attempt.diagonal(dim1=-2, dim2=-1).add_(jitter[failed[left], None])
        left = left[torch.linalg.cholesky_ex(attempt)[1].nonzero().squeeze(1)]
        relative *= 10
    if len(left):
        raise NotPositiveDefiniteError(
            f"{what} is not positive definite in {len(left)} of {info.numel()} blocks ({matrix.dtype}), even "
            f"with a jitter of {last:.0e} times its mean diagonal. Raise alpha (the noise on the training "
            "points) or jitter (the noise on the landmarks), use dtype='float64', or check that the kernel "
            "is positive definite"
        )
    warnings.warn(
        f"{what} was not positive definite in {len(failed)} of {info.numel()} blocks; a jitter of up to "
        f"{float(jitter.max()):.1e} was added there. A larger alpha or jitter, or dtype='float64', avoids it",
        NumericalWarning,
        stacklevel=3,
    )
    return jitter.reshape(*info.shape, 1)


def solve_lower(factor: Tensor, right: Tensor) -> Tensor:
    """L⁻¹ B for lower triangular L."""
    return torch.linalg.solve_triangular(factor, right, upper=False)


def solve_lower_transposed(factor: Tensor, right: Tensor) -> Tensor:
    """L⁻ᵀ B for lower triangular L."""
    return torch.linalg.solve_triangular(factor.mT, right, upper=True)


def solve_lower_right_transposed(factor: Tensor, left: Tensor) -> Tensor:
    """B L⁻ᵀ for lower triangular L."""
    return torch.linalg.solve_triangular(factor.mT, left, upper=True, left=False)


def half_log_determinant(factor: Tensor) -> Tensor:
    """Σ log diag L over the whole stack: half the log-determinant of all members together."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum()
