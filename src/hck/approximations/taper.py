"""Functions of compact support, and the pairs of points for which they are not 0."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from scipy.spatial import cKDTree
from torch import Tensor

from hck.backend.blocks import Batch, Blocks, batches, owners, positions
from hck.backend.caches import cached_property
from hck.backend.checks import check_floats, check_indices, require
from hck.backend.kinds import kind_of
from hck.backend.parallel import chunks
from hck.backend.progress import track
from hck.backend.random import as_random
from hck.errors import NoGradientError
from hck.kernels import Kernel
from hck.kernels.placement import check_factor
from hck.kernels.slope import slope_values
from hck.points import DensePoints, KernelBlocks, Points, cross
from hck.points.sparse import csr_tensor

_AT_ONCE = 2**22  # numbers gathered together
ROWS = 2**14  # points whose neighbours are sought together
_SAMPLED, _DISTANCES = 500, 2**24  # to choose a radius: points at least, and distances if they are more
_MOST_FEATURES = 7  # beyond, all distances take less time than a tree


def wendland(s: Tensor, d: int, smoothness: int = 1) -> Tensor:
    """φ(s) for distances s ≥ 0: 1 at 0, and 0 from 1 on.

    Positive definite in up to d dimensions, with 2 · `smoothness` continuous derivatives. With
    l = ⌊d/2⌋ + smoothness + 1 it is (1 − s)^l, (1 − s)^(l+1) (1 + (l + 1) s), or
    (1 − s)^(l+2) (1 + (l + 2) s + (l² + 4l + 3) s² / 3), for a smoothness of 0, 1 or 2.
    """
    if smoothness not in (0, 1, 2):
        raise ValueError(f"smoothness must be 0, 1 or 2, got {smoothness!r}")
    l, rest = d // 2 + smoothness + 1, (1 - s).clamp_min(0)
    if smoothness == 0:
        return rest**l
    if smoothness == 1:
        return rest ** (l + 1) * (1 + (l + 1) * s)
    return rest ** (l + 2) * (1 + (l + 2) * s + (l * l + 4 * l + 3) / 3 * s * s)


def wendland_slope(s: Tensor, d: int, smoothness: int = 1) -> Tensor:
    """φ'(s) / s, which is finite at 0; a smoothness of 0 has a kink there, which counts as flat."""
    l, rest = d // 2 + smoothness + 1, (1 - s).clamp_min(0)
    if smoothness == 0:
        return (-l * rest ** (l - 1) / s).where(s > 0, 0.0)
    if smoothness == 1:
        return -(l + 1) * (l + 2) * rest**l
    return -(l + 3) * (l + 4) / 3 * rest ** (l + 1) * (1 + (l + 1) * s)


