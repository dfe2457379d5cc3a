"""Batched dense linear algebra: the only place where matrices are factored.

Every function takes stacks (*batch, n, n) and works on CPU and GPU, float32 and float64.

A *factor* of a symmetric matrix S = L Lᵀ is L on a CPU and L⁻¹ on a GPU. There, triangular solves of small
matrices cost ten products each, so that it pays to invert once. Only this module looks inside a factor;
others `whiten` (L⁻¹ X), `unwhiten` (L⁻ᵀ X) and so on.
"""

import warnings

import torch
from torch import Tensor

from hck.errors import NotPositiveDefiniteError, NumericalWarning

# Relative jitter for members that fail: where it starts, and where we stop believing in it.
_FIRST_JITTER = {torch.float64: 1e-13, torch.float32: 1e-6}
_LAST_JITTER = {torch.float64: 1e-7, torch.float32: 1e-3}
# On a GPU, diagonal blocks up to this size are factored by the library, and everything else is products.
_BLOCK = 64


def factor(matrix: Tensor, what: str) -> Tensor:
    """The factors of a stack of symmetric matrices; only lower triangles are read.

    Members that are not positive definite, and only they, get a jitter that grows tenfold until they are.

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
    result, info = _factor(matrix)
    if not info.any():
        return result
    jitter = _needed_jitter(matrix.detach(), info, what)  # (*batch, 1)
    return _factor(matrix + torch.diag_embed(jitter.expand(matrix.shape[:-1])))[0]


def whiten(factor: Tensor, x: Tensor) -> Tensor:
    """L⁻¹ X."""
    return factor @ x if _is_inverse(factor) else torch.linalg.solve_triangular(factor, x, upper=False)


def unwhiten(factor: Tensor, x: Tensor) -> Tensor:
    """L⁻ᵀ X."""
    return factor.mT @ x if _is_inverse(factor) else torch.linalg.solve_triangular(factor.mT, x, upper=True)


def whiten_right(x: Tensor, factor: Tensor) -> Tensor:
    """X L⁻ᵀ."""
    if _is_inverse(factor):
        return x @ factor.mT
    return torch.linalg.solve_triangular(factor.mT, x, upper=True, left=False)


def inverse(factor: Tensor) -> Tensor:
    """(L Lᵀ)⁻¹."""
    return factor.mT @ factor if _is_inverse(factor) else torch.cholesky_inverse(factor)


def half_log_determinant(factor: Tensor) -> Tensor:
    """Half the log-determinant of all members of a stack together."""
    half = factor.diagonal(dim1=-2, dim2=-1).log().sum()
    return -half if _is_inverse(factor) else half


def _is_inverse(factor: Tensor) -> bool:
    return factor.device.type == "cuda"


def _factor(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Factors, and for each member whether it failed."""
    if not _is_inverse(matrix):
        return torch.linalg.cholesky_ex(matrix)
    if matrix.requires_grad:
        lower, info = torch.linalg.cholesky_ex(matrix)
        return _invert_lower(lower), info
    stack = matrix.reshape(-1, *matrix.shape[-2:])
    result = torch.zeros_like(stack)
    info = torch.zeros(len(stack), dtype=torch.int32, device=matrix.device)
    _factor_by_halves(stack, result, info)
    return result.reshape(matrix.shape), info.reshape(matrix.shape[:-2])


def _factor_by_halves(s: Tensor, out: Tensor, info: Tensor) -> None:
    """Write L⁻¹ = R into the zeros `out` by recursive halving; add failures to `info`.

    With S = [[S₁₁, ·], [S₂₁, S₂₂]] and L₂₁ = S₂₁ R₁₁ᵀ, R₂₂ belongs to S₂₂ − L₂₁ L₂₁ᵀ, and
    R₂₁ = −R₂₂ L₂₁ R₁₁.
    """
    n = s.shape[-1]
    if n <= _BLOCK:
        lower, failed = torch.linalg.cholesky_ex(s)
        out.copy_(_invert_lower(lower))
        info += failed
        return
    half = (n // 2 + 7) // 8 * 8
    r11, r22 = out[:, :half, :half], out[:, half:, half:]
    _factor_by_halves(s[:, :half, :half], r11, info)
    l21 = s[:, half:, :half] @ r11.mT
    _factor_by_halves(torch.baddbmm(s[:, half:, half:], l21, l21.mT, alpha=-1), r22, info)
    out[:, half:, :half] = torch.bmm(r22, l21 @ r11).neg_()


def _invert_lower(lower: Tensor) -> Tensor:
    identity = torch.eye(lower.shape[-1], dtype=lower.dtype, device=lower.device)
    return torch.linalg.solve_triangular(lower, identity.expand_as(lower), upper=False)


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
    remedy = "alpha or jitter" if matrix.dtype == torch.float64 else "alpha or jitter, or dtype='float64',"
    warnings.warn(
        f"{what} was not positive definite in {len(failed)} of {info.numel()} blocks; a jitter of up to "
        f"{float(jitter.max()):.1e} was added there. A larger {remedy} avoids it",
        NumericalWarning,
        stacklevel=3,
    )
    return jitter.reshape(*info.shape, 1)
