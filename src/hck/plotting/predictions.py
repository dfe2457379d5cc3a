"""Predictions beside the truth."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from hck.metrics import coverage, vectors
from hck.plotting.cut import MOST_POINTS, MOST_SHAPES, some_of
from hck.plotting.style import BLUE, GREY, INK, RED, SEQUENTIAL, Axes, panel, percent

_MOST_INTERVALS = 200


def plot_predictions(
    y: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike | None = None,
    level: float = 0.95,
    *,
    reach: float | None = None,
    ax: "Axes | None" = None,
) -> Axes:
    """Draw predictions against observations, with their intervals where standard deviations are known.

    On the line they are equal. Of more than 20,000 points the density is drawn, and of more than 200
    intervals half as many.

    Parameters
    ----------
    y, mean : array-like of shape (n_samples,)
        Observations and predictions.
    std : array-like of shape (n_samples,), default=None
        Standard deviations of observations, noise included.
    level : float, default=0.95
        Of the intervals.
    reach : float, default=None
        How many standard deviations intervals reach to both sides; None: as many as a Gaussian's.
    ax : Axes, default=None

    Returns
    -------
    Axes

    Examples
    --------
    >>> ax = plot_predictions([0.0, 1.0, 2.0], [0.1, 0.9, 2.5], std=[0.1, 0.1, 0.1])
    >>> ax.get_title()
    '3 points, 67 % inside 95 % intervals'
    """
    y, mean = vectors(y=y, mean=mean)
    inside = None
    if std is not None:
        (std,) = vectors(std=std)
        share = coverage(y, mean, std, level, reach)  # checks them too
        width = std * (ndtri((1 + level) / 2) if reach is None else reach)
        inside = np.abs(y - mean) <= width
    low, high = min(y.min(), mean.min()), max(y.max(), mean.max())
    room = 0.03 * (high - low) or 0.5
    limits = (low - room, high + room)
    with panel(ax, (5.4, 4.8)) as ax:
        from matplotlib.collections import PathCollection

        ax.axline((low, low), slope=1, color=INK, linewidth=1, linestyle="--", label="prediction = truth")
        if len(y) > MOST_POINTS:
            _density(ax, y, mean, limits)
        elif inside is None:
            _scatter(ax, y, mean, len(y), color=BLUE)
        else:
            for mine, colour, where in ((inside, BLUE, "inside"), (~inside, RED, "outside")):
                if mine.any():
                    _scatter(ax, y[mine], mean[mine], len(y), color=colour, label=f"{where} the interval")
        title = f"{len(y):,} {'point' if len(y) == 1 else 'points'}"
        if inside is not None:
            _intervals(ax, y, mean, width, f"{100 * level:g} % interval")
            title += f", {percent(share)} inside {100 * level:g} % intervals"
        ax.set(xlim=limits, ylim=limits, aspect="equal", title=title)
        ax.set(xlabel="observed", ylabel="predicted")
        for handle in ax.legend(loc="upper left").legend_handles:
            if isinstance(handle, PathCollection):
                handle.set(sizes=[24], alpha=0.9)
    return ax


def _scatter(ax: Axes, y: np.ndarray, mean: np.ndarray, n: int, **look: str) -> None:
    """Some of n points: the more, the smaller and paler."""
    size, alpha = float(np.clip(6000 / n, 4, 24)), float(np.clip(900 / n, 0.25, 0.9))
    looks: dict[str, Any] = {"s": size, "alpha": alpha, "linewidths": 0, **look}
    ax.scatter(y, mean, rasterized=n > MOST_SHAPES, zorder=3, **looks)


def _density(ax: Axes, y: np.ndarray, mean: np.ndarray, limits: tuple[float, float]) -> None:
    drawn = ax.hexbin(
        y, mean, gridsize=60, bins="log", mincnt=1, cmap=SEQUENTIAL, extent=(*limits, *limits), linewidths=0.1
    )
    ax.figure.colorbar(drawn, ax=ax, label="points", shrink=0.8)


def _intervals(ax: Axes, y: np.ndarray, mean: np.ndarray, width: np.ndarray, name: str) -> None:
    """All of them, or some if there are many."""
    few = len(y) <= _MOST_INTERVALS
    some = some_of(len(y), len(y) if few else _MOST_INTERVALS // 2)
    y, mean, width = y[some], mean[some], width[some]
    colours = np.where(np.abs(y - mean) <= width, GREY, RED).tolist()
    label = name if few else f"{name} ({len(some)} drawn)"
    ax.vlines(
        y, mean - width, mean + width, colors=colours, linewidth=0.8, alpha=0.6, zorder=2, label=label
    )  # fmt: skip
