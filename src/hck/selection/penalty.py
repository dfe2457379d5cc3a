"""The ridge that suits a loss beyond least squares, by left-out points; and whether the loss is worth it."""

import math
from dataclasses import asdict, dataclass, replace

import numpy as np
import torch
from torch import Tensor

from hck.approximations import Approximation, TreeKernel
from hck.approximations.make import approximate, for_other_points
from hck.backend.interrupts import interruptible
from hck.backend.parallel import on_own_threads
from hck.errors import NotPositiveDefiniteError
from hck.losses import Effort, Huber, Problem, Squared, minimise
from hck.losses.base import weighted_quantile
from hck.selection.auto import meeting, shape_of
from hck.selection.candidate import Given, Selection, Shape
from hck.selection.contest import Comparison, Contest, is_series
from hck.selection.work import OF_A_RANK

_STEP, _MOST, _USUAL = 3.0, 8, 3  # factors of alpha that are tried, how many at most, and usually
_GAIN = 0.999  # a step has to lower the loss to
_WORTH = 0.995  # that of squares, below which another loss is worth its time
_PART = 0.3  # of the work
_REGIONS = 16  # that losses are compared in: a few may have nearly one class, or one level, each
_PASSES = 0.5  # of the factorizations: trees after the first begin where it ended
_EFFORT = Effort(30, 1e-3)  # enough to compare
_EFFICIENT = 1.345  # of Huber's δ, in standard deviations of normal noise
_NORMAL = 1.4826  # the standard deviation of normal numbers over their median size


Problems = tuple[Problem, ...]


def penalise(
    problems: Problems, selection: Selection, given: Given, contest: Contest
) -> tuple[Problems, Selection]:
    """Settle what is left to be settled of losses: the ridge, unless it is given, and the δ of Huber's.

    By the kernel that was chosen with least squares, on points that are left out by a last step of Newton's.
    The selection that is returned has that ridge.
    """
    if given.alpha is not None and not any(_needs_delta(problem) for problem in problems):
        return problems, _for_loss(problems, replace(selection, alpha=given.alpha), given, contest)
    trial = _Trial.of(problems, selection, contest)
    trial.find_deltas(selection.alpha)
    alpha = given.alpha
    if alpha is None:
        alpha, loss = trial.tune(selection.alpha)
        selection.notes.append(f"left-out loss {loss:.5f} with alpha {alpha:.3g}")
    return trial.problems, _for_loss(trial.problems, replace(selection, alpha=alpha), given, contest)


def better_than_squares(
    problems: Problems, selection: Selection, given: Given, contest: Contest
) -> tuple[Problems, Selection] | None:
    """The same, if the loss of left-out points is lower than with least squares; else None.

    The loss of the contest is the one to compare with. All points of the trial count: those that shaped the
    kernel are as near to one loss as to the other, and the few others would leave it to chance. In a series
    left-out points have neighbours of the same time, which the loss that is the surer of itself profits from.
    """
    trial = _Trial.of(problems, selection, contest)
    alpha = trial.tune(selection.alpha)[0] if given.alpha is None else given.alpha
    rows, kernel = trial.comparison.rows, selection.kernel
    comparison = replace(trial.comparison, counted=np.arange(len(rows)), loss=contest.loss.take(rows))
    loss = replace(trial, comparison=comparison).at(alpha)[1]
    told = replace(comparison, loss=comparison.loss.final)
    squares = told.loss_of(told.matrices(told.trees(kernel), kernel), selection.alpha)
    name = problems[0].loss.name
    selection.notes.append(f"left-out loss: {name} {loss:.5f} with alpha {alpha:.3g}, squared {squares:.5f}")
    worth = 1 - contest.loss.margin_of_series if is_series(contest.data.points) else _WORTH
    if not loss < worth * squares:
        return None
    return problems, _for_loss(problems, replace(selection, alpha=alpha), given, contest)


def _for_loss(problems: Problems, selection: Selection, given: Given, contest: Contest) -> Selection:
    """With the size that seconds leave; else training takes longer, since small leaves would cost more."""
    if contest.limits.deadline < math.inf:
        columns = max(problem.loss.columns for problem in problems)
        each = _PASSES if columns == 1 else columns  # conjugate gradients for each
        shape = shape_of(given, contest, each * _factorizations(problems))
        selection = replace(selection, **asdict(shape))
    return replace(selection, blend=[])


def _factorizations(problems: Problems) -> float:
    """How many it takes to minimise all losses, about."""
    return sum(6.0 if problem.loss.smooth else 12.0 for problem in problems)


