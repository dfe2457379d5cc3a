"""An approximation by its name."""

from dataclasses import dataclass
from typing import Any

import torch

from hck.approximations import trees
from hck.approximations._base import Approximation
from hck.approximations.exact import Exact
from hck.approximations.features import Fourier, Nystrom
from hck.approximations.tapered import Tapered
from hck.kernels import Kernel, make_kernel
from hck.points import Points, as_points

NAMES = (*trees.KINDS, "nystrom", "fourier", "tapered")


@dataclass(frozen=True)
class Iterative:
    """The exact kernel, never stored: solutions by conjugate gradients.

    To be used as ``approximation=Iterative(preconditioner="nystrom")``; ``approximation="exact"`` does the
    same with these defaults where n² numbers do not fit into the memory budget.

    Parameters
    ----------
    preconditioner : {"hierarchical", "nystrom", "fourier"} or None, default="hierarchical"
        The approximation, of the estimator's `rank`, whose factorization guides the iterations.
    n_trees : int, default=8
        How many of them, whose solutions are averaged: with several trees it takes far fewer iterations.
    tolerance : float, default=1e-6
        The residual, relative to the right-hand side, at which iterations stop.
    max_iter : int, default=1000
    """

    preconditioner: str | None = "hierarchical"
    n_trees: int = 8
    tolerance: float = 1e-6
    max_iter: int = 1000


def make_approximation(
    approximation: str | Iterative,
    kernel: Any,
    x: Any,
    rank: int,
    *,
    leaf_size: int | None = None,
    partition: Any = "random_projection",
    landmarks: Any = "uniform",
    jitter: float | None = None,
    memory_budget: Any = None,
    generator: torch.Generator | None = None,
    verbose: bool = False,
) -> Approximation:
    """A kernel that stands in for another, on training points.

    Parameters
    ----------
    approximation : str or Iterative
        - ``"hierarchical"``, ``"compositional"``, ``"independent"``: see `hck.approximations.trees.plan`;
        - ``"exact"``: the kernel itself, with its matrix in memory, or, if that is too small, by iteration;
        - ``"nystrom"``: of rank r, by r landmarks among all points;
        - ``"fourier"``: of rank r, by random Fourier features;
        - ``"tapered"``: times a function of compact support, so that a point has, on average, r others
          with which it is correlated.
    kernel : Kernel, or what `hck.kernels.make_kernel` takes
    x : Points, array-like of shape (n, d), sparse matrix, or, for a function as the kernel, any sequence
    rank : int
        r: memory grows with n·r, whatever the approximation.
    leaf_size, partition, landmarks, jitter, memory_budget, generator, verbose
        As in `hck.hierarchy.HierarchicalKernel.build`, where they mean something.
    """
    kernel = make_kernel(kernel)
    points = as_points(x, objects=kernel.takes_objects)
    given: dict[str, Any] = {"generator": generator, "verbose": verbose, "memory_budget": memory_budget}
    placed = {"leaf_size": leaf_size, "partition": partition, "landmarks": landmarks, "jitter": jitter}
    if isinstance(approximation, Iterative):
        return _iterative(approximation, kernel, points, rank, placed, given)
    if approximation in trees.KINDS:
        made = trees.TreeKernel.of(approximation, kernel, points, rank, **placed, **given)
        if approximation == "exact" and not made.fits:
            return _iterative(Iterative(), kernel, points, rank, placed, given)
        return made
    if approximation == "nystrom":
        return Nystrom.of(kernel, points, rank, landmarks, generator)
    if approximation == "fourier":
        return Fourier.of(kernel, points, rank, generator)
    if approximation == "tapered":
        return Tapered.of(kernel, points, rank, verbose=verbose)
    raise ValueError(f"unknown approximation {approximation!r}; known: {', '.join(NAMES)}")


def _iterative(
    how: Iterative,
    kernel: Kernel,
    points: Points,
    rank: int,
    placed: dict[str, Any],
    given: dict[str, Any],
) -> Exact:
    guides = []
    if how.preconditioner is not None:
        if given["generator"] is None:  # for all of them, so that they differ
            given = {**given, "generator": torch.Generator(points.device).manual_seed(0)}
        for _ in range(how.n_trees):
            guides.append(make_approximation(how.preconditioner, kernel, points, rank, **placed, **given))
    kernel = kernel.to(points.device, points.dtype)
    options = {k: given[k] for k in ("memory_budget", "verbose")}
    return Exact(kernel, points, guides, how.tolerance, how.max_iter, **options)
