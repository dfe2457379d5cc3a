"""Rows that are there several times, observation included: left-out ones are then known from their copies."""

import warnings

import numpy as np
from torch import Tensor

from hck.kernels.inputs import on_host

_AT_ONCE = 2**16  # rows
_FEWEST, _PART = 100, 0.1  # rows, and copies among them, that are worth a warning


def warn_of_copies(X: object, y: np.ndarray) -> None:
    """Warn if many rows of an array or a tensor are copies, with targets (n, …) that hardly repeat.

    Examples
    --------
    >>> x = np.linspace(0, 1, 200)[:, None]
    >>> warn_of_copies(x, np.sin(x))
    """
    n = len(y)
    if n < _FEWEST or not isinstance(X, np.ndarray | Tensor):
        return
    x, targets = on_host(X) if isinstance(X, Tensor) else X, y.reshape(n, -1)
    rng = np.random.default_rng(0)
    of_y = _mixed(targets, rng)
    if len(np.unique(of_y)) < _PART * n:  # as of counts, which may be the same by chance
        return
    copies = n - len(np.unique(of_y + _mixed(x, rng)))
    if copies >= _PART * n:
        warnings.warn(
            f"{copies:,} of {n:,} rows are copies of others, target included: a left-out row is predicted by "
            "its copy, so that alpha, errors and intervals come out too small. Leave copies out, or give "
            "each row once, with its number as sample_weight",
            UserWarning,
            stacklevel=4,
        )


def _mixed(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A number for each row that hardly two different rows share."""
    with np.errstate(all="ignore"):
        spread = values[:: 1 + len(values) // 10_000].std(0)
        weights = rng.normal(size=values.shape[1]) / np.where(spread > 0, spread, 1.0)
        parts = np.array_split(values, 1 + len(values) // _AT_ONCE)
        # without the first row, beside which differences may be small
        return np.concatenate([(part - values[0].astype(float)) @ weights for part in parts])
