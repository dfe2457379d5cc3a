"""Cuts that need nothing but the base kernel, so that points of any kind can be partitioned."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from hck.backend.blocks import Blocks, batches, group_by, pieces
from hck.backend.checks import check_floats, require
from hck.backend.random import Random
from hck.kernels import Kernel
from hck.partition.cutter import Cutter, Frontier
from hck.partition.rules import Rule
from hck.points import Points, as_points_like, check_kernel, cross, features_of

# Where kernel values take few values, a projection on two points leaves many tied: then take more.
_POLES = (2, 8, 16)
_VALUES_AT_ONCE = 2**21


@dataclass(frozen=True)
class _Poles:
    """For each of some nodes, points and their weights."""

    kernel: Kernel
    points: Points
    index: Tensor  # (nodes, poles): positions in `points`
    weights: Tensor  # (nodes, poles)

    def project(self, points: Points, rows: Tensor, which: Tensor) -> Tensor:
        """Σ weight · k(x, pole) for each x = points[rows[i]] over the poles of its node which[i]."""
        order, start, count = group_by(which, len(self.index))
        limit = max(1, _VALUES_AT_ONCE // (2 * self.index.shape[1] + points.values_per_point))
        start, count, group = pieces(start, count, limit)
        value = torch.empty(len(rows), dtype=points.dtype, device=points.device)
        for batch in batches(start, count, lambda width, _: max(1, limit // width)):
            node = group[batch.groups]
            position = order[batch.safe]  # (nodes, width)
            members = Blocks(rows[position].where(batch.mask, -1), batch.full)
            values = cross(self.kernel, points, members, self.points, Blocks(self.index[node], full=True))
            value[position[batch.mask]] = (values @ self.weights[node][..., None])[..., 0][batch.mask]
        return value


@dataclass(frozen=True)
class KernelRule(Rule):
    """Child 1 if Σ weight · k(x, pole) exceeds the threshold of the node, else child 0."""

    kernel: Kernel
    poles: Points  # those of the first node, those of the second, …
    weights: Tensor  # (nodes, poles)
    threshold: Tensor  # (nodes,)

    def check(self, children: Tensor, d: int) -> None:
        nodes = len(children)
        require(bool((children == 2).all()), "a KernelRule cuts a node into two children")
        check_floats("weights", self.weights, nodes, None)
        check_floats("threshold", self.threshold, nodes)
        require(len(self.poles) == self.weights.numel() > 0, "there must be a weight for each pole")
        require(self.poles.dtype == self.weights.dtype, "weights and poles must be of one type")
        check_kernel(self.kernel, self.poles)
        require(features_of(self.poles) == d, f"poles must have {d} features")

    def choose(self, points: Points, rows: Tensor, which: Tensor) -> Tensor:
        points = as_points_like(points.x, self.poles)
        index = torch.arange(len(self.poles), device=rows.device).reshape(self.weights.shape)
        value = _Poles(self.kernel, self.poles, index, self.weights).project(points, rows, which)
        return (value > self.threshold[which]).long()

    def to(self, device: torch.device) -> "KernelRule":
        return replace(super().to(device), kernel=self.kernel.to(device, self.poles.dtype))


class KernelCut(Cutter):
    """Projects on φ(p) − φ(q) for two random points of the node, k(x, p) − k(x, q), and halves at the median.

    φ is the kernel's feature map, so this is a random hyperplane cut in feature space. Where too many points
    are tied, a random combination of more points takes the place of φ(p) − φ(q).

    Examples
    --------
    >>> import numpy as np
    >>> from hck.kernels import CallableKernel
    >>> from hck.partition import KernelCut, make_tree
    >>> from hck.points import as_points
    >>> def shared(a, b):
    ...     return np.array([[len({*s} & {*t}) for t in b] for s in a], dtype=float)
    >>> kernel = CallableKernel(shared)
    >>> words = as_points(["abc", "abd", "xyz", "xyw"], objects=True)
    >>> make_tree(KernelCut(), words, kernel, rank=2, generator=0).n_leaves
    2
    """

    looks_at_some = True

    def cut(self, frontier: Frontier) -> tuple[Tensor, Rule]:
        poles, weights, below, above, child = _attempt(frontier, _POLES[0])
        for count in _POLES[1:]:
            tied = (above <= below).nonzero().squeeze(1)
            if len(tied) == 0:
                break
            more = count - poles.shape[1]
            poles = torch.cat([poles, poles[:, :1].expand(-1, more)], 1)
            weights = torch.cat([weights, weights.new_zeros(len(weights), more)], 1)
            poles[tied], weights[tied], below[tied], above[tied], _ = _attempt(frontier.subset(tied), count)
        threshold = torch.where(above > below, (below + above) / 2, below)
        chosen = frontier.points.take(poles.reshape(-1))
        return child, KernelRule(frontier.kernel, chosen, weights, threshold)


def _attempt(frontier: Frontier, count: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Cut by `count` poles drawn anew: the poles, their weights, and what `Frontier.halve` returns."""
    points, random = frontier.points, frontier.random.child(count)
    rows, which = frontier.members()
    start, size = frontier.sent
    if count == 2:
        number = _two_of(size, random)
        weights = torch.tensor([1.0, -1.0], dtype=points.dtype, device=points.device).repeat(len(frontier), 1)
    else:
        shape = (len(frontier), count)
        draw = random.child(0).uniform(shape, points.device)
        number = (draw * size[:, None]).long()
        weights = random.child(1).normal(shape, points.dtype, points.device)
    poles = frontier.order[start[:, None] + number]
    value = _Poles(frontier.kernel, points, poles, weights).project(points, rows, which)
    return poles, weights, *frontier.halve(value)


def _two_of(size: Tensor, random: Random) -> Tensor:
    """Two different numbers below `size` for each node."""
    draw = random.uniform((len(size), 2), size.device)
    first = (draw[:, 0] * size).long()
    step = 1 + (draw[:, 1] * (size - 1)).long()
    return torch.stack([first, (first + step) % size], 1)
