"""Which columns of a matrix H say the same, found by their moments HᵀH."""

import torch
from torch import Tensor

_ROUNDING = 64  # units in the last place by which correlations may be off
_TINY = 1e-8  # of the size of a column, beside which another is none
_CLOSE = 1e-4  # of correlations: below, what is computed of them loses digits
_DOUBT = 1e-2  # of correlations: rounding errors are not as large, whatever was computed


def moments_of(columns: Tensor) -> Tensor:
    """HᵀH (columns, columns), in double precision."""
    wide = columns.double()
    return wide.mT @ wide


def told_apart(moments: Tensor) -> Tensor:
    """Combinations of columns, (columns, combinations), that are told apart by these moments."""
    values, vectors, size = _correlations(moments)
    return vectors[:, _known(values, len(values))] / size[:, None]


def untangling(moments: Tensor) -> Tensor | None:
    """A change T of columns after which those that can be told apart are of size 1 and uncorrelated.

    None if they are nearly so: what is computed of such columns has all digits, while others lose them when
    what they have in common cancels. T, (columns, columns), is triangular: from each column goes what those
    before it say, so that a constant that comes first stays. It has an inverse: a column of which nothing is
    left becomes tiny, and none for `told_apart`.
    """
    n = len(moments)
    if n < 2:
        return None
    values, _, size = _correlations(moments)
    if not bool((values[_known(values, n)] < _CLOSE).any()):
        return None
    alike, change = moments / size / size[:, None], torch.eye(n, dtype=moments.dtype, device=moments.device)
    known: list[int] = []
    for j in range(n):
        before, column = change[:, known], change[:, j].clone()
        for _ in range(2):  # since rounding errors leave something of the others
            column -= before @ (before.mT @ (alike @ column))
        left = column @ alike @ column
        if _known(left, n):
            known.append(j)
        change[:, j] = column * (left.rsqrt() if j in known else _TINY)
    return change / size[:, None]


def clearly_apart(moments: Tensor) -> bool:
    """Whether columns are told apart beyond doubt, whatever rounding errors did to the moments."""
    return len(moments) < 2 or bool(_correlations(moments)[0].min() > _DOUBT)


def _known(values: Tensor, columns: int) -> Tensor:
    """Which eigenvalues of correlations, or squared lengths, are more than rounding errors."""
    return values > _ROUNDING * columns * torch.finfo(values.dtype).eps


def _correlations(moments: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Eigenvalues and eigenvectors of the correlations of columns, and sizes that these are without."""
    size = moments.diagonal().clamp_min(0).sqrt()
    size = size.clamp_min(max(float(size.max()) * _TINY, torch.finfo(size.dtype).tiny))
    return *torch.linalg.eigh(moments / size / size[:, None]), size
