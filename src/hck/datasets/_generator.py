"""Made-up records: correlated features, and a smooth random function of them, or clusters.

Features are uniform on [0, 1] and correlated: mixtures of a few hidden variables and noise. What is to be
learned is a smooth random function f of a few directions. A number is f with noise; a class is the range
that f falls in, or a cluster of the hidden variables, and a share of the classes is drawn anew.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtr
from sklearn.preprocessing import normalize

_CHUNK = 100_000  # records made at once
_SAMPLE = 20_000  # records that the ranges of f are found with
_WAVES = 32  # of a random function
_HIDDEN = 6  # variables


@dataclass(frozen=True)
class Kind:
    """How a data set is made up.

    Parameters
    ----------
    floor : error of the best possible prediction: of a number, in standard deviations; of a class, a share
    roughness : how fast f varies; 0: classes are clusters
    directions : how many f depends on
    mean, std : of a number
    classes, shares : the classes, and how often each occurs
    binary : how many of the features are 0 or 1
    words : of a sparse data set: how many features are not 0 in a record
    weighted : of a sparse data set: whether these are weights of length 1, instead of 1
    separation : of clusters, in standard deviations
    """

    floor: float
    roughness: float
    directions: int = 3
    mean: float = 0.0
    std: float = 1.0
    classes: tuple[Any, ...] = ()
    shares: tuple[float, ...] = ()
    binary: int = 0
    words: int = 0
    weighted: bool = False
    separation: float = 0.0


class Generator:
    """A random function, and records of it."""

    def __init__(self, d: int, kind: Kind, rng: np.random.Generator) -> None:
        self.d, self.kind, self.rng = d, kind, rng
        self.mixing = rng.standard_normal((min(d, _HIDDEN), d))
        self.starts = np.linspace(0, d, kind.words + 1).astype(int)  # of groups of words
        self.directions = self._directions(kind.directions)
        self.shares = np.array(kind.shares) / (sum(kind.shares) or 1)
        self.centres = kind.separation * rng.standard_normal((len(kind.classes), len(self.mixing)))
        self.frequencies = kind.roughness * rng.standard_normal((kind.directions, _WAVES))
        self.phases = rng.uniform(0, 2 * np.pi, _WAVES)
        if not kind.separation:
            self._standardise(self._features(_SAMPLE))

    def _standardise(self, X: Any) -> None:
        """Find where f lies, and the ranges that classes are."""
        inner = X @ self.directions
        self.centre, self.spread = inner.mean(0), inner.std(0)
        values = self._function(X)
        self.mean, self.std = values.mean(), values.std()
        self.bounds = np.quantile(values, np.cumsum(self.shares)[:-1])

    def make(self, n: int) -> tuple[Any, np.ndarray]:
        """Features and targets of n records."""
        X, y = zip(*self._chunks(n), strict=True)
        return sp.vstack(X, format="csr") if self.kind.words else np.concatenate(X), np.concatenate(y)

    def _chunks(self, n: int) -> Iterator[tuple[Any, np.ndarray]]:
        for start in range(0, n, _CHUNK):
            count = min(_CHUNK, n - start)
            if self.kind.separation:
                which = self._draw(count)
                yield self._features(count, self.centres[which]), self._classes(which)
            else:
                X = self._features(count)
                yield X, self._targets(self._function(X))

    def _directions(self, count: int) -> np.ndarray:
        """Those of hidden variables, or, of words, directions that the frequent ones make out."""
        if not self.kind.words:
            return self.mixing.T @ self.rng.standard_normal((len(self.mixing), count))
        position = np.arange(self.d) - np.repeat(self.starts[:-1], np.diff(self.starts))
        return self.rng.standard_normal((self.d, count)) / (1 + position[:, None]) ** 4

    def _features(self, n: int, centres: np.ndarray | float = 0.0) -> Any:
        if self.kind.words:
            return self._words(n)
        X = self.rng.standard_normal((n, self.d))
        X += (centres + self.rng.standard_normal((n, len(self.mixing)))) @ self.mixing
        X = ndtr(X / np.sqrt(1 + (self.mixing**2).sum(0)))
        if self.kind.binary:
            X[:, -self.kind.binary :] = X[:, -self.kind.binary :] > 0.9
        return X

    def _words(self, n: int) -> sp.csr_matrix:
        """One feature of each of as many groups as there are words; the first of a group are frequent."""
        columns = self.starts[:-1] + np.diff(self.starts) * self.rng.uniform(size=(n, self.kind.words)) ** 3
        weights = self.rng.exponential(size=columns.shape) if self.kind.weighted else np.ones(columns.shape)
        rows = np.arange(n + 1) * self.kind.words
        X = sp.csr_matrix((weights.ravel(), columns.astype(np.int32).ravel(), rows), shape=(n, self.d))
        return normalize(X) if self.kind.weighted else X

    def _function(self, X: Any) -> np.ndarray:
        """f, a sum of waves."""
        inner = (X @ self.directions - self.centre) / self.spread
        return np.cos(inner @ self.frequencies + self.phases).sum(1)

    def _targets(self, values: np.ndarray) -> np.ndarray:
        """Of values of f."""
        kind = self.kind
        if kind.classes:
            return self._classes(np.searchsorted(self.bounds, values))
        noise = kind.floor * self.rng.standard_normal(len(values))
        standard = (values - self.mean) / self.std
        return kind.mean + kind.std * ((1 - kind.floor**2) ** 0.5 * standard + noise)

    def _classes(self, which: np.ndarray) -> np.ndarray:
        """Some of them drawn anew, of which a share Σ share² is right by chance."""
        anew = self.rng.uniform(size=len(which)) < self.kind.floor / (1 - (self.shares**2).sum())
        return np.array(self.kind.classes)[np.where(anew, self._draw(len(which)), which)]

    def _draw(self, n: int) -> np.ndarray:
        return self.rng.choice(len(self.shares), n, p=self.shares)
