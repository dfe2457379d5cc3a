"""What is learned: numbers, or classes as ±1."""

from abc import ABC, abstractmethod

import numpy as np

from hck.outofcore.rows import check_numbers


class Targets(ABC):
    """Collects what has to be known of all targets, and codes them as columns."""

    @abstractmethod
    def see(self, y: np.ndarray, first: int) -> np.ndarray:
        """Look at a block of targets (rows, columns); returns them checked."""

    @abstractmethod
    def code(self, y: np.ndarray) -> np.ndarray:
        """Targets (rows, columns) as numbers to be regressed on."""

    @abstractmethod
    def intercept(self) -> np.ndarray:
        """The mean of the coded targets."""


class Numbers(Targets):
    """Targets that are numbers."""

    def __init__(self) -> None:
        self.total: np.ndarray | float = 0.0
        self.count = 0

    def see(self, y: np.ndarray, first: int) -> np.ndarray:
        y = check_numbers(y, first, "y")
        self.total, self.count = self.total + y.sum(0, dtype=np.float64), self.count + len(y)
        return y

    def code(self, y: np.ndarray) -> np.ndarray:
        return y.astype(np.float64)

    def intercept(self) -> np.ndarray:
        return np.asarray(self.total / self.count)


class Classes(Targets):
    """Class labels, which become ±1: one column for two classes, else one for each.

    Parameters
    ----------
    classes : ndarray, optional
        If they are known already.
    """

    def __init__(self, classes: np.ndarray | None = None) -> None:
        self.counts: dict[object, int] = {}
        self._classes = classes

    def see(self, y: np.ndarray, first: int) -> np.ndarray:
        if y.shape[1] != 1:
            raise ValueError(f"class labels must be one column, got {y.shape[1]}")
        if y.dtype.kind == "f":
            check_numbers(y, first, "y")
        for label, count in zip(*np.unique(y, return_counts=True), strict=True):
            self.counts[label] = self.counts.get(label, 0) + int(count)
        return y

    @property
    def classes(self) -> np.ndarray:
        if self._classes is not None:
            return self._classes
        if len(self.counts) < 2:
            raise ValueError(f"at least two classes are needed, but y has only {list(self.counts)}")
        return np.sort(np.array(list(self.counts)))

    def code(self, y: np.ndarray) -> np.ndarray:
        number = np.searchsorted(self.classes, y[:, 0])
        return np.where(number[:, None] == self._columns, 1.0, -1.0)

    def intercept(self) -> np.ndarray:
        share = np.array([self.counts[label] for label in self.classes], dtype=float)
        return (2 * share / share.sum() - 1)[self._columns]

    @property
    def _columns(self) -> np.ndarray:
        return np.arange(1, 2) if len(self.classes) == 2 else np.arange(len(self.classes))
