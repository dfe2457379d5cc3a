"""The paper's preparation: a split, no duplicates to train on, features of about the same size.

Section 5: sets that come whole are split 4:1. Attributes are scaled to [0, 1], unless they are in [-1, 1].
Records to train on that repeat others or contradict them are removed.
"""

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler

from hck.datasets.table import Features

Parts = tuple[Features, np.ndarray, Features, np.ndarray]  # X and y to train on, X and y to test on


def cut(X: Features, y: np.ndarray, seed: int) -> Parts:
    """Four parts to train on, one to test on; shuffled."""
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=seed)
    return X_train, y_train, X_test, y_test


def distinct(X: np.ndarray, y: np.ndarray, are_classes: bool) -> tuple[np.ndarray, np.ndarray]:
    """Of equal records the first; of records with equal features and different classes none.

    Numbers that differ at equal features are observations with noise, and stay.

    Examples
    --------
    >>> X, y = np.array([[1], [1], [2], [3], [3]]), np.array([0, 0, 1, 0, 1])
    >>> distinct(X, y, are_classes=True)[0].ravel().tolist()
    [1, 2]
    >>> distinct(X, y, are_classes=False)[0].ravel().tolist()
    [1, 2, 3, 3]
    """
    first, group = _groups(X)
    if are_classes:
        contradicted = np.zeros(len(first), dtype=bool)
        contradicted[group[y != y[first[group]]]] = True
        first = first[~contradicted]
    else:
        first, _ = _groups(np.column_stack([group, y]))
    kept = np.sort(first)
    return X[kept], y[kept]


def scale(X_train: np.ndarray, X_test: np.ndarray, unit: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Features of the records to train on in [0, 1], unless they are in [-1, 1]; the same for the others.

    If there is a unit, they are divided by it instead.
    """
    X_train, X_test = X_train.astype(float), X_test.astype(float)
    if unit is not None:
        return X_train / unit, X_test / unit
    if X_train.min() >= -1 and X_train.max() <= 1:
        return X_train, X_test
    scaler = MinMaxScaler().fit(X_train)
    return scaler.transform(X_train), scaler.transform(X_test)


def _groups(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first row of each group of equal rows, and the group of each row."""
    X = np.ascontiguousarray(X)
    rows = X.view(f"V{X.strides[0]}").ravel()
    _, first, group = np.unique(rows, return_index=True, return_inverse=True)
    return first, group
