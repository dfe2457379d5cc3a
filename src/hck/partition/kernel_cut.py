"""Cuts that need nothing but the base kernel, so that points of any kind can be partitioned."""

from dataclasses import dataclass

import torch
from torch import Tensor

from hck.blocks import Blocks, batches, group_by, pieces
from hck.kernels import Kernel
from hck.partition.cutter import Cutter, Frontier, halve
from hck.partition.tree import Rule
from hck.points import Points, as_points_like, cross

_ATTEMPTS = 4
_VALUES_AT_ONCE = 2**21


@dataclass(frozen=True)
class KernelRule(Rule):
    """Child 1 if k(x, p) − k(x, q) exceeds the threshold of the node, else child 0."""

    kernel: Kernel
    poles: Points  # p, q of the first node, p, q of the second, …
    threshold: Tensor  # (nodes,)

    def choose(self, points: Points, rows: Tensor, which: Tensor) -> Tensor:
        points = as_points_like(points.x, self.poles)
        pairs = torch.arange(len(self.poles), device=rows.device).reshape(-1, 2)
        value = _project(self.kernel, points, rows, which, self.poles, pairs)
        return (value > self.threshold[which]).long()

    def to(self, device: torch.device) -> "KernelRule":
        kernel = self.kernel.to(device, self.poles.dtype)
        return KernelRule(kernel, self.poles.to(device), self.threshold.to(device))


class KernelCut(Cutter):
    """Projects on φ(p) − φ(q) for two random points of the node, k(x, p) − k(x, q), and halves at the median.

    φ is the kernel's feature map, so this is a random hyperplane cut in feature space.
    """

    def check(self, points: Points) -> None:
        pass  # whatever the kernel takes

    def cut(self, frontier: Frontier) -> tuple[Tensor, Rule]:
        pairs, below, above, child = _attempt(frontier)
        for _ in range(_ATTEMPTS):
            tied = (above <= below).nonzero().squeeze(1)
            if len(tied) == 0:
                break
            pairs[tied], below[tied], above[tied], _ = _attempt(frontier.subset(tied))
        threshold = torch.where(above > below, (below + above) / 2, below)
        return child, KernelRule(frontier.kernel, frontier.points.take(pairs.reshape(-1)), threshold)


def _attempt(frontier: Frontier) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Cut by poles drawn anew: the pairs of poles, and what `halve` returns."""
    rows, which = frontier.members()
    pairs = frontier.order[frontier.start[:, None] + _two_of(frontier.size, frontier.generator)]
    value = _project(frontier.kernel, frontier.points, rows, which, frontier.points, pairs)
    return pairs, *halve(frontier, value)


def _project(
    kernel: Kernel, points: Points, rows: Tensor, which: Tensor, poles: Points, pairs: Tensor
) -> Tensor:
    """k(x, p) − k(x, q) for each x = points[rows[i]] and the pair p, q of its node which[i]."""
    order, start, count = group_by(which, len(pairs))
    limit = max(1, _VALUES_AT_ONCE // (4 + points.values_per_point))
    start, count, group = pieces(start, count, limit)
    value = torch.empty(len(rows), dtype=points.dtype, device=points.device)
    for batch in batches(start, count, lambda width: max(1, limit // width)):
        position = order[batch.safe]  # (nodes, width)
        members = Blocks(rows[position].where(batch.mask, -1), batch.full)
        values = cross(kernel, points, members, poles, Blocks(pairs[group[batch.groups]], full=True))
        value[position[batch.mask]] = (values[..., 0] - values[..., 1])[batch.mask]
    return value


def _two_of(size: Tensor, generator: torch.Generator) -> Tensor:
    """Two different numbers below `size` for each node."""
    draw = torch.rand((len(size), 2), generator=generator, device=size.device, dtype=torch.float64)
    first = (draw[:, 0] * size).long()
    step = 1 + (draw[:, 1] * (size - 1)).long()
    return torch.stack([first, (first + step) % size], 1)
