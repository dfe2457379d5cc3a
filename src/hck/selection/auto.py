"""Choose kernel, lengthscales and ridge: candidates compete on leave-one-out loss."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from sklearn.metrics.pairwise import euclidean_distances
from torch import Tensor

from hck.hierarchy.blueprint import Blueprint, mean_variance
from hck.kernels import Kernel, make_kernel
from hck.points import DensePoints, Points, SparsePoints, VectorPoints
from hck.selection.likelihood import Observations, learn
from hck.selection.loss import Loss, left_out_means
from hck.selection.space import Space
from hck.selection.work import UNKNOWN, Shape, tree_work

_FACTORS = tuple(2.0**k for k in range(-4, 3))  # lengthscales, times a typical distance
_ALPHAS = (1e-3, 1e-2, 1e-1, 1.0)
_LEAF, _RANK = 512, 64
_SCOUTING = Shape(1, _LEAF, _RANK)  # the trees that candidates are compared with
MOST_LENGTHSCALES = 256
_STEPS = 80
_SCOUTS = 4000
_LITTLE = 1e11  # work, with which there is one kernel to try, in one unit of the features


@dataclass
class Candidate:
    """A kernel and a ridge, and how well they do.

    Attributes
    ----------
    kernel : Kernel
    alpha : float
    origin : str
        How it was found.
    loss : float
        On left-out observations: squared error relative to the variance, or −log p(class).
    """

    kernel: Kernel
    alpha: float
    origin: str
    loss: float = np.nan
    many: bool = False  # lengthscales


@dataclass
class Selection:
    """What was chosen for an estimator, and why.

    Attributes
    ----------
    kernel : Kernel
        For the scaled features.
    alpha : float
    n_trees, leaf_size, rank : int
    candidates : list of Candidate
        Those that met in the end, the best first.
    notes : list of str
        What was done.
    seconds : float
        That selection took.
    """

    kernel: Kernel
    alpha: float
    n_trees: int
    leaf_size: int | None
    rank: int
    candidates: list[Candidate] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        lines = [
            f"kernel {self.kernel}, alpha {self.alpha:.3g}",
            f"{self.n_trees} trees with leaves of {self.leaf_size or self.rank} points and rank {self.rank}",
        ]
        if self.candidates:
            lines.append("loss on left-out observations:")
            lines += [f"  {c.loss:.5f}  {c.origin}, alpha {c.alpha:.3g}" for c in self.candidates]
        return "\n".join([*lines, *self.notes, f"chosen in {self.seconds:.1f} s"])


Plan = Callable[[Kernel, Points, int, Shape], Blueprint]


@dataclass
class Contest:
    """What candidates are made from and compared on.

    Attributes
    ----------
    data : Observations
        y has columns, without their mean; `noise`, if there is one, is relative to alpha.
    loss : callable
        Makes the loss of left-out means from the rows of a sample.
    plan : callable
        (kernel, points, seed, shape) ↦ a blueprint.
    work : float
        Operations that may be spent.
    rng : RandomState
    """

    data: Observations
    loss: Callable[[np.ndarray], Loss]
    plan: Plan
    work: float
    rng: np.random.RandomState
    verbose: bool = False

    def sample(self, size: int) -> tuple[Observations, Loss]:
        """Some observations at random, and the loss for them."""
        some, rows = self.data.draw(size, self.rng)
        return some, self.loss(rows)

    def compare(
        self,
        kernel: Kernel,
        alphas: list[float],
        some: Observations,
        loss: Loss,
        shape: Shape,
        seeds: list[int],
    ) -> list[float]:
        """The loss for each alpha."""
        means = left_out_means(
            some, kernel, alphas, lambda k, points, seed: self.plan(k, points, seed, shape), seeds
        )
        return [loss(mean) if np.isfinite(mean).all() else np.inf for mean in means]


@dataclass
class _Trial:
    """A lengthscale and an alpha for a kernel in some unit of the features."""

    loss: float
    scale: float
    alpha: float
    unit: str


def isotropic(
    contest: Contest, names: list[str], units: dict[str, Tensor | None], alphas: list[float] | None
) -> list[Candidate]:
    """For each kernel the best unit, lengthscale and alpha of a grid that is refined once; the best first.

    Parameters
    ----------
    units : dict
        Units of the features (d,) in which there is one lengthscale for all, by what they are called; None
        for the features as they are.
    """
    some, loss = contest.sample(_SCOUTS)
    seed = int(contest.rng.randint(2**31 - 1))
    typical = {called: typical_distance(_in_units(some.points, unit)) for called, unit in units.items()}

    def make(name: str, scale: float, called: str) -> Kernel:
        unit = units[called]
        return make_kernel(name, scale if unit is None else scale * unit.cpu().double())

    def attempt(name: str, scale: float, called: str, ridges: list[float]) -> list[_Trial]:
        kernel = make(name, scale, called)
        if alphas is None:
            ridges = [alpha * mean_variance(kernel, some.points) for alpha in ridges]
        losses = contest.compare(kernel, ridges, some, loss, _SCOUTING, [seed])
        return [_Trial(value, scale, alpha, called) for alpha, value in zip(ridges, losses, strict=True)]

    found = []
    for name in names:
        trials = []
        for called in units:
            for factor in _FACTORS:
                trials += attempt(name, factor * typical[called], called, alphas or list(_ALPHAS))
        best = min(trials, key=lambda trial: trial.loss)
        for step in (2**-0.5, 2**0.5):
            usual = best.alpha / mean_variance(make(name, best.scale, best.unit), some.points)
            ridges = alphas or [usual / 3, usual, usual * 3]
            trials += attempt(name, best.scale * step, best.unit, ridges)
        best = min(trials, key=lambda trial: trial.loss)
        kernel = make(name, best.scale, best.unit)
        found.append(Candidate(kernel, best.alpha, f"{name} with one lengthscale{best.unit}", best.loss))
    return sorted(found, key=lambda candidate: candidate.loss)


def _in_units(points: Points, unit: Tensor | None) -> Points:
    if unit is None:
        return points
    assert isinstance(points, VectorPoints)
    return points.scaled(1 / unit)


def anisotropic(contest: Contest, name: str, start: float, alpha: float | None, work: float) -> Candidate:
    """A lengthscale for each feature, and alpha, by likelihood."""
    data, points = contest.data, contest.data.points
    assert isinstance(points, VectorPoints)
    d = points.n_features
    each = 6 * tree_work(1, d, _LEAF, _RANK)
    steps = int(np.clip(work / (each * min(2000, len(points))), 10, _STEPS))
    size = int(np.clip(work / (steps * each), min(2000, len(points)), len(points)))
    variance = float(data.y.double().square().mean()) or 1.0
    noise = 0.1 * variance if alpha is None else alpha * variance
    bounds = {} if alpha is None else {"noise": "fixed", "scale": "fixed"}
    space = Space.of(variance * make_kernel(name, np.full(d, start)), noise, bounds, scale=variance)
    whole = Observations(points, data.y)
    found = learn(
        space,
        whole,
        lambda kernel, some, seed: contest.plan(kernel, some, seed, _SCOUTING),
        contest.rng,
        "stochastic",
        steps,
        size=size,
        verbose=contest.verbose,
    )
    kernel, noise_found = space.at(found.theta)
    assert noise_found is not None
    parameters = kernel.parameters()
    ratio = noise_found / float(parameters["scale"])
    plain = make_kernel(name, np.asarray(parameters["lengthscale"], dtype=float))
    return Candidate(
        plain, ratio if alpha is None else alpha, f"{name} with a lengthscale per feature", many=True
    )


def meet(contest: Contest, candidates: list[Candidate], alphas: bool, work: float) -> list[Candidate]:
    """Compare candidates on more points and with larger leaves; the best first, each with its best alpha."""
    points = contest.data.points
    d = points.values_per_point or UNKNOWN
    size, leaf = len(points), 1024
    factors = (0.3, 1.0, 3.0) if alphas else (1.0,)
    runs = 2 * len(candidates) * len(factors)
    while size > 2000 and runs * 2 * tree_work(size, d, leaf, leaf // 8) > work:
        size = int(size / 1.2)
    some, loss = contest.sample(size)
    seeds = contest.rng.randint(2**31 - 1, size=2).tolist()
    shape = Shape(2, min(leaf, size), min(leaf, size) // 8 or 1)
    for candidate in candidates:
        ridges = [candidate.alpha * factor for factor in factors]
        losses = contest.compare(candidate.kernel, ridges, some, loss, shape, seeds)
        k = int(np.argmin(losses))
        candidate.alpha, candidate.loss = ridges[k], losses[k]
    return sorted(candidates, key=lambda candidate: candidate.loss)


def choose(
    contest: Contest,
    kernel: str | Kernel,
    alpha: float | None,
    units: dict[str, Tensor | None],
    margin: float = 0.0,
) -> tuple[list[Candidate], list[str]]:
    """Candidates that have met, the best first, and what was done.

    Parameters
    ----------
    kernel : Kernel or str
        A kernel, for which only alpha is chosen; the name of one, whose lengthscales are chosen; or "auto".
    alpha : float or None
        None if it is to be chosen.
    units : dict
        As for `isotropic`.
    margin : float
        By what part a lengthscale per feature has to lower the loss of one for all, to be preferred.
    """
    notes: list[str] = []
    start, points = time.perf_counter(), contest.data.points
    ridges = None if alpha is None else [alpha]
    if isinstance(kernel, Kernel):
        some, loss = contest.sample(_SCOUTS)
        seed = int(contest.rng.randint(2**31 - 1))
        ridges = [alpha * mean_variance(kernel, some.points) for alpha in (1e-5, 1e-4, *_ALPHAS, 10.0)]
        losses = contest.compare(kernel, ridges, some, loss, _SCOUTING, [seed])
        best = ridges[int(np.argmin(losses))]
        return meet(
            contest, [Candidate(kernel, best, "the kernel that was given")], True, contest.work
        ), notes
    names = ["matern32", "gaussian"] if kernel == "auto" else [str(kernel)]
    if contest.work < _LITTLE:
        names, units = names[:1], {"": None}
    found = isotropic(contest, names, units, ridges)
    notes.append(f"one lengthscale: {time.perf_counter() - start:.1f} s")
    if isinstance(points, VectorPoints) and 1 < points.n_features <= MOST_LENGTHSCALES:
        smooth = "matern32" if kernel == "auto" else str(kernel)
        typical = typical_distance(contest.sample(1000)[0].points)
        begin = time.perf_counter()
        found.append(anisotropic(contest, smooth, typical, alpha, 0.7 * contest.work))
        notes.append(f"a lengthscale per feature: {time.perf_counter() - begin:.1f} s")
    begin = time.perf_counter()
    if len(found) > 1 or ridges is None:
        found = meet(contest, found, ridges is None, 0.3 * contest.work)
    simple = next(candidate for candidate in found if not candidate.many)
    if found[0].many and found[0].loss > (1 - margin) * simple.loss:
        found.remove(simple)
        found.insert(0, simple)
        notes.append(f"one lengthscale, unless more of them lower the loss by {margin:.0%}")
    notes.append(f"comparison: {time.perf_counter() - begin:.1f} s")
    return found, notes


def typical_distance(points: Points, most: int = 1000) -> float:
    """The median distance between points."""
    index = torch.linspace(0, len(points) - 1, min(len(points), most), device=points.device).long()
    some = points.take(index)
    if not isinstance(some, DensePoints | SparsePoints):
        raise TypeError("points without coordinates have no lengthscale")
    x = some.x if isinstance(some, SparsePoints) else some.x.double().cpu().numpy()
    distance = euclidean_distances(x)[np.triu_indices(len(index), 1)]
    distance = distance[distance > 0]
    return float(np.median(distance)) if len(distance) else 1.0
