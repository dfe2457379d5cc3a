"""How good predictions of left-out observations are.

A new loss is a class here, and a line in `LOSSES`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax, softmax

from hck.backend.checks import require

_BENDS = 0.05, 4.0  # of calibrations, over the size of decision values
_STEEP = 4.0  # where sinh goes on as a straight line


class Loss(ABC):
    """The loss of predictions of some targets, arrays of shape (n, columns).

    Parameters
    ----------
    observed : ndarray of shape (n, …)
        What is to be predicted.
    weight : ndarray of shape (n,), optional
        How much each of them counts.
    """

    # By what part lengthscales per feature have to lower the loss to be preferred to one, where rows that
    # follow each other are alike, so that left-out ones have neighbours of the same time or place.
    margin_of_series: float = 0.0
    of_classes = False  # whether columns of predictions are of classes, and not of numbers

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

    @property
    def final(self) -> "Loss":
        """The loss of predictions of least squares as they are told to users."""
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
    """The mean of −log p(class) of classes' numbers (n,), after calibration by a slope; maybe weighted."""

    margin_of_series = 0.5
    of_classes = True

    def __call__(self, predicted: np.ndarray) -> float:
        return Calibration.straight(predicted, self.observed, self.weight).loss

    @property
    def final(self) -> Loss:
        return BentLogLoss(self.observed, self.weight)


class BentLogLoss(LogLoss):
    """The same, after calibration by a slope and a bend."""

    def __call__(self, predicted: np.ndarray) -> float:
        return Calibration.fit(predicted, self.observed, self.weight).loss


class InUnits(Loss):
    """A loss of predictions that are made in another unit: of predicted · spread + centre."""

    def __init__(self, loss: Loss, spread: np.ndarray, centre: np.ndarray) -> None:
        self.loss, self.spread, self.centre = loss, spread, centre
        self.margin_of_series, self.of_classes = loss.margin_of_series, loss.of_classes

    @property
    def plain(self) -> Loss:
        return self.loss.plain

    @property
    def final(self) -> Loss:
        return InUnits(self.loss.final, self.spread, self.centre)

    def take(self, rows: np.ndarray) -> "InUnits":
        return InUnits(self.loss.take(rows), self.spread, self.centre)

    def __call__(self, predicted: np.ndarray) -> float:
        return self.loss(predicted * self.spread + self.centre)


LOSSES: dict[str, type[Loss]] = {"squared_error": SquaredError, "log_loss": LogLoss}


