"""Projections on a GPU, in one pass over the points."""

import torch
import triton
import triton.language as tl
from torch import Tensor

_ROWS, _FEATURES = 64, 32  # that a program looks at at once


def project(x: Tensor, rows: Tensor, directions: Tensor, which: Tensor) -> Tensor:
    """⟨x[rows[i]], directions[which[i]]⟩ for each i."""
    out = torch.empty(len(rows), dtype=x.dtype, device=x.device)
    if len(rows):
        grid = (triton.cdiv(len(rows), _ROWS),)
        sizes = {"ROWS": _ROWS, "FEATURES": min(_FEATURES, triton.next_power_of_2(x.shape[1]))}
        arrays = (rows.contiguous(), directions.contiguous(), which.contiguous())
        with torch.cuda.device_of(x):
            _project[grid](x, *arrays, out, len(rows), x.shape[1], **sizes)
    return out


@triton.jit(do_not_specialize=["n", "d"])
def _project(x, rows, directions, which, out, n, d, ROWS: tl.constexpr, FEATURES: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    point = (tl.load(rows + i, mask=i < n, other=0) * d)[:, None]
    direction = (tl.load(which + i, mask=i < n, other=0) * d)[:, None]
    total = tl.zeros((ROWS,), dtype=out.dtype.element_ty)
    for first in range(0, d, FEATURES):
        f = first + tl.arange(0, FEATURES)[None, :]
        a = tl.load(x + point + f, mask=f < d, other=0.0)
        b = tl.load(directions + direction + f, mask=f < d, other=0.0)
        total += tl.sum(a * b, axis=1)
    tl.store(out + i, total, mask=i < n)
