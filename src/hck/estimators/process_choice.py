"""What a Gaussian process chooses for itself: kernel, metric, noise and sizes, within a budget of work."""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from hck.backend.memory import resolve_budget
from hck.estimators.base import HCKEstimator
from hck.estimators.promise import deadline
from hck.estimators.training import draw_in, scale
from hck.kernels import Kernel
from hck.kernels.stationary import Stationary
from hck.partition import Tree
from hck.points import Points
from hck.preparation.scaling import Scaling
from hck.selection import Observations, Selection, Space
from hck.selection.auto import select
from hck.selection.candidate import Given, Shape
from hck.selection.contest import Contest
from hck.selection.loss import SquaredError
from hck.selection.variance import kernel_variance
from hck.selection.work import Limits, allowed_work, final_shape, tree_work

FEWEST = 50  # observations that candidates can compete on
EXACT = 3000  # points at most of which one leaf is made, unless sizes are given
_RANK = 128  # of trees that parameters are learned on by likelihood, where none is given
_LEARNED_ON = (2000, 20_000)  # points: the fewest and the most that parameters are learned on by likelihood
_TREES = 8  # whose factorizations are kept at the same time
_PART = 0.7  # of the work, for training; as in `hck.selection.auto`
_PASSES = 1.5  # times as long as of ridge regression training takes, with variances


@dataclass(frozen=True)
class Chosen:
    """A kernel, the noise, and how they were found.

    The kernel is of features as they came, unless heavy tails of some are to be drawn in (`scaling`).
    """

    kernel: Kernel
    noise: float | None  # its variance; None if it is known for each observation
    selection: Selection
    seeds: list[int]  # of the trees
    space: Space  # what can be learned
    theta: np.ndarray  # where in it
    history: list[float]  # of learning by likelihood
    scaling: Scaling = field(default_factory=Scaling)  # what points go through before the kernel sees them

    @property
    def compared(self) -> bool:
        """Whether candidates competed."""
        return bool(self.selection.candidates)


class ProcessChoice(HCKEstimator):
    """Choices of Gaussian processes."""

    ard: bool
    bounds: dict[str, Any] | None
    fit_time: float | str
    lengthscale: ArrayLike | None
    learn_size: int | str | None
    max_iter: int
    noise: float | str | None
    optimizer: str | None
    priors: dict[str, tuple[float, float]] | None
    _scaling: Scaling  # which models of earlier versions lack

    def _chooses(self) -> bool:
        """Whether candidates compete: where nothing is given that is learned by likelihood, or not at all."""
        asked = (self.optimizer, self.kernel, self.lengthscale)
        if not all(isinstance(each, str) and each == "auto" for each in asked) or not self.ard:
            return False
        return self.bounds is None and self.priors is None and self._starting_noise() is None

    def _compares(self, n: int, noise_is_known: bool) -> bool:
        """Whether candidates compete on n observations."""
        return not noise_is_known and n >= FEWEST and self._chooses()

    def _starting_noise(self) -> float | None:
        """The variance of the noise that was given."""
        return None if self.noise is None or isinstance(self.noise, str) else float(self.noise)

    # Sizes ------------------------------------------------------------------------------------------

    @property
    def _shape(self) -> Shape:
        """Of trees that parameters are learned on by likelihood, and of draws without observations."""
        n_trees, rank = (None if isinstance(value, str) else value for value in (self.n_trees, self.rank))
        return Shape(n_trees or 1, self.leaf_size, rank or _RANK)

    def _sizes(self) -> Given:
        """The sizes that are given."""
        n_trees, rank = (None if isinstance(value, str) else value for value in (self.n_trees, self.rank))
        return Given("auto", None, rank, 1 if self._is_fixed() else n_trees)

    def _limits(self, points: Points) -> Limits:
        """What choosing may take, and training as much again."""
        device, trees = points.device, self._sizes().n_trees or _TREES
        memory = resolve_budget(self.memory_budget, device) / trees
        return Limits(allowed_work(self.fit_time, len(points), device) / 2, memory, deadline(self.fit_time))

    def _final_shape(self, points: Points) -> Shape:
        """The size of the forest, where parameters are learned by likelihood or given."""
        limits = self._limits(points)
        limits = replace(limits, work=_PART * limits.work)
        shape = final_shape(self._sizes(), self._settings(self._shape), points, limits)
        return self._exact_if_small(shape, points, limits.memory)

    def _exact_if_small(self, shape: Shape, points: Points, memory: float) -> Shape:
        """One leaf, if all sizes are to be chosen and points are few."""
        n, sizes = len(points), self._sizes()
        given = sizes.rank or sizes.n_trees or self.leaf_size or isinstance(self.partition, Tree)
        if given or self.approximation != "hierarchical" or n > EXACT:
            return shape
        return Shape(1, n, max(1, n // 8)) if 3 * n * n * points.dtype.itemsize <= memory else shape

    def _learning_size(self, points: Points) -> int:
        """How many points parameters are learned on by likelihood."""
        if not isinstance(self.learn_size, str):
            return len(points) if self.learn_size is None else min(self.learn_size, len(points))
        shape, (fewest, most) = self._shape, _LEARNED_ON
        d, leaf = points.values_per_point or 1, shape.leaf_size or 2 * shape.rank
        each = 3 * self.max_iter * tree_work(1, d, leaf, shape.rank)  # with the gradient
        return int(min(len(points), max(fewest, min(most, self._limits(points).work / each))))

    # Kernel and noise -------------------------------------------------------------------------------

    def _choose(self, data: Observations, rng: np.random.RandomState) -> Chosen:
        """Let candidates compete, as those of ridge regression do, and give the best its variance."""
        points, y = data.points, data.columns
        spread = y.std(0, correction=0)
        spread = spread.where(spread > 0, 1.0)
        placed = isinstance(self.partition, Tree) or not isinstance(self.landmarks, str)
        kind = None if placed else "standard"
        scaled = scale(points, kind, not placed, points.dtype, self._ties())
        y = y / spread
        settings, limits = self._settings(Shape(1, self.leaf_size, 1)), self._limits(points)
        here, loss = Observations(scaled.points, y), SquaredError(y.numpy())
        contest = Contest(here, loss, settings, limits, rng, scaled.ties)
        with torch.no_grad():
            scaled = draw_in(scaled, points, self._sizes(), contest)
            contest.data = replace(here, points=scaled.points)
            found = select(self._sizes(), contest, scaled.units, _PASSES)
            shape = self._exact_if_small(found.shape, points, limits.memory)
            seeds = rng.randint(2**31 - 1, size=int(shape.n_trees)).tolist()
            size = kernel_variance(contest, found.kernel, found.alpha)
        known = math.isfinite(size) and size > 1e-12  # else y is constant, or singular by rounding
        unit = float(spread.square().mean())  # of all targets alike
        variance = (size if known else 1e-12) * unit
        kernel, scaling = found.kernel, scaled.scaling
        if scaling.bend is None:  # then the kernel can take the place of the scaling
            if scaling.factor is not None and isinstance(kernel, Stationary):
                kernel = kernel.before(scaling.factor.cpu())
            scaling = Scaling()
        kernel, noise = variance * kernel, variance * found.alpha
        n_trees, leaf_size, rank = shape.n_trees, shape.leaf_size, shape.rank
        selection = replace(
            found, kernel=kernel, alpha=noise, n_trees=n_trees, leaf_size=leaf_size, rank=rank
        )
        space = Space.of(kernel, noise, scale=unit)
        return Chosen(kernel, noise, selection, seeds, space, space.start, [], scaling)
