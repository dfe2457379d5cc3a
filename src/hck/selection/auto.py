"""Choose kernel, metric, ridge and shape: candidates compete on observations that did not shape them."""

import math
import time
from dataclasses import asdict, dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from hck.approximations import Approximation
from hck.approximations.make import approximate, for_other_points
from hck.backend import compilation
from hck.backend.interrupts import interruptible
from hck.backend.kinds import kind_of
from hck.backend.parallel import at_a_time, evenly, on_own_threads
from hck.errors import NotPositiveDefiniteError
from hck.hierarchy.blueprint import mean_variance
from hck.kernels import Kernel, make_kernel
from hck.kernels.registry import KernelLike
from hck.points import DensePoints
from hck.selection.anisotropic import MOST_FEATURES, MOST_ROWS, Course
from hck.selection.candidate import Candidate, Given, Selection, Shape
from hck.selection.contest import Comparison, Contest
from hck.selection.isotropic import Units, isotropic
from hck.selection.loss import Loss
from hck.selection.metric import can_learn
from hck.selection.observations import Observations
from hck.selection.tuning import tune_ridge
from hck.selection.work import (
    OF_A_RANK,
    SCOUTING,
    UNKNOWN,
    Effort,
    exact_rows,
    final_shape,
    forest_work,
    refining,
    tree_work,
)

KERNELS = ("matern32", "rational_quadratic", "matern12", "laplace")  # that "auto" chooses from
AROUND = (0.3, 1.0, 3.0)  # multiples of an alpha to try
_BY_NAME, _IN_SECONDS = 1000, 300  # scouts at least; fewer where seconds count
_RIDGES = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0)  # the same, for a kernel that is given
_SCOUTS = 4000  # observations on which the ridge of a kernel that is given is looked for
_PART = 0.7  # of the work that is left, since left-out values take as much again as this leaves
_KEPT = 0.85  # of the time that is left, for which a forest is sized
_MET = 0.7  # of the time that may be over when candidates have met
_SMALLEST, _MEETING = 192, 768  # sizes of leaves where candidates meet
_ENOUGH = 0.25  # of the observations, to meet on these alone
_TREES = 4  # there: what a forest makes good, such as cuts through many features that matter, must not count
_FEW = 2  # kernels that learn a metric for many features
_WIDE, _HOPE = 0.5, 1.3  # a margin for which one kernel is asked first, and how near it has to come to that
_BLENDED, _LIGHTEST = 3, 0.1  # candidates at most that share the trees, and the least weight of one
_REFINING = (0.03, 0.1, 0.3, 1.0, 3.0)  # multiples of alpha to try with approximations without a tree
_LEAST = 128  # points of a leaf; where seconds are few, there are fewer trees rather than smaller leaves


@dataclass(frozen=True)
class Chosen:
    """The best candidate with its best alpha, those that have met, what was done, and who may share trees."""

    best: Candidate
    met: list[Candidate]
    notes: list[str] = field(default_factory=list)
    blend: list[Candidate] = field(default_factory=list)  # the best first, with weights


def given_kernel(kernel: KernelLike, lengthscale: ArrayLike | None) -> Kernel | str:
    """The kernel that is given; its name where lengthscales are "auto"; an error if there is none such."""
    name = "gaussian" if isinstance(kernel, str) and kernel == "auto" else kernel
    made = make_kernel(name, None if isinstance(lengthscale, str) else lengthscale)
    return kernel if isinstance(kernel, str) and isinstance(lengthscale, str) else made


def select(given: Given, contest: Contest, units: Units, passes: float = 1.0) -> Selection:
    """Choose what is not given, with the limits of the contest; training may take as much again.

    It takes as long as so many ridge regressions.
    """
    start, name = time.perf_counter(), str(contest.settings.approximation)
    if isinstance(given.kernel, Kernel) and given.alpha is not None:
        shape = shape_of(given, contest, passes)
        return Selection(given.kernel, given.alpha, **asdict(shape), approximation=name)
    chosen = choose(contest, given.kernel, given.alpha, units)
    best, notes, shape = chosen.best, chosen.notes, shape_of(given, contest, passes)
    if given.alpha is None and name in OF_A_RANK:
        best.alpha = _refine(best, contest, shape)
        notes.append(f"with this approximation: alpha {best.alpha:.3g}")
    blend = share(chosen.blend, shape, given, contest) if given.blends else []
    if blend:
        shape = replace(shape, n_trees=sum(each.n_trees for each in blend))
    learned = any(each.kernel.importances() is not None for each in (best, *blend))
    return Selection(
        best.kernel,
        best.alpha,
        **asdict(shape),
        candidates=chosen.met,
        notes=notes,
        seconds=time.perf_counter() - start,
        approximation=name,
        blend=blend,
        held=contest.held if learned else None,
    )


