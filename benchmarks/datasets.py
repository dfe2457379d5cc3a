"""Data sets for the benchmarks, prepared as in the paper.

Features are scaled to [0, 1] with the training data (or kept, if already in [-1, 1]), training records are
shuffled, and duplicate or contradicting ones are removed. `records` and `flights` give data as they are, for
benchmarks that split and scale by themselves. Files `<name>.npz` are looked for in the folder that the
environment variable HCK_DATA names.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import pdist
from sklearn.datasets import make_friedman1
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils import shuffle


@dataclass(frozen=True)
class Dataset:
    name: str
    task: str  # "regression" or "classification"
    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    @property
    def measure(self) -> str:
        """What `error` is."""
        return "relative error" if self.task == "regression" else "1 − accuracy"

    def error(self, predicted: np.ndarray) -> float:
        """‖ŷ − y‖ / ‖y‖ on the test points, or the share of them that is misclassified."""
        if self.task == "regression":
            return float(np.linalg.norm(predicted - self.y_test) / np.linalg.norm(self.y_test))
        return 1 - float(accuracy_score(self.y_test, predicted))

    def median_distance(self, points: int = 1000) -> float:
        """The median distance between training points: the scale of the features."""
        return float(np.median(pdist(self.X_train[:points])))

    def shrink(self, train: int, test: int) -> "Dataset":
        """At most so many of the points."""
        return replace(
            self,
            X_train=self.X_train[:train],
            y_train=self.y_train[:train],
            X_test=self.X_test[:test],
            y_test=self.y_test[:test],
        )


def load(name: str) -> Dataset:
    """One of `NAMES`."""
    return _LOADERS[name](name)


def records(name: str) -> tuple[np.ndarray, np.ndarray]:
    """X and y of a regression problem (elevators, pol or cadata), neither split nor scaled."""
    arrays = _read(name)
    return arrays["X"].astype(float), arrays["y"].astype(float)


def raw(name: str) -> tuple[Any, ...]:
    """A data set as it came: X and y, or X and y to train on and to test on. Some are sparse."""
    if name == "smooth":
        return *smooth(50_000, 0), *smooth(10_000, 1)
    if name in ("a9a", "reuters"):
        arrays = _read("reuters_money_fx" if name == "reuters" else name)
        train, test = (
            sp.csr_matrix(
                (
                    arrays[f"X_{part}_data"].astype(float),
                    arrays[f"X_{part}_indices"].astype(np.int32),
                    arrays[f"X_{part}_indptr"],
                ),
                shape=arrays[f"X_{part}_shape"],
            )
            for part in ("train", "test")
        )
        return train, arrays["y_train"], test, arrays["y_test"]
    arrays = _read(name.split(".")[0])
    if "X_train" in arrays:
        return (
            arrays["X_train"].astype(float),
            arrays["y_train"],
            arrays["X_test"].astype(float),
            arrays["y_test"],
        )
    y = arrays["y"] == 2 if name == "covtype.binary" else arrays["y"].astype(float)
    return arrays["X"].astype(float), y


def smooth(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A smooth function of eight variables with little noise: 5.8 % of it, as a relative error."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, 8))
    y = np.sin(4 * x[:, 0] * x[:, 1]) + x[:, 2] ** 2 * np.cos(3 * x[:, 3])
    y += x[:, 4] * x[:, 5] / 2 - np.sin(5 * x[:, 6]) * x[:, 7]
    return x, y + 0.05 * rng.standard_normal(n)


def flights() -> tuple[np.ndarray, np.ndarray]:
    """Features of flights from January to June, ordered by time, and their delays in minutes.

    The features: the day of the year, the minute of the day as a point on a circle, the distance, and the
    latitudes and longitudes of origin and destination.
    """
    arrays = _read("flights3m")
    month, day, minute, distance, origin, destination = arrays["X"].T.astype(int)
    before = np.cumsum([0, 31, 28, 31, 30, 31])  # days before each month
    angle = 2 * np.pi * minute / (24 * 60)
    places = arrays["airport_latlon"].astype(float)
    columns = [before[month - 1] + day, np.sin(angle), np.cos(angle), distance]
    return np.column_stack([*columns, places[origin], places[destination]]), arrays["y"].astype(float)


def _read(name: str) -> dict[str, np.ndarray]:
    folder = os.environ.get("HCK_DATA")
    if not folder:
        raise FileNotFoundError(f"HCK_DATA is not set: it must name the folder that has {name}.npz")
    path = Path(folder) / f"{name}.npz"
    if not path.exists():
        raise FileNotFoundError(f"there is no {name}.npz in the folder that HCK_DATA names")
    with np.load(path) as arrays:
        return dict(arrays)


def _distinct(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of duplicate records the first; none of those whose targets contradict each other."""
    X = np.ascontiguousarray(X)
    records = X.view(f"V{X.strides[0]}").ravel()
    _, first, group = np.unique(records, return_index=True, return_inverse=True)
    contradicted = np.zeros(len(first), dtype=bool)
    contradicted[group[y != y[first[group]]]] = True
    kept = np.sort(first[~contradicted])
    return X[kept], y[kept]


def _split(name: str, task: str, X: np.ndarray, y: np.ndarray) -> Dataset:
    """Four parts to train, one to test; features scaled."""
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=0)
    X_train, y_train = _distinct(X_train, y_train)
    scaler = MinMaxScaler().fit(X_train.astype(float))
    X_train, X_test = (scaler.transform(part.astype(float)) for part in (X_train, X_test))
    return Dataset(name, task, X_train, y_train, X_test, y_test)


def _given_split(name: str, arrays: dict[str, np.ndarray], unit: float) -> Dataset:
    """The split that the data come with; features divided by their unit."""
    X, y = _distinct(*shuffle(arrays["X_train"], arrays["y_train"], random_state=0))
    X, X_test = (part.astype(float) / unit for part in (X, arrays["X_test"]))
    return Dataset(name, "classification", X, y, X_test, arrays["y_test"])


def _friedman(name: str) -> Dataset:
    """A smooth function of five variables with noise of 1 % of its deviation; tested without noise."""
    X, y = make_friedman1(125_000, n_features=5, random_state=0)
    data = _split(name, "regression", X, y)
    noise = 0.01 * data.y_train.std() * np.random.default_rng(0).standard_normal(len(data.y_train))
    return replace(data, y_train=data.y_train + noise)


def _cadata(name: str) -> Dataset:
    arrays = _read("cadata")
    return _split(name, "regression", arrays["X"], arrays["y"].astype(float))


def _covtype_binary(name: str) -> Dataset:
    """The second class against the rest."""
    arrays = _read("covtype")
    return _split(name, "classification", arrays["X"], arrays["y"] == 2)


_LOADERS: dict[str, Callable[[str], Dataset]] = {
    "friedman": _friedman,
    "cadata": _cadata,
    "ijcnn1": lambda name: _given_split(name, _read("ijcnn1"), 1.0),
    "covtype.binary": _covtype_binary,
    "mnist": lambda name: _given_split(name, _read("mnist"), 255.0),
}
NAMES = tuple(_LOADERS)
