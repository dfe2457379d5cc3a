"""Sets of near points, which show what a random sample has lost: the data at their full density."""

from dataclasses import dataclass

import torch
from torch import Tensor

from hck.backend.left_out import Coding
from hck.backend.random import Random
from hck.backend.repeated import window
from hck.kernels import Gaussian
from hck.partition import make_tree
from hck.points import DensePoints, Points
from hck.selection.observations import Observations

_REGION = 2**17  # numbers of a region, in which the points nearest to one of them are looked for


@dataclass(frozen=True)
class Neighbourhoods:
    """Observations, region after region."""

    x: Tensor  # (n, d), as float64
    y: Tensor  # (n, columns)
    noise: Tensor  # (n,): relative to that of the others
    starts: Tensor  # rows at which regions begin
    widest: int  # points of the largest region; a smaller one has some of the next
    random: Random
    coding: Coding | None = None  # of classes

    @classmethod
    def of(cls, data: Observations, random: Random, of_classes: bool = False) -> "Neighbourhoods":
        """Of points that are rows of a tensor; y has columns of variance 1, which may stand for classes."""
        points, device = data.points, data.points.device
        assert isinstance(points, DensePoints)
        parts = regions(points, max(2048, _REGION // points.n_features), random.child(0))
        order = torch.cat(parts)
        sizes = torch.tensor([len(part) for part in parts], dtype=torch.int64, device="cpu")
        y = data.columns.to(device, torch.float64)
        noise = y.new_ones(len(y)) if data.noise is None else data.noise.to(y)
        return cls(
            points.x[order].double(),
            y[order],
            noise[order],
            (sizes.cumsum(0) - sizes).to(device),
            int(sizes.max()),
            random.child(1),
            Coding(y.amin(0), y.amax(0) - y.amin(0)) if of_classes else None,
        )

    def draws(self, steps: int, size: int) -> tuple[Tensor, Tensor]:
        """For each step a row, to take its neighbourhood, and some rows (steps, size) from anywhere."""
        n, device = len(self.x), self.x.device
        centres = self.random.child(0).integers(n, steps, torch.device("cpu")).to(device)
        return centres, self.random.child(1).integers(n, steps * size, device).view(steps, size)

    def near(self, centre: Tensor, metric: Tensor, size: int) -> Tensor:
        """Rows (metrics, size): the points of a region that are nearest to one of them, by each metric.

        The one is a row (1,), and `size` at most the points of a region. Metrics are (metrics, d) or
        (metrics, d, k); features are multiplied by them. Nothing waits for a device.
        """
        region = torch.searchsorted(self.starts, centre, right=True) - 1
        first = self.starts[region].clamp_(max=len(self.x) - self.widest)
        away = squared_lengths(window(self.x, first, self.widest) - self.x[centre], metric)
        return torch.topk(away, size, largest=False, sorted=False).indices + first


def placed(x: Tensor, metric: Tensor) -> Tensor:
    """Points (n, d) or (metrics, n, d) in each metric: (metrics, n, k)."""
    return x * metric[:, None] if metric.ndim == 2 else x @ metric


def squared_lengths(x: Tensor, metric: Tensor) -> Tensor:
    """Those of vectors (n, d) in each metric: (metrics, n)."""
    if metric.ndim == 2:
        return (x.square() @ metric.square().mT).mT.contiguous()
    placed = x @ metric.permute(1, 0, 2).flatten(1)  # by one product
    return placed.square_().view(len(x), *metric.shape[::2]).sum(-1).mT.contiguous()


def regions(points: Points, most: int, random: Random) -> list[Tensor]:
    """Rows of points that are near each other: leaves of a tree, of at most so many points each."""
    if len(points) <= most:
        return [torch.arange(len(points), device=points.device)]
    tree = make_tree("random_projection", points, Gaussian(), 1, most, random)
    starts, stops = tree.start[tree.leaves].tolist(), tree.stop[tree.leaves].tolist()
    return [tree.order[first:stop] for first, stop in zip(starts, stops, strict=True)]
