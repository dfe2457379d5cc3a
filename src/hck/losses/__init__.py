"""Losses beyond least squares, and how each is minimised with any approximation of a kernel."""

from collections.abc import Callable

from torch import Tensor

from hck.approximations import Approximation
from hck.losses.base import Loss
from hck.losses.classes import Logistic, SquaredHinge
from hck.losses.interior import interior_point
from hck.losses.newton import Effort, newton
from hck.losses.numbers import Absolute, Gamma, Huber, Poisson, Quantile, Squared, Tweedie
from hck.losses.problem import Certificate, Minimum, Problem

__all__ = [
    "Absolute",
    "Certificate",
    "Effort",
    "Gamma",
    "Huber",
    "Logistic",
    "Loss",
    "Minimum",
    "Poisson",
    "Problem",
    "Quantile",
    "Squared",
    "SquaredHinge",
    "Tweedie",
    "minimise",
]

OF_NUMBERS: dict[str, Callable[[], Loss]] = {
    each.name: each for each in (Squared, Absolute, Huber, Quantile, Poisson, Gamma, Tweedie)
}
OF_CLASSES: tuple[str, ...] = ("squared", "logistic", "squared_hinge")


def minimise(
    source: Approximation,
    problem: Problem,
    alpha: float,
    start: Tensor | None = None,
    effort: Effort | None = None,
) -> Minimum:
    """The minimum of Σ weight ℓ(intercept + f, y) + ½ α ‖f‖², by the method that suits the loss.

    Parameters
    ----------
    source : Approximation
        The kernel, on the training points.
    problem : Problem
        Loss and observations.
    alpha : float
        α > 0.
    start : Tensor of shape (n, columns), optional
        f near the minimum, at which the search begins.
    effort : Effort, optional
        How far the search goes.

    Examples
    --------
    >>> import torch
    >>> from hck.approximations import make_approximation
    >>> from hck.losses import Logistic, Problem, minimise
    >>> x = torch.linspace(0, 1, 400, dtype=torch.float64)[:, None]
    >>> made = make_approximation("hierarchical", "gaussian", x, rank=20, leaf_size=50, generator=0)
    >>> found = minimise(made, Problem.of(Logistic(), (x[:, 0] > 0.5).long()), alpha=0.1)
    >>> found.certificate.converged
    True
    """
    method = newton if problem.loss.smooth else interior_point
    return method(source, problem, alpha, start, effort or Effort())
