"""Dense linear algebra on stacks of matrices by torch alone, for any device.

A factor of S = L Lᵀ is L⁻¹ here: on a GPU a triangular solve of small matrices costs ten products, so that it
pays to invert once.
"""

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

# Diagonal blocks up to this size are factored and inverted at once, and all else is products.
_BLOCK = 64


# Matrices (members, n, n), of which the upper triangles are read, to their factors, and which members failed.
Factoring: TypeAlias = Callable[[Tensor], tuple[Tensor, Tensor]]


class TorchAlgebra:
    """What `hck.backend.linalg` asks for."""

    def factor_(self, matrix: Tensor, first: float, last: float) -> tuple[Tensor, Tensor | None]:
        """Factors, and the jitter of each member; see `with_jitter`."""
        return with_jitter(self._factor, matrix, first, last)

    def _factor(self, matrix: Tensor) -> tuple[Tensor, Tensor]:
        failed = torch.zeros(len(matrix), dtype=torch.int32, device=matrix.device)
        return self.factor_noting_(matrix.clone(), failed), failed

    def factor_noting_(self, matrix: Tensor, failed: Tensor) -> Tensor:
        """L⁻¹ by recursive halving; `failed` (members,) is set to 1 for members that have none.

        `failed` may be one number, expanded.
        """
        matrix = matrix.contiguous()
        if matrix.numel():
            self._halve(matrix, failed)
        return matrix

    def _halve(self, s: Tensor, failed: Tensor) -> None:
        """Put L⁻¹ = R in place of S.

        With S = [[S₁₁, S₁₂], [·, S₂₂]] and L₂₁ = S₁₂ᵀ R₁₁ᵀ, R₂₂ belongs to S₂₂ − L₂₁ L₂₁ᵀ, and
        R₂₁ = −R₂₂ L₂₁ R₁₁.
        """
        n = s.shape[-1]
        if n <= _BLOCK:
            self._invert_small_(s, failed)
            return
        half = (n // 2 + 7) // 8 * 8
        s11, s12, s21, s22 = s[:, :half, :half], s[:, :half, half:], s[:, half:, :half], s[:, half:, half:]
        self._halve(s11, failed)
        l21 = s12.mT @ s11.mT
        s12.zero_()
        s22.baddbmm_(l21, l21.mT, alpha=-1)
        self._halve(s22, failed)
        torch.baddbmm(s21, s22, l21 @ s11, beta=0, alpha=-1, out=s21)

    def _invert_small_(self, s: Tensor, failed: Tensor) -> None:
        lower, info = torch.linalg.cholesky_ex(s.mT)  # which reads the lower triangle
        identity = torch.eye(s.shape[-1], dtype=s.dtype, device=s.device)
        s.copy_(torch.linalg.solve_triangular(lower, identity.expand_as(lower), upper=False))
        note(failed, info != 0)

    def whiten_(self, factor: Tensor, x: Tensor, which: Tensor | None) -> Tensor:
        return (factor if which is None else factor[which]) @ x

    def unwhiten_(self, factor: Tensor, x: Tensor, which: Tensor | None) -> Tensor:
        return (factor if which is None else factor[which]).mT @ x

    def color(self, factor: Tensor, x: Tensor) -> Tensor:
        return torch.linalg.solve_triangular(factor, x, upper=False)

    def subtract_gram_(self, y: Tensor, matrix: Tensor) -> Tensor:
        return torch.baddbmm(matrix, y.mT, y, alpha=-1)

    def inverse(self, factor: Tensor) -> Tensor:
        return factor.mT @ factor

    def inverse_diagonal(self, factor: Tensor) -> Tensor:
        return torch.linalg.vecdot(factor, factor, dim=-2)

    def half_log_determinant(self, factor: Tensor) -> Tensor:
        return -factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def pack_(self, symmetric: Tensor, factor: Tensor) -> tuple[Tensor, Tensor]:
        """The factor on and below the diagonal, the symmetric matrix above."""
        mask = torch.ones(factor.shape[-2:], dtype=torch.bool, device=factor.device).tril()
        return torch.where(mask, factor, symmetric), symmetric.diagonal(dim1=-2, dim2=-1).contiguous()

    def unpack(self, packed: Tensor, diagonal: Tensor) -> tuple[Tensor, Tensor]:
        upper = packed.triu(1)
        symmetric = upper + upper.mT
        symmetric.diagonal(dim1=-2, dim2=-1).copy_(diagonal)
        return packed.tril(), symmetric

    def multiply_packed(self, packed: Tensor, diagonal: Tensor, x: Tensor) -> Tensor:
        return self.unpack(packed, diagonal)[1] @ x

    def unwhiten_packed(self, packed: Tensor, diagonal: Tensor, x: Tensor) -> Tensor:
        return packed.tril().mT @ x


def note(failed: Tensor, bad: Tensor) -> None:
    """Set `failed` (members,) to 1 where a member is bad; it may be one number, expanded."""
    if failed.stride(0) == 0:
        failed, bad = failed[:1], bad.any(0, keepdim=True)
    failed.bitwise_or_(bad.int())


def with_jitter(
    factor: Factoring, matrix: Tensor, first: float, last: float
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Factors of a stack of symmetric matrices, and the jitter of each member, None if there is none.

    It is at least `first` times the mean diagonal, infinite where more than `last` times that is needed, and
    NaN where a member is not finite.
    """
    result, failed = factor(matrix)
    if not failed.any():
        return result, None
    jitter = _needed_jitter(factor, matrix, failed, first, last)
    if not torch.isfinite(jitter).all():
        return result, jitter
    result, failed = factor(matrix + torch.diag_embed(jitter[:, None].expand(matrix.shape[:-1])))
    return result, jitter.where(failed == 0, torch.inf)


def _needed_jitter(factor: Factoring, matrix: Tensor, info: Tensor, first: float, last: float) -> Tensor:
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
        left = left[factor(attempt)[1].nonzero().squeeze(1)]
        relative *= 10
    jitter[failed[left]] = torch.inf
    return jitter
