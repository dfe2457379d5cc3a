"""Where candidates compete: left-out observations, and trees that are the same for all of them."""

from dataclasses import dataclass, replace

import numpy as np

from hck.approximations.hierarchical import make_blueprint
from hck.approximations.make import for_other_points
from hck.hierarchy.blueprint import Blueprint
from hck.kernels import Kernel
from hck.points import Points
from hck.selection.candidate import Candidate, Shape
from hck.selection.left_out import left_out_means
from hck.selection.loss import Loss
from hck.selection.observations import Observations
from hck.selection.work import UNKNOWN, Limits, tree_work
from hck.settings import Settings

SCOUTS = 4000  # observations on which kernels are first compared
LEAF, RANK = 512, 64
SCOUTING = Shape(1, LEAF, RANK)  # the trees with which they are
AROUND = (0.3, 1.0, 3.0)  # multiples of an alpha to try
FLAT = ("compositional", "independent")  # whose trees are as flat where kernels are compared
_MEETING = 1024  # the size of leaves where candidates meet


def scout(kernel: Kernel, points: Points, settings: Settings, seed: int) -> Blueprint:
    """A tree over some of the points, to compare kernels with."""
    kind = settings.approximation if settings.approximation in FLAT else "hierarchical"
    settings = for_other_points(replace(settings, approximation=kind, verbose=False), points)
    return make_blueprint(kernel.to(points.device, points.dtype), points, settings, seed)


@dataclass(frozen=True)
class Comparison:
    """Some observations, and trees over them, one for each seed: the same for all kernels."""

    some: Observations
    loss: Loss  # of predictions of these
    settings: Settings
    seeds: list[int]

    def losses(self, kernel: Kernel, alphas: list[float]) -> list[float]:
        """The loss of left-out observations for each alpha; infinite where it cannot be computed."""
        trees = (scout(kernel, self.some.points, self.settings, seed) for seed in self.seeds)
        means = left_out_means(self.some, alphas, trees)
        return [self.loss(mean) if np.isfinite(mean).all() else np.inf for mean in means]

    def best(self, kernel: Kernel, alphas: list[float]) -> tuple[float, float]:
        """The alpha with the least loss, and this loss."""
        losses = self.losses(kernel, alphas)
        first = int(np.argmin(losses))
        return alphas[first], losses[first]


@dataclass
class Contest:
    """What candidates are made from and compared on, with what choosing may take.

    The data have columns without their mean; their noise, if there is one, is relative to alpha.
    """

    data: Observations
    loss: Loss  # of left-out means of all observations
    settings: Settings  # of what is trained, but for its size
    limits: Limits
    rng: np.random.RandomState

    def sample(self, size: int) -> tuple[Observations, Loss]:
        """Some observations at random, and the loss for them."""
        some, rows = self.data.draw(size, self.rng)
        return some, self.loss.take(rows)

    def compare_on(self, sample: tuple[Observations, Loss], shape: Shape = SCOUTING) -> Comparison:
        """Compare with trees of a shape over a sample."""
        seeds = self.rng.randint(2**31 - 1, size=int(shape.n_trees)).tolist()
        return Comparison(*sample, shape.apply(self.settings), seeds)


def meet(
    contest: Contest, candidates: list[Candidate], alphas: tuple[float, ...], work: float
) -> list[Candidate]:
    """Compare candidates on more points and with larger leaves; the best first.

    Multiples of a candidate's alpha are tried, and where the best is at an end, one more beyond it.
    """
    size = _meeting_size(contest, 2 * len(candidates) * len(alphas), work)
    leaf = min(_MEETING, size)
    comparison = contest.compare_on(contest.sample(size), Shape(2, leaf, leaf // 8 or 1))
    for candidate in candidates:
        ridges = [candidate.alpha * factor for factor in alphas]
        losses = comparison.losses(candidate.kernel, ridges)
        best = int(np.argmin(losses))
        if len(ridges) > 1 and best in (0, len(ridges) - 1):
            ridges.append(ridges[best] * (alphas[1] / alphas[0]) ** (1 if best else -1))
            losses += comparison.losses(candidate.kernel, ridges[-1:])
            best = int(np.argmin(losses))
        candidate.alpha, candidate.loss = ridges[best], losses[best]
    return sorted(candidates, key=lambda candidate: candidate.loss)


def _meeting_size(contest: Contest, runs: int, work: float) -> int:
    """As many points as so many runs with work and memory allow, but 2000 at least if there are as many."""
    points, leaf = contest.data.points, _MEETING
    d, size = points.values_per_point or UNKNOWN, len(points)
    each = 4 * points.dtype.itemsize * (leaf + leaf // 8)  # bytes of a point
    while size > 2000 and (
        runs * 1.5 * tree_work(size, d, leaf, leaf // 8) > work or size * each > contest.limits.memory
    ):
        size = int(size / 1.2)
    return size
