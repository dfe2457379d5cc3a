"""Parameters of the largest likelihood: where learning starts, how it goes on, how sure its end is."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from hck.approximations import Approximation
from hck.backend.interrupts import interruptible
from hck.kernels import Kernel
from hck.points import DensePoints, Points, VectorPoints
from hck.preparation.scaling import refuse_small
from hck.preparation.ties import Ties
from hck.process import laplace, log_likelihood
from hck.selection.maximise import Effort, Function, Learned, climb, maximise_in_rounds
from hck.selection.observations import Observations
from hck.selection.space import Space

_LEAST = 1e-145  # the mean of features that are not 0
_WIDTHS = 1e-90, 1e90  # of features, between which powers neither underflow nor overflow


@dataclass(frozen=True)
class Learning:
    """How to learn.

    By "lbfgs", on one sample of the points, with a tree that is made anew a few times; or, "stochastic", by
    Adam with a fresh sample and a fresh tree at every step.

    Examples
    --------
    >>> from hck.selection import Learning
    >>> Learning("lbfgs", steps=20, size=5000).restarts
    0
    """

    optimizer: str = "stochastic"
    steps: int = 100  # of L-BFGS the most
    restarts: int = 0  # of L-BFGS
    size: int | None = None  # the most points to learn on
    jitter: float | None = None
    start: np.ndarray | None = None  # theta, if not that of the space
    verbose: bool = False
    of_classes: bool = False  # whether observations are labels 0 and 1, of Laplace's approximation
    together: bool = False  # whether lengthscales keep their ratios; by "lbfgs"


@interruptible
@torch.no_grad()
def evaluate(
    space: Space,
    source: Approximation,
    data: Observations,
    theta: ArrayLike,
    jitter: float | None = None,
    gradient: bool = True,
) -> tuple[float, np.ndarray]:
    """The log-likelihood at theta and its gradient, with the tree and the landmarks that there are.

    Parameters
    ----------
    space : Space
        What theta is made of.
    source : Approximation
        The kernel, on the training points.
    data : Observations
    theta : array-like of shape (parameters,)
    jitter : float or None, default=None
    gradient : bool, default=True
        Whether it is asked for; it is empty if not.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from hck.approximations import make_approximation
    >>> from hck.kernels import Gaussian
    >>> from hck.points import as_points
    >>> from hck.selection import Observations, Space, evaluate
    >>> x = np.linspace(0, 1, 60)[:, None]
    >>> data = Observations(as_points(x), torch.from_numpy(np.sin(6 * x[:, 0])))
    >>> space = Space.of(Gaussian(0.1), noise=0.01)
    >>> made = make_approximation("exact", space.kernel, x, rank=60)
    >>> value, gradient = evaluate(space, made, data, space.start)
    >>> bool(gradient[0] > 0)  # a longer lengthscale would be likelier
    True
    """
    kernel, noise, tensors = space.tensors_at(theta, source.device, source.dtype)
    variance = noise if data.noise is None else data.noise.to(source.device, source.dtype)
    assert variance is not None
    made = source.with_kernel(kernel, jitter)
    found = log_likelihood(made, variance, data.y, tensors if gradient else (), data.trend)
    slope = space.log_gradient(theta, found.gradient) if gradient else np.empty(0)
    return float(found.value), slope


@interruptible
@torch.no_grad()
def evaluate_classes(
    space: Space,
    source: Approximation,
    y: Tensor,
    theta: ArrayLike,
    jitter: float | None = None,
    modes: list[Tensor] | None = None,
) -> tuple[float, np.ndarray]:
    """The same of labels 0 and 1 (n,), by Laplace's approximation.

    The last of the modes, of the same labels and other parameters, is where its search starts; its own is
    added to them.
    """
    kernel, _, tensors = space.tensors_at(theta, source.device, source.dtype)
    start = modes[-1] if modes else None
    found = laplace(source.with_kernel(kernel, jitter), y, tensors, start)
    if modes is not None:
        modes[:] = [found.mode]
    return found.value, space.log_gradient(theta, found.gradient)


@interruptible
def learn(
    space: Space,
    data: Observations,
    approximate: Callable[[Kernel, Points, int], Approximation],
    rng: np.random.RandomState,
    how: Learning,
) -> Learned:
    """theta of the largest likelihood, with priors if there are any; the objective is per observation.

    `approximate` makes of a kernel, points and a seed what stands in for the kernel.

    Parameters
    ----------
    space : Space
        What is learned, and where it starts.
    data : Observations
    approximate : callable
        (kernel, points, seed) ↦ Approximation.
    rng : RandomState
    how : Learning

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from hck.approximations import make_approximation
    >>> from hck.kernels import Gaussian
    >>> from hck.points import as_points
    >>> from hck.selection import Learning, Observations, Space, learn
    >>> x = np.linspace(0, 1, 60)[:, None]
    >>> data = Observations(as_points(x), torch.from_numpy(np.sin(6 * x[:, 0])))
    >>> space = Space.of(Gaussian(0.1), noise=0.01)
    >>> def approximate(kernel, points, seed):
    ...     return make_approximation("exact", kernel, points, rank=60)
    >>> found = learn(space, data, approximate, np.random.RandomState(0), Learning("lbfgs", steps=20))
    >>> bool(np.exp(found.theta[0]) > 0.2)  # the lengthscale, which was 0.1
    True
    """
    start = space.start if how.start is None else how.start
    size = len(data) if how.size is None else min(how.size, len(data))
    observed = size * data.columns.shape[1]
    modes: list[Tensor] = []  # of classes

    def value(source: Approximation, part: Observations, theta: np.ndarray) -> tuple[float, np.ndarray]:
        if how.of_classes:
            near = modes if part is data or how.optimizer == "lbfgs" else None
            found, gradient = evaluate_classes(space, source, part.y, theta, how.jitter, near)
        else:
            found, gradient = evaluate(space, source, part, theta, how.jitter)
        prior, slope = space.log_prior(theta)
        return (found + prior) / observed, (gradient + slope) / observed

    if how.optimizer == "lbfgs":
        part = data.draw(size, rng)[0]
        seed = rng.randint(2**31 - 1)

        def around(theta: np.ndarray) -> Function:
            source = approximate(space.at(theta)[0], part.points, seed)
            return lambda theta: value(source, part, theta)

        effort = Effort(how.steps, how.restarts, rng, verbose=how.verbose)
        if how.together:
            return _together(space, around, start, effort)
        return maximise_in_rounds(around, start, space.bounds, effort)

    def fresh(theta: np.ndarray, _: int) -> tuple[float, np.ndarray]:
        part = data.draw(size, rng)[0]
        source = approximate(space.at(theta)[0], part.points, rng.randint(2**31 - 1))
        return value(source, part, theta)

    return climb(fresh, start, space.bounds, how.steps, verbose=how.verbose)


def _together(
    space: Space, around: Callable[[np.ndarray], Function], start: np.ndarray, effort: Effort
) -> Learned:
    """The same, where all elements of a parameter are multiplied by one number."""
    lower, upper = (space.bounds - start[:, None]).T
    which = np.repeat(np.arange(len(space.blocks)), [each.value.size for each in space.blocks])
    bounds = np.array([(lower[which == k].max(), upper[which == k].min()) for k in np.unique(which)])

    def along(shift: np.ndarray) -> Function:
        function = around(start + shift[which])

        def value(shift: np.ndarray) -> tuple[float, np.ndarray]:
            found, gradient = function(start + shift[which])
            return found, np.bincount(which, gradient)

        return value

    found = maximise_in_rounds(along, np.zeros(len(bounds)), bounds, effort)
    return replace(found, theta=start + found.theta[which])


def standard_errors(
    gradient: Callable[[np.ndarray], np.ndarray], theta: np.ndarray, step: float
) -> np.ndarray:
    """Standard errors of parameters from the observed Fisher information: shape (parameters,).

    That is minus the second derivatives of a log-likelihood, here differences of its gradient. NaN where
    there is no maximum.
    """
    rows = []
    for move in step * np.eye(len(theta)):
        rows.append((gradient(theta - move) - gradient(theta + move)) / (2 * step))
    information = np.reshape(rows, (len(theta), -1))
    values, vectors = np.linalg.eigh((information + information.T) / 2)
    known = values > 1e-12 * np.abs(values).max()
    variance = (vectors[:, known] ** 2) @ (1 / values[known])
    unknown = (vectors[:, ~known] ** 2).sum(1) > 1e-6  # some of it is along a flat direction
    return np.sqrt(np.where(unknown, np.nan, variance))


def start_lengthscales(points: VectorPoints, ties: Ties | None = None) -> np.ndarray:
    """√d standard deviations of each feature, and 1 for those that are constant: shape (d,).

    Those that are tied have one, and count as one.
    """
    every = torch.arange(len(points), device=points.device)
    variance = points.variance(every, torch.zeros_like(every), 1)[0].double().clamp_min(0)
    mean = points.mean(every, torch.zeros_like(every), 1)[0].double().abs()
    rounding = 1e-12 if points.dtype == torch.float64 else 1e-4
    rounding = rounding if isinstance(points, DensePoints) else max(rounding, 1e-6)
    constant = (variance.sqrt() <= rounding * mean).cpu().numpy()
    refuse_small(mean.where(variance < _LEAST**2, 0.0).cpu().numpy(), _LEAST)  # whose variance underflows
    if ties is None:
        return _learnable(constant, np.sqrt(points.n_features * variance.cpu().numpy()))
    width = ties.widths(variance.sqrt().cpu()).numpy()
    return _learnable(width == 0, ties.count**0.5 * width)


def _learnable(constant: np.ndarray, width: np.ndarray) -> np.ndarray:
    """Widths of features (d,) to start with, 1 of constant ones; ValueError if powers of one are lost."""
    least, most = _WIDTHS
    width = np.where(constant, 1.0, width)
    refuse_small(width, least)
    if (width > most).any():
        raise ValueError(
            f"X has a feature that varies by {width.max():.1e}, but lengthscales of more than {most:.0e} "
            "cannot be learned, since their powers overflow. Scale the features"
        )
    return width
