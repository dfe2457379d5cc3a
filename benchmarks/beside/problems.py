"""Data sets in parts, the same for every method."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from datasets import load

REGRESSION = (
    *("kin8nm", "puma32H", "bank32nh", "cpu_act", "elevators", "pol", "ailerons", "cadata", "house8L"),
    *("mv", "fried", "diamonds", "flights3m"),
)
CLASSES = ("pendigits", "letter", "adult", "a9a", "ijcnn1", "covtype.binary", "mnist", "reuters")


@dataclass(frozen=True)
class Problem:
    """Features and targets to train on and to test on; classes are 0, 1, …; and what methods are told."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    is_regression: bool
    seed: int = 0
    threads: int = 2
    device: str = "cpu"

    @property
    def classes(self) -> int:
        return 0 if self.is_regression else int(self.y.max()) + 1

    def first(self, rows: int) -> "Problem":
        """Fewer records to train on: they are in random order."""
        return replace(self, X=self.X[:rows], y=self.y[:rows])


def problem(name: str, seed: int, max_rows: int | None, threads: int = 2, device: str = "cpu") -> Problem:
    """A data set by name, unscaled; split 4:1 by the seed, unless it comes split."""
    data = load(name, split=seed, prepare=False)
    X, y, y_test = data.X_train, data.y_train, data.y_test
    order = np.random.default_rng(seed).permutation(len(y))[:max_rows]
    X, y = X.iloc[order] if hasattr(X, "iloc") else X[order], y[order]
    if data.task != "regression":
        values = np.unique(y)
        y, y_test = np.searchsorted(values, y), np.searchsorted(values, y_test)
    return Problem(X, y, data.X_test, y_test, data.task == "regression", seed, threads, device)


def impute(X: Any, like: Any) -> Any:
    """A frame whose missing numbers are the means of another."""
    if not hasattr(X, "columns"):
        return X
    numbers = [name for name in X.columns if X[name].dtype.kind in "iuf"]
    return X.assign(**{name: X[name].fillna(like[name].mean()) for name in numbers})


def dense(X: Any) -> Any:
    """For methods that take no sparse features."""
    return X.toarray().astype(np.float32) if sp.issparse(X) else X


def words(X: Any) -> Any:
    """A frame whose categories are text, for CatBoost."""
    if not hasattr(X, "columns"):
        return X
    names = categories(X)
    return X.assign(**{name: X[name].astype(object).fillna("?").astype(str) for name in names})


def categories(X: Any) -> list[str]:
    """The columns of a frame that are categories."""
    return [name for name in X.columns if X[name].dtype.kind == "O"] if hasattr(X, "columns") else []
