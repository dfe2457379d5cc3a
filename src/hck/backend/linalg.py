"""Batched dense linear algebra: the only place where matrices are factored.

Every function takes stacks (members, n, n) and works on any device, in float32 and float64. Of symmetric
matrices only the upper triangle is read, and only that may be relied on in results, unless said otherwise.
A function whose name ends in an underscore may use an argument's memory for its result; it says which.

A *factor* of a symmetric matrix S = L Lᵀ is what suits the device: Lᵀ on a CPU (`cpu.stacks`: compiled code
on one core per call), L⁻¹ elsewhere (`torch`, and `cuda.dense` with kernels of our own). Only these look
inside a factor; others `whiten_` (L⁻¹ X), `unwhiten_` (L⁻ᵀ X) and so on.

Nothing here is recorded by autograd: results are detached.
"""

import math
import threading
import warnings
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from hck.backend.kinds import kind_of
from hck.backend.machine import Algebra
from hck.backend.torch import with_jitter
from hck.errors import NotPositiveDefiniteError, NumericalWarning

Result = TypeVar("Result")

_TRIANGLE = 128  # rows of blocks of a triangle that are inverted by themselves

# Where factorizations on a GPU note that one has failed while nobody looks, in each thread.
_local = threading.local()


def factor_(matrix: Tensor, what: str) -> Tensor:
    """The factors of a stack of symmetric matrices (members, n, n), whose memory may be used.

    Members that are not positive definite, and only they, get a jitter that grows tenfold until they are; if
    one would visibly change the result there is a NotPositiveDefiniteError. `what` they are, for the message.
    """
    matrix, algebra, noted = matrix.detach(), _algebra(matrix), getattr(_local, "failed", None)
    if noted is not None and noted.device == matrix.device:
        return algebra.factor_noting_(matrix, noted.expand(len(matrix)))
    factor, jitter = algebra.factor_(matrix, *jitters(matrix.dtype))
    if jitter is not None:
        warn_of_jitter(jitter, matrix.dtype, what)
    return factor


