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

    A kernel may also be the name of one, whose lengthscales are chosen, or "auto". With `blends`, several
    candidates may share the trees.
    """

    kernel: Kernel | str
    alpha: float | None = None
    rank: int | None = None
    n_trees: int | None = None
    blends: bool = False


@dataclass
class Candidate:
    """A kernel and a ridge, and how well they do.

    Examples
    --------
    >>> from hck.kernels import Gaussian
    >>> from hck.selection import Candidate
    >>> Candidate(Gaussian(0.5), alpha=0.1, origin="one lengthscale").loss  # until it has competed
    nan
    """

    kernel: Kernel
    alpha: float
    origin: str  # how it was found
    name: str = ""  # of the kernel
    loss: float = np.nan  # on left-out observations: squared error relative to the variance, or −log p(class)
    many: bool = False  # lengthscales, by which features can be singled out
    weight: float = 0.0  # in the mean of several
    n_trees: int = 0  # that are its own, of the forest that is this mean
    predicted: np.ndarray | None = None  # where it met others, (counted, columns), until all is chosen


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
        Those that share the trees, if there are several, with their weights in the mean.
    notes : list of str
        What was done.
    seconds : float
        That selection took.
    approximation : str
    held : ndarray, optional
        Rows, among the points that count, that shaped none of the kernels: their left-out errors are those of
        new points. None if no metric was learned, so that this can be said of all.

    Examples
    --------
    >>> from hck.kernels import Gaussian
    >>> from hck.selection import Selection
    >>> print(Selection(Gaussian(0.5), alpha=0.1, n_trees=1, leaf_size=200, rank=25))
    kernel Gaussian(lengthscale=0.5), alpha 0.1
    1 tree with leaves of 200 points and rank 25
    chosen in 0.0 s
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
    def kernels(self) -> list[tuple[Kernel, float]]:
        """Those that share the trees, or the only one, with their weights."""
        return [(each.kernel, each.weight) for each in self.blend] or [(self.kernel, 1.0)]

    @property
    def shape(self) -> Shape:
        """The size of the forest."""
        return Shape(self.n_trees, self.leaf_size, self.rank)

    def __str__(self) -> str:
        shape = f"{self.n_trees} × {self.approximation}, rank {self.rank}"
        if self.approximation == "hierarchical":
            leaf_size = self.leaf_size or self.rank
            trees = "1 tree" if self.n_trees == 1 else f"{self.n_trees} trees"
            shape = f"{trees} with leaves of {leaf_size} points and rank {self.rank}"
        lines = [f"kernel {self.kernel}, alpha {self.alpha:.3g}", shape]
        if self.candidates:
            lines.append("loss on left-out observations:")
            lines += [f"  {c.loss:.5f}  {c.origin}, alpha {c.alpha:.3g}" for c in self.candidates]
        if len(self.blend) > 1:
            lines.append("weights in the mean that predicts left-out observations best, and trees:")
            lines += [f"  {c.weight:.3f}  {c.n_trees}  {c.origin}" for c in self.blend]
        return "\n".join([*lines, *self.notes, f"chosen in {self.seconds:.1f} s"])
