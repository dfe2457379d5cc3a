"""Batched dense linear algebra: the only place where matrices are factored.

Every function takes stacks (members, n, n) and works on CPU and GPU, float32 and float64. Of symmetric
matrices only the upper triangle is read, and only that may be relied on in results, unless said otherwise.
A function whose name ends in an underscore may use an argument's memory for its result; it says which.

A *factor* of a symmetric matrix S = L Lᵀ is Lᵀ on a CPU and L⁻¹ on a GPU: there, a triangular solve of small
matrices costs ten products, so that it pays to invert once. Only this package looks inside a factor; others
`whiten_` (L⁻¹ X), `unwhiten_` (L⁻ᵀ X) and so on.

On the CPU this is compiled code (`cpu`) on one core per call. On a GPU, and where gradients are asked
for, it is torch (`generic`), with kernels of our own (`cuda`).
"""

import threading
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from hck.backend import generic
from hck.backend.generic import has_triton
from hck.backend.gradients import wants_gradient
from hck.errors import NotPositiveDefiniteError, NumericalWarning

__all__ = [
    "can_compile",
    "color",
    "factor_",
    "flat",
    "half_log_determinant",
    "has_triton",
    "inverse",
    "inverse_diagonal",
    "jitters",
    "mirror",
    "multiply_packed",
    "pack_",
    "report",
    "subtract_gram_",
    "unpack",
    "unwhiten_",
    "unwhiten_packed",
    "whiten_",
    "without_waiting",
]

Result = TypeVar("Result")

_FEW_COLUMNS = 4  # to multiply by without unpacking

# Where factorizations on a GPU note that one has failed while nobody looks, in each thread.
_local = threading.local()


def factor_(matrix: Tensor, what: str) -> Tensor:
    """The factors of a stack of symmetric matrices, whose memory may be used.

    Members that are not positive definite, and only they, get a jitter that grows tenfold until they are.

    Parameters
    ----------
    matrix : Tensor of shape (members, n, n)
    what : str
        What the matrices are, for the warning or the error.

    Raises
    ------
    NotPositiveDefiniteError
        If a member still fails at a jitter that would visibly change the result.
    """
    first, last = jitters(matrix.dtype)
    if can_compile(matrix):
        matrix = matrix.contiguous()
        jitter = _fast(matrix.dtype).factor_(matrix, first, last)
        factor = matrix
    elif getattr(_local, "failed", None) is not None and not wants_gradient(matrix):
        return generic.factor_by_halves_(matrix, _local.failed.expand(len(matrix)))
    else:
        factor, jitter = generic.factor(matrix, first, last)
    if jitter is not None:
        report(jitter, matrix.dtype, what)
    return factor


def without_waiting(work: Callable[[], Result], device: torch.device) -> Result:
    """The result of some work with factorizations, done without a look at each of them on a GPU.

    To look is to wait: the GPU then idles until the next command arrives. So a failure is only noted, and if
    there was one in the end the work is done again, with a look at each, and with jitter where it is needed.
    """
    if device.type != "cuda" or getattr(_local, "failed", None) is not None:
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


def whiten_(factor: Tensor, x: Tensor, which: Tensor | None = None) -> Tensor:
    """L⁻¹ X, perhaps in place of X.

    `which` says which factor belongs to each member of `x`, if not the one of the same number.
    """
    if can_compile(factor, x):
        return _fast(x.dtype).whiten_(factor, x.contiguous(), which)
    return generic.whiten(factor if which is None else factor[which], x)


def unwhiten_(factor: Tensor, x: Tensor, which: Tensor | None = None) -> Tensor:
    """L⁻ᵀ X, perhaps in place of X; `which` as in `whiten_`."""
    if can_compile(factor, x):
        return _fast(x.dtype).unwhiten_(factor, x.contiguous(), which)
    return generic.unwhiten(factor if which is None else factor[which], x)


def color(factor: Tensor, x: Tensor) -> Tensor:
    """L X: numbers with the covariance L Lᵀ, if those in X are independent."""
    if generic.is_inverse(factor):
        return torch.linalg.solve_triangular(factor, x, upper=False)
    return factor.triu().mT @ x


def subtract_gram_(y: Tensor, matrix: Tensor) -> Tensor:
    """S − YᵀY, perhaps in place of S."""
    if can_compile(y, matrix):
        return _fast(y.dtype).subtract_gram_(matrix.contiguous(), y.contiguous())
    return torch.baddbmm(matrix, y.mT, y, alpha=-1)


def inverse(factor: Tensor) -> Tensor:
    """(L Lᵀ)⁻¹, both triangles of it."""
    return _fast(factor.dtype).inverse(factor) if can_compile(factor) else generic.inverse(factor)


