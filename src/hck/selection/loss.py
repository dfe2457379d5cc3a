"""How good predictions of left-out observations are.

A new loss is a class here, and a line in `LOSSES`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from hck.backend.checks import require


class Loss(ABC):
    """The loss of predictions of some targets, arrays of shape (n, columns).

    Parameters
    ----------
    observed : ndarray of shape (n, …)
        What is to be predicted.
    weight : ndarray of shape (n,), optional
        How much each of them counts.
    """

    # By what part lengthscales per feature have to lower the loss to be preferred to one; and where rows that
    # follow each other are alike, so that left-out ones have neighbours of the same time or place.
    margin: float = 0.0
    margin_of_series: float = 0.0

    def __init__(self, observed: np.ndarray, weight: np.ndarray | None = None) -> None:
        self.observed = observed
        self.weight = weight
        self.share = _shares(weight, len(observed))

    def take(self, rows: np.ndarray) -> "Loss":
        """The loss of some of the observations."""
        return type(self)(self.observed[rows], None if self.weight is None else self.weight[rows])

    @property
    def plain(self) -> "Loss":
        """The loss of predictions in the unit of the observations."""
        return self

    @abstractmethod
    def __call__(self, predicted: np.ndarray) -> float: ...


class SquaredError(Loss):
    """The mean squared error of y (n, columns), relative to the variance of each column; maybe weighted."""

    def __init__(self, observed: np.ndarray, weight: np.ndarray | None = None) -> None:
        super().__init__(np.asarray(observed, dtype=float), weight)
        y, share = self.observed, self.share[:, None]
        spread = (share * (y - (share * y).sum(0)) ** 2).sum(0)
        self._unit = share / np.where(spread > 0, spread, 1.0) / y.shape[1]

    def __call__(self, predicted: np.ndarray) -> float:
        return float((self._unit * (predicted - self.observed) ** 2).sum())


class LogLoss(Loss):
    """The mean of −log p(class) of classes' numbers (n,), after calibration; maybe weighted."""

    # Lengthscales are learned as if ±1 were Gaussian, so that they fit labels too closely.
    margin, margin_of_series = 0.05, 0.5

    def __call__(self, predicted: np.ndarray) -> float:
        return Calibration.fit(predicted, self.observed, self.weight).loss


class InUnits(Loss):
    """A loss of predictions that are made in another unit: of predicted · spread + centre."""

    def __init__(self, loss: Loss, spread: np.ndarray, centre: np.ndarray) -> None:
        self.loss, self.spread, self.centre = loss, spread, centre
        self.margin, self.margin_of_series = loss.margin, loss.margin_of_series

    @property
    def plain(self) -> Loss:
        return self.loss.plain

    def take(self, rows: np.ndarray) -> "InUnits":
        return InUnits(self.loss.take(rows), self.spread, self.centre)

    def __call__(self, predicted: np.ndarray) -> float:
        return self.loss(predicted * self.spread + self.centre)


LOSSES: dict[str, type[Loss]] = {"squared_error": SquaredError, "log_loss": LogLoss}


@dataclass(frozen=True)
class Calibration:
    """Probabilities of classes from decision values: a softmax of slope · value.

    Two classes have one column of values, that of the second class against the first. There are no biases, so
    that the most probable class is the one with the largest value.
    """

    slope: float
    loss: float = np.nan  # the mean of −log p(class) on the observations that it was fitted to

    def validate(self) -> None:
        require(0 < self.slope < 1e9, f"slope must be positive and finite, got {self.slope}")

    @classmethod
    def fit(cls, decision: np.ndarray, code: np.ndarray, weight: np.ndarray | None = None) -> "Calibration":
        """The slope of the largest likelihood, as if one observation more were right, and one wrong.

        By decision values (n, classes), or (n, 1) for two, of observations that were left out: others are too
        sure of themselves. The code (n,) is the number of each one's class; they may have weights (n,). Where
        all are right, likelihood alone would make every probability 0 or 1, however few there are. With
        (n + 1)/(n + 2) for being right, it does not (Laplace's rule of succession; Platt, 1999, has the same
        for each class).
        """
        scores, every, share = _scores(decision), np.arange(len(code)), _shares(weight, len(code))
        wrong = 1 / (1 / float(share @ share) + 2)

        def losses(log_slope: float) -> tuple[float, float]:
            """The mean of −log p of classes that were observed, and of all others."""
            each = log_softmax(np.exp(log_slope) * scores, 1)
            seen = each[every, code]
            return -float(share @ seen), -float(share @ (each.sum(1) - seen)) / (each.shape[1] - 1)

        def loss(log_slope: float) -> float:
            seen, others = losses(log_slope)
            return (1 - wrong) * seen + wrong * others

        found = minimize_scalar(loss, bounds=(-5, 7), method="bounded")
        return cls(float(np.exp(found.x)), losses(found.x)[0])

    def __call__(self, decision: np.ndarray) -> np.ndarray:
        """Probabilities: shape (n, classes)."""
        return softmax(self.slope * _scores(decision), 1)


def _shares(weight: np.ndarray | None, n: int) -> np.ndarray:
    """Weights whose sum is 1."""
    return np.full(n, 1 / n) if weight is None else weight / weight.sum()


def _scores(decision: np.ndarray) -> np.ndarray:
    """A column for each class, from one column for two."""
    decision = np.asarray(decision, dtype=float)
    return np.hstack([np.zeros_like(decision), decision]) if decision.shape[1] == 1 else decision
