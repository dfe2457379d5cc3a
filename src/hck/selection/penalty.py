"""The ridge that suits a loss beyond least squares, by left-out points; and whether the loss is worth it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import torch
from torch import Tensor

from hck.approximations.hierarchical import TreeKernel
from hck.backend.interrupts import interruptible
from hck.backend.parallel import on_own_threads
from hck.errors import NotPositiveDefiniteError
from hck.losses import Effort, Huber, Minimum, Problem, Squared, minimise
from hck.selection.auto import meeting, shape_of
from hck.selection.candidate import Given, Selection, Shape
from hck.selection.contest import Comparison, Contest

_STEP, _MOST = 3.0, 8  # factors of alpha that are tried, and how many
_GAIN = 0.999  # a step has to lower the loss to
_PART = 0.3  # of the work
_PASSES = 0.5  # of the factorizations: trees after the first begin where it ended
_EFFORT = Effort(30, 1e-3)  # enough to compare
_EFFICIENT = 1.345  # of Huber's δ, in standard deviations of normal noise
_NORMAL = 1.4826  # the standard deviation of normal numbers over their median size


@dataclass(frozen=True)
class Penalised:
    """Losses to be minimised, and the ridge to do it with."""

    problems: tuple[Problem, ...]
    alpha: float
    loss: float = np.nan  # of left-out points, the mean over points and problems


def penalise(
    problems: Sequence[Problem], selection: Selection, given: Given, contest: Contest
) -> tuple[Penalised, Selection]:
    """Settle what is left to be settled of losses: the ridge, unless it is given, and the δ of Huber's.

    By the kernel that was chosen with least squares, on points that are left out by a last step of Newton's.
    The selection that is returned has that ridge, and a size that leaves time for all steps.
    """
    found, _ = _settle(problems, selection, given, contest)
    return found, _for_loss(found, selection, given, contest)


def better_than_squares(
    problems: Sequence[Problem], selection: Selection, given: Given, contest: Contest
) -> tuple[Penalised, Selection] | None:
    """The same, if the loss of left-out points is lower than with least squares; else None.

    The loss of the contest is the one to compare with.
    """
    found, comparison = _settle(problems, selection, given, contest)
    matrices = comparison.matrices(comparison.trees(selection.kernel), selection.kernel)
    squares = comparison.loss_of(matrices, selection.alpha)
    name = problems[0].loss.name
    selection.notes.append(f"left-out loss: {name} {found.loss:.5f}, squared {squares:.5f}")
    return (found, _for_loss(found, selection, given, contest)) if found.loss < squares else None


def _for_loss(found: Penalised, selection: Selection, given: Given, contest: Contest) -> Selection:
    shape, _ = shape_of(given, contest, _PASSES * _factorizations(found.problems))
    note = f"for the loss {found.problems[0].loss!r}: alpha {found.alpha:.3g}, left-out {found.loss:.5f}"
    return replace(selection, alpha=found.alpha, **asdict(shape), notes=[*selection.notes, note], blend=[])


def _factorizations(problems: Sequence[Problem]) -> float:
    """How many it takes to minimise all losses, about."""
    return sum(6.0 if problem.loss.smooth else 12.0 for problem in problems)


@interruptible
@on_own_threads()
@torch.no_grad()
def _settle(
    problems: Sequence[Problem], selection: Selection, given: Given, contest: Contest
) -> tuple[Penalised, Comparison]:
    runs = int(_MOST * _factorizations(problems))
    size, leaf = meeting(contest, runs, _PART * contest.limits.work)
    comparison = contest.compare_on(size, Shape(1, leaf, leaf // 8 or 1))
    rows = torch.from_numpy(comparison.rows)
    source = TreeKernel(comparison.trees(selection.kernel)[0])
    some = [problem.take(rows).to(source.device) for problem in problems]
    deltas = [_delta(source, each, selection.alpha) for each in some]
    problems = [_with_delta(*each) for each in zip(problems, deltas, strict=True)]
    some = [_with_delta(*each) for each in zip(some, deltas, strict=True)]
    if given.alpha is not None:
        return Penalised(tuple(problems), given.alpha), comparison
    start = selection.alpha * float(np.mean([_stiffness(each) for each in problems]))
    found = _Tuning(source, some, comparison.counted, start).best()
    return replace(found, problems=tuple(problems)), comparison


def _stiffness(problem: Problem) -> float:
    """The mean curvature of a loss at the intercept, to begin with; that of squares is 1."""
    zero = torch.zeros(len(problem.y), problem.loss.columns, dtype=torch.float64, device=problem.y.device)
    if problem.loss.smooth:
        return max(float(problem.curvature(zero).mean()), 1e-3)
    error = float((problem.y - problem.intercept).abs().mean())
    return float(problem.slope(zero).abs().mean()) / error if error > 0 else 1.0


def _delta(source: TreeKernel, problem: Problem, alpha: float) -> float | None:
    """Of Huber's loss, where it is to be found: by the errors of least squares at left-out points."""
    if not isinstance(problem.loss, Huber) or problem.loss.delta is not None:
        return None
    squares = replace(problem, loss=Squared())
    rest = problem.y - problem.intercept - minimise(source, squares, alpha).left_out()[:, 0]
    return _EFFICIENT * _NORMAL * float(rest.abs().median()) or 1.0


def _with_delta(problem: Problem, delta: float | None) -> Problem:
    return problem if delta is None else replace(problem, loss=Huber(delta))


class _Tuning:
    """Steps of alpha, as long as the loss falls."""

    def __init__(
        self, source: TreeKernel, problems: list[Problem], counted: np.ndarray, start: float
    ) -> None:
        self.source, self.problems, self.start = source, problems, start
        self.counted = torch.from_numpy(counted).to(source.device)
        self.seen = [problem.take(self.counted) for problem in problems]
        self.losses: dict[int, float] = {}
        self.fitted: dict[int, list[Tensor]] = {}

    def at(self, j: int) -> float:
        if j not in self.losses and len(self.losses) < _MOST:
            self.losses[j] = self._loss(j)
        return self.losses.get(j, np.inf)

    def _loss(self, j: int) -> float:
        near = min(self.fitted, key=lambda other: abs(other - j), default=None)
        starts = [None] * len(self.problems) if near is None else self.fitted[near]
        try:
            found = [
                minimise(self.source, problem, self.start * _STEP**j, start, _EFFORT)
                for problem, start in zip(self.problems, starts, strict=True)
            ]
        except NotPositiveDefiniteError:
            return np.inf
        self.fitted[j] = [each.fitted for each in found]
        value = sum(self._of(*each) for each in zip(self.seen, found, strict=True))
        value /= len(self.counted) * len(found)
        return value if np.isfinite(value) else np.inf

    def _of(self, seen: Problem, found: Minimum) -> float:
        return seen.value(found.left_out()[self.counted])

    def best(self) -> Penalised:
        best = 0
        for step in (-1, 1):
            while self.at(best + step) < _GAIN * self.at(best):
                best += step
        return Penalised(tuple(self.problems), self.start * _STEP**best, self.at(best))
