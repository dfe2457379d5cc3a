"""Numbers that are codes as well: values that come again and say more of targets than how large they are."""

import numpy as np

from hck.preparation.levels import left_out_means

_FEWEST = 4  # rows of a value, on the average of all rows
_GAIN, _SURE = 0.005, 3.0  # of the targets' variance, and standard errors of it
_BINS, _QUANTILES = 10, 32  # intervals: in a standard deviation, or with equal numbers of rows
_MOST = 2**17  # rows that are looked at


def says_more(x: np.ndarray, targets: np.ndarray) -> bool:
    """Whether values of x (rows,), NaN where they are missing, are categories, judged by targets.

    Means of targets (rows, targets) of the very value then predict left-out rows better than those of all
    values close by, as of amounts that stand in a law, or numbers of shops.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(50, size=2000)
    >>> says_more(x, rng.normal(size=50)[x][:, None])
    True
    >>> says_more(x, np.sin(x / 10)[:, None])
    False
    """
    there = np.flatnonzero(np.isfinite(x))
    if len(there) > _MOST:
        there = np.random.default_rng(0).permutation(there)[:_MOST]
    x = x[there]
    values, code, count = np.unique(x, return_inverse=True, return_counts=True)
    if len(values) < 3 or (count**2).sum() < _FEWEST * len(x):
        return False
    rest = targets[there] - targets[there].mean(0)
    errors = left_out_means(code, rest).errors
    with np.errstate(all="ignore"):  # of numbers whose squares overflow, all are in one interval
        widths = np.nan_to_num(np.floor((x - x.min()) / (x.std() / _BINS)))
    edges = np.quantile(x, np.linspace(0, 1, _QUANTILES + 1)[1:-1])
    return all(
        _is_above(left_out_means(_numbered(each), rest).errors - errors)
        for each in (widths, np.searchsorted(edges, x))
    )


def _numbered(values: np.ndarray) -> np.ndarray:
    return np.unique(values, return_inverse=True)[1]


def _is_above(gain: np.ndarray) -> bool:
    return bool(gain.mean() > max(_GAIN, _SURE * gain.std() / len(gain) ** 0.5))
