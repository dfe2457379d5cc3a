"""An approximation by its name."""

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import torch

from hck.approximations import trees
from hck.approximations.base import Approximation
from hck.approximations.exact import Exact, Guides
from hck.approximations.features import Fourier, Nystrom
from hck.approximations.tapered import Tapered
from hck.kernels import Kernel, make_kernel
from hck.partition import Tree, known_landmarks, known_partitions
from hck.points import Points, as_points

NAMES = (*trees.KINDS, "nystrom", "fourier", "tapered")
PRECONDITIONERS = ("hierarchical", "compositional", "independent", "nystrom", "fourier")


@dataclass(frozen=True)
class Iterative:
    """The exact kernel, never stored: solutions by conjugate gradients.

    To be used as ``approximation=Iterative(preconditioner="nystrom")``; ``approximation="exact"`` does the
    same with these defaults where n² numbers do not fit into the memory budget.

    Parameters
    ----------
    preconditioner : {"hierarchical", "compositional", "independent", "nystrom", "fourier"} or None, \
default="hierarchical"
        The approximation, of the estimator's `rank`, whose factorization guides the iterations.
    n_trees : int or None, default=None
        How many of them, whose solutions are averaged: with several trees it takes far fewer iterations.
        None: eight trees, one set of landmarks or frequencies. Fewer where half of the memory budget is too
        small for so many.
    tolerance : float, default=1e-6
        The residual, relative to the right-hand side, at which iterations stop.
    max_iter : int, default=1000
    """

    preconditioner: str | None = "hierarchical"
    n_trees: int | None = None
    tolerance: float = 1e-6
    max_iter: int = 1000

    def __post_init__(self) -> None:
        if self.preconditioner not in (*PRECONDITIONERS, None):
            known = ", ".join(PRECONDITIONERS)
            raise ValueError(f"unknown preconditioner {self.preconditioner!r}; known: {known}, None")
        if not (isinstance(self.tolerance, Real) and self.tolerance > 0):
            raise ValueError(f"tolerance must be a positive number, got {self.tolerance!r}")
        for name in ("n_trees", "max_iter"):
            value = getattr(self, name)
            if not (isinstance(value, Integral) and value >= 1) and (name, value) != ("n_trees", None):
                raise ValueError(f"{name} must be a whole number, at least 1, got {value!r}")

    @property
    def count(self) -> int:
        """How many preconditioners to average."""
        return self.n_trees or (8 if self.preconditioner in trees.KINDS else 1)


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
    leaf_size, partition, jitter : see `hck.hierarchy.HierarchicalKernel.build`
        For kernels that a tree makes, and preconditioners.
    landmarks : see `hck.partition.choose_landmarks`
        Of the nodes of a tree, or of all points for Nyström's kernel.
    memory_budget, generator, verbose
        As in `hck.hierarchy.HierarchicalKernel.build`.
    """
    if not (isinstance(rank, Integral) and rank >= 1):
        raise ValueError(f"rank must be a whole number, at least 1, got {rank!r}")
    if not isinstance(approximation, Iterative) and approximation not in NAMES:
        raise ValueError(f"unknown approximation {approximation!r}; known: {', '.join(NAMES)}")
    _check(approximation, partition, landmarks)
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
    return Tapered.of(kernel, points, rank, verbose=verbose, memory_budget=memory_budget)


def _check(approximation: str | Iterative, partition: Any, landmarks: Any) -> None:
    """Raise ValueError for a partition or landmarks that are not known, or that nothing would use."""
    how = approximation.preconditioner if isinstance(approximation, Iterative) else approximation
    if isinstance(partition, str) and partition not in known_partitions():
        raise ValueError(f"unknown partition {partition!r}; known: {', '.join(known_partitions())}")
    if isinstance(landmarks, str) and landmarks not in known_landmarks():
        raise ValueError(f"unknown landmarks {landmarks!r}; known: {', '.join(known_landmarks())}")
    if isinstance(partition, Tree) and how not in trees.KINDS[:3] and approximation != "exact":
        raise ValueError(f"approximation={approximation!r} has no use for the tree given as partition")
    if not isinstance(landmarks, str) and how not in ("hierarchical", "compositional", "nystrom"):
        raise ValueError(f"approximation={approximation!r} has no use for given landmarks")


def _iterative(
    how: Iterative,
    kernel: Kernel,
    points: Points,
    rank: int,
    placed: dict[str, Any],
    given: dict[str, Any],
) -> Exact:
    kernel = kernel.to(points.device, points.dtype)
    found = Exact(
        kernel,
        points,
        tolerance=how.tolerance,
        max_iter=how.max_iter,
        memory_budget=given["memory_budget"],
        verbose=given["verbose"],
    )
    if how.preconditioner is None:
        return found
    generator = given["generator"]
    seed = 0
    if generator is not None:
        seed = int(torch.randint(2**31 - 1, (1,), generator=generator, device=generator.device))
    return replace(found, guides=Guides(how.preconditioner, rank, placed, how.count, seed))
