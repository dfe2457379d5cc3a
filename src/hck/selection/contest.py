"""Where candidates compete: observations that did not shape them, and trees that are the same for all."""

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch

from hck.approximations.hierarchical import make_blueprint
from hck.approximations.make import for_other_points
from hck.backend.parallel import parallel_map
from hck.backend.random import as_random
from hck.hierarchy.blueprint import Blueprint
from hck.hierarchy.kernel import HierarchicalKernel
from hck.hierarchy.leave_one_out import LeftOut
from hck.kernels import Kernel
from hck.kernels.stationary import Stationary
from hck.points import DensePoints, Points, VectorPoints
from hck.preparation.ties import Ties
from hck.selection.candidate import Shape
from hck.selection.left_out import blend_weights, left_out_of
from hck.selection.loss import Loss
from hck.selection.neighbourhoods import regions
from hck.selection.observations import Observations
from hck.selection.work import Limits
from hck.settings import Settings

FLAT = ("compositional", "independent")  # whose trees are as flat where kernels are compared
_TURNED = ("random_projection", "pca", "kmeans", "kernel")  # partitions that do not look at axes
_HELD_OUT = 0.25  # of the observations, from everywhere
_SCOUTED = 0.05  # of them at most, where candidates are tuned
_REGIONS = 4  # that a comparison is made in, usually
_FEWEST, _PAIRS = 200, 1000  # rows that can be a series, and pairs to look at
_ALIKE, _CHANCE, _ROUNDING = 0.6, 4.0, 1e-12  # a correlation, in standard errors, and relative variances


@dataclass(frozen=True)
class Comparison:
    """Some observations, and trees over them, one for each seed: the same for all kernels."""

    some: Observations
    rows: np.ndarray  # which of all they are
    counted: np.ndarray  # which of them are predicted
    loss: Loss  # of these predictions
    settings: Settings
    seeds: list[int]

    def trees(self, kernel: Kernel) -> list[Blueprint]:
        """Trees in the kernel's metric."""
        (points, kernel), settings = self._narrow(kernel), self.settings
        kind = settings.approximation if settings.approximation in FLAT else "hierarchical"
        settings = for_other_points(replace(settings, approximation=kind, verbose=False), points)
        made = partial(make_blueprint, kernel, points, settings)
        return list(parallel_map(made, self.seeds, points.device))

    def matrices(self, trees: list[Blueprint], kernel: Kernel) -> list[HierarchicalKernel]:
        """A kernel on trees that were made for another of the same metric."""
        (points, kernel), jitter = self._narrow(kernel), self.settings.jitter

        def of(tree: Blueprint) -> HierarchicalKernel:
            return HierarchicalKernel.of(tree.with_kernel(kernel, jitter))

        return list(parallel_map(of, trees, points.device))

    def _narrow(self, kernel: Kernel) -> tuple[Points, Kernel]:
        """The points, and the kernel on their device; perhaps where they are placed, in the space they span.

        That is where they have far more features than they are, and neither the kernel nor cuts nor landmarks
        look at features one by one.
        """
        points, settings = self.some.points, self.settings
        if (
            isinstance(points, DensePoints)
            and points.is_wide
            and isinstance(kernel, Stationary)
            and not kernel.formula.manhattan
            and settings.partition in _TURNED
            and isinstance(settings.landmarks, str)
        ):
            points, kernel = points.narrow(kernel.placement), kernel.where_placed()
        return points, kernel.to(points.device, points.dtype)

    @torch.no_grad()
    def predicted(self, matrices: list[HierarchicalKernel], alpha: float) -> np.ndarray | None:
        """What all others predict of observations, (counted, columns); None if that cannot be computed."""
        noise, device = self.some.noise, self.some.points.device
        relative = 1.0 if noise is None else noise.to(device)

        def of(matrix: HierarchicalKernel) -> LeftOut | None:
            return left_out_of(matrix, self.some.columns, alpha * relative)

        total = np.zeros((len(self.counted), self.some.columns.shape[1]))
        for found in parallel_map(of, matrices, device):
            if found is None:
                return None
            total += found.mean.double().cpu().numpy()[self.counted]
        return total / len(matrices) if np.isfinite(total).all() else None

    def loss_of(self, matrices: list[HierarchicalKernel], alpha: float) -> float:
        """The loss of these predictions; infinite if they cannot be computed."""
        return self.judge(self.predicted(matrices, alpha))

    def judge(self, predicted: np.ndarray | None) -> float:
        """The loss of predictions; infinite if there are none."""
        value = np.inf if predicted is None else self.loss(predicted)
        return value if np.isfinite(value) else np.inf

    def weights(self, predicted: list[np.ndarray]) -> np.ndarray:
        """Weights of several predictions in the mean that comes closest to what was observed."""
        some, counted = self.some, self.counted
        precision = None if some.noise is None else 1 / some.noise.double().cpu().numpy()[counted]
        return blend_weights(predicted, some.columns.double().cpu().numpy()[counted], precision)