def share(blend: list[Candidate], shape: Shape, given: Given, contest: Contest) -> list[Candidate]:
    """Deal trees to candidates by their weights, one to each at least; none if there are too few.

    A single leaf of all points is solved for as many of them as work allows.
    """
    points, n_trees = contest.data.points, shape.n_trees
    n = len(points)
    if given.n_trees is None and (shape.leaf_size or 0) >= n:
        work = _PART * contest.limits.work * kind_of(points.device).dense_gain
        n_trees = int(min(len(blend), work / tree_work(n, _width(contest), n, 1)))
        if contest.limits.deadline < math.inf:
            each = forest_work(n, _width(contest), Shape(1, n, 1))
            n_trees = min(n_trees, int(_operations_left(contest) / each))
    blend = blend[:n_trees]
    if len(blend) < 2:
        return []
    whole = sum(each.weight for each in blend)
    blend = [replace(each, weight=each.weight / whole, n_trees=1) for each in blend]
    for _ in range(n_trees - len(blend)):
        max(blend, key=lambda each: n_trees * each.weight - each.n_trees).n_trees += 1
    return blend


def shape_of(given: Given, contest: Contest, passes: float = 1.0) -> Shape:
    """The size of what is trained; where seconds count, it takes as long as so many ridge regressions."""
    points, limits = contest.data.points, contest.limits
    if limits.deadline == math.inf:
        return _of_work(_PART * limits.work, given, contest)
    kind = str(contest.settings.approximation)
    if given.alpha is None and kind in OF_A_RANK:
        passes += len(_REFINING) * min(1.0, refining(kind, limits.work) / len(points))
    left = _operations_left(contest)

    def fits(shape: Shape) -> bool:
        return passes * forest_work(len(points), _width(contest), shape) <= left

    for trees in (given.n_trees,) if given.n_trees else (None, 4, 2, 1):
        some = replace(given, n_trees=trees)
        work = 4 * _PART * limits.work
        least, shape = work * (trees or 8) / 400, _of_work(work, some, contest)
        enough = min(_LEAST, shape.leaf_size or _LEAST)
        while work > least and not fits(shape):
            work /= 1.1
            shape = _of_work(work, some, contest)
        if fits(shape) and (shape.leaf_size or _LEAST) >= enough:
            break
    return shape


def _of_work(work: float, given: Given, contest: Contest) -> Shape:
    return final_shape(given, contest.settings, contest.data.points, replace(contest.limits, work=work))


def _operations_left(contest: Contest) -> float:
    """That can be done until the deadline, at the pace at which candidates met, if they have."""
    pace = contest.pace or kind_of(contest.data.points.device).rate
    return _KEPT * (contest.limits.deadline - time.perf_counter()) * pace


@interruptible
@on_own_threads()
def choose(contest: Contest, kernel: str | Kernel, alpha: float | None, units: Units) -> Chosen:
    """Let candidates compete. Kernel and alpha are those of `Given`; one of them is to be chosen."""
    if isinstance(kernel, Kernel):
        tuned = tuned_alpha(contest, kernel)
        return Chosen(replace(tuned, predicted=None), [replace(tuned, predicted=None)])
    notes: list[str] = []
    start, points, work = time.perf_counter(), contest.data.points, contest.limits.work
    names = list(KERNELS) if kernel == "auto" else [kernel]
    effort = Effort.within(work, points, _IN_SECONDS if contest.limits.deadline < math.inf else _BY_NAME)
    names = names[: effort.kernels]
    comparison = contest.hold_out(effort.scouts, effort.scouting)
    found = isotropic(comparison, names, units, alpha, effort.tries + 4)
    notes.append(f"one lengthscale: {time.perf_counter() - start:.1f} s")
    names = [name for name in names if can_learn(name)]
    if names and isinstance(points, DensePoints) and 1 < points.n_features <= MOST_FEATURES:
        if points.n_features > MOST_ROWS:  # where each candidate costs more
            names, found = [each.name for each in found if each.name in names][:_FEW], found[:1]
        begin = time.perf_counter()
        course = Course(contest, comparison, names, alpha, effort)
        found = [*_learned(course, found[0]), *found[:2]]
        notes.append(f"metrics: {time.perf_counter() - begin:.1f} s")
    begin, blend = time.perf_counter(), []
    if len(found) > 1:
        found, meeting = meet(contest, found, (1.0,), max(0.2, 0.025 * len(found)) * work)
        found = _simplest_first(found, contest.margin, notes)
        blend = _blend(found, meeting, contest.margin)
    best = found[0]
    met = time.perf_counter() - begin
    if alpha is None and contest.limits.allow(met, by=_MET):
        few = blend or [best]
        refined, meeting = meet(contest, few, AROUND, 0.1 * len(few) * work)
        best, blend = refined[0], _blend(refined, meeting, contest.margin)
        notes.append(f"the first on more points, with alpha {best.alpha:.3g}: {best.loss:.5f}")
    for each in (best, *found, *blend):
        each.predicted = None
    notes.append(f"comparison: {time.perf_counter() - begin:.1f} s")
    return Chosen(best, found, notes, blend)


