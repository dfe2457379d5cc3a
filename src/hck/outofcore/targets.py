"""What has to be known of all targets before they can be coded."""

from abc import ABC, abstractmethod

import numpy as np

from hck.outofcore.rows import check_numbers
from hck.preparation.coding import Centred, Coding, OneAgainstAll, as_labels, count_labels


class Targets(ABC):
    """Sees the targets of all rows, block by block."""

    @abstractmethod
    def check(self, y: np.ndarray, first: int) -> np.ndarray:
        """A block (rows, columns) whose first row has this number, as it should be, or an error."""

    @abstractmethod
    def see(self, y: np.ndarray) -> None:
        """Take note of a block that was checked."""

    @abstractmethod
    def coding(self) -> Coding:
        """How the targets that were seen become right-hand sides."""


class Numbers(Targets):
    """Targets that are numbers, of which the mean is needed."""

    def __init__(self) -> None:
        self.total: np.ndarray | float = 0.0
        self.count = 0

    def check(self, y: np.ndarray, first: int) -> np.ndarray:
        return check_numbers(y, first, "y").astype(np.float64)

    def see(self, y: np.ndarray) -> None:
        self.total, self.count = self.total + y.sum(0), self.count + len(y)

    def coding(self) -> Coding:
        return Centred(np.atleast_1d(self.total / self.count))


class Labels(Targets):
    """Class labels, which have to be counted."""

    def __init__(self) -> None:
        self.seen: tuple[np.ndarray, np.ndarray] | None = None

    def check(self, y: np.ndarray, first: int) -> np.ndarray:
        return as_labels(y, first)[:, None]

    def see(self, y: np.ndarray) -> None:
        found = count_labels(y)
        if self.seen is not None:
            both = [np.concatenate(pair) for pair in zip(self.seen, found, strict=True)]
            found = count_labels(*both)
        self.seen = found

    def coding(self) -> Coding:
        assert self.seen is not None
        return OneAgainstAll.of(*self.seen)
