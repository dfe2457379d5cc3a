"""Whether probabilities of classes are as they should be."""

from typing import TYPE_CHECKING, Any

import numpy as np

from hck.metrics import check_classes, reliability_curve
from hck.plotting.check import as_array
from hck.plotting.style import INK, MARKERS, PALETTE, panel, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_LINES = 6  # classes with a line of their own

Curve = tuple[np.ndarray, np.ndarray, np.ndarray]  # as of `reliability_curve`


def plot_reliability(
    y: Any, proba: Any, classes: Any = None, bins: int = 10, *, ax: "Axes | None" = None
) -> "Axes":
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
        ax.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle="--", label="ideal")
        for k, (name, (predicted, shares, counts)) in enumerate(curves):
            colour, size = PALETTE[k % len(PALETTE)], 12 + 110 * np.sqrt(counts / len(code))
            ax.plot(predicted, shares, color=colour, linewidth=1.2, zorder=3)
            ax.scatter(
                predicted,
                shares,
                s=size,
                color=colour,
                marker=MARKERS[k],
                edgecolors="white",
                linewidths=0.6,
                label=name,
                zorder=4,
                clip_on=False,
            )
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        ax.set(xlabel="predicted probability", ylabel="share of points that are of the class")
        legend = ax.legend(title="class" if len(labels) <= _MOST_LINES else None, alignment="left")
        for handle in legend.legend_handles[1:]:
            handle.set(sizes=[40])  # type: ignore[union-attr]
    return ax


def _of_many(predicted: np.ndarray, shares: np.ndarray, counts: np.ndarray, least: int = 5) -> Curve:
    """The bins with so many probabilities at least; all of them if there are none."""
    many = counts >= least
    many |= not many.any()
    return predicted[many], shares[many], counts[many]
