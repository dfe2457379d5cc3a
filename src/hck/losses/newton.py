"""Newton's method for any convex loss: each step is least squares with a noise for each point.

At f = K̃ w with gradient g and curvature h of the loss, the quadratic that touches Σ ℓ + ½ α ‖f‖² is least at
w + d with (K̃ + diag(α/h)) d = −(g + α w)/h, and K̃ d = −(g + α (w + d))/h needs no product. How far to go
along d is found exactly: the objective along a line costs O(n), where the factorization costs O(n r²).

Of several columns the curvature is a matrix at each point. Then h is a bound of its eigenvalues, the same for
all columns, and what is factored is the preconditioner of conjugate gradients, each step of which costs
O(n r) for a column.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from hck.approximations import Approximation, Factorization
from hck.approximations.factorization import needs_factorization
from hck.backend.caches import cached_property
from hck.losses.problem import Certificate, Minimum, Problem

# Of float64 and float32: the least curvature, relative to the mean, and where to stop by default.
_FLOOR = {torch.float64: 1e-6, torch.float32: 1e-3}
_TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-3}
_EVEN = 0.1  # the same of the first step from a start: another tree is not as sure of the same points
_MANY = 0.25  # part of the points that do not count at all, which is worth to do without them
_TRIES = 40  # of the length of a step
_ROUNDING = 1e-8  # of an objective, relative
_NOTHING = 1e-14  # a squared norm, relative to those of weights and values
_SLOPE = 1e-8  # at 0, relative to what the loss and its curvature make usual: what is less is rounding
_TURNS = 100  # of conjugate gradients in a step


@dataclass(frozen=True)
class Effort:
    """How far a search goes.

    Examples
    --------
    >>> import torch
    >>> from hck.approximations import make_approximation
    >>> from hck.losses import Effort, Logistic, Problem, minimise
    >>> x = torch.linspace(0, 1, 100, dtype=torch.float64)[:, None]
    >>> made = make_approximation("hierarchical", "gaussian", x, rank=10, generator=0)
    >>> problem = Problem.of(Logistic(), (x[:, 0] > 0.3).long())
    >>> minimise(made, problem, alpha=0.1, effort=Effort(max_iter=1)).certificate.converged
    False
    """

    max_iter: int = 100
    tolerance: float | None = None  # of the gradient, relative to that at 0; None: 1e-6, or 1e-3 in float32


_USUAL = Effort()


@dataclass
class _Function:
    """f = K̃ w at the training points, with its w: both (n, columns)."""

    w: Tensor
    f: Tensor

    def plus(self, step: float, other: "_Function") -> "_Function":
        return _Function(self.w + step * other.w, self.f + step * other.f)

    def times(self, other: "_Function") -> float:
        """The product of two functions in the space of the kernel."""
        return float((self.w * other.f).sum() + (other.w * self.f).sum()) / 2


@torch.no_grad()
def newton(
    source: Approximation,
    problem: Problem,
    alpha: float,
    start: Tensor | None = None,
    how: Effort = _USUAL,
) -> Minimum:
    """The minimum of Σ weight ℓ(intercept + f, y) + ½ α ‖f‖² for a loss that is smooth.

    Parameters
    ----------
    source : Approximation
        What stands in for the kernel; one that can be factored.
    problem : Problem
        On the device of the points.
    alpha : float
        α > 0.
    start : Tensor of shape (n, columns), optional
        f of a similar problem, such as one with another tree: where the loss is first looked at.
    """
    shape = len(source), problem.loss.columns
    here = _Function(*(torch.zeros(shape, dtype=torch.float64, device=source.device) for _ in range(2)))
    tolerance = _TOLERANCE[source.dtype] if how.tolerance is None else how.tolerance
    objective = [problem.value(here.f)]
    slope = problem.slope(here.f)
    # a slope of rounding errors, as of a y that is constant, is no unit
    least = _SLOPE * (abs(objective[0]) * float(problem.curvature(here.f).sum())) ** 0.5
    unit, n_iter, size = max(float(slope.norm()), least) or 1.0, 0, 1.0
    while True:
        rest = slope + alpha * here.w
        size = float(rest.norm()) / unit
        if n_iter and (size <= tolerance or n_iter >= how.max_iter):
            break
        if start is None or n_iter:
            step = _Step(source, problem, alpha, here.f)
            towards = step.towards(here, -rest, 0.1 * min(1.0, size**0.5))
        else:  # from 0 to where least squares lead from there
            step = _Step(source, problem, alpha, start, _EVEN)
            towards = step.lowest()
        n_iter += 1
        moved = _along(problem, alpha, here, towards)
        value = problem.value(moved.f) + alpha * moved.times(moved) / 2
        slope_there = problem.slope(moved.f)
        nearer = float((slope_there + alpha * moved.w).norm()) < float(rest.norm())
        if not value <= objective[-1] + (_ROUNDING * abs(objective[-1]) if nearer else 0.0):
            break  # there is no lower place, but for rounding
        here, slope = moved, slope_there
        objective.append(value)
    known = Certificate(n_iter, size, objective, size <= 10 * tolerance)
    return Minimum(here.w, here.f, step.noise, step.factorization, known)


class _Step:
    """The quadratic that touches the objective at f, with the factorization of a bound of it."""

    def __init__(
        self, source: Approximation, problem: Problem, alpha: float, f: Tensor, least: float = 0.0
    ) -> None:  # fmt: skip
        self.problem, self.alpha, self.f = problem, alpha, f
        self.source, self.dtype = source, source.dtype
        self.slope, bound = problem.slope(f), problem.curvature(f)
        counts, mean = bound > 0, float(bound.mean()) or 1.0
        if least:
            bound = bound.maximum(least * mean * problem.relative_weight)
        # points that do not count have a noise that is large, not infinite
        bound = bound.where(counts, 0.0).clamp_min(_FLOOR[source.dtype] * mean)
        self.bound, self.noise = bound[:, None], alpha / bound
        flat = ~counts & (self.slope == 0).all(1)
        self.ignores = source.can_ignore and float(flat.double().mean()) >= _MANY
        if self.ignores:  # of which w is 0 at the minimum
            self.noise = self.noise.where(~flat, torch.inf)

    @cached_property
    def factorization(self) -> Factorization:
        found = self.source.factor(self.noise.to(self.dtype))
        if not found.has_likelihood:
            raise needs_factorization("losses other than the squared one")
        return found

    def lowest(self) -> _Function:
        """Where the bound of the objective is least."""
        if not self.ignores:
            return self.solve(self.bound * self.f - self.slope)
        right = (self.f - self.slope / self.bound).to(self.dtype)
        found = self.source.solve(self.noise.to(self.dtype), right)
        self.factorization = found.factorization
        return _Function(found.weights.double(), found.fitted().double())

    def solve(self, right: Tensor) -> _Function:
        """Where bound · f + α w is the right-hand side (n, columns)."""
        w = self.factorization.solve((right / self.bound).to(self.dtype)).double()
        if self._drowns:
            return _Function(w, self.source.product(w.to(self.dtype)).double())
        return _Function(w, (right - self.alpha * w) / self.bound)

    @cached_property
    def _drowns(self) -> bool:
        """Whether the noise is so much larger than the kernel that differences say nothing of K̃ w."""
        kernel = float(self.source.diagonal().double().mean())
        return float(self.noise.min()) > kernel / torch.finfo(self.dtype).eps ** 0.5

    def towards(self, here: _Function, right: Tensor, tolerance: float) -> _Function:
        """From f to where curvature · f + α w has grown by the right-hand side, minus the gradient at f.

        By conjugate gradients, unless the bound is the curvature.
        """
        if self.ignores:
            return self.lowest().plus(-1.0, here)
        found = direction = self.solve(right)
        if self.problem.loss.exact:
            return found
        rest, found = right, direction.plus(-1.0, direction)
        before, enough = float((rest * direction.f).sum()), tolerance * float(right.norm())
        for turn in range(_TURNS):
            image = self.problem.bend(self.f, direction.f) + self.alpha * direction.w
            curvature = float((direction.f * image).sum())
            if not (curvature > 0 and before > 0):  # nothing is left but rounding
                return found if turn else direction
            length = before / curvature
            found, rest = found.plus(length, direction), rest - length * image
            if not float(rest.norm()) > enough:
                break
            solved = self.solve(rest)
            now = float((rest * solved.f).sum())
            direction, before = solved.plus(now / before, direction), now
        return found


def _along(problem: Problem, alpha: float, here: _Function, towards: _Function) -> _Function:
    """The lowest place on a line: where the derivative along it, which only grows, is 0.

    A whole step of Newton's is taken where it leaves a tenth of the derivative or less.
    """
    both, square = here.times(towards), towards.times(towards)
    if not square > _NOTHING * float(towards.w.norm() * towards.f.norm()):
        return here.plus(1.0, towards)  # f is what rounding left of K̃ w = 0, and lines along it lead nowhere

    def slope(step: float) -> float:
        moved = here.f + step * towards.f
        return float((problem.slope(moved) * towards.f).sum()) + alpha * (both + step * square)

    first = slope(0.0)
    sign = -1.0 if first > 0 else 1.0  # of a line that leads up
    low, high, at_low, at_high = 0.0, sign, first * sign, slope(sign) * sign
    if abs(at_high) <= 0.1 * abs(at_low):
        return here.plus(high, towards)
    tries = 0
    while at_high < 0 and tries < _TRIES:
        low, at_low, high, tries = high, at_high, 2 * high, tries + 1
        at_high = slope(high) * sign
    for turn in range(_TRIES):
        rise = at_low - at_high
        middle = (
            low + (high - low) * at_low / rise if rise else low
        )  # the secant, and a half every third time
        if turn % 3 == 2 or not min(low, high) < middle < max(low, high):
            middle = (low + high) / 2
        value = slope(middle) * sign
        if abs(value) <= 1e-3 * abs(first):
            return here.plus(middle, towards)
        if value < 0:
            low, at_low = middle, value
        else:
            high, at_high = middle, value
    return here.plus(low, towards)
