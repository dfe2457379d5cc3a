"""How good predictions are: of numbers, of numbers with an uncertainty, and of classes; and embeddings.

What was observed comes first, then what was predicted, arrays of shape (n,). Smaller is better, unless said
otherwise. `alignment_difference` compares embeddings.
"""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

__all__ = [
    "accuracy",
    "alignment_difference",
    "calibration_curve",
    "calibration_error",
    "coverage",
    "crps",
    "log_loss",
    "mae",
    "nlpd",
    "r2",
    "relative_error",
    "reliability_curve",
    "rmse",
    "scores",
]

# Numbers ------------------------------------------------------------------------------------------------


def rmse(y: ArrayLike, predicted: ArrayLike) -> float:
    """Root of the mean squared error, in the unit of y.

    Parameters
    ----------
    y : array-like of shape (n,)
        Observations.
    predicted : array-like of shape (n,)

    Examples
    --------
    >>> rmse([0.0, 1.0], [1.0, 8.0])
    5.0
    """
    y, predicted = vectors(finite=False, y=y, predicted=predicted)
    return float(np.sqrt(np.mean((predicted - y) ** 2)))


def mae(y: ArrayLike, predicted: ArrayLike) -> float:
    """Mean absolute error, in the unit of y.

    Parameters
    ----------
    y : array-like of shape (n,)
        Observations.
    predicted : array-like of shape (n,)

    Examples
    --------
    >>> mae([0.0, 1.0], [1.0, 8.0])
    4.0
    """
    y, predicted = vectors(finite=False, y=y, predicted=predicted)
    return float(np.mean(np.abs(predicted - y)))


def relative_error(y: ArrayLike, predicted: ArrayLike) -> float:
    """‖predicted − y‖ / ‖y‖; NaN if y is 0.

    Parameters
    ----------
    y : array-like of shape (n,)
        Observations.
    predicted : array-like of shape (n,)

    Examples
    --------
    >>> relative_error([3.0, 4.0], [3.0, 5.0])
    0.2
    """
    y, predicted = vectors(finite=False, y=y, predicted=predicted)
    return float(np.linalg.norm(predicted - y) / np.linalg.norm(y)) if y.any() else math.nan


def r2(y: ArrayLike, predicted: ArrayLike) -> float:
    """The share of the variance of y that is explained; NaN if y is constant.

    It is 1 if predictions are perfect, 0 if they are no better than the mean of y, and may be negative.

    Parameters
    ----------
    y : array-like of shape (n,)
        Observations.
    predicted : array-like of shape (n,)

    Examples
    --------
    >>> r2([1.0, 3.0], [1.0, 2.0])
    0.5
    """
    y, predicted = vectors(finite=False, y=y, predicted=predicted)
    if np.ptp(y) == 0:
        return math.nan
    return float(1 - np.sum((predicted - y) ** 2) / np.sum((y - y.mean()) ** 2))


# Numbers with a standard deviation, that of observations: noise is included -----------------------------


