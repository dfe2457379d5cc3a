"""Kernel values between blocks of dense points, on a GPU: gather, distance and formula in one pass.

Distances are sums over differences, as on the CPU, not products of matrices: nothing cancels for close
points, and no padded copy of the points is made.
"""

from functools import cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from hck.backend.kernels import DenseCross, Formula, farthest, numbers_of

_TILE = 32  # rows and columns of what a warp computes: others are slower, or compile for longer


def evaluate(cross: DenseCross, upper: bool, out: Tensor) -> None:
    """Write the values to `out` (blocks, n, m); with `upper` perhaps only those on and above the diagonal."""
    (members, n, m), d = out.shape, cross.x.shape[1]
    formula, rows, columns = cross.profile.formula, cross.rows, cross.columns
    numbers = numbers_of(cross.profile, out.dtype, out.device)
    tiles = triton.cdiv(n, _TILE) * triton.cdiv(m, _TILE)
    if out.numel():
        with torch.cuda.device_of(out):
            _values[(members * tiles,)](
            cross.x, rows.index.contiguous(), cross.z, columns.index.contiguous(), numbers, out,
            n, m, d, int(upper),
            FORMULA=_function(formula), SHAPED=formula.shaped, MANHATTAN=formula.manhattan,
            TILE=_TILE, MOST=farthest(out.dtype), num_warps=1,
        )  # fmt: skip


@cache
def _function(formula: Formula) -> "triton.JITFunction":
    """The formula for Triton: the same source, in which exp, log and sqrt are Triton's."""
    annotations = {"Numbers": tl.tensor, "Any": tl.tensor}  # which Triton looks up as well
    return triton.jit(formula.with_functions(exp=tl.exp, log=tl.log, sqrt=tl.sqrt, **annotations))


# One for all sizes, since each takes half a second to compile.
@triton.jit(do_not_specialize=["n", "m", "d", "upper"])
def _values(
    x, rows, z, columns, numbers, out, n, m, d, upper,
    FORMULA: tl.constexpr, SHAPED: tl.constexpr, MANHATTAN: tl.constexpr,
    TILE: tl.constexpr, MOST: tl.constexpr,
):  # fmt: skip
    across = tl.cdiv(m, TILE)
    tiles = tl.cdiv(n, TILE) * across
    member, tile = (tl.program_id(0) // tiles).to(tl.int64), tl.program_id(0) % tiles
    first_row, first_column = tile // across * TILE, tile % across * TILE
    if (upper != 0) & (first_column + TILE <= first_row):
        return
    i, j = first_row + tl.arange(0, TILE), first_column + tl.arange(0, TILE)
    row = tl.load(rows + member * n + i, mask=i < n, other=-1)
    column = tl.load(columns + member * m + j, mask=j < m, other=-1)
    left, right = x + tl.maximum(row, 0) * d, z + tl.maximum(column, 0) * d
    inverse = tl.load(numbers)
    total = tl.zeros((TILE, TILE), dtype=out.dtype.element_ty)
    for f in range(d):
        a, b = tl.load(left + f) * inverse, tl.load(right + f) * inverse
        gap = a[:, None] - b[None, :]
        total += tl.abs(gap) if MANHATTAN else gap * gap
    total = tl.where(total > MOST, MOST, total)
    value = FORMULA(total, tl.load(numbers + 2)) if SHAPED else FORMULA(total)
    value *= tl.load(numbers + 1)
    value = tl.where((row >= 0)[:, None] & (column >= 0)[None, :], value, 0)  # 0 for padding
    place = out + member * n * m + i[:, None].to(tl.int64) * m + j[None, :]
    tl.store(place, value, mask=(i < n)[:, None] & (j < m)[None, :])