def _needs_delta(problem: Problem) -> bool:
    return isinstance(problem.loss, Huber) and problem.loss.delta is None


def _stiffness(problem: Problem) -> float:
    """The mean curvature of a loss at the intercept, to begin with; that of squares is 1."""
    zero = torch.zeros(len(problem.y), problem.loss.columns, dtype=torch.float64, device=problem.y.device)
    if problem.loss.smooth:
        return max(float(problem.curvature(zero).mean()), 1e-3)
    error = float((problem.y - problem.intercept).abs().mean())
    return float(problem.slope(zero).abs().mean()) / error if error > 0 else 1.0


@dataclass
class _Trial:
    """Some of the points, and what stands in for the kernel there."""

    problems: Problems
    some: list[Problem]  # the same of these points
    comparison: Comparison
    source: Approximation

    @classmethod
    def of(cls, problems: Problems, selection: Selection, contest: Contest) -> "_Trial":
        runs = int(_USUAL * _factorizations(problems))
        size, leaf = meeting(contest, runs, _PART * contest.limits.work)
        comparison = contest.compare_on(size, Shape(1, leaf, leaf // 8 or 1), _REGIONS)
        rows, kind = torch.from_numpy(comparison.rows), contest.settings.approximation
        if kind in OF_A_RANK:
            settings = selection.shape.apply(replace(contest.settings, verbose=False))
            points, seed = comparison.some.points, comparison.seeds[0]
            source = approximate(selection.kernel, points, for_other_points(settings, points), seed)
        else:
            source = TreeKernel(comparison.trees(selection.kernel)[0])
        some = [problem.take(rows).to(source.device) for problem in problems]
        return cls(problems, some, comparison, source)

    def find_deltas(self, alpha: float) -> None:
        """The δ of Huber's loss, where it is not given: by the errors of least squares at left-out points."""
        found = []
        for number, problem in enumerate(self.some):
            loss = problem.loss
            if _needs_delta(problem):
                squares = replace(problem, loss=Squared())
                rest = problem.y - problem.intercept - minimise(self.source, squares, alpha).left_out()[:, 0]
                share = torch.ones_like(rest) if problem.weight is None else problem.weight
                middle = float(weighted_quantile(rest.abs(), share / share.sum(), 0.5))
                loss = Huber(_EFFICIENT * _NORMAL * middle or 1.0)
            self.some[number] = replace(problem, loss=loss)
            found.append(replace(self.problems[number], loss=loss))
        self.problems = tuple(found)

    @interruptible
    @on_own_threads()
    @torch.no_grad()
    def at(self, alpha: float, starts: list[Tensor] | None = None) -> tuple[float, float]:
        """alpha itself, and the loss of left-out points: the mean over points and problems.

        That of classes is after calibration, since means of several trees can be surer than each of them. The
        starts, f of each problem with another alpha, become those of this one.
        """
        counted = torch.from_numpy(self.comparison.counted).to(self.source.device)
        begun = [None] * len(self.some) if not starts else list(starts)
        try:
            found = [
                minimise(self.source, problem, alpha, start, _EFFORT)
                for problem, start in zip(self.some, begun, strict=True)
            ]
        except NotPositiveDefiniteError:
            return alpha, np.inf
        if starts is not None:
            starts[:] = [each.fitted for each in found]
        others = [each.left_out()[counted] for each in found]
        if self.some[0].y.is_floating_point():
            pairs = zip(self.some, others, strict=True)
            value = sum(problem.take(counted).value(other) for problem, other in pairs)
            value /= len(counted) * len(found)
        else:
            scores = [other + each.intercept for other, each in zip(others, self.some, strict=True)]
            value = self.comparison.loss.plain(torch.cat(scores, 1).cpu().numpy())
        return alpha, value if np.isfinite(value) else np.inf

    def tune(self, alpha: float) -> tuple[float, float]:
        """The best multiple of the alpha of least squares, and its loss: steps, as long as the loss falls."""
        start = alpha * float(np.mean([_stiffness(each) for each in self.problems]))
        tries: dict[int, float] = {}
        starts: list[Tensor] = []

        def loss(step: int) -> float:
            if step not in tries and len(tries) < _MOST:
                tries[step] = self.at(start * _STEP**step, starts)[1]
            return tries.get(step, np.inf)

        best = 0
        for step in (-1, 1):
            while loss(best + step) < _GAIN * loss(best):
                best += step
        return start * _STEP**best, loss(best)
