"""Choose kernel, metric, ridge and shape: candidates compete on observations that did not shape them."""

import math
import time
from dataclasses import asdict, replace

import numpy as np
from numpy.typing import ArrayLike

from hck.approximations import Approximation
from hck.approximations.make import approximate, for_other_points
from hck.backend.interrupts import interruptible
from hck.backend.parallel import on_own_threads
from hck.errors import NotPositiveDefiniteError
from hck.hierarchy.blueprint import mean_variance
from hck.kernels import Kernel, make_kernel
from hck.kernels.registry import KernelLike
from hck.points import DensePoints
from hck.selection.anisotropic import MOST_FEATURES, MOST_ROWS, Course
from hck.selection.candidate import Candidate, Given, Selection, Shape
from hck.selection.contest import Contest
from hck.selection.isotropic import Units, isotropic
from hck.selection.loss import Loss
from hck.selection.metric import can_learn
from hck.selection.observations import Observations
from hck.selection.tuning import tune_ridge
from hck.selection.work import OF_A_RANK, SCOUTING, UNKNOWN, Effort, final_shape, tree_work

KERNELS = ("matern32", "matern12", "gaussian", "laplace")  # that "auto" chooses from
AROUND = (0.3, 1.0, 3.0)  # multiples of an alpha to try
_RIDGES = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0)  # the same, for a kernel that is given
_SCOUTS = 4000  # observations on which the ridge of a kernel that is given is looked for
_PART = 0.7  # of the work that is left, since left-out values take as much again as this leaves
_SMALLEST, _MEETING = 192, 768  # sizes of leaves where candidates meet
_TREES = 4  # there: what a forest makes good, such as cuts through many features that matter, must not count
_FEW = 2  # kernels that learn a metric for many features
_BLENDED = 3  # candidates at most whose predictions are averaged
_REFINED = 20_000  # observations on which the ridge of approximations without a tree is chosen

Chosen = tuple[Candidate, list[Candidate], list[str]]  # the best, those that have met, what was done


def given_kernel(kernel: KernelLike, lengthscale: ArrayLike | None) -> Kernel | str:
    """The kernel that is given; its name where lengthscales are "auto"; an error if there is none such."""
    name = "gaussian" if isinstance(kernel, str) and kernel == "auto" else kernel
    made = make_kernel(name, None if isinstance(lengthscale, str) else lengthscale)
    return kernel if isinstance(kernel, str) and isinstance(lengthscale, str) else made


def select(given: Given, contest: Contest, units: Units) -> Selection:
    """Choose what is not given, with the limits of the contest; training may take as much again."""
    start, name = time.perf_counter(), str(contest.settings.approximation)
    if isinstance(given.kernel, Kernel) and given.alpha is not None:
        shape, _ = shape_of(given, contest)
        return Selection(given.kernel, given.alpha, **asdict(shape), approximation=name)
    best, met, notes = choose(contest, given.kernel, given.alpha, units)
    shape, blends = shape_of(given, contest)
    if given.alpha is None and name in OF_A_RANK:
        best.alpha = _refine(best, contest, shape)
        notes.append(f"with this approximation: alpha {best.alpha:.3g}")
    found = Selection(
        best.kernel, best.alpha, **asdict(shape), candidates=met, notes=notes, approximation=name
    )
    if blends:
        alike = [each for each in met[1:] if _joins(each, best, contest.margin)]
        found.blend = [best, *alike][:_BLENDED]
    if any(each.kernel.importances() is not None for each in (best, *found.blend)):
        found.held = contest.held
    found.seconds = time.perf_counter() - start
    return found


def shape_of(given: Given, contest: Contest, passes: float = 1.0) -> tuple[Shape, bool]:
    """The size of what is trained, and whether several candidates are: each has half of the work then.

    Training takes so many passes over a tree.
    """
    points, limits = contest.data.points, contest.limits
    work = limits.work
    if contest.pace and limits.deadline < math.inf:
        work = max((limits.deadline - time.perf_counter()) * contest.pace, 0.2 * work)
    limits = replace(limits, work=_PART * work / passes)
    shape = final_shape(given, contest.settings, points, limits)
    if not given.blends:
        return shape, False
    part = final_shape(given, contest.settings, points, replace(limits, work=limits.work / 2))
    # one leaf of all points is worth more than several models
    return (part, True) if part.n_trees == shape.n_trees else (shape, False)


def _joins(candidate: Candidate, best: Candidate, margin: float) -> bool:
    """Whether a candidate is nearly as good as the best, and of a kind that may win."""
    return (not margin or candidate.many == best.many) and candidate.loss < 1.15 * best.loss