def inverse_diagonal(factor: Tensor) -> Tensor:
    """The diagonal of (L Lᵀ)⁻¹: shape (members, n)."""
    if can_compile(factor):
        return _fast(factor.dtype).inverse_diagonal(factor)
    return generic.inverse_diagonal(factor)


def mirror(matrix: Tensor) -> Tensor:
    """Symmetric matrices of which the upper triangles are given, with both triangles."""
    return matrix.triu() + matrix.triu(1).mT


def half_log_determinant(factor: Tensor) -> Tensor:
    """Half the log-determinant of all members of a stack together."""
    half = factor.diagonal(dim1=-2, dim2=-1).log().sum()
    return -half if generic.is_inverse(factor) else half


def pack_(symmetric: Tensor, factor: Tensor) -> tuple[Tensor, Tensor]:
    """A factor and a symmetric matrix in the room of one, the factor's, and the diagonal of the matrix."""
    diagonal = symmetric.diagonal(dim1=-2, dim2=-1).contiguous()
    if _own_kernels(factor):
        generic.triton().pack_(symmetric.contiguous(), factor)
        return factor, diagonal
    mask = torch.ones(factor.shape[-2:], dtype=torch.bool, device=factor.device).triu()
    kept = mask.mT if generic.is_inverse(factor) else mask
    return torch.where(kept, factor, symmetric), diagonal


def unpack(packed: Tensor, diagonal: Tensor) -> tuple[Tensor, Tensor]:
    """What `pack_` was given; the symmetric matrix with both triangles."""
    if generic.is_inverse(packed):
        upper = packed.triu(1)
        symmetric = upper + upper.mT
        factor = packed.tril()
    else:
        lower = packed.tril(-1)
        symmetric = lower + lower.mT
        factor = packed  # below the diagonal it has no meaning
    symmetric.diagonal(dim1=-2, dim2=-1).copy_(diagonal)
    return factor, symmetric


def multiply_packed(packed: Tensor, diagonal: Tensor, x: Tensor) -> Tensor:
    """S X for the symmetric matrix S of `pack_`."""
    if x.shape[-1] <= _FEW_COLUMNS and _own_kernels(packed, x):
        return generic.triton().multiply_packed(packed, diagonal, x)
    return unpack(packed, diagonal)[1] @ x


def unwhiten_packed(packed: Tensor, diagonal: Tensor, x: Tensor) -> Tensor:
    """L⁻ᵀ X for the factor of `pack_`."""
    if x.shape[-1] <= _FEW_COLUMNS and _own_kernels(packed, x):
        return generic.triton().multiply_packed_factor(packed, x)
    return unwhiten_(unpack(packed, diagonal)[0], x)


def can_compile(*tensors: Tensor) -> bool:
    """Whether compiled code may be used: in the CPU's memory, and where no gradients are asked for."""
    return not wants_gradient(*tensors) and not generic.is_inverse(tensors[0])


def jitters(dtype: torch.dtype) -> tuple[float, float]:
    """Relative jitter for members that fail: where it starts, and where we stop believing in it."""
    return (1e-13, 1e-7) if dtype == torch.float64 else (1e-6, 1e-3)


def flat(tensor: Tensor) -> np.ndarray:
    """The numbers of a tensor as compiled code takes them; its own memory if it is contiguous."""
    return tensor.detach().contiguous().view(-1).numpy()


def _own_kernels(*tensors: Tensor) -> bool:
    """Whether to use our own kernels on a GPU; they have no gradients."""
    return not wants_gradient(*tensors) and tensors[0].is_cuda and has_triton()


@cache
def _fast(dtype: torch.dtype) -> Any:
    """The compiled code for a type of numbers, loaded when it is first used: that takes a second."""
    import_module("hck.backend.cpu.tile").provide(dtype.itemsize)
    return import_module("hck.backend.cpu.stacks")


def report(jitter: Any, dtype: torch.dtype, what: str) -> None:
    """Say which members of a stack needed a jitter, or that none was enough.

    Parameters
    ----------
    jitter : array of shape (members,)
        What was added to each member; infinite where nothing helps, NaN where a member is not finite.
    """
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
        raise NotPositiveDefiniteError(
            f"{what} is not positive definite in {failed} of {len(jitter)} blocks ({dtype}), even with a "
            f"jitter of {jitters(dtype)[1]:.0e} times its mean diagonal. Raise alpha (the noise on the "
            "training points) or jitter (the noise on the landmarks), use dtype='float64', or check that the "
            "kernel is positive definite"
        )
    remedy = "alpha or jitter" if dtype == torch.float64 else "alpha or jitter, or dtype='float64',"
    warnings.warn(
        f"{what} was not positive definite in {int((jitter > 0).sum())} of {len(jitter)} blocks; a jitter of "
        f"up to {jitter.max():.1e} was added there. A larger {remedy} avoids it",
        NumericalWarning,
        stacklevel=4,
    )
