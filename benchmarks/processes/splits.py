"""A data set in parts, and a model measured on them."""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from hck import HCKGaussianProcessRegressor
from peers import timed
from processes.common import Prediction, Record, observe, score


@dataclass(frozen=True)
class Split:
    """Standardised parts of a data set, each X and y."""

    train: tuple[np.ndarray, np.ndarray]
    validation: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, X: np.ndarray, y: np.ndarray, seed: int, shares: tuple[int, int, int] = (4, 2, 3)) -> "Split":
        """Shares of the records, 4/9, 2/9 and 3/9 if not said otherwise, scaled with the first."""
        order = np.random.default_rng(seed).permutation(len(y))
        ends = np.cumsum(shares[:2]) * len(y) // sum(shares)
        parts = np.split(order, ends)
        scale_X, scale_y = StandardScaler().fit(X[parts[0]]), StandardScaler().fit(y[parts[0], None])
        return cls(*((scale_X.transform(X[p]), scale_y.transform(y[p, None])[:, 0]) for p in parts))

    def without_validation(self) -> "Split":
        """The validation part to train on as well."""
        both = zip(self.train, self.validation, strict=True)
        return replace(self, train=tuple(np.concatenate(pair) for pair in both))

    def shrink(self, points: int) -> "Split":
        """The first training points only."""
        return replace(self, train=tuple(part[:points] for part in self.train))


class Hierarchical:
    """hck, with the interface of the others."""

    def __init__(self, model: HCKGaussianProcessRegressor) -> None:
        self.model, self.history = model, []

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Hierarchical":
        self.model.fit(X, y)
        self.history = self.model.history_
        return self

    def predict(self, X: np.ndarray) -> Prediction:
        return observe(self.model, X)


def measure(model: Any, split: Split, device: str) -> Record:
    start = time.process_time()
    _, fit_seconds = timed(lambda: model.fit(*split.train), device)
    cpu_seconds = time.process_time() - start  # which count where a machine is shared
    predicted, predict_seconds = timed(lambda: model.predict(split.test[0]), device)
    return {
        **score(split.test[1], *predicted),
        "fit_seconds": fit_seconds,
        "fit_cpu_seconds": cpu_seconds,
        "predict_seconds": predict_seconds,
        "history": model.history,
    }
