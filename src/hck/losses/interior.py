"""Quantiles: an interior point method, each step of which is least squares with a noise for each point.

With v = α w, the dual of Σ weight ℓ(y − f) + ½ α ‖f‖² for ℓ that bends at 0 alone is to minimise
½ vᵀ K̃ v/α − vᵀ y over below ≤ v/weight ≤ above. With slacks a = v − below, c = above − v and multipliers p
and q, a step of Newton's for K̃ v/α − y = p − q and a p = c q = μ has K̃ + α diag(p/a + q/c) as its matrix.
Mehrotra (1992), On the implementation of a primal-dual interior point method, says how μ falls.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from hck.approximations import Approximation, Factorization
from hck.approximations.factorization import needs_factorization
from hck.losses.newton import Effort
from hck.losses.numbers import Pinball
from hck.losses.problem import Certificate, Minimum, Problem

_TOLERANCE = {torch.float64: 1e-7, torch.float32: 1e-3}  # of the duality gap, relative to the objective
_PATIENCE = 10  # steps without a smaller gap
_LEAST = 1e-16  # of the largest weight: what counts less changes no digit of the objective
_SHORT = 0.995  # of the way to the nearest bound
_USUAL = Effort()


@dataclass
class _Place:
    """v between its bounds, f = K̃ v/α, and the multipliers of the bounds."""

    v: Tensor
    f: Tensor
    p: Tensor
    q: Tensor

    def moved(self, step: float, by: "_Place") -> "_Place":
        return _Place(self.v + step * by.v, self.f + step * by.f, self.p + step * by.p, self.q + step * by.q)


@torch.no_grad()
def interior_point(
    source: Approximation,
    problem: Problem,
    alpha: float,
    start: Tensor | None = None,
    how: Effort = _USUAL,
) -> Minimum:
    """The minimum of Σ weight ℓ(intercept + f, y) + ½ α ‖f‖² for a loss of quantiles.

    Parameters are those of `newton`; the tolerance is that of the duality gap, relative to the objective.
    """
    search = _Search(source, problem, alpha)
    tolerance = _TOLERANCE[source.dtype] if how.tolerance is None else how.tolerance
    here = best = search.begin(start)
    objective, gap = search.gap(here)
    objectives, n_iter, worse = [objective], 0, 0
    while gap > tolerance * abs(objective) and n_iter < how.max_iter and worse < _PATIENCE:
        here, noise, found = search.step(here)
        n_iter += 1
        value, there = search.gap(here)
        worse = worse + 1 if there >= gap else 0
        if not worse:
            best, objective, gap = here, value, there
            objectives.append(value)
    if not n_iter:
        noise, found = search.step(here)[1:]
    relative = gap / (abs(objective) or 1.0)
    known = Certificate(n_iter, relative, objectives, relative <= 10 * tolerance)
    return Minimum(best.v[:, None] / alpha, best.f[:, None], noise, found, known)


class _Search:
    def __init__(self, source: Approximation, problem: Problem, alpha: float) -> None:
        if not isinstance(problem.loss, Pinball):
            raise TypeError(f"a loss of quantiles is needed, got {problem.loss!r}")
        self.source, self.alpha = source, alpha
        self.y = problem.y - problem.intercept
        weight = torch.ones_like(self.y) if problem.weight is None else problem.weight
        weight = weight.clamp_min(_LEAST * float(weight.max()))
        self.below, self.above = (slope * weight for slope in problem.loss.slopes)

    def begin(self, start: Tensor | None) -> _Place:
        """v = 0, with multipliers for which f alone is missing."""
        zero, rest = torch.zeros_like(self.y), self.y
        size = float(rest.abs().mean()) or 1.0
        if start is not None:  # where errors are smaller, multipliers are
            size = float((self.y - start[:, 0]).abs().mean()) or size
        return _Place(zero, zero, (-rest).clamp_min(0) + size, rest.clamp_min(0) + size)

    def gap(self, place: _Place) -> tuple[float, float]:
        """The objective, and by how much it may be too large at most."""
        rest = self.y - place.f
        loss = torch.maximum(self.above * rest, self.below * rest)
        return float((loss + place.v * place.f / 2).sum()), float((loss - rest * place.v).sum())

    def step(self, here: _Place) -> tuple[_Place, Tensor, Factorization]:
        """A step that says how far μ can fall, and one that lets it fall so far, by one factorization."""
        a, c = here.v - self.below, self.above - here.v
        noise = self.alpha * (here.p / a + here.q / c)
        factorization = self.source.factor(noise.to(self.source.dtype))
        if not factorization.has_likelihood:
            raise needs_factorization("losses of quantiles")
        rest = here.f - self.y - here.p + here.q  # 0, but for rounding

        def towards(at_below: Tensor, at_above: Tensor) -> _Place:
            """For a Δp + p Δv = at_below, and c Δq − q Δv = at_above."""
            b = -rest + at_below / a - at_above / c
            solved = factorization.solve((self.alpha * b).to(self.source.dtype)).double()
            f = b - noise / self.alpha * solved
            return _Place(solved, f, (at_below - here.p * solved) / a, (at_above + here.q * solved) / c)

        mu = self._mu(a, c, here)
        first = towards(-a * here.p, -c * here.q)
        length = min(1.0, self._room(a, c, here, first))
        there = here.moved(length, first)
        left = self._mu(there.v - self.below, self.above - there.v, there) / mu
        mu = mu * left**3
        second = towards(mu - a * here.p - first.v * first.p, mu - c * here.q + first.v * first.q)
        length = min(1.0, _SHORT * self._room(a, c, here, second))
        return here.moved(length, second), noise, factorization

    @staticmethod
    def _mu(a: Tensor, c: Tensor, place: _Place) -> float:
        return float((a * place.p + c * place.q).sum()) / (2 * len(a))

    @staticmethod
    def _room(a: Tensor, c: Tensor, here: _Place, by: _Place) -> float:
        """The longest step for which nothing is negative."""
        pairs = ((a, by.v), (c, -by.v), (here.p, by.p), (here.q, by.q))
        return min(float(torch.where(move < 0, -size / move, torch.inf).min()) for size, move in pairs)