@dataclass
class Contest:
    """What candidates are made from and compared on, with what choosing may take.

    The data have columns without their mean; their noise, if there is one, is relative to alpha. `held` are
    rows from everywhere that shape no metric: by these candidates are judged.
    """

    data: Observations
    loss: Loss  # of left-out means of all observations
    settings: Settings  # of what is trained, but for its size
    limits: Limits
    rng: np.random.RandomState
    ties: Ties | None = None  # features that share a weight
    held: np.ndarray | None = None  # None: all
    pace: float = 0.0  # operations per second of what met first
    _scouted: np.ndarray | None = field(default=None, init=False)  # of a few regions: shape no metric either

    @property
    def margin(self) -> float:
        """By what part lengthscales per feature have to lower the loss to be preferred to one."""
        return self.loss.margin_of_series if is_series(self.data.points) else 0.0

    def hold_out(self, size: int, shape: Shape) -> Comparison:
        """Hold rows out, and compare with trees of a shape on so many observations, in a few regions.

        In these regions nearly all rows are held out, and not only the part that is everywhere: that would be
        too few of them to tell lengthscales, ridges and metrics apart.
        """
        n = len(self.data)
        count = max(round(_HELD_OUT * n), min(200, n // 2))
        self.held = np.sort(self.rng.permutation(n)[:count])
        rows, judging = self._near(size), self.held
        if len(rows) < n:
            self._scouted = self.rng.permutation(rows)[: round(_SCOUTED * n)]
            judging = np.union1d(self.held, self._scouted)
        return self._compare(rows, judging, shape)

    def shaping(self, data: Observations) -> Observations:
        """Of the data, or of something made of them, row by row, what may shape candidates."""
        if self.held is None:
            return data
        kept = np.ones(len(data), dtype=bool)
        kept[self.held] = False
        if self._scouted is not None:
            kept[self._scouted] = False
        return data.take(np.flatnonzero(kept))

    def sample(self, size: int) -> tuple[Observations, Loss]:
        """Some observations at random, and the loss for them."""
        some, rows = self.data.draw(size, self.rng)
        return some, self.loss.take(rows)

    def compare_on(self, size: int, shape: Shape, n_regions: int = _REGIONS) -> Comparison:
        """Compare with trees of a shape on so many observations at most, in regions where none is missing."""
        return self._compare(self._near(size, n_regions), self.held, shape)

    def _compare(self, rows: np.ndarray, judging: np.ndarray | None, shape: Shape) -> Comparison:
        """Compare on some rows, by those of them that are judging, or by all."""
        some = self.data if len(rows) == len(self.data) else self.data.take(rows)
        counted = np.arange(len(rows)) if judging is None else np.flatnonzero(np.isin(rows, judging))
        if not len(counted):
            counted = np.arange(len(rows))
        seeds = self.rng.randint(2**31 - 1, size=int(shape.n_trees)).tolist()
        loss = self.loss.take(rows[counted])
        return Comparison(some, rows, counted, loss, shape.apply(self.settings), seeds)

    def _near(self, size: int, n_regions: int = _REGIONS) -> np.ndarray:
        points, n = self.data.points, len(self.data)
        if size >= n:
            return np.arange(n)
        if not isinstance(points, VectorPoints):
            return np.sort(self.rng.permutation(n)[:size])
        parts = regions(points, -(-size // n_regions), as_random(self.rng.randint(2**31 - 1)))
        few = self.rng.permutation(len(parts))[:n_regions]
        return np.sort(torch.cat([parts[i] for i in few]).cpu().numpy())


def is_series(points: Points) -> bool:
    """Whether rows that follow each other are alike in some feature, as in series that nobody has shuffled.

    That is so if the feature's correlation with that of the next row is large, and not by a few pairs alone.
    """
    if not isinstance(points, DensePoints) or len(points) < _FEWEST:
        return False
    count = min(_PAIRS, len(points) - 1)
    first = torch.linspace(0, len(points) - 2, count, dtype=torch.float64, device=points.device).long()
    both = torch.stack([points.x[first], points.x[first + 1]]).double()
    size = both.square().mean(1).prod(0).sqrt()
    both = both - both.mean(1, keepdim=True)
    spread, product = both.square().mean(1).prod(0).sqrt(), both.prod(0)
    varies = spread > _ROUNDING * size  # what is the same everywhere differs from its mean by rounding
    alike = product.mean(0) > _ALIKE * spread
    by_many = product.sum(0) > _CHANCE * product.square().sum(0).sqrt()
    return bool((varies & alike & by_many).any())
