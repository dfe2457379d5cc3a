"""The pictures of the page."""

import base64
import io
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from torch import Tensor

from hck.estimators import HCKGaussianProcessRegressor, HCKKernelPCA
from hck.estimators.ridge import RidgeEstimator
from hck.metrics import coverage, r2, rmse
from hck.plotting import (
    plot_blocks,
    plot_interval_calibration,
    plot_learning,
    plot_lengthscales,
    plot_partition,
    plot_predictions,
    plot_reliability,
    plot_tree,
    style,
)
from hck.plotting.cut import describe_leaves
from hck.plotting.lengthscales import feature_labels, feature_names, lengthscales
from hck.plotting.style import need_matplotlib, percent
from hck.points import Points, as_points, as_points_like
from hck.report._text import number, plural
from hck.report.scores import Classification, Outcome, Regression, class_scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_TARGETS = 4  # with a picture each


@dataclass(frozen=True)
class Picture:
    """A picture of the page.

    Attributes
    ----------
    heading, caption : str
        Above and below it.
    alt : str
        What it shows, for those who do not see it.
    source : str
        The picture itself, as a data URI.
    width, height : int
        In CSS pixels.
    """

    heading: str
    caption: str
    alt: str
    source: str
    width: int
    height: int


def draw(
    heading: str, caption: str, alt: str, size: tuple[float, float], work: Callable[["Axes"], Any]
) -> Picture:
    """Let a function draw on axes of a size in inches."""
    matplotlib = need_matplotlib()
    from matplotlib.figure import Figure

    buffer = io.BytesIO()
    with style(), matplotlib.rc_context({"svg.hashsalt": "hck"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # names may be in any script
        figure = Figure(figsize=size, layout="constrained")
        work(figure.add_subplot())
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(buffer, format="svg", dpi=150, metadata=nothing)
    source = "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode()
    return Picture(heading, caption, alt, source, round(100 * size[0]), round(100 * size[1]))


def pictures(model: Any, X: Any, outcome: Outcome) -> list[Picture]:
    """Those that make sense for a model and its predictions."""
    return [*_of_predictions(outcome), *_of_the_kernel(model, X), *_of_the_tree(model, X)]


# Predictions --------------------------------------------------------------------------------------------


def _of_predictions(outcome: Outcome) -> Iterator[Picture]:
    if isinstance(outcome, Regression):
        for k in range(min(outcome.y.shape[1], _MOST_TARGETS)):
            yield _predictions(outcome, k)
        if outcome.std is not None:
            yield _intervals(outcome.y[:, 0], outcome.mean[:, 0], outcome.std)
    elif isinstance(outcome, Classification) and outcome.proba is not None:
        yield _reliability(outcome, outcome.proba)


def _predictions(outcome: Regression, k: int) -> Picture:
    y, mean, std = outcome.y[:, k], outcome.mean[:, k], outcome.std
    several = "" if outcome.y.shape[1] == 1 else f", target {k}"
    return draw(
        f"Predicted and observed{several}",
        "On the dashed line predictions are right."
        + ("" if std is None else " Vertical lines are 95 % intervals of observations."),
        f"Predictions against observations of {plural(len(y), 'point')}: RMSE {number(rmse(y, mean))}, "
        f"R² {number(r2(y, mean))}.",
        (4.8, 4.3),
        lambda ax: plot_predictions(y, mean, std, ax=ax),
    )


def _intervals(y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> Picture:
    inside = [(level, percent(coverage(y, mean, std, level))) for level in (0.5, 0.95)]
    shares = " and ".join(f"{share} in those of {100 * level:g} %" for level, share in inside)
    return draw(
        "Calibration of intervals",
        "The share of observations in intervals of each level. In the grey band, differences from the dashed "
        "line may be chance.",
        f"Shares of observations inside their intervals against the level of the intervals: {shares}.",
        (4.8, 4.3),
        lambda ax: plot_interval_calibration(y, mean, std, ax=ax),
    )


def _reliability(outcome: Classification, proba: np.ndarray) -> Picture:
    error = class_scores(outcome)["calibration_error"]
    return draw(
        "Calibration of probabilities",
        "How often classes occur where they were given a probability. On the dashed line, as often as "
        "predicted. Larger marks stand for more points.",
        f"Shares of classes against their predicted probabilities; calibration error {number(error)}.",
        (4.8, 4.3),
        lambda ax: plot_reliability(outcome.y[outcome.known], proba[outcome.known], outcome.classes, ax=ax),
    )


# The kernel ---------------------------------------------------------------------------------------------


def _of_the_kernel(model: Any, X: Any) -> Iterator[Picture]:
    many = [values for values in lengthscales(model).values() if values.ndim and len(values) > 1]
    if many:
        yield _lengthscales(model, X, min(len(many[0]), 30))
    if isinstance(model, HCKGaussianProcessRegressor) and np.isfinite(model.history_).any():
        last = number(model.history_[-1])
        steps = plural(len(model.history_), "step")
        yield draw(
            "Learning",
            "The log-likelihood per observation while parameters were learned.",
            f"The log-likelihood per observation over {steps}, which ends at {last}.",
            (4.8, 3.8),
            lambda ax: plot_learning(model, ax=ax),
        )


def _lengthscales(model: Any, X: Any, count: int) -> Picture:
    unit = _deviations(model, X)
    shortest = ", ".join(_shortest(model, unit))

    def work(ax: "Axes") -> None:
        plot_lengthscales(model, unit=unit, ax=ax)
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


def _shortest(model: Any, unit: np.ndarray | None) -> list[str]:
    """The features with the shortest lengthscales, and these."""
    every = [values for values in lengthscales(model).values() if values.ndim]
    least = np.min(every, 0) / (1.0 if unit is None else unit)
    features = feature_labels(model, len(least))
    return [f"{features[i]} {number(least[i])}" for i in np.argsort(least, kind="stable")[:3]]


def _deviations(model: Any, X: Any) -> np.ndarray | None:
    """The standard deviations of features, where lengthscales are in their units."""
    if isinstance(model, RidgeEstimator) and model._scaling.factor is not None:
        return None
    x = model._validate_new(X)
    if sp.issparse(x):
        return None
    spread = np.asarray(x.cpu() if isinstance(x, Tensor) else x, dtype=float).std(0)
    return np.where(spread > 0, spread, 1.0)


# The tree -----------------------------------------------------------------------------------------------


def _of_the_tree(model: Any, X: Any) -> Iterator[Picture]:
    if not model.trees_:
        return
    tree, which = model.trees_[0], "" if len(model.trees_) == 1 else " The first tree is shown."
    leaves = describe_leaves(tree)
    if getattr(model, "n_features_in_", 0) == 2 and getattr(model, "_categories", None) is None:
        x, leaf = model._validate_new(X), leaves_of(model, X)
        yield draw(
            "Partition",
            f"The given points in the colours of their leaves, in which the kernel is exact.{which}",
            f"The given points, coloured by leaf; the tree has {leaves}.",
            (4.8, 4.3),
            lambda ax: plot_partition(tree, x, leaf=leaf, feature_names=feature_names(model), ax=ax),
        )
    if tree.depth:
        zero = model.approximation == "independent"
        rank = 0 if zero else int(getattr(model, "selection_", model).rank)
        kind = "0" if zero else f"of rank {rank:,} at most"
        yield draw(
            "Tree",
            f"How the training points are divided; numbers are those of points.{which}",
            f"A sketch of the tree over {plural(tree.n_points, 'point')}: {leaves}, depth {tree.depth}.",
            (10.0, 4.6) if tree.n_leaves > 8 else (4.8, 3.8),
            lambda ax: plot_tree(tree, ax=ax),
        )
        yield draw(
            "Blocks of the kernel matrix",
            f"Leaves are dense; blocks between two children of a node are {kind}.{which}",
            f"The kernel matrix: {plural(tree.n_leaves, 'dense block')} on the diagonal, and blocks that are "
            f"{kind} beside it, at {plural(tree.depth, 'level')}.",
            (6.4, 4.2),
            lambda ax: plot_blocks(tree, rank, ax=ax),
        )


def leaves_of(model: Any, X: Any) -> Tensor:
    """The leaf number of each point in the first tree of a model."""
    x = model._validate_new(X)
    if isinstance(model, RidgeEstimator):
        trained = model.forest_.members[0].points
        points: Points = model._scaling(as_points(x, device=trained.device), trained.dtype)
    elif isinstance(model, HCKKernelPCA):
        points = as_points_like(x, model._predictor.points)
    else:
        points = as_points_like(x, model.posterior_.members[0].mean.points)
    return model.trees_[0].route(points)
