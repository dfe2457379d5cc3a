"""A lengthscale for each feature: by likelihood, or by the loss of left-out observations."""

from dataclasses import dataclass

import numpy as np
import torch

from hck.approximations import TreeKernel
from hck.kernels import Scaled, make_kernel
from hck.points import VectorPoints
from hck.selection.candidate import Candidate
from hck.selection.contest import AROUND, LEAF, RANK, SCOUTING, SCOUTS, Contest, scout
from hck.selection.isotropic import typical_distance
from hck.selection.left_out import left_out_loss
from hck.selection.likelihood import Learning, learn
from hck.selection.maximise import climb
from hck.selection.observations import Observations
from hck.selection.space import Space
from hck.selection.work import tree_work

_STEPS = 80
_SMALL = 2000  # observations of a sample in which all others predict each
_BY_LOSS = 4.0 * _STEPS * _SMALL**3  # the work of learning on such samples


@dataclass(frozen=True)
class Start:
    """Where learning starts, and how far it may go."""

    name: str  # of the kernel
    lengthscales: np.ndarray  # (d,)
    ridge: float = 0.1  # the alpha to start from, where there is none to keep to
    steps: int = _STEPS


def each_feature(contest: Contest, names: list[str], alpha: float | None, work: float) -> list[Candidate]:
    """Kernels with a lengthscale for each feature.

    The first kernel learns them. The others are tried with multiples of these, and the best of them learns
    from there.
    """
    sample = contest.sample(SCOUTS)
    points = sample[0].points
    assert isinstance(points, VectorPoints)
    by_loss_too = 0.3 * work >= _BY_LOSS
    work -= _BY_LOSS if by_loss_too else 0.0
    start = Start(names[0], np.full(points.n_features, typical_distance(points)))
    share = work if len(names) == 1 else 0.6 * work
    first = by_likelihood(contest, start, alpha, share)
    found, comparison = [first], contest.compare_on(sample)
    unit = np.asarray(first.kernel.parameters()["lengthscale"], dtype=float)
    ridges = [first.alpha * factor for factor in AROUND] if alpha is None else [alpha]
    tried = []
    for name in names[1:]:
        for multiple in (0.5, 1.0, 2.0, 4.0):
            ridge, loss = comparison.best(make_kernel(name, multiple * unit), ridges)
            tried.append((loss, Start(name, multiple * unit, ridge, _STEPS // 2)))
    if tried:
        best = min(tried, key=lambda pair: pair[0])[1]
        found.append(by_likelihood(contest, best, alpha, work - share))
    if by_loss_too:
        found.append(by_loss(contest, start, alpha))
    return found


def by_likelihood(contest: Contest, start: Start, alpha: float | None, work: float) -> Candidate:
    """A lengthscale for each feature, and alpha, by likelihood."""
    data, points = contest.data, contest.data.points
    cost = 6 * tree_work(1, len(start.lengthscales), LEAF, RANK)  # of a step, for each point
    least = min(2000, len(points))
    steps = int(np.clip(work / (cost * least), 10, start.steps))
    size = int(np.clip(work / (steps * cost), least, len(points)))
    variance = float(data.y.double().square().mean()) or 1.0
    noise = (start.ridge if alpha is None else alpha) * variance
    kernel = variance * make_kernel(start.name, start.lengthscales)
    if alpha is None:  # weights count where candidates meet
        space, each = Space.of(kernel, noise, scale=variance), None
    else:
        known = torch.ones(len(data), dtype=torch.float64, device="cpu") if data.noise is None else data.noise
        space, each = Space.of(kernel, None, {"scale": "fixed"}), noise * known
    found = learn(
        space,
        Observations(points, data.y, noise=each),
        lambda kernel, some, seed: TreeKernel(scout(kernel, some, SCOUTING.apply(contest.settings), seed)),
        contest.rng,
        Learning("stochastic", steps, size=size, verbose=contest.settings.verbose),
    )
    learned, variance_of_noise = space.at(found.theta)
    assert isinstance(learned, Scaled)
    if alpha is None:
        assert variance_of_noise is not None
        alpha = variance_of_noise / float(learned.scale)
    return Candidate(
        learned.kernel, alpha, f"{start.name} with a lengthscale per feature", start.name, many=True
    )


def by_loss(contest: Contest, start: Start, alpha: float | None) -> Candidate:
    """A lengthscale for each feature, and alpha, by the loss of left-out observations in small samples."""
    bounds = {} if alpha is None else {"noise": "fixed"}
    ridge = start.ridge if alpha is None else max(alpha, 1e-12)
    space = Space.of(make_kernel(start.name, start.lengthscales), ridge, bounds)

    def worse(theta: np.ndarray, _: int) -> tuple[float, np.ndarray]:
        value, gradient = left_out_loss(space, theta, *contest.sample(_SMALL))
        return -value, -gradient

    found = climb(worse, space.start, space.bounds, _STEPS, verbose=contest.settings.verbose)
    kernel, learned = space.at(found.theta)
    assert learned is not None
    origin = f"{start.name} with a lengthscale per feature by loss"
    return Candidate(kernel, learned if alpha is None else alpha, origin, start.name, many=True)
