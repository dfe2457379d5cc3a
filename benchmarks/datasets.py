"""The data sets of `hck.datasets`, and functions that it does not have."""

from typing import Any

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler

import hck.datasets
from hck.datasets import Dataset


def load(name: str, **options: Any) -> Dataset:
    """As `hck.datasets.load`, or friedman."""
    if name == "friedman":
        return friedman()
    return hck.datasets.load(name, verbose=False, **options)


def friedman() -> Dataset:
    """A smooth function of five variables with noise of 1 % of its deviation; tested without noise."""
    X, y = make_friedman1(125_000, n_features=5, random_state=0)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=0)
    scaler = MinMaxScaler().fit(X_train)
    y_train += 0.01 * y_train.std() * np.random.default_rng(0).standard_normal(len(y_train))
    X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
    return Dataset("friedman", "regression", X_train, y_train, X_test, y_test, synthetic=True)


def smooth(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A smooth function of eight variables with little noise: 5.8 % of it, as a relative error."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, 8))
    y = np.sin(4 * x[:, 0] * x[:, 1]) + x[:, 2] ** 2 * np.cos(3 * x[:, 3])
    y += x[:, 4] * x[:, 5] / 2 - np.sin(5 * x[:, 6]) * x[:, 7]
    return x, y + 0.05 * rng.standard_normal(n)
