"""The pictures of the page."""

import base64
import io
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from hck import plotting
from hck.estimators.base import HCKEstimator
from hck.estimators.inspection import check_new, leaves_of
from hck.metrics import as_numbers, r2, rmse
from hck.plotting.cut import describe_leaves
from hck.plotting.lengthscales import feature_labels, kernel_of, lengthscales
from hck.plotting.metric import importances
from hck.plotting.style import Axes, need_matplotlib, percent
from hck.preparation.arrays import PointsLike
from hck.report._text import number, plural
from hck.report.model import rank_of
from hck.report.scores import LEVELS, Classification, Outcome, Regression, class_scores

_MOST_TARGETS = 4  # with a picture each
_SQUARE = (4.8, 4.3)  # inches


@dataclass(frozen=True)
class Picture:
    """A picture of the page."""

    heading: str
    caption: str
    alt: str  # what it shows, for those who do not see it
    source: str  # the picture itself, as a data URI
    width: int  # in CSS pixels
    height: int


def draw(
    heading: str, caption: str, alt: str, size: tuple[float, float], work: Callable[[Axes], object]
) -> Picture:
    """Let a function draw on axes of a size in inches."""
    matplotlib = need_matplotlib()
    from matplotlib.figure import Figure

    buffer = io.BytesIO()
    with plotting.style(), matplotlib.rc_context({"svg.hashsalt": "hck"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # names may be in any script
        figure = Figure(figsize=size, layout="constrained")
        work(figure.add_subplot())
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(buffer, format="svg", dpi=150, metadata=nothing)
    source = "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode()
    return Picture(heading, caption, alt, source, round(100 * size[0]), round(100 * size[1]))


def pictures(model: HCKEstimator, X: PointsLike, outcome: Outcome) -> list[Picture]:
    """Those that make sense for a model and its predictions."""
    return [*_of_predictions(outcome), *_of_the_kernel(model, X), *_of_the_tree(model, X)]


# Predictions --------------------------------------------------------------------------------------------


def _of_predictions(outcome: Outcome) -> Iterator[Picture]:
    if isinstance(outcome, Regression):
        for k in range(min(outcome.y.shape[1], _MOST_TARGETS)):
            yield _predictions(outcome, k)
            if (inside := outcome.inside(k)) is not None:
                yield _intervals(outcome, k, inside)
    elif isinstance(outcome, Classification) and outcome.proba is not None:
        yield _reliability(outcome, outcome.proba)


def _predictions(outcome: Regression, k: int) -> Picture:
    y, mean, std = outcome.target(k)
    reach = None if outcome.reach is None else float(outcome.reach[-1, k])
    return draw(
        f"Predicted and observed{_which(outcome, k)}",
        "On the dashed line predictions are right."
        + ("" if std is None else " Vertical lines are 95 % intervals of observations."),
        f"Predictions against observations of {plural(len(y), 'point')}: RMSE {number(rmse(y, mean))}, "
        f"R² {number(r2(y, mean))}.",
        _SQUARE,
        lambda ax: plotting.plot_predictions(y, mean, std, reach=reach, ax=ax),
    )


def _which(outcome: Regression, k: int) -> str:
    return "" if outcome.y.shape[1] == 1 else f", target {k}"


def _intervals(outcome: Regression, k: int, inside: np.ndarray) -> Picture:
    y, mean, std = outcome.target(k)
    assert std is not None
    assert outcome.reach is not None
    reach = outcome.reach[:, k]
    few = [(LEVELS[i], percent(inside[i])) for i in (9, -1)]
    shares = " and ".join(f"{share} in those of {100 * level:g} %" for level, share in few)
    return draw(
        f"Calibration of intervals{_which(outcome, k)}",
        "The share of observations in intervals of each level. In the grey band, differences from the dashed "
        "line may be chance.",
        f"Shares of observations inside their intervals against the level of the intervals: {shares}.",
        _SQUARE,
        lambda ax: plotting.plot_interval_calibration(y, mean, std, LEVELS, reach=reach, ax=ax),
    )


def _reliability(outcome: Classification, proba: np.ndarray) -> Picture:
    error = class_scores(outcome)["calibration_error"]
    return draw(
        "Calibration of probabilities",
        "How often classes occur where they were given a probability. On the dashed line, as often as "
        "predicted. Larger marks stand for more points.",
        f"Shares of classes against their predicted probabilities; calibration error {number(error)}.",
        _SQUARE,
        lambda ax: plotting.plot_reliability(
            outcome.y[outcome.known], proba[outcome.known], outcome.classes, ax=ax
        ),
    )


# The kernel ---------------------------------------------------------------------------------------------


def _of_the_kernel(model: HCKEstimator, X: PointsLike) -> Iterator[Picture]:
    if any(values.ndim and len(values) > 1 for values in lengthscales(model).values()):
        yield _lengthscales(model, _deviations(model, X))
    factor = kernel_of(model).stretch()
    if factor is not None and factor.ndim == 2:
        yield from _metric(model, _deviations(model, X))
    history = getattr(model, "history_", [])
    one = len(getattr(model, "kernels_", [None])) == 1  # else one history follows another
    if one and np.isfinite(history).any():
        steps, last = plural(len(history), "step"), number(history[-1])
        yield draw(
            "Learning",
            "The log-likelihood per observation while parameters were learned.",
            f"The log-likelihood per observation over {steps}, which ends at {last}.",
            (4.8, 3.8),
            lambda ax: plotting.plot_learning(model, ax=ax),
        )


def _lengthscales(model: HCKEstimator, unit: np.ndarray | None) -> Picture:
    least = np.min([values for values in lengthscales(model).values() if values.ndim], 0)
    least, features = least / (1.0 if unit is None else unit), feature_labels(model, len(least))
    order, count = np.argsort(least, kind="stable"), min(len(least), 30)
    shortest = ", ".join(f"{features[i]} {number(least[i])}" for i in order[:3])

    def work(ax: Axes) -> None:
        plotting.plot_lengthscales(model, unit=unit, ax=ax)
        if unit is not None:
            ax.set_xlabel("lengthscale / standard deviation of the feature")

    return draw(
        "Lengthscales",
        "How far points influence each other along each feature; the shorter, the more a feature matters."
        + ("" if unit is None else " Divided by the features' standard deviations in the given data."),
        f"Lengthscales of {plural(count, 'feature')}, the shortest first: {shortest}.",
        (4.8, 1.3 + 0.24 * max(count, 5)),
        work,
    )


def _metric(model: HCKEstimator, unit: np.ndarray | None) -> Iterator[Picture]:
    share = importances(model, unit)
    features, order = feature_labels(model, len(share)), np.argsort(-share, kind="stable")
    largest = ", ".join(f"{features[i]} {percent(share[i])}" for i in order[:3])
    count, few = min(len(share), 30), min(len(share), 20)
    units = "" if unit is None else " Features are measured in their standard deviations in the given data."
    yield draw(
        "Importance of features",
        f"How much of squared distances is due to each feature.{units}",
        f"Shares of {plural(count, 'feature')}, the largest first: {largest}.",
        (4.8, 1.3 + 0.24 * max(count, 5)),
        lambda ax: plotting.plot_importances(model, unit=unit, ax=ax),
    )
    yield draw(
        "Metric",
        "By which squared distances are measured: a pair of features with a positive entry counts where both "
        f"grow, or both fall; with a negative one, where one grows and the other falls.{units}",
        f"A matrix of {few} × {few} entries, of the most important features.",
        (2.8 + 0.3 * few, 1.8 + 0.3 * few),
        lambda ax: plotting.plot_metric(model, unit=unit, ax=ax),
    )


def _deviations(model: HCKEstimator, X: PointsLike) -> np.ndarray | None:
    """The standard deviations of features, where lengthscales are in their units."""
    x = None if model.features_scaled_ else check_new(model, X)
    if x is None or sp.issparse(x):
        return None
    spread = as_numbers("X", x).std(0)
    return np.where(spread > 0, spread, 1.0)


# The tree -----------------------------------------------------------------------------------------------


def _of_the_tree(model: HCKEstimator, X: PointsLike) -> Iterator[Picture]:
    if not model.trees_:
        return
    tree, which = model.trees_[0], "" if len(model.trees_) == 1 else " The first tree is shown."
    leaves = describe_leaves(tree)
    if getattr(model, "n_features_in_", 0) == 2 and len(model.kernel_feature_names_ or [0, 1]) == 2:
        x, leaf, names = check_new(model, X), leaves_of(model, X), model.kernel_feature_names_
        yield draw(
            "Partition",
            f"The given points in the colours of their leaves, in which the kernel is exact.{which}",
            f"The given points, coloured by leaf; the tree has {leaves}.",
            _SQUARE,
            lambda ax: plotting.plot_partition(tree, x, leaf=leaf, feature_names=names, ax=ax),
        )
    if tree.depth:
        zero = model.approximation == "independent"
        rank = 0 if zero else rank_of(model)
        blocks = "0" if zero else f"of rank {rank:,} at most"
        yield draw(
            "Tree",
            f"How the training points are divided; numbers are those of points.{which}",
            f"A sketch of the tree over {plural(tree.n_points, 'point')}: {leaves}, depth {tree.depth}.",
            (10.0, 4.6) if tree.n_leaves > 8 else (4.8, 3.8),
            lambda ax: plotting.plot_tree(tree, ax=ax),
        )
        yield draw(
            "Blocks of the kernel matrix",
            f"Leaves are dense; blocks between two children of a node are {blocks}.{which}",
            f"The kernel matrix: {plural(tree.n_leaves, 'dense block')} on the diagonal, and blocks that are "
            f"{blocks} beside it, at {plural(tree.depth, 'level')}.",
            (6.4, 4.2),
            lambda ax: plotting.plot_blocks(tree, rank, ax=ax),
        )
