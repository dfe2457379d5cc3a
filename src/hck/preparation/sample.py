"""Rows drawn at random."""

from dataclasses import dataclass

import numpy as np

from hck.preparation.moments import Moments


@dataclass
class Sample:
    """Some rows, and what is known of all.

    Attributes
    ----------
    x : ndarray of shape (sample, d)
    y : ndarray of shape (sample,) or (sample, targets)
        Targets as they came.
    moments : Moments
        Of the features of all rows.
    """

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
