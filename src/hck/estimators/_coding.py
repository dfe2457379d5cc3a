"""Right-hand sides that branches solve for, from what users call y."""

from dataclasses import dataclass

import numpy as np


@dataclass
class Centred:
    """Numbers without their mean.

    Attributes
    ----------
    intercept : ndarray of shape (targets,)
        The mean over all rows.
    """

    intercept: np.ndarray

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """Shape (rows, columns)."""
        return (y if y.ndim == 2 else y[:, None]) - self.intercept


@dataclass
class OneAgainstAll:
    """±1 for each class, or for the second of two, without the mean.

    Attributes
    ----------
    classes : ndarray of shape (classes,)
        Sorted.
    intercept : ndarray of shape (1,) or (classes,)
    """

    classes: np.ndarray
    intercept: np.ndarray

    @classmethod
    def of(cls, classes: np.ndarray, counts: np.ndarray) -> "OneAgainstAll":
        """From the labels of all rows, and how often they occur."""
        mean = 2 * counts / counts.sum() - 1
        return cls(classes, mean[1:] if len(classes) == 2 else mean)

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """Shape (rows, columns)."""
        y = y.reshape(-1)
        code = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
        known = self.classes[code] == y
        if not np.all(known):
            raise ValueError(f"y has the label {y[np.argmin(known)]!r}, which was not there before")
        columns = np.arange(1, 2) if len(self.classes) == 2 else np.arange(len(self.classes))
        return np.where(code[:, None] == columns, 1.0, -1.0) - self.intercept

    def codes(self, targets: np.ndarray) -> np.ndarray:
        """The number of the class of each row, from what the call returned."""
        raw = targets + self.intercept
        return (raw[:, 0] > 0).astype(int) if raw.shape[1] == 1 else raw.argmax(1)


Coding = Centred | OneAgainstAll
