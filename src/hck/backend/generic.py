"""Dense linear algebra on stacks of matrices: on GPUs, and where gradients are asked for.

On a CPU a factor of S = L Lᵀ is Lᵀ, on a GPU L⁻¹. There, small factors come from a kernel of our own
(`cuda.dense`); the rest is torch.
"""

import os
from functools import cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from shutil import which
from typing import Any

import torch
from torch import Tensor

# On a GPU, diagonal blocks up to this size are factored and inverted at once, and all else is products.
_BLOCK = 64


def is_inverse(factor: Tensor) -> bool:
    """Whether factors on this tensor's device are L⁻¹."""
    return factor.device.type == "cuda"


def factor(matrix: Tensor, first: float, last: float) -> tuple[Tensor, Tensor | None]:
    """Factors and the jitter of each member, None if there is none.

    The jitter is infinite where more than `last` times the mean diagonal is needed, NaN where a member is
    not finite.
    """
    result, info = _factor(matrix)
    if not info.any():
        return result, None
    jitter = _needed_jitter(matrix.detach(), info, first, last)
    if not torch.isfinite(jitter).all():
        return result, jitter
    result, info = _factor(matrix + torch.diag_embed(jitter[:, None].expand(matrix.shape[:-1])))
    return result, jitter.where(info == 0, torch.inf)


def whiten(factor: Tensor, x: Tensor) -> Tensor:
    """L⁻¹ X."""
    return factor @ x if is_inverse(factor) else torch.linalg.solve_triangular(factor.mT, x, upper=False)


def unwhiten(factor: Tensor, x: Tensor) -> Tensor:
    """L⁻ᵀ X."""
    return factor.mT @ x if is_inverse(factor) else torch.linalg.solve_triangular(factor, x, upper=True)


def inverse(factor: Tensor) -> Tensor:
    """(L Lᵀ)⁻¹."""
    return factor.mT @ factor if is_inverse(factor) else torch.cholesky_inverse(factor, upper=True)


def inverse_diagonal(factor: Tensor) -> Tensor:
    """The diagonal of (L Lᵀ)⁻¹."""
    if not is_inverse(factor):
        return inverse(factor).diagonal(dim1=-2, dim2=-1)
    return torch.linalg.vecdot(factor, factor, dim=-2)


def _factor(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Factors, and for each member whether it failed."""
    if not is_inverse(matrix):
        lower, info = torch.linalg.cholesky_ex(matrix.mT)  # cholesky_ex reads the lower triangle
        return lower.mT, info
    if matrix.requires_grad:
        lower, info = torch.linalg.cholesky_ex(matrix.mT)
        return _invert_lower(lower), info
    failed = torch.zeros(len(matrix), dtype=torch.int32, device=matrix.device)
    return factor_by_halves_(matrix.clone(), failed), failed


def factor_by_halves_(matrix: Tensor, failed: Tensor) -> Tensor:
    """L⁻¹ on a GPU, by recursive halving; `failed` (members,) is set to 1 for members that have none.

    `failed` may be one number, expanded.
    """
    matrix = matrix.contiguous()
    if matrix.numel():
        _halve(matrix, failed)
    return matrix


def _halve(s: Tensor, failed: Tensor) -> None:
    """Put L⁻¹ = R in place of S.

    With S = [[S₁₁, S₁₂], [·, S₂₂]] and L₂₁ = S₁₂ᵀ R₁₁ᵀ, R₂₂ belongs to S₂₂ − L₂₁ L₂₁ᵀ, and
    R₂₁ = −R₂₂ L₂₁ R₁₁.
    """
    n = s.shape[-1]
    if n <= _BLOCK:
        _invert_small_(s, failed)
        return
    half = (n // 2 + 7) // 8 * 8
    s11, s12, s21, s22 = s[:, :half, :half], s[:, :half, half:], s[:, half:, :half], s[:, half:, half:]
    _halve(s11, failed)
    l21 = s12.mT @ s11.mT
    s12.zero_()
    s22.baddbmm_(l21, l21.mT, alpha=-1)
    _halve(s22, failed)
    torch.baddbmm(s21, s22, l21 @ s11, beta=0, alpha=-1, out=s21)


def _invert_small_(s: Tensor, failed: Tensor) -> None:
    if s.is_cuda and has_triton():
        triton().invert_factor_(s, failed)
        return
    lower, info = torch.linalg.cholesky_ex(s.mT)
    s.copy_(_invert_lower(lower))
    if failed.stride(0) == 0:
        failed, info = failed[:1], info.amax(0, keepdim=True)
    failed.bitwise_or_((info != 0).int())


@cache
def has_triton() -> bool:
    """Whether kernels can be compiled for a GPU.

    On Linux Triton comes with torch. It multiplies float64 matrices since version 3.5; it needs a C compiler.
    """
    if find_spec("triton") is None or not any(map(which, (os.environ.get("CC", "cc"), "gcc", "clang"))):
        return False
    numbers = version("triton").split(".")
    return (int(numbers[0]), int(numbers[1])) >= (3, 5)


def triton() -> Any:
    """Our own kernels, imported when they are first used."""
    return import_module("hck.backend.cuda.dense")


def _invert_lower(lower: Tensor) -> Tensor:
    identity = torch.eye(lower.shape[-1], dtype=lower.dtype, device=lower.device)
    return torch.linalg.solve_triangular(lower, identity.expand_as(lower), upper=False)


def _needed_jitter(matrix: Tensor, info: Tensor, first: float, last: float) -> Tensor:
    """The jitter that each member of a stack needs. `info` says which members failed."""
    jitter = torch.zeros(len(matrix), dtype=matrix.dtype, device=matrix.device)
    failed = info.nonzero().squeeze(1)
    members = matrix[failed].triu()
    finite = torch.isfinite(members).all(-1).all(-1)
    jitter[failed[~finite]] = torch.nan
    scale = members.diagonal(dim1=-2, dim2=-1).abs().mean(-1)
    left, relative = finite.nonzero().squeeze(1), first
    while len(left) and relative <= last * 1.5:
        jitter[failed[left]] = relative * scale[left]
        attempt = members[left]
        attempt.diagonal(dim1=-2, dim2=-1).add_(jitter[failed[left], None])
        left = left[_factor(attempt)[1].nonzero().squeeze(1)]
        relative *= 10
    jitter[failed[left]] = torch.inf
    return jitter