@interruptible
@on_own_threads()
def choose(contest: Contest, kernel: str | Kernel, alpha: float | None, units: Units) -> Chosen:
    """The best with its best alpha, the candidates that have met, and what was done.

    Kernel and alpha are those of `Given`; one of them is to be chosen.
    """
    if isinstance(kernel, Kernel):
        tuned = tuned_alpha(contest, kernel)
        return tuned, [tuned], []
    notes: list[str] = []
    start, points, work = time.perf_counter(), contest.data.points, contest.limits.work
    names = list(KERNELS) if kernel == "auto" else [kernel]
    effort = Effort.within(work, points)
    names = names[: effort.kernels]
    contest.hold_out()
    comparison = contest.compare_on(effort.scouts, SCOUTING)
    found = isotropic(comparison, names, units, alpha, effort.tries + 4)
    notes.append(f"one lengthscale: {time.perf_counter() - start:.1f} s")
    names = [name for name in names if can_learn(name)]
    if names and isinstance(points, DensePoints) and 1 < points.n_features <= MOST_FEATURES:
        if points.n_features > MOST_ROWS:  # where each candidate costs more
            names, found = [each.name for each in found if each.name in names][:_FEW], found[:1]
        begin = time.perf_counter()
        course = Course(contest, comparison, names, alpha, effort)
        found = [*course.metrics(found[0]), *found[:2]]
        notes.append(f"metrics: {time.perf_counter() - begin:.1f} s")
    begin = time.perf_counter()
    if len(found) > 1:
        found = meet(contest, found, (1.0,), 0.2 * work)
    found = _simplest_first(found, contest.margin, notes)
    best = found[0]
    if alpha is None:
        best = meet(contest, [replace(best)], AROUND, 0.1 * work)[0]
        notes.append(f"the first on more points, with alpha {best.alpha:.3g}: {best.loss:.5f}")
    notes.append(f"comparison: {time.perf_counter() - begin:.1f} s")
    return best, found, notes


def _simplest_first(found: list[Candidate], margin: float, notes: list[str]) -> list[Candidate]:
    """The best first, unless one with a single lengthscale is hardly worse."""
    simplest = next((one for one in found if not one.many), found[0])
    if not found[0].many or found[0].loss <= (1 - margin) * simplest.loss:
        return found
    notes.append(f"one lengthscale, unless more of them lower the loss by {margin:.0%}")
    return [simplest, *(one for one in found if one is not simplest)]


def meet(
    contest: Contest, candidates: list[Candidate], factors: tuple[float, ...], work: float
) -> list[Candidate]:
    """Compare candidates on more points and with larger leaves, with multiples of alpha; the best first."""
    size, leaf = meeting(contest, len(candidates) * len(factors), work)
    trees = 1 if leaf == size else _TREES
    comparison, start = contest.compare_on(size, Shape(trees, leaf, leaf // 8 or 1)), time.perf_counter()
    met = [tune_ridge(comparison, candidate, factors) for candidate in candidates]
    done = trees * len(candidates) * len(factors) * tree_work(size, _width(contest), leaf, leaf // 8 or 1)
    contest.pace = done / (time.perf_counter() - start)
    return sorted(met, key=lambda candidate: candidate.loss)


def _width(contest: Contest) -> int:
    return contest.data.points.values_per_point or UNKNOWN


def meeting(contest: Contest, runs: int, work: float) -> tuple[int, int]:
    """How many points so many runs with work and memory allow, and how large their leaves may be.

    All points, if possible; then larger leaves; but 2000 points at least, if there are as many.
    """
    points = contest.data.points
    d, size, leaf = _width(contest), len(points), min(_MEETING, len(points))

    def fits() -> bool:
        each = 4 * points.dtype.itemsize * (leaf + leaf // 8)  # bytes of a point
        cost = runs * _TREES * 1.2 * tree_work(size, d, leaf, leaf // 8 or 1)
        return cost <= work and size * each <= contest.limits.memory

    while leaf > _SMALLEST and not fits():
        leaf = max(_SMALLEST, int(leaf / 1.2))
    while size > 2000 and not fits():
        size = int(size / 1.2)
    return size, min(leaf, size)


def tuned_alpha(contest: Contest, kernel: Kernel) -> Candidate:
    """A kernel that is given, with its best alpha."""
    size = mean_variance(kernel, contest.data.points)
    given = Candidate(kernel, 0.01 * size, "the kernel that was given")
    scouted = tune_ridge(contest.compare_on(_SCOUTS, SCOUTING), given, _RIDGES)
    return meet(contest, [scouted], AROUND, contest.limits.work)[0]


def _refine(best: Candidate, contest: Contest, shape: Shape) -> float:
    """The alpha that suits an approximation of another kind than trees best."""
    some, loss = contest.sample(_REFINED)
    settings = for_other_points(shape.apply(replace(contest.settings, verbose=False)), some.points)
    seed = contest.rng.randint(2**31 - 1)
    return refined_alpha(best.alpha, approximate(best.kernel, some.points, settings, seed), some, loss)


def refined_alpha(start: float, made: Approximation, some: Observations, loss: Loss) -> float:
    """The alpha that suits an approximation best, around one to start from."""
    relative = 1.0 if some.noise is None else some.noise
    found = {start: np.inf}
    for alpha in (start * factor for factor in (0.03, 0.1, 0.3, 1.0, 3.0)):
        try:
            others = made.ridge(alpha * relative, some.y, left_out=True)[1]
        except NotPositiveDefiniteError:
            continue
        if others is None:  # memory is short
            break
        value = loss(others.cpu().numpy()) if others.isfinite().all() else np.inf
        found[alpha] = value if np.isfinite(value) else np.inf
    return min(found, key=lambda alpha: found[alpha])
