"""Whether intervals hold as many observations, and classes occur as often, as they say."""

import numpy as np
from numpy.typing import ArrayLike

from hck.metrics import as_array, calibration_curve, check_classes, reliability_curve, vectors
from hck.plotting.style import BLUE, GREY, INK, MARKERS, PALETTE, Axes, panel, plain

_MOST_LINES = 6  # classes with a line of their own
_FEW = 5  # points that say little of a probability

Curve = tuple[np.ndarray, np.ndarray, np.ndarray]  # as of `reliability_curve`


def plot_interval_calibration(
    y: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    levels: ArrayLike = 19,
    *,
    reach: ArrayLike | None = None,
    ax: "Axes | None" = None,
) -> Axes:
    """Draw the share of observations inside central intervals against the intervals' level.

    On the line they are equal. In the band around it the difference may be chance: 95 % of the shares of as
    many independent observations would be inside.

    Parameters
    ----------
    y, mean, std : array-like of shape (n_samples,)
        Observations, predictions and standard deviations of observations, noise included.
    levels, reach
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
    levels, shares = calibration_curve(y, mean, std, levels, reach)
    with panel(ax, (4.8, 4.6)) as ax:
        _draw_chance(ax, len(y))
        _draw_ideal(ax)
        ax.plot(levels, shares, "o-", color=BLUE, markersize=4, label="intervals")
        ax.set(xlabel="level of the interval", ylabel="share of observations inside")
        ax.set_title("above the line: too wide; below: too narrow")
        ax.legend()
    return ax


def _draw_chance(ax: Axes, n: int) -> None:
    """The band in which the shares of n independent observations are."""
    p = np.linspace(0, 1, 101)
    width = 1.96 * np.sqrt(p * (1 - p) / n)
    band = np.clip(p - width, 0, 1), np.clip(p + width, 0, 1)
    ax.fill_between(p, *band, color=GREY, alpha=0.18, linewidth=0, label=f"chance, {n:,} points")


def plot_reliability(
    y: ArrayLike,
    proba: ArrayLike,
    classes: ArrayLike | None = None,
    bins: int = 10,
    *,
    ax: "Axes | None" = None,
) -> Axes:
    """Draw how often classes occur against the probability that they were given.

    On the line they are equal. With two classes, one line: of the second. With up to six, one of each. With
    more, one of the class that was the most probable. The larger a mark, the more points; fewer than five are
    not drawn, unless there are no others.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Class labels.
    proba : array-like of shape (n_samples, n_classes), or (n_samples,) for the second of two classes
    classes : array-like of shape (n_classes,), default=None
        The labels of the columns, such as `classes_`. None: those in y, in ascending order.
    bins : int, default=10
        Of probabilities, of equal width.
    ax : Axes, default=None

    Returns
    -------
    Axes

    Examples
    --------
    >>> ax = plot_reliability(["a", "b", "b", "a"], [0.1, 0.8, 0.9, 0.3], classes=["a", "b"])
    >>> ax.get_xlabel()
    'predicted probability'
    """
    code, proba, labels = check_classes(as_array(y), as_array(proba), classes)
    if len(labels) == 2:
        events = [(plain(labels[1]), code == 1, proba[:, 1])]
    elif len(labels) <= _MOST_LINES:
        events = [(plain(name), code == k, proba[:, k]) for k, name in enumerate(labels)]
    else:
        events = [("the most probable class", proba.argmax(1) == code, proba.max(1))]
    curves = [
        (name, _of_many(*reliability_curve(happened, probability, bins)))
        for name, happened, probability in events
    ]
    with panel(ax, (4.8, 4.6)) as ax:
        _draw_ideal(ax)
        for k, (name, (predicted, shares, counts)) in enumerate(curves):
            colour, size = PALETTE[k], 12 + 110 * np.sqrt(counts / len(code))
            ax.plot(predicted, shares, color=colour, linewidth=1.2, zorder=3)
            marks = ax.scatter(predicted, shares, s=size, color=colour, marker=MARKERS[k], label=name)
            marks.set(edgecolors="white", linewidths=0.6, zorder=4, clip_on=False)
        ax.set(xlabel="predicted probability", ylabel="share of points that are of the class")
        legend = ax.legend(title="class" if len(labels) <= _MOST_LINES else None, alignment="left")
        for handle in legend.legend_handles[1:]:
            handle.set(sizes=[40])  # type: ignore[union-attr]
    return ax


def _of_many(predicted: np.ndarray, shares: np.ndarray, counts: np.ndarray) -> Curve:
    """The bins that are not nearly empty; all of them if there are no others."""
    many = counts >= _FEW
    many |= not many.any()
    return predicted[many], shares[many], counts[many]


def _draw_ideal(ax: Axes) -> None:
    """A square with the line on which shares are as they should be."""
    ax.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle="--", label="ideal")
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