def _learned(course: Course, first: Candidate) -> list[Candidate]:
    """Metrics that are learned; a single kernel's, if these are far from what would make them preferred.

    The first candidate is the best that has one lengthscale.
    """
    margin = course.contest.margin
    if margin >= _WIDE:
        name = first.name if first.name in course.names else course.names[0]
        few = replace(course, names=[name], effort=replace(course.effort, matrices=0)).metrics(first)
        if not few or few[0].loss > _HOPE * (1 - margin) * first.loss:
            return few
    return course.metrics(first)


def _blend(met: list[Candidate], meeting: Comparison, margin: float) -> list[Candidate]:
    """The first, and others of a kind that may win, whose mean predicts best; with their weights."""
    first, known = met[0], [each for each in met if not margin or each.many == met[0].many]
    for _ in range(2):  # once more without those that are light, for what they leave to others
        predicted = [each.predicted for each in known if each.predicted is not None]
        if first.predicted is None or len(predicted) < 2:
            return []
        known = [each for each in known if each.predicted is not None]
        for each, weight in zip(known, meeting.weights(predicted), strict=True):
            each.weight = max(float(weight), _LIGHTEST if each is first else 0.0)
        others = [each for each in known if each is not first and each.weight >= _LIGHTEST]
        known = [first, *sorted(others, key=lambda each: -each.weight)[: _BLENDED - 1]]
    return known


def _simplest_first(found: list[Candidate], margin: float, notes: list[str]) -> list[Candidate]:
    """The best first, unless one with a single lengthscale is hardly worse."""
    simplest = next((one for one in found if not one.many), found[0])
    if not found[0].many or found[0].loss <= (1 - margin) * simplest.loss:
        return found
    notes.append(f"one lengthscale, unless more of them lower the loss by {margin:.0%}")
    return [simplest, *(one for one in found if one is not simplest)]


def meet(
    contest: Contest, candidates: list[Candidate], factors: tuple[float, ...], work: float
) -> tuple[list[Candidate], Comparison]:
    """Compare candidates on more points and with larger leaves, with multiples of alpha; the best first."""
    size, leaf = meeting(contest, len(candidates) * len(factors), work)
    trees = 1 if leaf == size else _TREES
    shape, start = Shape(trees, leaf, leaf // 8 or 1), time.perf_counter() - compilation.seconds()
    comparison = contest.compare_on(size, shape)
    ridge = partial(tune_ridge, comparison, factors=factors)
    met = list(evenly(ridge, candidates, contest.data.points.device, trees))
    if not contest.pace:
        done = len(candidates) * len(factors) * forest_work(size, _width(contest), shape)
        if trees == 1:  # what is trained may be slower
            done /= kind_of(contest.data.points.device).dense_gain
        contest.pace = done / max(1e-3, time.perf_counter() - compilation.seconds() - start)
    return sorted(met, key=lambda candidate: candidate.loss), comparison


def _width(contest: Contest) -> int:
    return contest.data.points.values_per_point or UNKNOWN


def meeting(contest: Contest, runs: int, work: float) -> tuple[int, int]:
    """How many points so many runs with work and memory allow, and how large their leaves may be.

    All points, if possible; then larger leaves; but 2000 points at least, if there are as many. One leaf for
    all of them where a device is fast with that, unless a tree would have many more.
    """
    points = contest.data.points
    exact = exact_rows(points, runs, work)
    if exact >= _ENOUGH * len(points) and 4 * points.dtype.itemsize * exact**2 <= contest.limits.memory:
        return exact, exact
    d, size, leaf = _width(contest), len(points), min(_MEETING, len(points))

    def fits() -> bool:
        each = 4 * points.dtype.itemsize * (leaf + leaf // 8)  # bytes of a point
        cost = runs * _TREES * 1.2 * tree_work(size, d, leaf, leaf // 8 or 1)
        return cost <= work and size * each * at_a_time(points.device) <= contest.limits.memory

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
    return meet(contest, [scouted], AROUND, contest.limits.work)[0][0]


def _refine(best: Candidate, contest: Contest, shape: Shape) -> float:
    """The alpha that suits an approximation of another kind than trees best."""
    some, loss = contest.sample(refining(str(contest.settings.approximation), contest.limits.work))
    settings = for_other_points(shape.apply(replace(contest.settings, verbose=False)), some.points)
    seed = contest.rng.randint(2**31 - 1)
    return refined_alpha(best.alpha, approximate(best.kernel, some.points, settings, seed), some, loss)


def refined_alpha(start: float, made: Approximation, some: Observations, loss: Loss) -> float:
    """The alpha that suits an approximation best, around one to start from."""
    relative = 1.0 if some.noise is None else some.noise
    found = {start: np.inf}
    for alpha in (start * factor for factor in _REFINING):
        try:
            others = made.ridge(alpha * relative, some.y, left_out=True)[1]
        except NotPositiveDefiniteError:
            continue
        if others is None:  # memory is short
            break
        value = loss(others.cpu().numpy()) if others.isfinite().all() else np.inf
        found[alpha] = value if np.isfinite(value) else np.inf
    return min(found, key=lambda alpha: found[alpha])
