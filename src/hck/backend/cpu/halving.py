"""Projections and halves of nodes on the CPU: compiled code (`hck.backend.cpu.cuts`), on all cores."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from hck.backend.blocks import Segments
from hck.backend.cpu import cuts
from hck.backend.cpu.matrix import flat
from hck.backend.cuts import Directions, Halvings
from hck.backend.parallel import at_a_time, chunks, for_each, grain

_SELECTION = 500  # flops that take as long as selection does for each number
_NEAR = 2**22  # bytes of points that are found quickly once they lie together
_FEW = 2000  # points that are not worth another core


def project(x: Tensor, rows: Tensor, directions: Tensor, which: Tensor) -> Tensor:
    """⟨x[rows[i]], directions[which[i]]⟩ for each i."""
    out, d = torch.empty(len(rows), dtype=x.dtype, device="cpu"), x.shape[1]
    points, turned = flat(x), flat(directions)
    numbers, picks, values = flat(rows), flat(which), flat(out)

    def work(part: slice) -> None:
        cuts.project(cuts.Points(points, d, numbers[part]), turned, picks[part], values[part])

    for_each(work, chunks(0, len(rows), grain(len(rows), 1000 + 4 * d)), x.device)
    return out


def separate(nodes: Segments, value: Tensor) -> tuple[Tensor, Tensor]:
    """Put the halves of each node in order, by quickselect; their largest and their smallest value."""
    below, above = torch.empty(2, len(nodes), dtype=value.dtype, device="cpu")
    own = cuts.Listed(flat(nodes.start), flat(nodes.size), flat(nodes.size.cumsum(0)))
    order, values, ends = flat(nodes.order), flat(value), cuts.Ends(flat(below), flat(above))

    def work(part: slice) -> None:
        cuts.halve(order, own, values, ends, _part(part, own.size))

    step = grain(len(nodes), _SELECTION * int(nodes.size.max()))
    for_each(work, chunks(0, len(nodes), step), value.device)
    return below, above


def halve_all(x: Tensor, order: Tensor, nodes: Halvings, directions: Directions) -> tuple[Tensor, Tensor]:
    """Halve all nodes by projections of their points.

    Large nodes are worked on level by level. The subtrees below, whose points are gathered, are worked on one
    by one.
    """
    d = x.shape[1]
    below, above = torch.empty(2, len(nodes.start), dtype=x.dtype, device="cpu")
    points, ends = cuts.Points(flat(x), d, flat(order)), cuts.Ends(flat(below), flat(above))
    own = cuts.Halvings(flat(nodes.start), flat(nodes.size), flat(nodes.child))
    by = cuts.Directions(flat(directions.values), flat(directions.pick), directions.spares)
    first = 0
    for count in nodes.counts:
        largest = int(nodes.size[first : first + count].max())
        near = largest * d * x.itemsize <= _NEAR and (count > at_a_time(x.device) or largest < _FEW)
        halve = cuts.halve_subtrees if near else cuts.halve_by_projection

        def work(part: slice, halve: Callable[..., None] = halve) -> None:
            halve(points, own, by, ends, _part(part, own.size))

        step = grain(count, (_SELECTION + 4 * d) * largest)
        for_each(work, chunks(first, first + count, step), x.device)
        if near:
            break
        first += count
    return below, above


def _part(nodes: slice, size: np.ndarray) -> cuts.Part:
    return cuts.Part(nodes.start, nodes.stop, int(size[nodes].max()))
