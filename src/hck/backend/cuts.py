"""Projections of points on directions, by the code that suits where they are."""

from importlib import import_module

import torch
from torch import Tensor

from hck.backend.linalg import flat, has_triton
from hck.backend.parallel import chunks, for_each, grain


def project(x: Tensor, rows: Tensor, directions: Tensor, which: Tensor) -> Tensor:
    """⟨x[rows[i]], directions[which[i]]⟩ for each i.

    Parameters
    ----------
    x : Tensor of shape (points, d)
        Contiguous.
    rows, which : Tensor of shape (count,)
    directions : Tensor of shape (directions, d)
    """
    directions, d = directions.contiguous(), x.shape[1]
    if x.device.type != "cpu":
        if has_triton():
            return import_module("hck.backend.cuda.cuts").project(x, rows, directions, which)
        return (x[rows] * directions[which]).sum(1)
    out = torch.empty(len(rows), dtype=x.dtype)
    points, turned, numbers, picks, values = map(flat, (x, directions, rows, which, out))
    compiled = import_module("hck.backend.cpu.cuts")

    def work(part: slice) -> None:
        compiled.project(points, d, numbers[part], turned, picks[part], values[part])

    for_each(work, chunks(0, len(rows), grain(len(rows), 1000 + 4 * d)), x.device)
    return out
