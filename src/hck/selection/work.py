"""How much work a fit may take, and what to spend it on.

Work is counted in floating-point operations, not in seconds, so that the same call chooses the same
parameters on a busy machine.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch

from hck.backend.kinds import KINDS, kind_of
from hck.partition import Tree
from hck.points import Points

UNKNOWN = 500  # features that a value of a kernel costs as much as, where points have none

OF_A_RANK = ("nystrom", "fourier", "tapered")  # approximations without a tree, whose rank is chosen
_RATIO = 8  # leaf size over rank
_SHARE = {"fast": 0.2, "balanced": 1.0, "best": 8.0}


def allowed_work(fit_time: Any, n: int, device: torch.device) -> float:
    """Operations that a fit may take.

    Parameters
    ----------
    fit_time : {"fast", "balanced", "best"} or float
        Seconds, or a name: balanced is half a minute and a minute for every 120,000 points on two cores; on a
        GPU four times as much work is done, in less time.
    """
    if isinstance(fit_time, str):
        return _SHARE[fit_time] * kind_of(device).more_work * KINDS["cpu"].rate * (30 + n / 2000)
    return float(fit_time) * kind_of(device).rate


def tree_work(n: int, d: int, leaf_size: int, rank: int) -> float:
    """Operations for the fit of one tree."""
    algebra = leaf_size**2 / 3 + 3 * leaf_size * rank + 4 * rank**2 + 9 * rank**3 / leaf_size
    each = 2 * d / 3 + 60 if d > 256 else 4 * d + 60  # of a kernel value, in operations of a product
    return n * (algebra + (leaf_size + rank) * each)


def features_within(n: int, work: float) -> int:
    """The largest rank for which features of n points and their algebra take no more work than is allowed."""
    rank = 16
    while n * (rank * 1.1) ** 2 + 10 * (rank * 1.1) ** 3 <= work:
        rank = int(rank * 1.1)
    return rank


@dataclass(frozen=True)
class Shape:
    """The size of a forest."""

    n_trees: int
    leaf_size: int | None  # None: between rank and twice as much
    rank: int


@dataclass(frozen=True)
class GivenShape:
    """What is given of a forest, or of another approximation; None is to be chosen.

    Attributes
    ----------
    approximation : object
        Its name, or what stands in its place.
    tree : Tree, optional
        That takes the place of all trees.
    """

    approximation: object = "hierarchical"
    n_trees: int | None = None
    leaf_size: int | None = None
    rank: int | None = None
    tree: Tree | None = None


@dataclass(frozen=True)
class Limits:
    """What a fit may take.

    Attributes
    ----------
    work : float
        Operations.
    memory : float
        Bytes, beside the data.
    """

    work: float
    memory: float = math.inf


def final_shape(given: GivenShape, points: Points, limits: Limits) -> Shape:
    """The size of what is trained on some points: what is given, and the best that the limits allow."""
    n, n_trees, leaf_size = len(points), given.n_trees, given.leaf_size
    if given.approximation != "hierarchical":
        n_trees = n_trees or 1
    if given.rank is not None:
        return Shape(n_trees or 1, leaf_size, given.rank)
    if given.approximation in OF_A_RANK:
        most = n if given.approximation != "tapered" else 64
        return Shape(n_trees or 1, None, min(most, features_within(n, limits.work)))
    if given.tree is not None:
        leaf_size = int(given.tree.size[given.tree.leaves].max())
        n_trees = n_trees or 1
    if leaf_size is not None:
        several = 8 if leaf_size < n else 1
        return Shape(n_trees or several, leaf_size, max(1, min(leaf_size, n) // _RATIO))
    single = kind_of(points.device).single_leaf
    d, memory = points.values_per_point or UNKNOWN, limits.memory / points.dtype.itemsize
    return forest_shape((n, d), Limits(limits.work, memory), n_trees, single)


def forest_shape(
    size: tuple[int, int], limits: Limits, n_trees: int | None = None, single: float = 0.25
) -> Shape:
    """The largest leaves for which a forest takes no more work and memory than is allowed.

    Parameters
    ----------
    size : (int, int)
        n and d: points, and features.
    limits : Limits
        With the numbers that may be stored for a tree as the memory.
    n_trees : int, optional
        By default 8, or a single leaf if that holds all points.
    single : float
        The part of the work that a single leaf may take, to be preferred to several trees.
    """
    n, d = size
    if n_trees is None and tree_work(n, d, n, 1) <= single * limits.work and 3 * n * n <= limits.memory:
        return Shape(1, n, max(1, n // _RATIO))
    trees, best = n_trees or 8, min(64, n)
    largest = int(min(n, limits.memory / (3 * n)))
    for step in range(1, 400):
        leaf = min(int(64 * 1.05**step), largest)
        if leaf <= best or trees * tree_work(n, d, leaf, max(1, leaf // _RATIO)) > limits.work:
            break
        best = leaf
    return Shape(trees, best, max(1, best // _RATIO))
