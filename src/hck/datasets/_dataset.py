"""A data set: records to train on, records to test on, and how errors are measured."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from hck.datasets.table import Features
from hck.metrics import relative_error


@dataclass(frozen=True, eq=False)
class Dataset:
    """Records to train on and records to test on.

    Attributes
    ----------
    name : str
        A synthetic one is called so: "synthetic cadata".
    task : {"regression", "binary", "multiclass"}
    X_train, X_test : ndarray, CSR matrix or pandas.DataFrame of shape (n, d)
    y_train, y_test : ndarray of shape (n,)
    feature_names : list of str or None
    source : str
        Where it came from.
    synthetic : bool
        Whether it was made up.

    Examples
    --------
    >>> from hck.datasets import synthetic
    >>> data = synthetic("cadata", n=1000)
    >>> data
    Dataset(name='synthetic cadata', task='regression', synthetic=True)
    >>> data.measure, data.error(data.y_test)
    ('relative error', 0.0)
    """

    name: str
    task: str
    X_train: Features = field(repr=False)
    y_train: np.ndarray = field(repr=False)
    X_test: Features = field(repr=False)
    y_test: np.ndarray = field(repr=False)
    feature_names: list[str] | None = field(default=None, repr=False)
    source: str = field(default="", repr=False)
    synthetic: bool = False

    @property
    def measure(self) -> str:
        """What `error` is."""
        return "relative error" if self.task == "regression" else "share misclassified"

    def error(self, predicted: ArrayLike) -> float:
        """‖ŷ − y‖ / ‖y‖ on the test records, or the share of them that is misclassified."""
        predicted = np.asarray(predicted)
        if predicted.shape != self.y_test.shape:
            raise ValueError(
                f"predicted must have the shape of y_test, {self.y_test.shape}, got {predicted.shape}"
            )
        if self.task == "regression":
            return relative_error(self.y_test, predicted)
        return float(np.mean(predicted != self.y_test))

    def shrink(self, train: int, test: int) -> "Dataset":
        """At most so many of the records."""
        return replace(
            self,
            X_train=self.X_train[:train],
            y_train=self.y_train[:train],
            X_test=self.X_test[:test],
            y_test=self.y_test[:test],
        )
