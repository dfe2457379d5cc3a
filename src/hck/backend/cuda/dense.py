"""Small dense matrices on a GPU: factor and invert, and products with what `pack_` has made.

torch's batched Cholesky and triangular solve reach a few percent of a GPU's rate at these sizes.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from hck.backend.torch import TorchAlgebra

_FEW_COLUMNS = 4  # to multiply by without unpacking
MOST = 64  # rows of a matrix that one program factors
_EDGE = 16  # of its blocks


class CudaAlgebra(TorchAlgebra):
    """What `hck.backend.linalg` asks for: torch, and for small matrices kernels of our own."""

    def _invert_small_(self, s: Tensor, failed: Tensor) -> None:
        invert_factor_(s, failed)

    def pack_(self, symmetric: Tensor, factor: Tensor) -> tuple[Tensor, Tensor]:
        diagonal = symmetric.diagonal(dim1=-2, dim2=-1).contiguous()
        pack_(symmetric.contiguous(), factor)
        return factor, diagonal

    def multiply_packed(self, packed: Tensor, diagonal: Tensor, x: Tensor) -> Tensor:
        if x.shape[-1] > _FEW_COLUMNS:
            return super().multiply_packed(packed, diagonal, x)
        return multiply_packed(packed, diagonal, x)

    def unwhiten_packed(self, packed: Tensor, diagonal: Tensor, x: Tensor) -> Tensor:
        if x.shape[-1] > _FEW_COLUMNS:
            return super().unwhiten_packed(packed, diagonal, x)
        return multiply_packed_factor(packed, x)


def invert_factor_(s: Tensor, failed: Tensor) -> None:
    """Put L⁻¹, with zeros above the diagonal, in place of S = L Lᵀ (members, n, n), for n up to MOST.

    The upper triangle of S is read; its rows are contiguous. `failed` (members,), of type int32, is set to 1
    where a member is not positive definite; it may be one number, expanded.
    """
    (members, n, _), strides = s.shape, (*s.stride()[:2], failed.stride(0))
    if n > MOST:
        raise ValueError(f"matrices of at most {MOST} rows, got {n}")
    with torch.cuda.device_of(s):
        _invert_factor[(members,)](s, failed, n, *strides, EDGE=_EDGE, num_warps=1)


def pack_(symmetric: Tensor, factor: Tensor) -> None:
    """Put what lies above the diagonals of symmetric matrices above those of factors L⁻¹."""
    members, n, _ = factor.shape
    tile = min(64, max(16, triton.next_power_of_2(n)))
    grid = (members, triton.cdiv(n, tile), triton.cdiv(n, tile))
    with torch.cuda.device_of(factor):
        _pack[grid](symmetric, factor, n, TILE=tile, num_warps=max(1, tile // 16))


def multiply_packed(packed: Tensor, diagonal: Tensor, x: Tensor) -> Tensor:
    """M x for the symmetric matrix of `pack_`, whose strict upper triangle is in `packed`; x (members, n, k).

    For few columns k.
    """
    return _multiply(packed, diagonal, x, symmetric=True)


def multiply_packed_factor(packed: Tensor, x: Tensor) -> Tensor:
    """L⁻ᵀ x for the factor of `pack_`: L⁻¹ is the lower triangle of `packed`."""
    return _multiply(packed, packed, x, symmetric=False)


def _multiply(packed: Tensor, diagonal: Tensor, x: Tensor, symmetric: bool) -> Tensor:
    (members, n, k), x = x.shape, x.contiguous()
    out = torch.empty_like(x)
    tile = min(64, max(16, triton.next_power_of_2(n)))
    if x.numel():
        with torch.cuda.device_of(x):
            _multiply_packed[(members, triton.cdiv(n, tile))](
                packed, diagonal, x, out, n, k, SYMMETRIC=symmetric, TILE=tile, num_warps=max(1, tile // 16)
            )
    return out


@triton.jit
def _load(s, row, column, n, row_stride):
    return tl.load(s + row * row_stride + column, mask=(row < n) & (column < n), other=0.0)


# One for all sizes, with loops that stay loops: each takes a second to compile, several if they are unrolled.
@triton.jit(do_not_specialize=["n", "member_stride", "row_stride", "failed_stride"])
def _invert_factor(s, failed, n, member_stride, row_stride, failed_stride, EDGE: tl.constexpr):
    """Row of blocks after row of blocks. With R = L⁻¹ of the rows before, in the i-th::

        L_ik = Σ_{p ≤ k} S_ip R_kpᵀ
        R_ii is the inverse factor of S_ii − Σ L_ik L_ikᵀ
        R_ik = −R_ii Σ_{k ≤ p < i} L_ip R_pk

    L_ik is kept, transposed, where S_ki was.
    """
    member = tl.program_id(0).to(tl.int64)
    s += member * member_stride
    row, column = tl.arange(0, EDGE)[:, None], tl.arange(0, EDGE)[None, :]
    bad = 0
    for i in range(tl.cdiv(n, EDGE)):
        here = i * EDGE
        own = _load(s, here + row, here + column, n, row_stride)
        for back in range(i):
            k = i - 1 - back
            above = k * EDGE + row
            part = tl.zeros((EDGE, EDGE), dtype=s.dtype.element_ty)
            for p in range(k + 1):
                done = _load(s, above, p * EDGE + column, n, row_stride)
                before = _load(s, p * EDGE + row, here + column, n, row_stride)
                part = tl.dot(done, before, part, input_precision="ieee", out_dtype=part.dtype)
            tl.debug_barrier()
            tl.store(s + above * row_stride + here + column, part, mask=(above < n) & (here + column < n))
            own -= tl.dot(tl.trans(part), part, input_precision="ieee", out_dtype=part.dtype)
        own = tl.where((row == column) & (here + row >= n), 1.0, own)  # padding
        own, bad = _invert_block(own, bad, EDGE)
        tl.debug_barrier()
        for k in range(i):
            total = tl.zeros((EDGE, EDGE), dtype=s.dtype.element_ty)
            for p in range(k, i):
                left = _load(s, p * EDGE + row, here + column, n, row_stride)
                done = _load(s, p * EDGE + row, k * EDGE + column, n, row_stride)
                total = tl.dot(tl.trans(left), done, total, input_precision="ieee", out_dtype=total.dtype)
            total = -tl.dot(own, total, input_precision="ieee", out_dtype=total.dtype)
            tl.debug_barrier()
            # L_ik is not needed again
            tl.store(
                s + (k * EDGE + row) * row_stride + here + column,
                tl.zeros((EDGE, EDGE), dtype=total.dtype),
                mask=(k * EDGE + row < n) & (here + column < n),
            )
            tl.store(s + (here + row) * row_stride + k * EDGE + column, total, mask=here + row < n)
        inside = (here + row < n) & (here + column < n)
        tl.store(s + (here + row) * row_stride + here + column, own, mask=inside)
        tl.debug_barrier()
    tl.store(failed + member * failed_stride, 1, mask=bad == 1)


@triton.jit
def _invert_block(t, bad, EDGE: tl.constexpr):
    """L⁻¹ of a block, with zeros above the diagonal, by Gauss-Jordan in place.

    Left of column j is the part of L⁻¹ that is done, right of it what is left of S. Row j divided by L_jj is
    at once row j of L⁻¹ and, since S is symmetric, column j of L.
    """
    i = tl.arange(0, EDGE)
    row, column = i[:, None], i[None, :]
    for j in range(EDGE):
        u = tl.sum(tl.where(row == j, t, 0.0), axis=0)
        pivot = tl.sum(tl.where(i == j, u, 0.0), axis=0)
        good = (pivot > 0) & (pivot < float("inf"))
        bad = tl.where(good, bad, 1)
        scale = 1 / tl.sqrt(tl.where(good, pivot, 1.0))
        u = tl.where(i == j, scale, u * scale)
        below = tl.where(i > j, u, 0.0)
        t = tl.where(column == j, 0.0, t) - below[:, None] * u[None, :]
        t = tl.where(row == j, u[None, :], t)
    return tl.where(row >= column, t, 0.0), bad


@triton.jit(do_not_specialize=["n"])
def _pack(symmetric, factor, n, TILE: tl.constexpr):
    if tl.program_id(2) < tl.program_id(1):
        return
    i = (tl.program_id(1) * TILE + tl.arange(0, TILE))[:, None]
    j = (tl.program_id(2) * TILE + tl.arange(0, TILE))[None, :]
    place = tl.program_id(0).to(tl.int64) * n * n + i * n + j
    wanted = (i < j) & (j < n)
    tl.store(factor + place, tl.load(symmetric + place, mask=wanted), mask=wanted)


@triton.jit(do_not_specialize=["n", "k"])
def _multiply_packed(packed, diagonal, x, out, n, k, SYMMETRIC: tl.constexpr, TILE: tl.constexpr):
    member = tl.program_id(0).to(tl.int64)
    packed += member * n * n
    x += member * n * k
    first = tl.program_id(1) * TILE
    i = first + tl.arange(0, TILE)
    for c in range(k):
        if SYMMETRIC:
            own = tl.load(x + i * k + c, mask=i < n, other=0.0)
            total = own * tl.load(diagonal + member * n + i, mask=i < n, other=0.0)
        else:
            total = tl.zeros((TILE,), dtype=x.dtype.element_ty)
        for start in range(0, n, TILE):
            j = start + tl.arange(0, TILE)
            value = tl.load(x + j * k + c, mask=j < n, other=0.0)
            beyond = start + TILE > first  # the tile reaches beyond the diagonal
            if SYMMETRIC and beyond:
                wanted = (i[:, None] < j[None, :]) & (j < n)[None, :]
                tile = tl.load(packed + i[:, None] * n + j[None, :], mask=wanted, other=0.0)
                total += tl.sum(tile * value[None, :], axis=1)
            # transposed: of the symmetric matrix what lies above the diagonal, of the factor what lies below
            if SYMMETRIC:
                wanted, needed = (j[:, None] < i[None, :]) & (i < n)[None, :], start < first + TILE
            else:
                wanted, needed = (j[:, None] >= i[None, :]) & (j < n)[:, None], beyond
            if needed:
                tile = tl.load(packed + j[:, None] * n + i[None, :], mask=wanted, other=0.0)
                total += tl.sum(tile * value[:, None], axis=0)
        tl.store(out + member * n * k + i * k + c, total, mask=i < n)
