"""What has to be known of all targets before they can be coded, seen in pieces."""

from dataclasses import dataclass

import numpy as np

from hck.preparation.coding import Centred, OneAgainstAll, count_labels


@dataclass
class Numbers:
    """Targets that are numbers, of which the mean is needed.

    Attributes
    ----------
    total : ndarray of shape () or (targets,)
        The sum over all rows that were seen.
    count : int
        How many.
    """

    total: np.ndarray
    count: int

    @classmethod
    def of(cls, y: np.ndarray) -> "Numbers":
        """Of some rows (rows,) or (rows, targets)."""
        return cls(y.sum(0), len(y))

    def __add__(self, other: "Numbers") -> "Numbers":
        return Numbers(self.total + other.total, self.count + other.count)

    def coding(self) -> Centred:
        """How these become right-hand sides."""
        return Centred(np.atleast_1d(self.total / self.count))


@dataclass
class Labels:
    """Class labels, which have to be counted.

    Attributes
    ----------
    classes : ndarray of shape (classes,)
        Those that were seen, sorted.
    counts : ndarray of shape (classes,)
        How often.
    """

    classes: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, y: np.ndarray) -> "Labels":
        """Of some rows (rows,) or (rows, 1)."""
        return cls(*count_labels(y))

    def __add__(self, other: "Labels") -> "Labels":
        classes, counts = np.append(self.classes, other.classes), np.append(self.counts, other.counts)
        return Labels(*count_labels(classes, counts))

    def coding(self) -> OneAgainstAll:
        """How these become right-hand sides."""
        return OneAgainstAll.of(self.classes, self.counts)


Targets = Numbers | Labels
