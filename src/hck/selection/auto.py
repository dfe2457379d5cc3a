"""Choose kernel, lengthscales and ridge: candidates compete on leave-one-out loss."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from sklearn.metrics.pairwise import euclidean_distances
from torch import Tensor

from hck.approximations import TreeKernel
from hck.hierarchy.blueprint import Blueprint, mean_variance
from hck.kernels import Kernel, make_kernel
from hck.points import DensePoints, Points, SparsePoints, VectorPoints
from hck.selection.left_out import left_out_loss
from hck.selection.likelihood import Observations, learn
from hck.selection.loss import Loss, left_out_means
from hck.selection.maximise import climb
from hck.selection.space import Space
from hck.selection.work import UNKNOWN, Shape, tree_work

KERNELS = ("matern32", "matern12", "gaussian", "laplace")  # that "auto" chooses from
_FACTORS = tuple(2.0**k for k in range(-4, 3))  # lengthscales, times a typical distance
_ALPHAS = (1e-3, 1e-2, 1e-1, 1.0)
_AROUND = (0.3, 1.0, 3.0)
_LEAF, _RANK = 512, 64
_SCOUTING = Shape(1, _LEAF, _RANK)  # the trees that candidates are compared with
MOST_LENGTHSCALES = 256
_STEPS = 80
_SMALL = 2000  # observations of a sample in which all others predict each
_BY_LOSS = 4.0 * _STEPS * _SMALL**3  # the work of learning on such samples
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
    name : str
        Of the kernel.
    loss : float
        On left-out observations: squared error relative to the variance, or −log p(class).
    """

    kernel: Kernel
    alpha: float
    origin: str
    name: str = ""
    loss: float = np.nan
    many: bool = False  # lengthscales
    weight: float = 0.0  # in the mean of several


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
    blend : list of Candidate
        Those whose predictions are averaged, with their weights, if there are several.
    notes : list of str
        What was done.
    seconds : float
        That selection took.
    approximation : str
    """

    kernel: Kernel
    alpha: float
    n_trees: int
    leaf_size: int | None
    rank: int
    candidates: list[Candidate] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    approximation: str = "hierarchical"
    blend: list[Candidate] = field(default_factory=list)

    def __str__(self) -> str:
        shape = f"{self.n_trees} × {self.approximation}, rank {self.rank}"
        if self.approximation == "hierarchical":
            leaf_size = self.leaf_size or self.rank
            shape = f"{self.n_trees} trees with leaves of {leaf_size} points and rank {self.rank}"
        lines = [f"kernel {self.kernel}, alpha {self.alpha:.3g}", shape]
        if self.candidates:
            lines.append("loss on left-out observations:")
            lines += [f"  {c.loss:.5f}  {c.origin}, alpha {c.alpha:.3g}" for c in self.candidates]
        if len(self.blend) > 1:
            lines.append("weights in the mean that predicts left-out observations best:")
            lines += [f"  {c.weight:.3f}  {c.origin}" for c in self.blend]
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
    memory : float
        Bytes that a comparison may take.
    """

    data: Observations
    loss: Callable[[np.ndarray], Loss]
    plan: Plan
    work: float
    rng: np.random.RandomState
    verbose: bool = False
    memory: float = np.inf

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
    contest: Contest,
    names: list[str],
    units: dict[str, Tensor | None],
    alphas: list[float] | None,
) -> list[Candidate]:
    """For each kernel the best unit, lengthscale and alpha of a grid that is refined once; the best first.

    The first kernel tries all units, the others those in which the first was best.

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

    found: list[Candidate] = []
    where = list(units)
    for name in names:
        trials = []
        for called in where:
            for factor in _FACTORS:
                trials += attempt(name, factor * typical[called], called, alphas or list(_ALPHAS))
        best = min(trials, key=lambda trial: trial.loss)
        usual = best.alpha / mean_variance(make(name, best.scale, best.unit), some.points)
        ridges = alphas or [usual / 3, usual, usual * 3]
        for step in (2**-0.5, 2**0.5):
            trials += attempt(name, best.scale * step, best.unit, ridges)
        best = min(trials, key=lambda trial: trial.loss)
        kernel, origin = make(name, best.scale, best.unit), f"{name} with one lengthscale{best.unit}"
        found.append(Candidate(kernel, best.alpha, origin, name, best.loss))
        where = [best.unit]
    return sorted(found, key=lambda candidate: candidate.loss)


def _in_units(points: Points, unit: Tensor | None) -> Points:
    if unit is None:
        return points
    assert isinstance(points, VectorPoints)
    return points.scaled(1 / unit)


def anisotropic(
    contest: Contest,
    name: str,
    start: np.ndarray,
    ridge: float,
    alpha: float | None,
    work: float,
    steps: int,
) -> Candidate:
    """A lengthscale for each feature, and alpha, by likelihood.

    Parameters
    ----------
    start : ndarray of shape (d,)
        Lengthscales to start from.
    ridge : float
        The alpha to start from, where there is none to keep to.
    steps : int
        The most to take.
    """
    data, points = contest.data, contest.data.points
    cost = 6 * tree_work(1, len(start), _LEAF, _RANK)  # of a step, for each point
    least = min(2000, len(points))
    steps = int(np.clip(work / (cost * least), 10, steps))
    size = int(np.clip(work / (steps * cost), least, len(points)))
    variance = float(data.y.double().square().mean()) or 1.0
    noise = (ridge if alpha is None else alpha) * variance
    start_kernel = variance * make_kernel(name, start)
    if alpha is None:  # weights count where candidates meet
        space, each = Space.of(start_kernel, noise, scale=variance), None
    else:
        known = torch.ones(len(data), dtype=torch.float64) if data.noise is None else data.noise
        space, each = Space.of(start_kernel, None, {"scale": "fixed"}), noise * known
    found = learn(
        space,
        Observations(points, data.y, noise=each),
        lambda kernel, some, seed: TreeKernel(contest.plan(kernel, some, seed, _SCOUTING)),
        contest.rng,
        "stochastic",
        steps,
        size=size,
        verbose=contest.verbose,
    )
    kernel, learned = space.at(found.theta)
    parameters = kernel.parameters()
    if alpha is None:
        assert learned is not None
        alpha = learned / float(parameters["scale"])
    plain = make_kernel(name, np.asarray(parameters["lengthscale"], dtype=float))
    origin = f"{name} with a lengthscale per feature"
    return Candidate(plain, alpha, origin, name, many=True)


def each_feature(contest: Contest, names: list[str], alpha: float | None, work: float) -> list[Candidate]:
    """Kernels with a lengthscale for each feature.

    The first kernel learns them. The others are tried with multiples of these, and the best of them learns
    from there.
    """
    some, loss = contest.sample(_SCOUTS)
    assert isinstance(some.points, VectorPoints)
    by_loss_too = 0.3 * work >= _BY_LOSS
    work -= _BY_LOSS if by_loss_too else 0.0
    start = np.full(some.points.n_features, typical_distance(some.points))
    share = work if len(names) == 1 else 0.6 * work
    first = anisotropic(contest, names[0], start, 0.1, alpha, share, _STEPS)
    found, seed = [first], int(contest.rng.randint(2**31 - 1))
    unit = np.asarray(first.kernel.parameters()["lengthscale"], dtype=float)
    ridges = [first.alpha * factor for factor in _AROUND] if alpha is None else [alpha]
    trials = []
    for name in names[1:]:
        for multiple in (0.5, 1.0, 2.0, 4.0):
            kernel = make_kernel(name, multiple * unit)
            losses = contest.compare(kernel, ridges, some, loss, _SCOUTING, [seed])
            trials.append((min(losses), name, multiple, ridges[int(np.argmin(losses))]))
    if trials:
        _, name, multiple, ridge = min(trials)
        found.append(anisotropic(contest, name, multiple * unit, ridge, alpha, work - share, _STEPS // 2))
    if by_loss_too:
        found.append(by_loss(contest, names[0], start, alpha))
    return found


def by_loss(contest: Contest, name: str, start: np.ndarray, alpha: float | None) -> Candidate:
    """A lengthscale for each feature, and alpha, by the loss of left-out observations in small samples."""
    bounds = {} if alpha is None else {"noise": "fixed"}
    space = Space.of(make_kernel(name, start), 0.1 if alpha is None else max(alpha, 1e-12), bounds)

    def worse(theta: np.ndarray, _: int) -> tuple[float, np.ndarray]:
        value, gradient = left_out_loss(space, theta, *contest.sample(_SMALL))
        return -value, -gradient

    found = climb(worse, space.start, space.bounds, _STEPS, verbose=contest.verbose)
    kernel, ridge = space.at(found.theta)
    assert ridge is not None
    origin = f"{name} with a lengthscale per feature by loss"
    return Candidate(kernel, ridge if alpha is None else alpha, origin, name, many=True)


def meet(
    contest: Contest, candidates: list[Candidate], alphas: tuple[float, ...], work: float
) -> list[Candidate]:
    """Compare candidates on more points and with larger leaves; the best first.

    Parameters
    ----------
    alphas : tuple of float
        Multiples of a candidate's alpha to try. Where the best is at an end, one more beyond it is tried.
    """
    points = contest.data.points
    d = points.values_per_point or UNKNOWN
    size, leaf = len(points), 1024
    runs = 2 * len(candidates) * len(alphas)
    each = 4 * points.dtype.itemsize * (leaf + leaf // 8)
    while size > 2000 and (
        runs * 1.5 * tree_work(size, d, leaf, leaf // 8) > work or size * each > contest.memory
    ):
        size = int(size / 1.2)
    some, loss = contest.sample(size)
    seeds = contest.rng.randint(2**31 - 1, size=2).tolist()
    shape = Shape(2, min(leaf, size), min(leaf, size) // 8 or 1)
    for candidate in candidates:
        ridges = [candidate.alpha * factor for factor in alphas]
        losses = contest.compare(candidate.kernel, ridges, some, loss, shape, seeds)
        best = int(np.argmin(losses))
        if len(ridges) > 1 and best in (0, len(ridges) - 1):
            ridges.append(ridges[best] * (alphas[1] / alphas[0]) ** (1 if best else -1))
            losses += contest.compare(candidate.kernel, ridges[-1:], some, loss, shape, seeds)
            best = int(np.argmin(losses))
        candidate.alpha, candidate.loss = ridges[best], losses[best]
    return sorted(candidates, key=lambda candidate: candidate.loss)


def choose(
    contest: Contest,
    kernel: str | Kernel,
    alpha: float | None,
    units: dict[str, Tensor | None],
    margin: float = 0.0,
) -> tuple[Candidate, list[Candidate], list[str]]:
    """The best with its best alpha, the candidates that have met, and what was done.

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
        given = Candidate(kernel, ridges[int(np.argmin(losses))], "the kernel that was given")
        tuned = meet(contest, [given], _AROUND, contest.work)[0]
        return tuned, [tuned], notes
    names = list(KERNELS) if kernel == "auto" else [str(kernel)]
    if contest.work < _LITTLE:
        names, units = names[:1], {"": None}
    several = isinstance(points, VectorPoints) and 1 < points.n_features <= MOST_LENGTHSCALES
    simple = [name for name in names if name not in ("matern12", "laplace")] if several else names
    found = isotropic(contest, simple or names, units, ridges)
    notes.append(f"one lengthscale: {time.perf_counter() - start:.1f} s")
    if several:
        begin = time.perf_counter()
        many = each_feature(contest, names, alpha, 0.7 * contest.work)
        found = [*many, *found[:2]]
        notes.append(f"a lengthscale per feature: {time.perf_counter() - begin:.1f} s")
    begin = time.perf_counter()
    if len(found) > 1:
        found = meet(contest, found, (1.0,), 0.1 * contest.work)
    simplest = next((one for one in found if not one.many), found[0])
    if found[0].many and found[0].loss > (1 - margin) * simplest.loss:
        found.remove(simplest)
        found.insert(0, simplest)
        notes.append(f"one lengthscale, unless more of them lower the loss by {margin:.0%}")
    best = found[0]
    if ridges is None:
        best = meet(contest, [replace(best)], _AROUND, 0.2 * contest.work)[0]
        notes.append(f"the first on more points, with alpha {best.alpha:.3g}: {best.loss:.5f}")
    notes.append(f"comparison: {time.perf_counter() - begin:.1f} s")
    return best, found, notes


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
