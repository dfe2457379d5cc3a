"""Made-up data of the size, the kind and about the difficulty of each real data set.

Features are uniform on [0, 1] and correlated: mixtures of a few hidden variables and noise. What is to be
learned is a smooth random function f of a few directions. A number is f with noise; a class is the range
that f falls in, or a cluster of the hidden variables, and a share of the classes is drawn anew.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtr
from sklearn.preprocessing import normalize

from hck.datasets._dataset import Dataset
from hck.datasets._registry import entry
from hck.datasets.table import Features

_CHUNK = 100_000  # records made at once
_SAMPLE = 20_000  # records that the ranges of f are found with
_WAVES = 32  # of a random function
_HIDDEN = 6  # variables


@dataclass(frozen=True)
class Recipe:
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


_RECIPES = {
    "cadata": Recipe(0.37, 0.8, mean=206_856, std=115_393),
    "YearPredictionMSD": Recipe(0.78, 0.6, mean=1998.4, std=10.9),
    "ijcnn1": Recipe(0.006, 0.3, classes=(-1, 1), shares=(0.9, 0.1)),
    "covtype.binary": Recipe(0.015, 1.0, classes=(False, True), shares=(0.51, 0.49), binary=44),
    "SUSY": Recipe(0.195, 0.4, classes=(0, 1), shares=(0.54, 0.46)),
    "mnist": Recipe(0.005, 0, classes=tuple(range(10)), shares=(0.1,) * 10, separation=2.4),
    "acoustic": Recipe(0.18, 0.3, classes=(1, 2, 3), shares=(0.25, 0.25, 0.5)),
    "covtype": Recipe(
        0.015,
        0.6,
        classes=(1, 2, 3, 4, 5, 6, 7),
        shares=(0.365, 0.488, 0.061, 0.005, 0.016, 0.03, 0.035),
        binary=44,
    ),
    "elevators": Recipe(0.33, 0.4, std=0.2526),
    "pol": Recipe(0.06, 0.5, std=41.72),
    "flights3m": Recipe(0.95, 1.0, mean=6.66, std=32.36),
    "a9a": Recipe(0.12, 0.3, directions=1, classes=(-1, 1), shares=(0.76, 0.24), words=14),
    "reuters": Recipe(0.01, 0.3, directions=1, classes=(-1, 1), shares=(0.93, 0.07), words=44, weighted=True),
    "kin8nm": Recipe(0.2, 0.5, mean=0.7143, std=0.2636),
    "ailerons": Recipe(0.37, 0.4, mean=-8.72e-4, std=4.08e-4),
    "bank32nh": Recipe(0.6, 0.4, mean=0.0836, std=0.1218),
    "puma32H": Recipe(0.18, 0.5, std=0.03026),
    "house8L": Recipe(0.5, 0.6, mean=50_074, std=52_842),
    "mv": Recipe(0.001, 0.3, mean=-8.856, std=10.42),
    "fried": Recipe(0.2, 0.4, mean=14.41, std=4.997),
    "cpu_act": Recipe(0.12, 0.4, mean=83.97, std=18.4),
    "letter": Recipe(0.01, 0, classes=tuple(ascii_uppercase), shares=(1 / 26,) * 26, separation=2.4),
    "pendigits": Recipe(0.003, 0, classes=tuple(range(10)), shares=(0.1,) * 10, separation=2.4),
    "diamonds": Recipe(0.13, 0.5, mean=3_933, std=3_989),
    "adult": Recipe(0.12, 0.3, directions=1, classes=("<=50K", ">50K"), shares=(0.76, 0.24)),
}


def synthetic(name: str, n: int | None = None, seed: int = 0) -> Dataset:
    """A made-up data set of the size of a real one, and about as difficult. All features are numbers.

    Parameters
    ----------
    name : str
        The real data set, one of `names`.
    n : int, default=None
        Records to train on; there are as many to test on as the real one has for so many. None: all as the
        real one has, before duplicates are removed.
    seed : int, default=0
        Of the random numbers.

    Returns
    -------
    Dataset
        Its name begins with "synthetic".

    Examples
    --------
    >>> data = synthetic("SUSY", n=4000)
    >>> data.name, data.X_train.shape, data.X_test.shape
    ('synthetic SUSY', (4000, 18), (1000, 18))
    """
    known = entry(name)
    train = known.n_train if n is None else n
    if train < 1:
        raise ValueError(f"n must be positive, got {n}")
    test = max(1, round(train * known.n_test / known.n_train))
    generator = Generator(known.d, _RECIPES[name], np.random.default_rng(seed))
    (X_train, y_train), (X_test, y_test) = generator.make(train), generator.make(test)
    given = "" if n is None else f", n={n}"
    return Dataset(
        f"synthetic {name}",
        known.task,
        X_train,
        y_train,
        X_test,
        y_test,
        source=f"Made up by hck.datasets.synthetic({name!r}{given}, seed={seed}).",
        synthetic=True,
    )


class Generator:
    """A random function, and records of it."""

    def __init__(self, d: int, recipe: Recipe, rng: np.random.Generator) -> None:
        self.d, self.recipe, self.rng = d, recipe, rng
        self.mixing = rng.standard_normal((min(d, _HIDDEN), d))
        self.starts = np.linspace(0, d, recipe.words + 1).astype(int)  # of groups of words
        self.directions = self._directions(recipe.directions)
        self.shares = np.array(recipe.shares) / (sum(recipe.shares) or 1)
        self.centres = recipe.separation * rng.standard_normal((len(recipe.classes), len(self.mixing)))
        self.frequencies = recipe.roughness * rng.standard_normal((recipe.directions, _WAVES))
        self.phases = rng.uniform(0, 2 * np.pi, _WAVES)
        if not recipe.separation:
            self._standardise(self._features(_SAMPLE))

    def _standardise(self, X: Features) -> None:
        """Find where f lies, and the ranges that classes are."""
        inner = X @ self.directions
        self.centre, self.spread = inner.mean(0), inner.std(0)
        values = self._function(X)
        self.mean, self.std = values.mean(), values.std()
        self.bounds = np.quantile(values, np.cumsum(self.shares)[:-1])

    def make(self, n: int) -> tuple[Features, np.ndarray]:
        """Features and targets of n records."""
        X, y = zip(*self._chunks(n), strict=True)
        return sp.vstack(X, format="csr") if self.recipe.words else np.concatenate(X), np.concatenate(y)

    def _chunks(self, n: int) -> Iterator[tuple[Features, np.ndarray]]:
        for start in range(0, n, _CHUNK):
            count = min(_CHUNK, n - start)
            if self.recipe.separation:
                which = self._draw(count)
                yield self._features(count, self.centres[which]), self._classes(which)
            else:
                X = self._features(count)
                yield X, self._targets(self._function(X))

    def _directions(self, count: int) -> np.ndarray:
        """Those of hidden variables, or, of words, directions that the frequent ones make out."""
        if not self.recipe.words:
            return self.mixing.T @ self.rng.standard_normal((len(self.mixing), count))
        position = np.arange(self.d) - np.repeat(self.starts[:-1], np.diff(self.starts))
        return self.rng.standard_normal((self.d, count)) / (1 + position[:, None]) ** 4

    def _features(self, n: int, centres: np.ndarray | float = 0.0) -> Features:
        if self.recipe.words:
            return self._words(n)
        X = self.rng.standard_normal((n, self.d))
        X += (centres + self.rng.standard_normal((n, len(self.mixing)))) @ self.mixing
        X = ndtr(X / np.sqrt(1 + (self.mixing**2).sum(0)))
        if self.recipe.binary:
            X[:, -self.recipe.binary :] = X[:, -self.recipe.binary :] > 0.9
        return X

    def _words(self, n: int) -> sp.csr_matrix:
        """One feature of each of as many groups as there are words; the first of a group are frequent."""
        columns = self.starts[:-1] + np.diff(self.starts) * self.rng.uniform(size=(n, self.recipe.words)) ** 3
        weights = self.rng.exponential(size=columns.shape) if self.recipe.weighted else np.ones(columns.shape)
        rows = np.arange(n + 1) * self.recipe.words
        X = sp.csr_matrix((weights.ravel(), columns.astype(np.int32).ravel(), rows), shape=(n, self.d))
        return normalize(X) if self.recipe.weighted else X

    def _function(self, X: Features) -> np.ndarray:
        """f, a sum of waves."""
        inner = (X @ self.directions - self.centre) / self.spread
        return np.cos(inner @ self.frequencies + self.phases).sum(1)

    def _targets(self, values: np.ndarray) -> np.ndarray:
        """Of values of f."""
        recipe = self.recipe
        if recipe.classes:
            return self._classes(np.searchsorted(self.bounds, values))
        noise = recipe.floor * self.rng.standard_normal(len(values))
        standard = (values - self.mean) / self.std
        return recipe.mean + recipe.std * ((1 - recipe.floor**2) ** 0.5 * standard + noise)

    def _classes(self, which: np.ndarray) -> np.ndarray:
        """Some of them drawn anew, of which a share Σ share² is right by chance."""
        anew = self.rng.uniform(size=len(which)) < self.recipe.floor / (1 - (self.shares**2).sum())
        return np.array(self.recipe.classes)[np.where(anew, self._draw(len(which)), which)]

    def _draw(self, n: int) -> np.ndarray:
        return self.rng.choice(len(self.shares), n, p=self.shares)
