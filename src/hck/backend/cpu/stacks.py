"""Dense linear algebra on stacks of matrices in the CPU's memory, in place and without copies.

Each function calls compiled code for one member after another, on one core, without the interpreter lock;
`hck.backend.parallel` gives each core a stack of its own.
"""

import numpy as np
import torch
from torch import Tensor

from hck.backend.cpu import dense
from hck.backend.cpu.jit import exposed
from hck.backend.linalg import flat


def factor_(matrix: Tensor, first: float, last: float) -> Tensor:
    """Put U in place of S = UᵀU, of which only the upper triangle is read; the jitter of each member.

    See `hck.backend.cpu.dense.factor` for the jitter.
    """
    jitter = np.empty(len(matrix))
    _factor(flat(matrix), len(matrix), matrix.shape[-1], first, last, jitter)
    return torch.from_numpy(jitter)


def whiten_(factor: Tensor, b: Tensor, which: Tensor | None = None) -> Tensor:
    """B ← U⁻ᵀB. `which` (members of B,) says which factor belongs to each member of B."""
    _whiten(flat(factor), numbers(which, len(b)), flat(b), *b.shape[1:], False)
    return b


def unwhiten_(factor: Tensor, b: Tensor, which: Tensor | None = None) -> Tensor:
    """B ← U⁻¹B."""
    _whiten(flat(factor), numbers(which, len(b)), flat(b), *b.shape[1:], True)
    return b


def subtract_gram_(matrix: Tensor, y: Tensor) -> Tensor:
    """S ← S − YᵀY, on and above the diagonal."""
    _subtract_gram(flat(matrix), flat(y), *y.shape)
    return matrix


def inverse(factor: Tensor) -> Tensor:
    """(UᵀU)⁻¹, the whole of it."""
    out = torch.empty_like(factor)
    _inverse(flat(factor), flat(out), len(factor), factor.shape[-1])
    return out


def inverse_diagonal(factor: Tensor) -> Tensor:
    """The diagonal of (UᵀU)⁻¹."""
    out = factor.new_empty(factor.shape[:2])
    _inverse_diagonal(flat(factor), flat(out), len(factor), factor.shape[-1])
    return out


def numbers(which: Tensor | None, members: int) -> np.ndarray:
    """Which of the factors each member takes; by default the one of the same number."""
    return np.arange(members) if which is None else which.numpy()


@exposed
def _factor(u, members, n, first, last, jitter):
    work, spare = dense.scratch(u), np.empty(n * n, u.dtype)
    for i in range(members):
        jitter[i] = dense.factor(u, i * n * n, n, n, first, last, spare, work)


@exposed
def _whiten(u, which, b, n, columns, back):
    work = dense.scratch(b)
    for i in range(len(which)):
        if back:
            dense.unwhiten(u, which[i] * n * n, n, n, b, i * n * columns, columns, columns, work)
        else:
            dense.whiten(u, which[i] * n * n, n, n, b, i * n * columns, columns, columns, work)


@exposed
def _subtract_gram(c, y, members, n, columns):
    work = dense.scratch(y)
    for i in range(members):
        dense.subtract_gram(
            c, i * columns * columns, columns, y, i * n * columns, columns, n, columns, work
        )  # fmt: skip


@exposed
def _inverse(u, out, members, n):
    work, spare = dense.scratch(u), np.empty(n * n, u.dtype)
    for i in range(members):
        dense.inverse(u, i * n * n, n, out, i * n * n, n, n, spare, work)


@exposed
def _inverse_diagonal(u, out, members, n):
    work, spare = dense.scratch(u), np.empty(n * n, u.dtype)
    for i in range(members):
        dense.inverse_diagonal(u, i * n * n, n, out, i * n, n, spare, work)