def nlpd(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> float:
    """Negative log predictive density, averaged: −log N(y; mean, std²).

    Parameters
    ----------
    y, mean, std : array-like of shape (n,)
        Observations, predictions, and standard deviations of observations, noise included.

    Examples
    --------
    >>> round(nlpd([0.0], [0.0], [1.0]), 4)
    0.9189
    """
    z, std = _standardise(y, mean, std)
    return float(np.mean(np.log(std) + z**2 / 2) + math.log(2 * math.pi) / 2)


def crps(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> float:
    """Continuous ranked probability score, averaged, in the unit of y; for std → 0 the mean absolute error.

    Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation, section 4.2.

    Parameters
    ----------
    y, mean, std : array-like of shape (n,)
        Observations, predictions, and standard deviations of observations, noise included.

    Examples
    --------
    >>> round(crps([0.0], [0.0], [1.0]), 4)
    0.2337
    """
    z, std = _standardise(y, mean, std)
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    return float(np.mean(std * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / math.sqrt(math.pi))))


def coverage(
    y: ArrayLike, mean: ArrayLike, std: ArrayLike, level: float = 0.95, reach: float | None = None
) -> float:
    """The share of observations inside their central intervals of a level; it should be close to the level.

    Parameters
    ----------
    y, mean, std : array-like of shape (n,)
        Observations, predictions, and standard deviations of observations, noise included.
    level : float, default=0.95
    reach : float, default=None
        How many standard deviations intervals reach to both sides; None: as many as a Gaussian's.

    Examples
    --------
    >>> coverage([0.0, 3.0], [0.0, 0.0], [1.0, 1.0])
    0.5
    >>> coverage([0.0, 3.0], [0.0, 0.0], [1.0, 1.0], reach=3.0)
    1.0
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level!r}")
    z, _ = _standardise(y, mean, std)
    return float(np.mean(np.abs(z) <= (ndtri((1 + level) / 2) if reach is None else reach)))


def calibration_curve(
    y: ArrayLike, mean: ArrayLike, std: ArrayLike, levels: ArrayLike = 19, reach: ArrayLike | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Levels of central intervals, and the share of observations inside them.

    Parameters
    ----------
    y, mean, std : array-like of shape (n,)
        Observations, predictions, and standard deviations of observations, noise included.
    levels : int or array-like, default=19
        The levels, between 0 and 1, or how many, evenly spaced.
    reach : array-like, default=None
        For each level how many standard deviations intervals reach to both sides; None: as many as a
        Gaussian's.

    Returns
    -------
    levels, shares : ndarray
        A well-calibrated model has equal ones.

    Examples
    --------
    >>> from hck.metrics import calibration_curve
    >>> levels, shares = calibration_curve([0.0, 1.0, 3.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.5, 0.95])
    >>> shares.round(2)
    array([0.33, 0.67])
    """
    levels = as_numbers("levels", levels)
    levels = np.arange(1, int(levels) + 1) / (int(levels) + 1) if levels.ndim == 0 else levels
    if len(levels) == 0 or not ((levels > 0) & (levels < 1)).all():
        raise ValueError("levels must be between 0 and 1, and at least one")
    z, _ = _standardise(y, mean, std)
    ends = ndtri((1 + levels) / 2) if reach is None else as_numbers("reach", reach)
    if ends.shape != levels.shape:
        raise ValueError(f"reach must have a number for each of {len(levels)} levels, got shape {ends.shape}")
    inside = np.sort(np.abs(z))
    return levels, np.searchsorted(inside, ends, side="right") / len(inside)


def _standardise(y: ArrayLike, mean: ArrayLike, std: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """(y − mean)/std and std, after a check of all three."""
    y, mean, std = vectors(y=y, mean=mean, std=std)
    if not (std > 0).all():
        raise ValueError("std must be positive: pass the standard deviations of observations, noise included")
    return (y - mean) / std, std


def scores(y: ArrayLike, mean: ArrayLike, std: ArrayLike | None = None) -> dict[str, float]:
    """All of the above, by name; those that need standard deviations if these are known.

    Parameters
    ----------
    y, mean : array-like of shape (n,)
        Observations and predictions.
    std : array-like of shape (n,), default=None
        Standard deviations of observations, noise included.

    Examples
    --------
    >>> scores([1.0, 3.0], [1.0, 2.0])["r2"]
    0.5
    """
    found = {f.__name__: f(y, mean) for f in (rmse, mae, r2, relative_error)}
    return found if std is None else found | {f.__name__: f(y, mean, std) for f in (nlpd, crps, coverage)}


# Classes ------------------------------------------------------------------------------------------------


def accuracy(y: ArrayLike, predicted: ArrayLike) -> float:
    """The share of classes that are right. Larger is better.

    Parameters
    ----------
    y, predicted : array-like of shape (n,)
        Class labels.

    Examples
    --------
    >>> accuracy(["a", "b", "b", "a"], ["a", "b", "a", "a"])
    0.75
    """
    y, predicted = as_array(y), as_array(predicted)
    check_shapes(y=y, predicted=predicted)
    return float(np.mean(predicted == y))


def log_loss(y: ArrayLike, proba: ArrayLike, classes: ArrayLike | None = None) -> float:
    """The mean of −log p(class).

    As in scikit-learn, a probability below the rounding error, 2.2e-16, counts as that.

    Parameters
    ----------
    y : array-like of shape (n,)
        Class labels.
    proba : array-like of shape (n, classes), or (n,) for the second of two classes
    classes : array-like of shape (classes,), default=None
        The labels of the columns, such as `classes_`. None: those in y, in ascending order.

    Examples
    --------
    >>> round(log_loss(["no", "yes"], [[0.9, 0.1], [0.2, 0.8]]), 4)
    0.1643
    """
    code, proba, _ = check_classes(y, proba, classes)
    least = np.finfo(float).eps
    return float(-np.mean(np.log(np.clip(proba[np.arange(len(code)), code], least, 1 - least))))


def reliability_curve(
    happened: ArrayLike, probability: ArrayLike, bins: int = 10
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities of events in bins of equal width, and how often they happened.

    Parameters
    ----------
    happened : array-like of bool of shape (n,)
        Such as whether the most probable class is the right one.
    probability : array-like of shape (n,)
        Such as that of the most probable class.
    bins : int, default=10

    Returns
    -------
    predicted, shares, counts : ndarray
        Of each bin that is not empty the mean probability, the share of events that happened, and how many
        there are. A well-calibrated model has equal probabilities and shares.

    Examples
    --------
    >>> predicted, shares, counts = reliability_curve([False, True, True], [0.25, 0.25, 0.75], bins=2)
    >>> predicted.tolist(), shares.tolist(), counts.tolist()
    ([0.25, 0.75], [0.5, 1.0], [2, 1])
    """
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins!r}")
    happened, probability = vectors(finite=False, happened=happened, probability=probability)
    probability = _within("probability", probability)
    which = np.minimum((probability * bins).astype(int), bins - 1)
    counts = np.bincount(which, minlength=bins)
    here = counts > 0
    sums = (np.bincount(which, part, bins)[here] for part in (probability, happened))
    predicted, shares = (each / counts[here] for each in sums)
    return predicted, shares, counts[here]


def calibration_error(happened: ArrayLike, probability: ArrayLike, bins: int = 10) -> float:
    """The mean difference between probabilities and how often events happened, over bins.

    Parameters
    ----------
    happened : array-like of bool of shape (n,)
    probability : array-like of shape (n,)
    bins : int, default=10
        As in `reliability_curve`.

    Examples
    --------
    >>> calibration_error([False, True, True], [0.25, 0.25, 0.75], bins=2)
    0.25
    """
    predicted, shares, counts = reliability_curve(happened, probability, bins)
    return float(counts @ np.abs(predicted - shares) / counts.sum())


def check_classes(
    y: ArrayLike, proba: ArrayLike, classes: ArrayLike | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The number of each label's class, probabilities (n, classes), and labels."""
    y, proba = as_array(y), as_numbers("proba", proba)
    proba = np.stack([1 - proba, proba], 1) if proba.ndim == 1 else proba
    if y.ndim != 1 or len(y) == 0 or proba.ndim != 2 or len(proba) != len(y):
        raise ValueError(
            f"y and proba must have shapes (n,) and (n, classes) with the same n, got {y.shape} and "
            f"{proba.shape}"
        )
    labels = np.unique(y) if classes is None else np.asarray(classes)
    if proba.shape[1] < 2 or len(labels) != proba.shape[1]:
        raise ValueError(
            f"proba has {proba.shape[1]} columns, but there are {len(labels)} classes: give all of them, in "
            "the order of the columns, as classes"
        )
    proba = _within("proba", proba)
    number = {label: k for k, label in enumerate(labels.tolist())}
    unknown = [label for label in np.unique(y).tolist() if label not in number]
    if unknown:
        raise ValueError(f"y has the label {unknown[0]!r}, which is not one of the classes")
    return np.array([number[label] for label in y.tolist()]), proba, labels


def _within(name: str, values: np.ndarray) -> np.ndarray:
    """Probabilities, without rounding errors."""
    if not np.isfinite(values).all() or values.min() < -1e-9 or values.max() > 1 + 1e-9:
        raise ValueError(f"{name} must be probabilities, between 0 and 1")
    return np.clip(values, 0, 1)


# Embeddings ---------------------------------------------------------------------------------------------


def alignment_difference(U: ArrayLike, V: ArrayLike) -> float:
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
    u, v = (as_numbers(name, part) for name, part in (("U", U), ("V", V)))
    if u.ndim != 2 or v.ndim != 2 or len(u) != len(v) or 0 in (u.size, v.size):
        raise ValueError(
            f"U and V must have shapes (n, components) with the same n, got {u.shape} and {v.shape}"
        )
    check_finite(U=u, V=v)
    if not u.any():
        raise ValueError("U is 0: there is nothing to compare with")
    best = np.linalg.lstsq(v, u)[0]
    return float(np.linalg.norm(u - v @ best) / np.linalg.norm(u))


# What is compared ---------------------------------------------------------------------------------------


def as_array(values: ArrayLike) -> np.ndarray:
    """An array, of a tensor on any device too."""
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def as_numbers(name: str, values: ArrayLike) -> np.ndarray:
    """Floating-point numbers; ValueError if they are none, or complex: the imaginary part would be lost."""
    array = as_array(values)
    if array.dtype.kind not in "cmM":
        try:
            return array.astype(float, copy=False)
        except (TypeError, ValueError):
            pass
    raise ValueError(f"{name} must be real numbers, got {array.dtype}")


def vectors(finite: bool = True, **given: ArrayLike) -> list[np.ndarray]:
    """Arrays of numbers, of one shape (n,), and finite unless said otherwise."""
    arrays = {name: as_numbers(name, values) for name, values in given.items()}
    check_shapes(**arrays)
    if finite:
        check_finite(**arrays)
    return list(arrays.values())


def check_shapes(**arrays: np.ndarray) -> None:
    """Raise ValueError unless all are of one shape (n,)."""
    shapes = {array.shape for array in arrays.values()}
    if len(shapes) > 1 or len(next(iter(shapes))) != 1 or 0 in next(iter(shapes)):
        found = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(f"{' and '.join(arrays)} must have one shape (n,), got {found}")


def check_finite(**arrays: np.ndarray) -> None:
    """Raise ValueError if one of them has holes."""
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ValueError(f"{name} contains NaN or infinity")
