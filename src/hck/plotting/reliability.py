"""Whether probabilities of classes are as they should be."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hck.plotting._check import as_array
from hck.plotting._style import INK, MARKERS, PALETTE, panel, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_LINES = 6  # classes with a line of their own


@dataclass(frozen=True)
class Bins:
    """Probabilities of an event in bins, and how often it happened.

    Attributes
    ----------
    predicted, happened : ndarray
        The mean probability in each bin that is not empty, and the share of events.
    count : ndarray
        How many probabilities there are in the bin.
    """

    predicted: np.ndarray
    happened: np.ndarray
    count: np.ndarray

    @classmethod
    def of(cls, probability: np.ndarray, event: np.ndarray, bins: int) -> "Bins":
        """In bins of equal width."""
        which = np.minimum((probability * bins).astype(int), bins - 1)
        count = np.bincount(which, minlength=bins)
        here = count > 0
        predicted, happened = (
            np.bincount(which, part, bins)[here] / count[here] for part in (probability, event)
        )
        return cls(predicted, happened, count[here])

    def of_many(self, least: int = 5) -> "Bins":
        """The bins with so many probabilities at least; all of them if there are none."""
        many = self.count >= least
        many |= not many.any()
        return Bins(self.predicted[many], self.happened[many], self.count[many])

    @property
    def error(self) -> float:
        """The mean difference between probabilities and shares."""
        return float(self.count @ np.abs(self.predicted - self.happened) / self.count.sum())


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
    code, proba, labels = check_classes(y, proba, classes)
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins!r}")
    if len(labels) == 2:
        curves = [(plain(labels[1]), Bins.of(proba[:, 1], code == 1, bins))]
    elif len(labels) <= _MOST_LINES:
        curves = [(plain(name), Bins.of(proba[:, k], code == k, bins)) for k, name in enumerate(labels)]
    else:
        curves = [("the most probable class", confidence(code, proba, bins))]
    with panel(ax, (4.8, 4.6)) as ax:
        ax.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle="--", label="ideal")
        for k, (name, every) in enumerate(curves):
            found = every.of_many()
            colour, size = PALETTE[k % len(PALETTE)], 12 + 110 * np.sqrt(found.count / len(code))
            ax.plot(found.predicted, found.happened, color=colour, linewidth=1.2, zorder=3)
            ax.scatter(
                found.predicted,
                found.happened,
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


def check_classes(y: Any, proba: Any, classes: Any = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The number of each label's class, probabilities (n, classes), and labels."""
    y, proba = as_array(y), np.asarray(as_array(proba), dtype=float)
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
    if not np.isfinite(proba).all() or proba.min() < -1e-9 or proba.max() > 1 + 1e-9:
        raise ValueError("proba must be probabilities, between 0 and 1")
    number = {label: k for k, label in enumerate(labels.tolist())}
    unknown = [label for label in np.unique(y).tolist() if label not in number]
    if unknown:
        raise ValueError(f"y has the label {unknown[0]!r}, which is not one of the classes")
    return np.array([number[label] for label in y.tolist()]), np.clip(proba, 0, 1), labels


def confidence(code: np.ndarray, proba: np.ndarray, bins: int = 10) -> Bins:
    """The probability of the most probable class, and how often it is the right one."""
    return Bins.of(proba.max(1), proba.argmax(1) == code, bins)
