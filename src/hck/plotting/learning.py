"""How a likelihood grew."""

from collections.abc import Sequence

import numpy as np
from sklearn.base import BaseEstimator

from hck.metrics import as_numbers
from hck.plotting.style import BLUE, INK, Axes, panel


def plot_learning(model: BaseEstimator | Sequence[float], *, ax: "Axes | None" = None) -> Axes:
    """Draw the log-likelihood per observation at each step of learning.

    Steps with fresh trees or points are noisy. Where the first steps are far below all others, they are
    outside the picture.

    Parameters
    ----------
    model : HCKGaussianProcessRegressor or sequence of float
        A fitted one, or its `history_`.
    ax : Axes, default=None

    Returns
    -------
    Axes

    Examples
    --------
    >>> ax = plot_learning([-1.4, -0.9, -0.8])
    >>> ax.get_ylabel()
    'log-likelihood per observation'
    """
    history = _history(model)
    step = np.arange(1, len(history) + 1)
    known = np.isfinite(history)
    with panel(ax) as ax:
        from matplotlib.ticker import MaxNLocator

        ax.plot(step[known], history[known], color=BLUE, marker="o" if len(step) <= 40 else "", markersize=3)
        last = history[known][-1]
        ax.plot(step[known][-1], last, "o", color=INK, markersize=5)
        ax.set(xlabel="step", ylabel="log-likelihood per observation")
        ax.set_title(
            f"{len(step)} {'step' if len(step) == 1 else 'steps'}, at last {last:.4g}".replace("-", "−")
        )
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        _focus(ax, history[known])
    return ax


def _history(model: BaseEstimator | Sequence[float]) -> np.ndarray:
    if hasattr(model, "get_params") and not hasattr(model, "history_"):
        raise TypeError(
            f"this {type(model).__name__} has no likelihood that was maximised step by step: pass a "
            "fitted HCKGaussianProcessRegressor, or a history"
        )
    history = as_numbers("the history", getattr(model, "history_", model))
    if history.ndim != 1 or not np.isfinite(history).any():
        raise ValueError("the history is empty: nothing was learned")
    return history


def _focus(ax: Axes, values: np.ndarray) -> None:
    """Leave the first steps out where they would make all others look the same."""
    low, middle, high = values.min(), np.quantile(values, 0.1), values.max()
    if len(values) >= 20 and middle - low > 2 * (high - middle) > 0:
        room = high - middle
        ax.set_ylim(middle - 0.5 * room, high + 0.1 * room)
