"""How much work a fit may take, and what to spend it on.

Work is counted in floating-point operations, not in seconds, so that the same call chooses the same
parameters on a busy machine.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch

from hck.backend.kinds import KINDS, kind_of

UNKNOWN = 500  # features that a value of a kernel costs as much as, where points have none

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


def forest_shape(
    n: int,
    d: int,
    work: float,
    memory: float = math.inf,
    n_trees: int | None = None,
    ratio: int = 8,
    single: float = 0.25,
) -> Shape:
    """The largest leaves for which a forest takes no more work and memory than is allowed.

    Parameters
    ----------
    memory : float
        Numbers that may be stored for a tree.
    n_trees : int, optional
        By default 8, or a single leaf if that holds all points.
    ratio : int
        Leaf size over rank.
    single : float
        The part of the work that a single leaf may take, to be preferred to several trees.
    """
    if n_trees is None and tree_work(n, d, n, 1) <= single * work and 3 * n * n <= memory:
        return Shape(1, n, max(1, n // ratio))
    trees, best = n_trees or 8, min(64, n)
    largest = int(min(n, memory / (3 * n)))
    for step in range(1, 400):
        size = min(int(64 * 1.05**step), largest)
        if size <= best or trees * tree_work(n, d, size, max(1, size // ratio)) > work:
            break
        best = size
    return Shape(trees, best, max(1, best // ratio))
