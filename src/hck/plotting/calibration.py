"""Whether intervals hold as many observations as they say."""

from typing import TYPE_CHECKING, Any

import numpy as np

from hck.metrics import calibration_curve
from hck.plotting.check import vectors
from hck.plotting.style import BLUE, GREY, INK, panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_interval_calibration(
    y: Any, mean: Any, std: Any, levels: Any = 19, *, ax: "Axes | None" = None
) -> "Axes":
    """Draw the share of observations inside central intervals against the intervals' level.

    On the line they are equal. In the band around it the difference may be chance: 95 % of the shares of as
    many independent observations would be inside.

    Parameters
    ----------
    y, mean, std : array-like of shape (n_samples,)
        Observations, predictions and standard deviations of observations, noise included.
    levels : int or array-like, default=19
        As in `hck.metrics.calibration_curve`.
    ax : Axes, default=None

    Returns
    -------
    Axes

    Examples
    --------
    >>> ax = plot_interval_calibration([0.0, 1.0], [0.1, 0.6], [0.3, 0.3], levels=[0.5, 0.9])
    >>> ax.lines[-1].get_ydata().tolist()
    [0.5, 1.0]
    """
    y, mean, std = vectors(y=y, mean=mean, std=std)
    levels, shares = calibration_curve(y, mean, std, levels)
    with panel(ax, (4.8, 4.6)) as ax:
        draw_ideal(ax, len(y))
        ax.plot(levels, shares, "o-", color=BLUE, markersize=4, label="intervals")
        ax.set(xlabel="level of the interval", ylabel="share of observations inside")
        ax.set_title("above the line: too wide; below: too narrow")
        ax.legend()
    return ax


def draw_ideal(ax: "Axes", n: int) -> None:
    """A square with the line on which shares are as they should be, and the band of chance around it."""
    p = np.linspace(0, 1, 101)
    width = 1.96 * np.sqrt(p * (1 - p) / n)
    band = np.clip(p - width, 0, 1), np.clip(p + width, 0, 1)
    ax.fill_between(p, *band, color=GREY, alpha=0.18, linewidth=0, label=f"chance, {n:,} points")
    ax.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle="--", label="ideal")
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