def try_factor_(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """The factors of a stack of symmetric matrices, whose memory may be used, and which members have one.

    Nothing is added to members that are not positive definite: what stands in their place has no meaning.
    """
    failed = torch.zeros(len(matrix), dtype=torch.int32, device=matrix.device)
    return _algebra(matrix).factor_noting_(matrix.detach(), failed), failed == 0


def without_waiting(work: Callable[[], Result], device: torch.device) -> Result:
    """The result of some work with factorizations, done without a look at each of them on a GPU.

    To look is to wait: the GPU then idles until the next command arrives. So a failure is only noted, and if
    there was one in the end the work is done again, with a look at each, and with jitter where it is needed.
    On any device, nothing of the work is recorded by autograd.
    """
    with torch.no_grad():
        if not kind_of(device).is_queued or getattr(_local, "failed", None) is not None:
            return work()
        failed = _local.failed = torch.zeros(1, dtype=torch.int32, device=device)
        try:
            result = work()
        finally:
            _local.failed = None
        if not failed:
            return result
        del result
        return work()


def cholesky(matrix: Tensor, what: str, mend: bool = True) -> Tensor:
    """L of one symmetric matrix (n, n) or of a stack of them, lower triangular, on any device.

    For matrices that are large, or few: torch's own factorization. Jitter and errors as in `factor_`; without
    `mend` there is no jitter.
    """
    first, last = jitters(matrix.dtype) if mend else (1.0, 0.0)
    stack = matrix.detach().reshape(-1, *matrix.shape[-2:])

    def factor(upper: Tensor) -> tuple[Tensor, Tensor]:
        lower, failed = torch.linalg.cholesky_ex(upper.mT)  # which reads the lower triangle
        return lower, failed

    lower, jitter = with_jitter(factor, stack.mT, first, last)
    if jitter is not None:
        warn_of_jitter(jitter, matrix.dtype, what, last)
    return lower.reshape(matrix.shape)


def inverse_factor(matrix: Tensor, what: str) -> Tensor:
    """L⁻¹ of one large symmetric matrix (n, n) with both triangles; on any device, jitter as in `factor_`."""
    return _inverse_of_triangle(cholesky(matrix, what))


def _inverse_of_triangle(lower: Tensor) -> Tensor:
    """L⁻¹: of small blocks on the diagonal, then of twice as large ones, all of a size at once.

    With L = [[A, 0], [B, C]] what is new is −C⁻¹ B A⁻¹.
    """
    n = len(lower)
    levels = max(0, math.ceil(math.log2(n / _TRIANGLE)))
    block = -(-n // 2**levels)
    whole = block * 2**levels
    padded = torch.eye(whole, dtype=lower.dtype, device=lower.device)
    padded[:n, :n] = lower
    out = torch.zeros_like(padded)

    def blocks(x: Tensor, size: int, step: int, row: int, column: int) -> Tensor:
        """Square blocks of a size along the diagonal, the first of them at some row and column."""
        count = whole // step
        return x.as_strided((count, size, size), (step * (whole + 1), whole, 1), row * whole + column)

    identity = torch.eye(block, dtype=lower.dtype, device=lower.device)
    parts = blocks(padded, block, block, 0, 0)
    blocks(out, block, block, 0, 0).copy_(
        torch.linalg.solve_triangular(parts, identity.expand_as(parts), upper=False)
    )
    while block < whole:
        a, c = blocks(out, block, 2 * block, 0, 0), blocks(out, block, 2 * block, block, block)
        b = blocks(padded, block, 2 * block, block, 0)
        blocks(out, block, 2 * block, block, 0).copy_((c @ (b @ a)).neg_())
        block *= 2
    return out[:n, :n]


def whiten_(factor: Tensor, x: Tensor, which: Tensor | None = None) -> Tensor:
    """L⁻¹ X, perhaps in place of X.

    `which` says which factor belongs to each member of `x`, if not the one of the same number.
    """
    return _algebra(x).whiten_(factor, x.detach(), which)


def unwhiten_(factor: Tensor, x: Tensor, which: Tensor | None = None) -> Tensor:
    """L⁻ᵀ X, perhaps in place of X; `which` as in `whiten_`."""
    return _algebra(x).unwhiten_(factor, x.detach(), which)


def color(factor: Tensor, x: Tensor) -> Tensor:
    """L X: numbers with the covariance L Lᵀ, if those in X are independent."""
    return _algebra(x).color(factor, x.detach())


def subtract_gram_(y: Tensor, matrix: Tensor) -> Tensor:
    """S − YᵀY, perhaps in place of S."""
    return _algebra(y).subtract_gram_(y.detach(), matrix.detach())


def inverse(factor: Tensor) -> Tensor:
    """(L Lᵀ)⁻¹, both triangles of it."""
    return _algebra(factor).inverse(factor)


def inverse_diagonal(factor: Tensor) -> Tensor:
    """The diagonal of (L Lᵀ)⁻¹: shape (members, n)."""
    return _algebra(factor).inverse_diagonal(factor)


def half_log_determinant(factor: Tensor) -> Tensor:
    """Half the log-determinant of each member of a stack: shape (members,)."""
    return _algebra(factor).half_log_determinant(factor)


def pack_(symmetric: Tensor, factor: Tensor) -> tuple[Tensor, Tensor]:
    """A factor and a symmetric matrix in the room of one, the factor's, and the diagonal of the matrix."""
    return _algebra(factor).pack_(symmetric, factor)


def unpack(packed: Tensor, diagonal: Tensor) -> tuple[Tensor, Tensor]:
    """What `pack_` was given; the symmetric matrix with both triangles."""
    return _algebra(packed).unpack(packed, diagonal)


def multiply_packed(packed: Tensor, diagonal: Tensor, x: Tensor) -> Tensor:
    """S X for the symmetric matrix S of `pack_`."""
    return _algebra(packed).multiply_packed(packed, diagonal, x)


def unwhiten_packed(packed: Tensor, diagonal: Tensor, x: Tensor) -> Tensor:
    """L⁻ᵀ X for the factor of `pack_`."""
    return _algebra(packed).unwhiten_packed(packed, diagonal, x)


def mirror(matrix: Tensor) -> Tensor:
    """Symmetric matrices of which the upper triangles are given, with both triangles."""
    return matrix.triu() + matrix.triu(1).mT


def jitters(dtype: torch.dtype) -> tuple[float, float]:
    """Relative jitter for members that fail: where it starts, and where we stop believing in it."""
    return (1e-13, 1e-7) if dtype == torch.float64 else (1e-6, 1e-3)


def warn_of_jitter(
    jitter: np.ndarray | Tensor, dtype: torch.dtype, what: str, last: float | None = None
) -> None:
    """Say which members of a stack needed a jitter; raise an error if none was enough.

    `jitter` (members,) is what was added to each: infinite where nothing helps, NaN where a member is not
    finite. `last` is the largest relative one that was tried, by default that of `jitters`.
    """
    last = jitters(dtype)[1] if last is None else last
    jitter = np.asarray(jitter.cpu() if isinstance(jitter, Tensor) else jitter)
    if not jitter.any():
        return
    bad, failed = int(np.isnan(jitter).sum()), int(np.isinf(jitter).sum())
    if bad:
        raise NotPositiveDefiniteError(
            f"{what} contains NaN or infinity in {bad} of {len(jitter)} blocks: "
            "check the kernel's values on this data"
        )
    if failed:
        even = f", even with a jitter of {last:.0e} times its mean diagonal" if last else ""
        raise NotPositiveDefiniteError(
            f"{what} is not positive definite in {failed} of {len(jitter)} blocks ({dtype}){even}. Use a "
            "larger noise on the training points (alpha) or on the landmarks (jitter), use dtype='float64', "
            "or check that the kernel is positive definite"
        )
    remedy = "alpha or jitter" if dtype == torch.float64 else "alpha or jitter, or dtype='float64',"
    warnings.warn(
        f"{what} was not positive definite in {int((jitter > 0).sum())} of {len(jitter)} blocks; a jitter of "
        f"up to {jitter.max():.1e} was added there. A larger {remedy} avoids it",
        NumericalWarning,
        stacklevel=4,
    )


def _algebra(tensor: Tensor) -> Algebra:
    return kind_of(tensor.device).machine().algebra(tensor.dtype)
