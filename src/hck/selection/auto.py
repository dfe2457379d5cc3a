"""Choose kernel, lengthscales, ridge and shape: candidates compete on leave-one-out loss."""

import time
from dataclasses import asdict, replace

import numpy as np
from numpy.typing import ArrayLike

from hck.approximations import Approximation
from hck.approximations.make import approximate, for_other_points
from hck.backend.interrupts import interruptible
from hck.errors import NotPositiveDefiniteError
from hck.hierarchy.blueprint import mean_variance
from hck.kernels import Kernel, make_kernel
from hck.kernels.registry import KernelLike
from hck.points import VectorPoints
from hck.selection.anisotropic import each_feature
from hck.selection.candidate import Candidate, Given, Selection, Shape
from hck.selection.contest import AROUND, SCOUTS, Contest, meet
from hck.selection.isotropic import ALPHAS, Units, isotropic
from hck.selection.loss import Loss
from hck.selection.observations import Observations
from hck.selection.work import OF_A_RANK, final_shape

KERNELS = ("matern32", "matern12", "gaussian", "laplace")  # that "auto" chooses from
MOST_LENGTHSCALES = 256
_LITTLE = 1e11  # work, with which there is one kernel to try, in one unit of the features
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
    shape, blends = _shape(given, contest)
    if isinstance(given.kernel, Kernel) and given.alpha is not None:
        return Selection(given.kernel, given.alpha, **asdict(shape), approximation=name)
    best, met, notes = choose(contest, given.kernel, given.alpha, units)
    if given.alpha is None and name in OF_A_RANK:
        best.alpha = _refine(best, contest, shape)
        notes.append(f"with this approximation: alpha {best.alpha:.3g}")
    found = Selection(
        best.kernel, best.alpha, **asdict(shape), candidates=met, notes=notes, approximation=name
    )
    if blends:
        alike = [each for each in met[1:] if _joins(each, best, contest.loss.margin)]
        found.blend = [best, *alike][:_BLENDED]
    found.seconds = time.perf_counter() - start
    return found


def _shape(given: Given, contest: Contest) -> tuple[Shape, bool]:
    """The size of what is trained, and whether several candidates are: each has half of the work then."""
    points, limits = contest.data.points, contest.limits
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
    if work < _LITTLE:
        names, units = names[:1], {"": None}
    several = isinstance(points, VectorPoints) and 1 < points.n_features <= MOST_LENGTHSCALES
    simple = [name for name in names if name not in ("matern12", "laplace")] if several else names
    found = isotropic(contest, simple or names, units, None if alpha is None else [alpha])
    notes.append(f"one lengthscale: {time.perf_counter() - start:.1f} s")
    if several:
        begin = time.perf_counter()
        found = [*each_feature(contest, names, alpha, 0.7 * work), *found[:2]]
        notes.append(f"a lengthscale per feature: {time.perf_counter() - begin:.1f} s")
    begin = time.perf_counter()
    if len(found) > 1:
        found = meet(contest, found, (1.0,), 0.1 * work)
    margin = contest.loss.margin
    simplest = next((one for one in found if not one.many), found[0])
    if found[0].many and found[0].loss > (1 - margin) * simplest.loss:
        found.remove(simplest)
        found.insert(0, simplest)
        notes.append(f"one lengthscale, unless more of them lower the loss by {margin:.0%}")
    best = found[0]
    if alpha is None:
        best = meet(contest, [replace(best)], AROUND, 0.2 * work)[0]
        notes.append(f"the first on more points, with alpha {best.alpha:.3g}: {best.loss:.5f}")
    notes.append(f"comparison: {time.perf_counter() - begin:.1f} s")
    return best, found, notes


def tuned_alpha(contest: Contest, kernel: Kernel) -> Candidate:
    """A kernel that is given, with its best alpha."""
    comparison = contest.compare_on(contest.sample(SCOUTS))
    size = mean_variance(kernel, comparison.some.points)
    alpha, _ = comparison.best(kernel, [alpha * size for alpha in (1e-5, 1e-4, *ALPHAS, 10.0)])
    given = Candidate(kernel, alpha, "the kernel that was given")
    return meet(contest, [given], AROUND, contest.limits.work)[0]


@interruptible
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
