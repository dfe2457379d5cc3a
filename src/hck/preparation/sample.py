"""Rows drawn at random, and the moments of all rows, which are seen in pieces."""

from dataclasses import dataclass

import numpy as np
import torch

from hck.preparation.scaling import Scaling

_ROWS = 2**16  # that are looked at together


@dataclass
class Moments:
    """Of each column, (columns,), of all rows that were seen: `count` is their number, or the sum of weights.

    `square` is the sum of squared differences from the mean, `low` and `high` are the least and the largest.
    """

    count: float
    mean: np.ndarray
    square: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def none(cls, columns: int) -> "Moments":
        """Nothing was seen yet."""
        nothing, endless = np.zeros(columns), np.full(columns, np.inf)
        return cls(0.0, nothing, nothing, endless, -endless)

    @classmethod
    def of(cls, x: np.ndarray, weight: np.ndarray | None = None) -> "Moments":
        """Of rows (rows, columns), which may have weights."""
        found = cls.none(x.shape[1])
        for i in range(0, len(x), _ROWS):
            part = x[i : i + _ROWS].astype(np.float64, copy=False)
            found += cls._of_few(part, np.ones(len(part)) if weight is None else weight[i : i + _ROWS])
        return found

    @classmethod
    def _of_few(cls, x: np.ndarray, weight: np.ndarray) -> "Moments":
        """Differences from the first row keep digits, and are 0 of constants."""
        count = float(weight.sum())
        with np.errstate(over="ignore", invalid="ignore"):  # of points that are refused as too large
            mean = x[0] + weight @ (x - x[0]) / (count or 1.0)
            return cls(count, mean, weight @ (x - mean) ** 2, x.min(0), x.max(0))

    def __add__(self, other: "Moments") -> "Moments":
        """Of both: Chan, Golub and LeVeque's formula."""
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        if not self.count or not other.count:
            known = self if self.count else other
            return Moments(known.count, known.mean, known.square, low, high)
        count = self.count + other.count
        with np.errstate(over="ignore", invalid="ignore"):
            apart = other.mean - self.mean
            mean = self.mean + apart * (other.count / count)
            square = self.square + other.square + apart**2 * (self.count * other.count / count)
        return Moments(count, mean, square, low, high)

    def scaling(self, kind: str | None, device: torch.device) -> Scaling:
        """What `Scaling.of` makes of all rows, to rounding."""
        if kind is None:
            return Scaling()
        if kind == "standard":
            centre, width = self.mean, np.sqrt(self.square / self.count)
        else:
            centre, width = self.low, self.high - self.low
        return Scaling.by(*(torch.from_numpy(each).to(device) for each in (centre, width)))


@dataclass
class Sample:
    """Some rows, x (sample, d) and y (sample,) or (sample, targets) as they came, and the moments of all."""

    x: np.ndarray
    y: np.ndarray
    moments: Moments


def draw_rows(n: int, size: int, generator: np.random.Generator) -> np.ndarray:
    """So many different numbers below n, sorted; in memory for as many, whatever n is."""
    if 4 * size >= n:
        return np.sort(generator.permutation(n)[:size])
    found = np.unique(generator.integers(0, n, size))
    while len(found) < size:
        found = np.union1d(found, generator.integers(0, n, size - len(found)))
    return found
