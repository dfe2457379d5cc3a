"""What is given, what competes, and what was chosen."""

from dataclasses import dataclass, field, replace

import numpy as np

from hck.kernels import Kernel
from hck.settings import Settings


@dataclass(frozen=True)
class Shape:
    """The size of a forest."""

    n_trees: int
    leaf_size: int | None  # None: between rank and twice as much
    rank: int

    def apply(self, settings: Settings) -> Settings:
        """Settings with this size."""
        return replace(settings, leaf_size=self.leaf_size, rank=self.rank)


@dataclass(frozen=True)
class Given:
    """What an estimator is given of what can be chosen; None is to be chosen.

    A kernel may also be the name of one, whose lengthscales are chosen, or "auto". With `blends`, predictions
    of several candidates may be averaged.
    """

    kernel: Kernel | str
    alpha: float | None = None
    rank: int | None = None
    n_trees: int | None = None
    blends: bool = False


@dataclass
class Candidate:
    """A kernel and a ridge, and how well they do."""

    kernel: Kernel
    alpha: float
    origin: str  # how it was found
    name: str = ""  # of the kernel
    loss: float = np.nan  # on left-out observations: squared error relative to the variance, or −log p(class)
    many: bool = False  # lengthscales, by which features can be singled out
    weight: float = 0.0  # in the mean of several


@dataclass
class Selection:
    """What was chosen for an estimator, and why.

    Attributes
    ----------
    kernel : Kernel
        For the scaled features.
    alpha : float
    n_trees, leaf_size, rank : int
    candidates : list of Candidate
        Those that met in the end, the best first.
    blend : list of Candidate
        Those whose predictions are averaged, with their weights, if there are several.
    notes : list of str
        What was done.
    seconds : float
        That selection took.
    approximation : str
    held : ndarray, optional
        Rows, among the points that count, that shaped none of the kernels: their left-out errors are those of
        new points. None if no metric was learned, so that this can be said of all.
    """

    kernel: Kernel
    alpha: float
    n_trees: int
    leaf_size: int | None
    rank: int
    candidates: list[Candidate] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    approximation: str = "hierarchical"
    blend: list[Candidate] = field(default_factory=list)
    held: np.ndarray | None = None

    @property
    def shape(self) -> Shape:
        """The size of the forest."""
        return Shape(self.n_trees, self.leaf_size, self.rank)

    def __str__(self) -> str:
        shape = f"{self.n_trees} × {self.approximation}, rank {self.rank}"
        if self.approximation == "hierarchical":
            leaf_size = self.leaf_size or self.rank
            shape = f"{self.n_trees} trees with leaves of {leaf_size} points and rank {self.rank}"
        lines = [f"kernel {self.kernel}, alpha {self.alpha:.3g}", shape]
        if self.candidates:
            lines.append("loss on left-out observations:")
            lines += [f"  {c.loss:.5f}  {c.origin}, alpha {c.alpha:.3g}" for c in self.candidates]
        if len(self.blend) > 1:
            lines.append("weights in the mean that predicts left-out observations best:")
            lines += [f"  {c.weight:.3f}  {c.origin}" for c in self.blend]
        return "\n".join([*lines, *self.notes, f"chosen in {self.seconds:.1f} s"])
