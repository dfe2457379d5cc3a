"""How good predictions with an uncertainty are: Gaussian predictive distributions against what was observed.

Every function but the last takes observations y, means and standard deviations, arrays of shape (n,). The
standard deviations are those of observations, noise included. Smaller is better, unless said otherwise.
`alignment_difference` compares embeddings.
"""

import math
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

__all__ = ["alignment_difference", "calibration_curve", "coverage", "crps", "nlpd"]


def nlpd(y: Any, mean: Any, std: Any) -> float:
    """Negative log predictive density, averaged: −log N(y; mean, std²).

    Examples
    --------
    >>> round(nlpd([0.0], [0.0], [1.0]), 4)
    0.9189
    """
    z, std = _standardise(y, mean, std)
    return float(np.mean(np.log(std) + z**2 / 2) + math.log(2 * math.pi) / 2)


def crps(y: Any, mean: Any, std: Any) -> float:
    """Continuous ranked probability score, averaged, in the unit of y; for std → 0 the mean absolute error.

    Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation, section 4.2.

    Examples
    --------
    >>> round(crps([0.0], [0.0], [1.0]), 4)
    0.2337
    """
    z, std = _standardise(y, mean, std)
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    return float(np.mean(std * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / math.sqrt(math.pi))))


def coverage(y: Any, mean: Any, std: Any, level: float = 0.95) -> float:
    """The share of observations inside their central intervals of a level; it should be close to the level.

    Examples
    --------
    >>> coverage([0.0, 3.0], [0.0, 0.0], [1.0, 1.0])
    0.5
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level!r}")
    z, _ = _standardise(y, mean, std)
    return float(np.mean(np.abs(z) <= ndtri((1 + level) / 2)))


def calibration_curve(y: Any, mean: Any, std: Any, levels: Any = 19) -> tuple[np.ndarray, np.ndarray]:
    """Levels of central intervals, and the share of observations inside them.

    Parameters
    ----------
    levels : int or array-like, default=19
        The levels, between 0 and 1, or how many, evenly spaced.

    Returns
    -------
    levels, shares : ndarray
        A well-calibrated model has equal ones.
    """
    if np.ndim(levels) == 0:
        levels = np.arange(1, int(levels) + 1) / (int(levels) + 1)
    levels = np.asarray(levels, dtype=float)
    if len(levels) == 0 or not ((levels > 0) & (levels < 1)).all():
        raise ValueError("levels must be between 0 and 1, and at least one")
    z, _ = _standardise(y, mean, std)
    inside = np.sort(np.abs(z))
    return levels, np.searchsorted(inside, ndtri((1 + levels) / 2), side="right") / len(inside)


def _standardise(y: Any, mean: Any, std: Any) -> tuple[np.ndarray, np.ndarray]:
    """(y − mean)/std and std, after a check of all three."""
    y, mean, std = (np.asarray(part, dtype=float) for part in (y, mean, std))
    if y.ndim != 1 or len(y) == 0 or mean.shape != y.shape or std.shape != y.shape:
        raise ValueError(
            f"y, mean and std must have one shape (n,), got {y.shape}, {mean.shape} and {std.shape}"
        )
    for name, part in (("y", y), ("mean", mean), ("std", std)):
        if not np.isfinite(part).all():
            raise ValueError(f"{name} contains NaN or infinity")
    if not (std > 0).all():
        raise ValueError("std must be positive: pass the standard deviations of observations, noise included")
    return (y - mean) / std, std


def alignment_difference(U: Any, V: Any) -> float:
    """How much of an embedding no linear map of another has: ‖U − V M‖ / ‖U‖ with the best matrix M.

    Norms are those of Frobenius. It is 0 if the columns of U are combinations of those of V, and 1 if they
    are orthogonal to them. Zhang, Tsang and Kwok (2008), Improved Nyström low-rank approximation and error
    analysis, compare the embedding V by an approximate kernel so with U, that by the kernel itself.

    Parameters
    ----------
    U : array-like of shape (n, components)
        The embedding to compare with.
    V : array-like of shape (n, other components)
        Of the same points.

    Examples
    --------
    >>> alignment_difference([[3.0], [4.0]], [[1.0], [0.0]])
    0.8
    >>> alignment_difference([[3.0], [4.0]], [[-6.0], [-8.0]]) < 1e-12
    True
    """
    u, v = (np.asarray(part, dtype=float) for part in (U, V))
    if u.ndim != 2 or v.ndim != 2 or len(u) != len(v) or 0 in (u.size, v.size):
        raise ValueError(
            f"U and V must have shapes (n, components) with the same n, got {u.shape} and {v.shape}"
        )
    for name, part in (("U", u), ("V", v)):
        if not np.isfinite(part).all():
            raise ValueError(f"{name} contains NaN or infinity")
    if not u.any():
        raise ValueError("U is 0: there is nothing to compare with")
    best = np.linalg.lstsq(v, u)[0]
    return float(np.linalg.norm(u - v @ best) / np.linalg.norm(u))