@dataclass(frozen=True)
class Calibration:
    """Probabilities of classes from decision values s: a softmax of slope · sinh(bend · s)/bend.

    Without a bend that is slope · s. Least squares on ±1 predict 2p − 1, of which log p/(1 − p) is a function
    that grows ever faster, as sinh does; far out it goes on as a straight line. Two classes have one column
    of values, that of the second class against the first. There are no biases, so that the most probable
    class is the one with the largest value.

    Examples
    --------
    >>> import numpy as np
    >>> from hck.selection.loss import Calibration
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=10_000)
    >>> code = (rng.uniform(size=10_000) < p).astype(int)
    >>> found = Calibration.fit(2 * p[:, None] - 1, code)  # what least squares would predict at best
    >>> bool(np.abs(found(2 * p[:, None] - 1)[:, 1] - p).max() < 0.05)
    True
    """

    slope: float
    loss: float = np.nan  # the mean of −log p(class) on the observations that it was fitted to
    bend: float = 0.0

    def validate(self) -> None:
        require(0 < self.slope < 1e9, f"slope must be positive and finite, got {self.slope}")
        require(0 <= self.bend < 1e9, f"bend must be finite, not negative, got {self.bend}")

    @classmethod
    def straight(
        cls, decision: np.ndarray, code: np.ndarray, weight: np.ndarray | None = None
    ) -> "Calibration":  # fmt: skip
        """The same as `fit`, without a bend."""
        return cls._straight(_Known.of(decision, code, weight))

    @classmethod
    def _straight(cls, known: "_Known") -> "Calibration":
        found = minimize_scalar(
            lambda log_slope: known.aim(np.exp(log_slope) * known.scores), bounds=(-5, 7), method="bounded"
        )
        slope = float(np.exp(found.x))
        return cls(slope, known.loss(slope * known.scores))

    @classmethod
    def fit(cls, decision: np.ndarray, code: np.ndarray, weight: np.ndarray | None = None) -> "Calibration":
        """The slope of the largest likelihood, and the bend where it is worth it.

        By decision values (n, classes), or (n, 1) for two, of observations that were left out: others are too
        sure of themselves. The code (n,) is the number of each one's class; they may have weights (n,). It is
        as if one observation more were right, and one wrong: where all are right, likelihood alone would make
        every probability 0 or 1, however few there are. With (n + 1)/(n + 2) for being right, it does not
        (Laplace's rule of succession; Platt, 1999, has the same for each class).
        """
        known = _Known.of(decision, code, weight)
        first = cls._straight(known)
        size = float(np.sqrt((known.share @ known.scores**2).max()))
        if not 0 < size < np.inf:
            return first

        def bent(logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            """The scores, and how they change with the logarithms of slope and bend."""
            slope, bend = np.exp(logs)
            inner, rate = _sinh(bend * known.scores)
            moved = slope * inner / bend
            return moved, np.stack([moved, slope * known.scores * rate - moved])

        def aim(logs: np.ndarray) -> tuple[float, np.ndarray]:
            moved, change = bent(logs)
            pull = (softmax(moved, 1) - known.wanted) * known.share[:, None]
            return known.aim(moved), (change * pull).sum((1, 2))

        bounds = [(-5.0, 7.0), (np.log(_BENDS[0] / size), np.log(_BENDS[1] / size))]
        start = np.array([np.log(first.slope), np.log(1 / size)])
        found = minimize(aim, start, jac=True, method="L-BFGS-B", bounds=bounds)
        worth = np.log(len(code)) / (2 * len(code))  # a second number (the Bayesian information criterion)
        if not found.fun + worth < known.aim(first.slope * known.scores):
            return first
        slope, bend = np.exp(found.x)
        return cls(float(slope), known.loss(bent(found.x)[0]), float(bend))

    def __call__(self, decision: np.ndarray) -> np.ndarray:
        """Probabilities: shape (n, classes)."""
        scores = _scores(decision)
        return softmax(self.slope * (_sinh(self.bend * scores)[0] / self.bend if self.bend else scores), 1)


@dataclass(frozen=True)
class _Known:
    """Scores (n, classes) of observations of which the classes are known, and their shares of the weight.

    Wanted are probabilities (n, classes) as if one observation more were right, and one wrong.
    """

    scores: np.ndarray
    code: np.ndarray
    share: np.ndarray
    wanted: np.ndarray

    @classmethod
    def of(cls, decision: np.ndarray, code: np.ndarray, weight: np.ndarray | None) -> "_Known":
        scores, share = _scores(decision), _shares(weight, len(code))
        wrong = 1 / (1 / float(share @ share) + 2)  # of so many observations, if weights are even
        wanted = np.full(scores.shape, wrong / max(1, scores.shape[1] - 1))
        wanted[np.arange(len(code)), code] = 1 - wrong
        return cls(scores, code, share, wanted)

    def loss(self, scores: np.ndarray) -> float:
        """The mean of −log p(class)."""
        return -float(self.share @ log_softmax(scores, 1)[np.arange(len(self.code)), self.code])

    def aim(self, scores: np.ndarray) -> float:
        """The same for the wanted probabilities."""
        return -float(self.share @ (self.wanted * log_softmax(scores, 1)).sum(1))


def _sinh(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """sinh, which goes on as a straight line where it is steep, and its derivative."""
    inner = np.clip(x, -_STEEP, _STEEP)
    rate = np.cosh(inner)
    return np.sinh(inner) + rate * (x - inner), rate


def _shares(weight: np.ndarray | None, n: int) -> np.ndarray:
    """Weights whose sum is 1."""
    return np.full(n, 1 / n) if weight is None else weight / weight.sum()


def _scores(decision: np.ndarray) -> np.ndarray:
    """A column for each class, from one column for two."""
    decision = np.asarray(decision, dtype=float)
    return np.hstack([np.zeros_like(decision), decision]) if decision.shape[1] == 1 else decision
