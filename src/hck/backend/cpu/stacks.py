"""Dense linear algebra on stacks of matrices in the CPU's memory, in place and without copies.

Each function calls compiled code for one member after another, on one core, without the interpreter lock;
`hck.backend.parallel` gives each core a stack of its own. A factor of S = UᵀU is U = Lᵀ; what lies below its
diagonal has no meaning.
"""

import numpy as np
import torch
from torch import Tensor

from hck.backend.cpu import dense
from hck.backend.cpu.jit import exposed
from hck.backend.cpu.matrix import flat, member
from hck.backend.cpu.products import scratch, subtract_gram
from hck.backend.torch import note


class CompiledAlgebra:
    """What `hck.backend.linalg` asks for."""

    def factor_(self, matrix: Tensor, first: float, last: float) -> tuple[Tensor, Tensor]:
        """Put U in place of S; the jitter of each member (see `hck.backend.cpu.dense.factor`)."""
        matrix, jitter = matrix.contiguous(), np.empty(len(matrix))
        _factor(flat(matrix), matrix.shape[-1], first, last, jitter)
        return matrix, torch.from_numpy(jitter)

    def factor_noting_(self, matrix: Tensor, failed: Tensor) -> Tensor:
        factor, jitter = self.factor_(matrix, 1.0, 0.0)  # which is infinite where one is needed
        note(failed, jitter != 0)
        return factor

    def whiten_(self, factor: Tensor, x: Tensor, which: Tensor | None) -> Tensor:
        return _solve(factor, x, which, back=False)

    def unwhiten_(self, factor: Tensor, x: Tensor, which: Tensor | None) -> Tensor:
        return _solve(factor, x, which, back=True)

    def color(self, factor: Tensor, x: Tensor) -> Tensor:
        return factor.triu().mT @ x

    def subtract_gram_(self, y: Tensor, matrix: Tensor) -> Tensor:
        matrix = matrix.contiguous()
        _subtract_gram(flat(matrix), flat(y), *y.shape)
        return matrix

    def inverse(self, factor: Tensor) -> Tensor:
        out = torch.empty_like(factor)
        _inverse(flat(factor), flat(out), len(factor), factor.shape[-1])
        return out

    def inverse_diagonal(self, factor: Tensor) -> Tensor:
        out = factor.new_empty(factor.shape[:2])
        _inverse_diagonal(flat(factor), flat(out), len(factor), factor.shape[-1])
        return out

    def half_log_determinant(self, factor: Tensor) -> Tensor:
        return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def pack_(self, symmetric: Tensor, factor: Tensor) -> tuple[Tensor, Tensor]:
        """The factor on and above the diagonal, the symmetric matrix below."""
        mask = torch.ones(factor.shape[-2:], dtype=torch.bool, device="cpu").triu()
        return torch.where(mask, factor, symmetric), symmetric.diagonal(dim1=-2, dim2=-1).contiguous()

    def unpack(self, packed: Tensor, diagonal: Tensor) -> tuple[Tensor, Tensor]:
        lower = packed.tril(-1)
        symmetric = lower + lower.mT
        symmetric.diagonal(dim1=-2, dim2=-1).copy_(diagonal)
        return packed, symmetric

    def multiply_packed(self, packed: Tensor, diagonal: Tensor, x: Tensor) -> Tensor:
        return self.unpack(packed, diagonal)[1] @ x

    def unwhiten_packed(self, packed: Tensor, diagonal: Tensor, x: Tensor) -> Tensor:
        return self.unwhiten_(packed, x, None)


def _solve(factor: Tensor, x: Tensor, which: Tensor | None, back: bool) -> Tensor:
    """X ← U⁻ᵀX, or, with `back`, X ← U⁻¹X. `which` (members of X,) says which factor each takes."""
    x = x.contiguous()
    number = np.arange(len(x)) if which is None else which.numpy()
    _whiten(flat(factor), number, flat(x), x.shape[2], back)
    return x


@exposed
def _factor(u, n, first, last, jitter):
    work, factoring = scratch(u), dense.Factoring(first, last, np.empty(n * n, u.dtype))
    for i in range(len(jitter)):
        jitter[i] = dense.factor(member(u, i, n, n), factoring, work)


@exposed
def _whiten(u, which, b, columns, back):
    work, n = scratch(b), len(b) // max(1, len(which) * columns)
    for i in range(len(which)):
        one, right = member(u, which[i], n, n), member(b, i, n, columns)
        if back:
            dense.unwhiten(one, right, work)
        else:
            dense.whiten(one, right, work)


@exposed
def _subtract_gram(c, y, members, n, columns):
    work = scratch(y)
    for i in range(members):
        subtract_gram(member(c, i, columns, columns), member(y, i, n, columns), work)


@exposed
def _inverse(u, out, members, n):
    work, spare = scratch(u), np.empty(n * n, u.dtype)
    for i in range(members):
        dense.inverse(member(u, i, n, n), member(out, i, n, n), spare, work)


@exposed
def _inverse_diagonal(u, out, members, n):
    work, spare = scratch(u), np.empty(n * n, u.dtype)
    for i in range(members):
        dense.inverse_diagonal(member(u, i, n, n), out[i * n : (i + 1) * n], spare, work)
