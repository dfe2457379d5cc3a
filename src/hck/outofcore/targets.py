"""What has to be known of all targets before they can be coded."""

from abc import ABC, abstractmethod

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from hck.estimators._coding import Centred, Coding, OneAgainstAll
from hck.outofcore.rows import check_numbers

_MOST_CLASSES = 10_000


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
        self.counts: dict[object, int] = {}

    def check(self, y: np.ndarray, first: int) -> np.ndarray:
        if y.shape[1] != 1:
            raise ValueError(f"class labels must be one column, got {y.shape[1]}")
        if y.dtype.kind == "f":
            check_numbers(y, first, "y")
        elif y.dtype.kind == "S":
            y = y.astype("U")
        elif y.dtype.kind == "O":
            y = _text(y, first)
        return y

    def see(self, y: np.ndarray) -> None:
        for label, count in zip(*np.unique(y, return_counts=True), strict=True):
            self.counts[label] = self.counts.get(label, 0) + int(count)
        if len(self.counts) > _MOST_CLASSES:
            raise ValueError(f"y has more than {_MOST_CLASSES:,} different labels: are these classes?")

    def coding(self) -> Coding:
        classes = np.sort(np.array(list(self.counts)))
        check_classification_targets(classes)
        if len(classes) < 2:
            raise ValueError(f"at least two classes are needed, but y has only {classes.tolist()}")
        return OneAgainstAll.of(classes, np.array([self.counts[label] for label in classes.tolist()]))


def _text(y: np.ndarray, first: int) -> np.ndarray:
    """Labels of mixed types, or text, as text."""
    if all(isinstance(label, bytes) for label in y.ravel()):
        return np.char.decode(y.astype("S"))
    wrong = [i for i, label in enumerate(y[:, 0]) if not isinstance(label, str)]
    if wrong:
        label = y[wrong[0], 0]
        raise ValueError(f"y has {label!r} in row {first + wrong[0]:,}, where text is expected")
    return y.astype("U")