@dataclass
class Pattern:
    """Pairs of points, one of some and one of others, for which φ is not 0: a sparse matrix, by its rows."""

    start: Tensor  # (rows + 1,): where each row starts among the pairs, and where the last one ends
    column: Tensor  # (pairs,): in ascending order in each row
    taper: Tensor  # (pairs,): φ
    columns: int  # how many there are

    def validate(self) -> None:
        """Raise ValueError unless it is a sparse matrix that is symmetric, with a diagonal."""
        n, pairs = self.columns, len(self.column)
        check_indices("start", self.start, pairs + 1, n + 1)
        ends = (int(self.start[0]), int(self.start[-1])) == (0, pairs)
        require(ends and bool((self.start.diff() >= 0).all()), "start must ascend from 0 to all pairs")
        check_indices("column", self.column, n, pairs)
        require(self.start.dtype == self.column.dtype, "start and column must be of one type")
        check_floats("taper", self.taper, pairs)
        row, column = owners(self.count.long(), pairs), self.column.long()
        key = row * n + column
        require(bool((key.diff() > 0).all()), "column must ascend in each row")
        require(len(self.diagonal) == n, "column lacks the diagonal")
        require(torch.equal((column * n + row).sort().values, key), "column must make a symmetric matrix")

    @property
    def count(self) -> Tensor:
        """The number of pairs in each row."""
        return self.start.diff()

    @cached_property
    def diagonal(self) -> Tensor:
        """Where the pairs of a point with itself are."""
        row = owners(self.count.long(), len(self.column))
        return (row == self.column).nonzero()[:, 0]

    def matrix(self, values: Tensor) -> Tensor:
        """A sparse tensor with these values."""
        return csr_tensor(self.start, self.column, values, (len(self.start) - 1, self.columns))

    def blocks(self, d: int) -> Iterator[tuple[Batch, Blocks, Blocks]]:
        """All pairs, as blocks of one point with its neighbours: positions among the pairs, rows, columns."""
        rows, start = len(self.start) - 1, self.start.long()
        step = max(1, _AT_ONCE * rows // max(1, len(self.column) * d))
        for part in chunks(0, rows, step):
            first, last = start[part], start[part.start + 1 : part.stop + 1]
            for batch in batches(first, last - first, lambda width, blocks: blocks):
                column = self.column[batch.index].long()
                if not batch.full:
                    column.masked_fill_(~batch.mask, -1)
                one = Blocks((batch.groups + part.start)[:, None], full=True)
                yield batch, one, Blocks(column, batch.full)

    @torch.no_grad()
    def values(self, kernel: Kernel, left: Points, right: Points) -> Tensor:
        """k̃ for each pair: shape (pairs,)."""
        out = torch.empty_like(self.taper)
        for batch, rows, columns in self.blocks(left.values_per_point):
            found = cross(kernel, left, rows, right, columns)[:, 0]
            if batch.full:
                out[batch.index] = found
            else:
                out[batch.index[batch.mask]] = found[batch.mask]
        return out.mul_(self.taper)

    @property
    def nbytes(self) -> int:
        return self.start.nbytes + self.column.nbytes + self.taper.nbytes


@dataclass
class Taper:
    """φ(‖x − x'‖ / θ) between any points x and the training points x'."""

    points: DensePoints  # x'
    radius: float  # θ
    smoothness: int  # 0, 1 or 2: of φ; see `wendland`
    # What features are divided by where distances are measured (d,), or points multiplied by (d, k).
    metric: Tensor | None

    def validate(self) -> None:
        require(0 < self.radius < math.inf, f"radius must be positive and finite, got {self.radius}")
        require(self.smoothness in (0, 1, 2), f"smoothness must be 0, 1 or 2, got {self.smoothness}")
        require(len(self.points) > 0, "points must not be empty")
        if self.metric is not None:
            is_matrix = self.metric.ndim == 2
            check_floats("metric", self.metric, self.points.n_features, *((None,) if is_matrix else ()))
            require(is_matrix or bool((self.metric > 0).all()), "metric must be positive")
            require(bool(self.place.isfinite().all()), "points must be finite where distances are measured")

    @classmethod
    def of(
        cls,
        points: DensePoints,
        factor: Tensor | None,
        rank: float,
        smoothness: int = 1,
        radius: float | None = None,
    ) -> "Taper":
        """With a radius within which there are `rank` points on average, unless it is given.

        Points are multiplied by `factor` to measure distances; see `Kernel.stretch`.
        """
        if factor is not None:
            check_factor(factor, points.n_features)
        metric = 1 / factor if factor is not None and factor.ndim == 1 else factor
        if smoothness not in (0, 1, 2):
            raise ValueError(f"smoothness must be 0, 1 or 2, got {smoothness!r}")
        if radius is None:
            if not rank >= 1:
                raise ValueError(f"rank must be at least 1, got {rank!r}")
            radius = _choose_radius(points, metric, rank)
        if not (math.isfinite(radius) and radius > 0):
            raise ValueError(f"radius must be positive and finite, got {radius!r}")
        return cls(points, float(radius), smoothness, metric)

    @cached_property
    def place(self) -> Tensor:
        """The training points, in units in which distances are measured."""
        return _place(self.points, self.metric)

    @cached_property
    def tree(self) -> cKDTree:
        return cKDTree(self.place.cpu().numpy())

    def __getstate__(self) -> dict[str, object]:
        return {k: v for k, v in self.__dict__.copy().items() if k not in ("place", "tree")}

    def pattern(self, x: DensePoints, verbose: bool = False) -> Pattern:
        """Which of the training points are close to which of `x`."""
        place = _place(x, self.metric)
        parts = [
            self._near(place[part])
            for part in track(chunks(0, len(x), ROWS), "Find neighbours", verbose and len(x) > ROWS)
        ]
        count, column, distance = (torch.cat(part) for part in zip(*parts, strict=True))
        number = torch.int32 if len(column) < 2**31 else torch.int64
        start = torch.zeros(len(x) + 1, dtype=number, device=x.device)
        start[1:] = count.cumsum(0)
        taper = wendland(distance / self.radius, place.shape[1], self.smoothness)
        return Pattern(start, column.to(number), taper.to(x.dtype), len(self.points))

    def across(self, kernel: Kernel, x: DensePoints) -> Tensor:
        """k(x, x') φ for all training points x', as a sparse tensor: shape (points, n)."""
        pattern = self.pattern(x)
        return pattern.matrix(pattern.values(kernel, x, self.points))

    @torch.no_grad()
    def slopes(self, kernel: Kernel, x: DensePoints) -> Iterator[tuple[Tensor, Blocks, Tensor]]:
        """∂(k φ)/∂x for all training points x' that are close to x.

        In parts: which of `x`, (blocks,), their training points (blocks, width), and derivatives
        (blocks, d, width), 0 for padding.
        """
        pattern, place = self.pattern(x), _place(x, self.metric)
        for batch, rows, columns in pattern.blocks(2 * x.n_features):
            own = rows.index[:, 0]
            pairs = KernelBlocks(kernel, x, rows, self.points, columns)
            apart = (place[own][:, None] - self.place[columns.safe]) / self.radius  # (blocks, width, k)
            by_taper = wendland_slope(apart.norm(dim=2), apart.shape[2], self.smoothness)[..., None] * apart
            by_taper = self._back(by_taper / self.radius).mT.to(x.dtype)
            taper = pattern.taper[batch.safe][:, None]
            found = slope_values(kernel, pairs)[:, 0] * taper + pairs.of(kernel) * by_taper
            yield own, columns, found

    def slope_variance(self, variance: Tensor) -> Tensor:
        """What φ adds to the variance of ∂f/∂x, where the kernel has this variance (points,): (points, d)."""
        if self.smoothness == 0:
            raise NoGradientError("a taper of smoothness 0 has a kink, so that functions have no gradient")
        d = self.points.n_features
        each = torch.eye(d, dtype=torch.float64, device=variance.device)
        speed = _place(DensePoints(each), self.metric).square().sum(1) / self.radius**2
        flat = wendland_slope(speed.new_zeros(()), self.place.shape[1], self.smoothness)
        return variance[:, None] * (-flat * speed).to(variance)

    def _back(self, by_place: Tensor) -> Tensor:
        """Gradients by features (…, d), given those by where distances are measured (…, k)."""
        if self.metric is None:
            return by_place
        metric = self.metric.to(by_place)
        return by_place / metric if metric.ndim == 1 else by_place @ metric.mT

    def _near(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The number of training points that are closer than the radius, which they are, and how close."""
        few = len(x) * len(self.place) < kind_of(x.device).pairs
        if x.shape[1] > _MOST_FEATURES or few:
            row, column, distance = self._near_of_all(x)
        else:
            row, column, distance = self._near_by_tree(x)
        near = distance < self.radius
        return torch.bincount(row[near], minlength=len(x)), column[near], distance[near]

    def _near_by_tree(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        found = cKDTree(x.cpu().numpy()).sparse_distance_matrix(self.tree, self.radius, output_type="ndarray")
        shape = (len(x), len(self.place))
        matrix = sp.csr_matrix((found["v"], (found["i"], found["j"])), shape=shape)
        matrix.sort_indices()
        parts = (np.diff(matrix.indptr), matrix.indices, matrix.data)
        count, column, distance = (torch.from_numpy(part).to(x.device) for part in parts)
        return owners(count, len(column)), column.long(), distance

    def _near_of_all(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """By all distances: first roughly, by a product of matrices, then exactly for those that may do."""
        n, centre = len(self.place), self.place.mean(0)
        a, b = x - centre, self.place - centre
        a2, b2 = a.square().sum(1, keepdim=True), b.square().sum(1, keepdim=True)
        rounding = 8 * (x.shape[1] + 4) * float(a2.max() + b2.max())
        small = rounding * torch.finfo(torch.float32).eps < 0.1 * self.radius**2
        dtype = torch.float32 if small else torch.float64
        bound = self.radius**2 + rounding * torch.finfo(dtype).eps
        left = torch.cat([a, (bound - a2) / 2, torch.ones_like(a2)], 1).to(dtype)
        right = torch.cat([b, torch.ones_like(b2), b2 / -2], 1).to(dtype).mT
        found: list[tuple[Tensor, Tensor, Tensor]] = []
        for part in chunks(0, len(x), max(1, kind_of(x.device).distances // n)):
            close = positions(left[part] @ right > 0)
            row = close.div(n, rounding_mode="floor")
            column = close - row * n
            row += part.start
            found.append((row, column, (x[row] - self.place[column]).norm(dim=1)))
        row, column, distance = (torch.cat(part) for part in zip(*found, strict=True))
        return row, column, distance


def _choose_radius(points: DensePoints, metric: Tensor | None, rank: float) -> float:
    """The radius within which a point has `rank` points on average, itself included.

    It is one of the distances from some points, or all if there are few, to all points: that with so many
    smaller ones. With a rank of n or more, all points are within it.
    """
    place, n = _place(points, metric), len(points)
    count = min(n, max(_SAMPLED, _DISTANCES // n))
    chosen = as_random(0).permutation(n, place.device)[:count]
    wanted = int(count * rank) + 1
    kept, bound, least, largest = place.new_empty(0), math.inf, math.inf, 0.0
    for part in chosen.split(max(1, _AT_ONCE // n)):
        distance = torch.cdist(place[part], place, compute_mode="donot_use_mm_for_euclid_dist").flatten()
        least = min(least, float(distance.where(distance > 0, math.inf).min()))
        largest = max(largest, float(distance.max()))
        if rank < n:
            kept = torch.cat([kept, distance[distance < bound]])
            if len(kept) >= wanted:
                bound = float(kept.kthvalue(wanted).values)
                kept = kept[kept <= bound]
    if largest == 0:  # all points are the same
        return 1.0
    return max(bound, least) if rank < n else largest * (1 + 1e-6)


def _place(x: DensePoints, metric: Tensor | None) -> Tensor:
    place = x.x.detach().double()
    if metric is None:
        return place
    return place / metric.to(place) if metric.ndim == 1 else place @ metric.to(place)
