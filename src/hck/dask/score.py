"""How good predictions are, from a few sums of each block."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client
from sklearn.exceptions import UndefinedMetricWarning

from hck.dask.blocks import label_block, number_block
from hck.dask.cluster import bring, lazy
from hck.dask.collections import beside, lazy_points
from hck.preparation.moments import Moments


@dataclass
class Errors:
    """Of predictions of numbers.

    Attributes
    ----------
    rows : int
    lost : ndarray of shape (targets,)
        The (weighted) sum of squared errors.
    seen : Moments
        Of the targets.
    """

    rows: int
    lost: np.ndarray
    seen: Moments

    def __add__(self, other: "Errors") -> "Errors":
        return Errors(self.rows + other.rows, self.lost + other.lost, self.seen + other.seen)


def r2(client: Client, X: Any, predicted: da.Array, y: Any, weight: Any) -> float:
    """R², the mean over targets, as `sklearn.metrics.r2_score` has it."""
    found = reduce(add, _of_blocks(client, _errors, X, predicted, y, weight))
    if found.rows < 2:
        warnings.warn("R² of fewer than two rows is not defined", UndefinedMetricWarning, stacklevel=3)
        return float("nan")
    _check_total(found.seen.count)
    lost, spread = found.lost, found.seen.square
    constant = np.where(lost > 0, 0.0, 1.0)  # where there is nothing to explain
    return float(np.mean(np.where(spread > 0, 1 - lost / np.where(spread > 0, spread, 1.0), constant)))


def accuracy(client: Client, X: Any, predicted: da.Array, y: Any, weight: Any) -> float:
    """The (weighted) share of right labels."""
    right, total = np.sum(_of_blocks(client, _right, X, predicted, y, weight), 0)
    _check_total(total)
    return float(right / total)


def _of_blocks(
    client: Client, compare: Callable[..., Any], X: Any, predicted: da.Array, y: Any, weight: Any
) -> list[Any]:
    """What comes of comparing y with predictions, block by block of X, where these are."""
    points, guesses = lazy_points(X), predicted.to_delayed().ravel()
    targets = beside(points, y, "y")
    weights = [None] * len(targets) if weight is None else beside(points, weight, "sample_weight")
    every = enumerate(zip(guesses, targets, weights, strict=True))
    return bring(client, [lazy(compare)(i, *each) for i, each in every], "score")


def _errors(number: int, predicted: np.ndarray, y: Any, weight: Any) -> Errors:
    y, weight = number_block(y, number), _weights(weight, number, predicted)
    y, predicted = (each if each.ndim == 2 else each[:, None] for each in (y, predicted))
    _check_length(y, number, predicted)
    if y.shape[1] != predicted.shape[1]:
        raise ValueError(f"y has {y.shape[1]} targets, but {predicted.shape[1]} are predicted")
    return Errors(len(y), weight @ (y - predicted) ** 2, Moments.of(y, weight))


def _right(number: int, predicted: np.ndarray, y: Any, weight: Any) -> tuple[float, float]:
    y, weight = label_block(y, number), _weights(weight, number, predicted)
    _check_length(y, number, predicted)
    return float(weight @ (y == predicted)), float(weight.sum())


def _weights(weight: Any, number: int, predicted: np.ndarray) -> np.ndarray:
    if weight is None:
        return np.ones(len(predicted))
    weight = number_block(weight, number, "sample_weight")
    weight = weight[:, 0] if weight.ndim == 2 and weight.shape[1] == 1 else weight
    if weight.ndim != 1:
        raise ValueError(f"sample_weight must have one axis, got a block of shape {weight.shape}")
    _check_length(weight, number, predicted, "sample_weight")
    return weight


def _check_length(values: np.ndarray, number: int, predicted: np.ndarray, name: str = "y") -> None:
    if len(values) != len(predicted):
        raise ValueError(
            f"block {number} of X has {len(predicted)} rows, but that of {name} has {len(values)}: they must "
            "have the same chunks (partitions)"
        )


def _check_total(weight: float) -> None:
    if weight == 0:
        raise ValueError("there is nothing to score: X is empty, or all weights are zero")
