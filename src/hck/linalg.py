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
    failed = info.nonzero(as_tuple=True)
    n_failed, n_members = failed[0].numel() if failed else 1, info.numel()
    member = matrix[failed]  # (failed, n, n)
    diagonal = member.diagonal(dim1=-2, dim2=-1)
    if not torch.isfinite(diagonal).all():
        raise NotPositiveDefiniteError(
            f"{what} contains NaN or infinity in {n_failed} of {n_members} blocks: "
            "check the kernel's values on this data"
        )
    scale = diagonal.abs().mean(-1, keepdim=True)  # (failed, 1)
    relative = _FIRST_JITTER[matrix.dtype]
    while relative <= _LAST_JITTER[matrix.dtype] * 1.5:
        shifted = member.clone()
        shifted.diagonal(dim1=-2, dim2=-1).add_(relative * scale)
        attempt, info = torch.linalg.cholesky_ex(shifted)
        if not info.any():
            factor[failed] = attempt
            warnings.warn(
                f"{what} was not positive definite in {n_failed} of {n_members} blocks; a jitter of "
                f"{relative:.0e} times the mean diagonal ({float(relative * scale.max()):.1e} at most) was "
                f"added there. A larger alpha or jitter, or dtype='float64', avoids this",
                NumericalWarning,
                stacklevel=2,
            )
            return factor
        relative *= 10
    raise NotPositiveDefiniteError(
        f"{what} is not positive definite in {n_failed} of {n_members} blocks ({matrix.dtype}), even with "
        f"a jitter of {_LAST_JITTER[matrix.dtype]:.0e} times its mean diagonal. Raise alpha (the noise on "
        "the training points) or jitter (the noise on the landmarks), use dtype='float64', or check that "
        "the kernel is positive definite"
    )


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
