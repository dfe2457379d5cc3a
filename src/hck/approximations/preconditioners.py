"""Other approximations as preconditioners of the iterations with which the exact kernel is solved."""

from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING

from torch import Tensor

from hck.approximations.base import Approximation
from hck.approximations.conjugate_gradients import Stopping
from hck.approximations.factorization import Factorization
from hck.approximations.fourier import Fourier
from hck.approximations.hierarchical import TREE_KERNELS, TreeKernel
from hck.approximations.nystrom import Nystrom
from hck.backend.checks import require
from hck.backend.memory import resolve_budget
from hck.backend.random import as_random
from hck.partition import Cutter, Landmarks, Tree, known_partitions
from hck.points import Points, as_points_like, check_alike
from hck.settings import Settings

if TYPE_CHECKING:
    from hck.approximations.exact import Exact


_MOST, _MOST_RANK = 1000, 10**6  # that a file may ask for
_LEAST_RANK = 16  # of trees that are made smaller for want of memory
PRECONDITIONERS: dict[str, type[Approximation]] = {
    **dict.fromkeys(TREE_KERNELS[:3], TreeKernel),
    "nystrom": Nystrom,
    "fourier": Fourier,
}


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
        small for so many, and of a lower rank where it is too small for two.
    tolerance : float, default=1e-6
        The residual, relative to the right-hand side, at which iterations stop.
    max_iter : int, default=1000

    Examples
    --------
    >>> import numpy as np
    >>> from hck import HCKRegressor
    >>> from hck.approximations import Iterative
    >>> X = np.random.default_rng(0).uniform(size=(200, 2))
    >>> how = Iterative(preconditioner="nystrom", tolerance=1e-8)
    >>> model = HCKRegressor("matern32", lengthscale=1.0, alpha=0.1, rank=20, approximation=how)
    >>> model.fit(X, X[:, 0]).residuals_[0][-1] < 1e-8
    True
    """

    preconditioner: str | None = "hierarchical"
    n_trees: int | None = None
    tolerance: float = 1e-6
    max_iter: int = 1000

    def __post_init__(self) -> None:
        if self.preconditioner not in (*PRECONDITIONERS, None):
            known = ", ".join(PRECONDITIONERS)
            raise ValueError(f"unknown preconditioner {self.preconditioner!r}; known: {known}, None")
        Stopping(self.tolerance, self.max_iter)  # or an error
        if self.n_trees is not None and not (isinstance(self.n_trees, Integral) and self.n_trees >= 1):
            raise ValueError(f"n_trees must be a whole number, at least 1, got {self.n_trees!r}")

    @property
    def count(self) -> int:
        """How many preconditioners to average."""
        return self.n_trees or (8 if self.preconditioner in TREE_KERNELS else 1)


@dataclass(frozen=True)
class Preconditioners:
    """How preconditioners are made, once they are needed.

    There are `count` of them, or as many as half of the memory budget holds, but one at least. Two trees of
    half the rank take as much as one, and a quarter of its iterations: where two are too large, the rank is
    halved.
    """

    settings: Settings
    count: int
    seed: int = 0

    def validate(self) -> None:
        require(1 <= self.count <= _MOST, f"count must be from 1 to {_MOST}, got {self.count}")
        require(0 <= self.seed < 2**63, f"seed must be from 0 to 2⁶³, got {self.seed}")
        known = (
            isinstance(self.settings.approximation, str) and self.settings.approximation in PRECONDITIONERS
        )
        require(known, f"settings are of an unknown approximation, {self.settings.approximation!r}")

    def check(self, points: Points) -> None:
        """Raise an error unless they can be made for these points."""
        settings = self.settings
        require(settings.rank <= max(len(points), _MOST_RANK), f"settings have a rank of {settings.rank}")
        if isinstance(settings.partition, Tree):
            require(settings.partition.n_points == len(points), "settings have a tree of other points")
        else:
            known = isinstance(settings.partition, Cutter) or settings.partition in known_partitions()
            require(known, f"settings have the partition {settings.partition!r}")
        if isinstance(settings.landmarks, str):
            known = settings.landmarks in ("uniform", "kmeans", "farthest", "same", "none")
            require(known, f"settings have the landmarks {settings.landmarks!r}")
        elif not isinstance(settings.landmarks, Landmarks | list):
            check_alike(as_points_like(settings.landmarks, points), points)

    def factor(self, source: "Exact", noise: Tensor) -> list[Factorization]:
        """Factorizations on the points of the exact kernel, whose memory budget they share."""
        settings = replace(self.settings, memory_budget=source.memory_budget, verbose=False)
        random = as_random(self.seed)
        room = resolve_budget(source.memory_budget, source.device) // 2
        found: list[Factorization] = []
        kind = PRECONDITIONERS[settings.approximation]
        for i in range(self.count):
            made = kind.from_settings(source.kernel, source.points, settings, random.child(i))
            while self.count > 1 and i == 0 and _is_too_large(made, room // 2, settings):
                settings = _halved(settings)
                made = kind.from_settings(source.kernel, source.points, settings, random.child(i))
            found.append(made.factor(noise))
            if isinstance(made, TreeKernel) and (len(found) + 1) * made.factor_bytes() > room:
                break
        return found


def _is_too_large(made: Approximation, room: int, settings: Settings) -> bool:
    """Whether a tree takes more than there is room for, and its shape may be another."""
    own = isinstance(settings.partition, Tree) or not isinstance(settings.landmarks, str)
    small = settings.rank <= _LEAST_RANK or own
    return isinstance(made, TreeKernel) and not small and made.factor_bytes() > room


def _halved(settings: Settings) -> Settings:
    """Of half the rank, and with leaves half as large."""
    leaf = settings.leaf_size and max(1, settings.leaf_size // 2)
    return replace(settings, rank=settings.rank // 2, leaf_size=leaf)
