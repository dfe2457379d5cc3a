"""Find the largest value of a function of theta: by L-BFGS, or by steps along noisy gradients."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from hck.backend.progress import Counter
from hck.errors import NotPositiveDefiniteError

_ROUNDS = 4
_STILL = 0.05
_RATE = 0.1  # of Adam

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]


@dataclass
class Learned:
    """Where a search ended.

    Examples
    --------
    >>> import numpy as np
    >>> from hck.selection import maximise
    >>> found = maximise(lambda t: (-float(t @ t), -2 * t), np.ones(2), np.array([[-3.0, 3.0]] * 2))
    >>> found.converged, found.theta.round(3)
    (True, array([0., 0.]))
    """

    theta: np.ndarray  # (parameters,)
    value: float
    history: list[float]  # the objective at each step; of the best restart
    converged: bool


@dataclass(frozen=True)
class Effort:
    """How far L-BFGS goes.

    Further starts are normal around the first, with a standard deviation of 1, within the bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from hck.selection import Effort, maximise
    >>> def steep(t):
    ...     return -float(t @ t) ** 2, -4 * (t @ t) * t
    >>> few, many = (maximise(steep, np.ones(1), np.array([[-3.0, 3.0]]), Effort(m)) for m in (1, 50))
    >>> few.converged, few.value < many.value
    (False, True)
    """

    max_iter: int = 100
    restarts: int = 0
    rng: np.random.RandomState | None = None  # for restarts
    tolerance: float = 1e-6  # of the objective, which is per observation, and of its gradient
    verbose: bool = False


_USUAL = Effort()


def maximise(function: Function, start: np.ndarray, bounds: np.ndarray, effort: Effort = _USUAL) -> Learned:
    """L-BFGS within bounds (parameters, 2), from the start and from more places around it.

    The function is theta ↦ the objective and its gradient, per observation as the tolerance is.

    Parameters
    ----------
    function : callable
        theta ↦ (value, gradient).
    start : ndarray of shape (parameters,)
    bounds : ndarray of shape (parameters, 2)
    effort : Effort, optional
        How far to go.

    Examples
    --------
    >>> import numpy as np
    >>> from hck.selection import maximise
    >>> def towards_two(t):
    ...     return -float((t - 2) @ (t - 2)), -2 * (t - 2)
    >>> maximise(towards_two, np.zeros(1), np.array([[-1.0, 1.0]])).theta  # as far as the bounds allow
    array([1.])
    """
    rng = np.random.RandomState(0) if effort.rng is None else effort.rng
    places = [start]
    for _ in range(effort.restarts):
        places.append(np.clip(start + rng.standard_normal(len(start)), bounds[:, 0], bounds[:, 1]))
    best: Learned | None = None
    with Counter("Learning", effort.max_iter * len(places), effort.verbose) as counter:
        for number, place in enumerate(places):
            try:
                found = _lbfgs(function, place, bounds, effort, counter)
            except NotPositiveDefiniteError:
                if number == 0:
                    raise
                continue  # no place to start from
            counter.jump((number + 1) * effort.max_iter)
            if best is None or np.isnan(best.value) or found.value > best.value:
                best = found
    assert best is not None
    return best


def maximise_in_rounds(
    make: Callable[[np.ndarray], Function], start: np.ndarray, bounds: np.ndarray, effort: Effort = _USUAL
) -> Learned:
    """L-BFGS on a function that is itself made for a theta, and made anew where a round has ended.

    The first round tries the restarts. Rounds end after a quarter of the iterations, and there are no more
    when one has converged and moved no parameter by a twentieth, or when all iterations are done.

    Parameters
    ----------
    make : callable
        theta ↦ a function, as `maximise` takes it.
    start : ndarray of shape (parameters,)
    bounds : ndarray of shape (parameters, 2)
    effort : Effort, optional
        How far to go in all rounds together.

    Examples
    --------
    >>> import numpy as np
    >>> from hck.selection import maximise_in_rounds
    >>> def around(theta):  # a function that is right near theta alone
    ...     top = (theta + 1) / 2
    ...     return lambda t: (-float((t - top) @ (t - top)), -2 * (t - top))
    >>> found = maximise_in_rounds(around, np.zeros(1), np.array([[-5.0, 5.0]]))
    >>> found.theta.round(1)
    array([1.])
    """
    theta, history, left = start, [], effort.max_iter
    each = max(1, -(-effort.max_iter // _ROUNDS))
    while True:
        found = maximise(make(theta), theta, bounds, replace(effort, max_iter=min(each, left)))
        history += found.history
        left -= len(found.history)
        moved = float(np.abs(found.theta - theta).max())
        still = (found.converged and moved < _STILL) or moved == 0
        theta, effort = found.theta, replace(effort, restarts=0)
        if still or left <= 0:
            return Learned(theta, found.value, history, still)


def _lbfgs(
    function: Function, start: np.ndarray, bounds: np.ndarray, effort: Effort, counter: Counter
) -> Learned:
    history: list[float] = []
    latest: list[float] = []

    def negative(theta: np.ndarray) -> tuple[float, np.ndarray]:
        try:
            value, gradient = function(theta)
        except NotPositiveDefiniteError:
            if not latest:  # at the start
                raise
            return 1 - min(latest), np.zeros_like(theta)  # too far: worse than all so far
        latest.append(value)
        return -value, -gradient

    def note(_: np.ndarray) -> None:
        history.append(max(latest))
        counter.step(history[-1])

    options = {"maxiter": effort.max_iter, "ftol": effort.tolerance, "gtol": effort.tolerance}
    found = minimize(
        negative, start, jac=True, bounds=bounds, method="L-BFGS-B", callback=note, options=options
    )
    return Learned(found.x, -float(found.fun), history or [-float(found.fun)], bool(found.success))


def climb(
    function: Callable[[np.ndarray, int], tuple[float, np.ndarray]],
    start: np.ndarray,
    bounds: np.ndarray,
    steps: int = 100,
    verbose: bool = False,
) -> Learned:
    """Adam with a rate that falls to 0 along a cosine; the end is the mean of the last tenth of the path.

    The function is (theta, step) ↦ the objective and its gradient, both perhaps noisy.

    Parameters
    ----------
    function : callable
        (theta, step) ↦ (value, gradient).
    start : ndarray of shape (parameters,)
    bounds : ndarray of shape (parameters, 2)
    steps : int, default=100
    verbose : bool, default=False
        Whether to show progress.

    Examples
    --------
    >>> import numpy as np
    >>> from hck.selection import climb
    >>> rng = np.random.default_rng(0)
    >>> def noisy(theta, step):
    ...     return -float(theta @ theta), -2 * theta + 0.1 * rng.standard_normal(2)
    >>> bool(np.abs(climb(noisy, np.ones(2), np.array([[-3.0, 3.0]] * 2)).theta).max() < 0.1)
    True
    """
    theta, before = start.copy(), start
    history: list[float] = []
    tail: list[np.ndarray] = []
    mean, square = np.zeros_like(start), np.zeros_like(start)
    with Counter("Learning", steps, verbose) as counter:
        for step in range(steps):
            try:
                value, gradient = function(theta, step)
            except NotPositiveDefiniteError:
                if not history:  # at the start
                    raise
                theta = (theta + before) / 2
                continue
            history.append(value)
            before = theta
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.99 * square + 0.01 * gradient**2
            direction = mean / (1 - 0.9 ** (step + 1))
            size = np.sqrt(square / (1 - 0.99 ** (step + 1))) + 1e-12
            now = _RATE * (1 + np.cos(np.pi * step / steps)) / 2
            theta = np.clip(theta + now * direction / size, bounds[:, 0], bounds[:, 1])
            if step >= 0.9 * steps:
                tail.append(theta)
            counter.step(value)
    return Learned(np.mean(tail, 0) if tail else theta, float(np.mean(history[-10:])), history, True)
