"""Sets of near points, which show what a random sample has lost: the data at their full density."""

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from hck.backend.random import Random
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
    regions: list[slice]
    random: Random

    @classmethod
    def of(cls, data: Observations, random: Random) -> "Neighbourhoods":
        """Of points that are rows of a tensor; y has columns of variance 1."""
        points, device = data.points, data.points.device
        assert isinstance(points, DensePoints)
        parts = regions(points, max(2048, _REGION // points.n_features), random.child(0))
        order, ends = torch.cat(parts), [0]
        for part in parts:
            ends.append(ends[-1] + len(part))
        y = data.columns.to(device, torch.float64)
        noise = y.new_ones(len(y)) if data.noise is None else data.noise.to(y)
        return cls(
            points.x[order].double(),
            y[order],
            noise[order],
            [slice(*pair) for pair in pairwise(ends)],
            random.child(1),
        )

    def draw(self, step: int, metric: Tensor, size: int, anywhere: Tensor | None = None) -> Tensor:
        """Rows (metrics, size): the points nearest to one of them, by each metric, or any points.

        Metrics are (metrics, d) or (metrics, d, k); features are multiplied by them. `anywhere`, (metrics,),
        says which metrics take any points.
        """
        random, n, device = self.random.child(step), len(self.x), self.x.device
        centre = int(random.uniform((1,), torch.device("cpu"))[0] * n)
        region = next(part for part in self.regions if part.start <= centre < part.stop)
        away = placed(self.x[region] - self.x[centre], metric)
        size = min(size, region.stop - region.start)
        found = torch.topk(away.square().sum(-1), size, largest=False, sorted=False).indices + region.start
        if anywhere is None:
            return found
        return torch.where(anywhere[:, None], random.child(1).integers(n, size, device), found)


def placed(x: Tensor, metric: Tensor) -> Tensor:
    """Points (n, d) or (metrics, n, d) in each metric: (metrics, n, k)."""
    return x * metric[:, None] if metric.ndim == 2 else x @ metric


def regions(points: Points, most: int, random: Random) -> list[Tensor]:
    """Rows of points that are near each other: leaves of a tree, of at most so many points each."""
    if len(points) <= most:
        return [torch.arange(len(points), device=points.device)]
    tree = make_tree("random_projection", points, Gaussian(), 1, most, random)
    starts, stops = tree.start[tree.leaves].tolist(), tree.stop[tree.leaves].tolist()
    return [tree.order[first:stop] for first, stop in zip(starts, stops, strict=True)]
