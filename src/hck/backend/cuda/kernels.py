"""Kernel values between blocks of dense points, on a GPU: gather, distance and profile in one pass.

Distances are sums over differences, as on the CPU, not products of matrices: nothing cancels for close
points, and no padded copy of the points is made.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from hck.backend.blocks import Blocks


def evaluate(
    name: int, weights: Tensor, x: Tensor, rows: Blocks, z: Tensor, columns: Blocks, upper: bool, out: Tensor
) -> None:
    """Write to `out` the values between blocks of rows of x (points, d) and of z, 0 for padding.

    Parameters
    ----------
    name : int
        Which function f, by its number in `hck.backend.kernels.NAMES`.
    weights : Tensor of shape (d + 1,)
        1 over the lengthscales, and the amplitude.
    upper : bool
        Whether only what lies on and above the diagonal counts.
    """
    (members, n, m), d = out.shape, x.shape[1]
    tile = 64 if max(n, m) <= 64 else 32  # what was fastest on an H200
    tiles = triton.cdiv(n, tile) * triton.cdiv(m, tile)
    if out.numel():
        with torch.cuda.device_of(out):
            _values[(members * tiles,)](
            x, rows.index.contiguous(), z, columns.index.contiguous(), weights, out, n, m, d,
            NAME=name, FULL=rows.full and columns.full, UPPER=upper, TILE=tile, num_warps=tile // 32,
        )  # fmt: skip


@triton.jit
def _values(
    x, rows, z, columns, weights, out, n, m, d,
    NAME: tl.constexpr, FULL: tl.constexpr, UPPER: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    across = tl.cdiv(m, TILE)
    tiles = tl.cdiv(n, TILE) * across
    member, tile = (tl.program_id(0) // tiles).to(tl.int64), tl.program_id(0) % tiles
    first_row, first_column = tile // across * TILE, tile % across * TILE
    if UPPER and first_column + TILE <= first_row:
        return
    i, j = first_row + tl.arange(0, TILE), first_column + tl.arange(0, TILE)
    row = tl.load(rows + member * n + i, mask=i < n, other=-1)
    column = tl.load(columns + member * m + j, mask=j < m, other=-1)
    left, right = x + tl.maximum(row, 0) * d, z + tl.maximum(column, 0) * d
    total = tl.zeros((TILE, TILE), dtype=out.dtype.element_ty)
    for f in range(d):
        weight = tl.load(weights + f)
        a, b = tl.load(left + f) * weight, tl.load(right + f) * weight
        gap = a[:, None] - b[None, :]
        total += tl.abs(gap) if NAME == 1 else gap * gap
    if NAME == 0:
        value = tl.exp(-0.5 * total)
    elif NAME == 1:
        value = tl.exp(-total)
    elif NAME == 2:
        value = 1 / tl.sqrt(1 + total)
    elif NAME == 3:
        value = tl.exp(-tl.sqrt(total))
    elif NAME == 4:
        s = tl.sqrt(3 * total)
        value = (1 + s) * tl.exp(-s)
    else:
        s = tl.sqrt(5 * total)
        value = (1 + s + s * s / 3) * tl.exp(-s)
    value *= tl.load(weights + d)
    if not FULL:
        value = tl.where((row >= 0)[:, None] & (column >= 0)[None, :], value, 0)
    place = out + member * n * m + i[:, None].to(tl.int64) * m + j[None, :]
    tl.store(place, value, mask=(i < n)[:, None] & (j < m)[None, :])
