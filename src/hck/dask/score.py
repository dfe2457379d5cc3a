"""How good predictions are, from a few sums of each chunk."""

import warnings
from dataclasses import dataclass
from functools import reduce
from operator import add

import dask.array as da
import numpy as np
from distributed import Client
from sklearn.exceptions import UndefinedMetricWarning

from hck.dask.cluster import Task, bring, lazy
from hck.dask.collections import Collection, beside, lazy_points
from hck.dask.training import check_length, label_chunk, number_chunk
from hck.preparation.sample import Moments


@dataclass
class Errors:
    """Of predictions of numbers: how many, weighted sums of squares (targets,), and moments of targets."""

    rows: int
    lost: np.ndarray
    seen: Moments

    def __add__(self, other: "Errors") -> "Errors":
        return Errors(self.rows + other.rows, self.lost + other.lost, self.seen + other.seen)


def r2(client: Client, X: Collection, predicted: da.Array, y: Collection, weight: Collection) -> float:
    """R², the mean over targets, as `sklearn.metrics.r2_score` has it."""
    each = [lazy(_errors)(*chunk) for chunk in _side_by_side(X, predicted, y, weight)]
    found: Errors = reduce(add, bring(client, each, "score"))
    if found.rows < 2:
        warnings.warn("R² of fewer than two rows is not defined", UndefinedMetricWarning, stacklevel=3)
        return float("nan")
    _check_total(found.seen.count)
    lost, spread = found.lost, found.seen.square
    constant = np.where(lost > 0, 0.0, 1.0)  # where there is nothing to explain
    return float(np.mean(np.where(spread > 0, 1 - lost / np.where(spread > 0, spread, 1.0), constant)))


def accuracy(client: Client, X: Collection, predicted: da.Array, y: Collection, weight: Collection) -> float:
    """The (weighted) share of right labels."""
    each = [lazy(_right)(*chunk) for chunk in _side_by_side(X, predicted, y, weight)]
    right, total = np.sum(bring(client, each, "score"), 0)
    _check_total(total)
    return float(right / total)


Compared = tuple[int, Task, Task, Task | None]


def _side_by_side(X: Collection, predicted: da.Array, y: Collection, weight: Collection) -> list[Compared]:
    """Of each chunk of X its number, and predictions, targets and weights, where these are."""
    points, guesses = lazy_points(X), predicted.to_delayed().ravel()
    targets = beside(points, y, "y")
    weights = [None] * len(targets) if weight is None else beside(points, weight, "sample_weight")
    return list(zip(range(len(targets)), guesses, targets, weights, strict=True))


def _errors(number: int, predicted: np.ndarray, y: Collection, weight: Collection) -> Errors:
    y, weight = number_chunk(y, number), _weights(weight, number, len(predicted))
    y, predicted = (each if each.ndim == 2 else each[:, None] for each in (y, predicted))
    check_length(y, number, len(predicted))
    if y.shape[1] != predicted.shape[1]:
        raise ValueError(f"y has {y.shape[1]} targets, but {predicted.shape[1]} are predicted")
    return Errors(len(y), weight @ (y - predicted) ** 2, Moments.of(y, weight))


def _right(number: int, predicted: np.ndarray, y: Collection, weight: Collection) -> tuple[float, float]:
    y, weight = label_chunk(y, number), _weights(weight, number, len(predicted))
    check_length(y, number, len(predicted))
    return float(weight @ (y == predicted)), float(weight.sum())


def _weights(weight: Collection, number: int, rows: int) -> np.ndarray:
    if weight is None:
        return np.ones(rows)
    weight = number_chunk(weight, number, "sample_weight")
    weight = weight[:, 0] if weight.ndim == 2 and weight.shape[1] == 1 else weight
    if weight.ndim != 1:
        raise ValueError(f"sample_weight must have one axis, got a block of shape {weight.shape}")
    check_length(weight, number, rows, "sample_weight")
    return weight


def _check_total(weight: float) -> None:
    if weight == 0:
        raise ValueError("there is nothing to score: X is empty, or all weights are zero")
