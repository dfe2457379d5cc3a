"""How much work a fit may take, and what to spend it on.

Work is counted in floating-point operations, not in seconds, so that the same call chooses the same
parameters on a busy machine.
"""

import math
import time
from dataclasses import dataclass, field

import torch

from hck.backend.kinds import KINDS, kind_of
from hck.partition import Tree
from hck.points import Points
from hck.selection.candidate import Given, Shape
from hck.settings import Settings

UNKNOWN = 500  # features that a value of a kernel costs as much as, where points have none

OF_A_RANK = ("nystrom", "fourier", "tapered")  # approximations without a tree, whose rank is chosen
_RATIO = 8  # leaf size over rank
SCOUTING = Shape(1, 512, 64)  # trees with which kernels are first compared
_SHARE = {"fast": 1.0, "balanced": 2.5, "best": 12.0}
_EACH_POINT, _EACH_CUT = 7e4, 40.0  # operations beside those of a tree's algebra; a feature's, to cut it
_REFINED = 20_000  # observations at most on which the ridge of approximations without a tree is chosen
_LEAST = 500  # points: fewer are worth as much work
_NEAR = 128  # points of a neighbourhood, and some more for each feature; larger ones show less fine detail


def allowed_work(fit_time: str | float, n: int, device: torch.device) -> float:
    """Operations that a fit may take in some seconds, or with a name: "fast", "balanced" or "best".

    On two cores fast is a second for 2,000 points, three for 8,000, a minute for 460,000; on a GPU four times
    as much work is done, in less time.
    """
    if isinstance(fit_time, str):
        seconds = _SHARE[fit_time] * (max(n, _LEAST) / 2000) ** 0.75
        return kind_of(device).more_work * KINDS["cpu"].rate * seconds
    return float(fit_time) * kind_of(device).rate


def tree_work(n: int, d: int, leaf_size: float, rank: int) -> float:
    """Operations for the fit of one tree."""
    algebra = leaf_size**2 / 3 + 3 * leaf_size * rank + 4 * rank**2 + 9 * rank**3 / leaf_size
    each = 2 * d / 3 + 60 if d > 256 else 4 * d + 60  # of a kernel value, in operations of a product
    return n * (algebra + (leaf_size + rank) * each)


def forest_work(n: int, d: int, shape: Shape) -> float:
    """Operations that training takes as much time as, with leaves as they come by halving points."""
    if shape.leaf_size is None:  # features alone: how they are made, their Gram matrix, left-out predictions
        return shape.n_trees * (n * shape.rank * (6 * shape.rank + 4 * d + 60) + 10 * shape.rank**3)
    levels = max(0, math.ceil(math.log2(n / shape.leaf_size)))
    algebra = tree_work(n, d, n / 2**levels, shape.rank)
    return shape.n_trees * (algebra + n * (_EACH_POINT + _EACH_CUT * d * levels))


def exact_rows(points: Points, runs: int, work: float) -> int:
    """Points on which a device compares kernels in so many runs without trees; 0 where it has to have these.

    A GPU waits for the commands of a tree, but works on one large matrix at its full rate.
    """
    kind, n = kind_of(points.device), len(points)
    if kind.dense_gain <= 1 or points.values_per_point is None:
        return 0
    return min(n, int((0.75 * kind.dense_gain * work / runs) ** (1 / 3)))  # 4/3 n³ for an inverse


def refining(kind: str, work: float) -> int:
    """Points on which the ridge of approximations without a tree is chosen.

    A tapered matrix of many features is nearly full when it is factored.
    """
    return max(_LEAST, min(_REFINED, int((0.8 * work) ** (1 / 3)))) if kind == "tapered" else _REFINED


def features_within(n: int, work: float) -> int:
    """The largest rank for which features of n points and their algebra take no more work than is allowed."""
    rank = 16
    while n * (rank * 1.1) ** 2 + 10 * (rank * 1.1) ** 3 <= work:
        rank = int(rank * 1.1)
    return rank


# Kernels that learn lengthscales, those that learn a matrix, and tries, each up to some multiple of 10¹¹
# operations.
_EFFORTS = ((0.5, 2, 1, 6), (2, 3, 2, 8), (10, 3, 3, 10), (math.inf, 4, 3, 12))


@dataclass(frozen=True)
class Effort:
    """How much is tried to find a kernel."""

    kernels: int  # that learn a lengthscale for each feature
    matrices: int  # kernels that learn a matrix
    steps: int  # for a matrix
    size: int  # of neighbourhoods
    tries: int  # of a scale and a ridge for a candidate
    scouts: int  # observations that candidates are tried on
    scouting: Shape = SCOUTING  # of the trees over them

    @classmethod
    def within(cls, work: float, points: Points, fewest: int) -> "Effort":
        """As much as is allowed, with so many scouts at least; a GPU does more of it at once."""
        share = work / (1e11 * kind_of(points.device).more_work)
        kernels, matrices, tries = next(each[1:] for each in _EFFORTS if share < each[0])
        if points.dtype == torch.float32 and matrices == 1:
            kernels = 1  # the second is smooth, and its matrix for few points nearly singular in this type
        trials = tries * (2 * kernels + 2 * matrices + 3)
        d = points.values_per_point or UNKNOWN
        scouts = 0.25 * work / (trials * tree_work(1, d, SCOUTING.leaf_size or 1, SCOUTING.rank))
        exact = exact_rows(points, trials, 0.25 * work)
        scouts = int(min(16_000, max(fewest, exact or scouts)))
        return cls(
            kernels,
            matrices,
            steps=int(min(600, max(200, 400 * share**0.3))),
            size=_NEAR + min(2 * d, 64),
            tries=tries,
            scouts=scouts,
            scouting=Shape(1, scouts, 1) if exact else SCOUTING,
        )


@dataclass(frozen=True)
class Limits:
    """What a fit may take."""

    work: float  # operations
    memory: float = math.inf  # bytes, beside the data
    deadline: float = math.inf  # by `time.perf_counter`, where seconds count instead of operations
    begin: float = field(default_factory=time.perf_counter)

    def allow(self, seconds: float, by: float = 1.0) -> bool:
        """Whether something may take so many seconds, after which a part of all the time may be over."""
        return time.perf_counter() + seconds <= self.begin + by * (self.deadline - self.begin)


def final_shape(given: Given, settings: Settings, points: Points, limits: Limits) -> Shape:
    """The size of what is trained on some points: what is given, and the best that the limits allow.

    The rank that counts is that of `given`, not that of the settings.
    """
    n, n_trees, leaf_size, kind = len(points), given.n_trees, settings.leaf_size, settings.approximation
    if kind != "hierarchical":
        n_trees = n_trees or 1
    if given.rank is not None:
        return Shape(n_trees or 1, leaf_size, given.rank)
    if kind in OF_A_RANK:
        return Shape(n_trees or 1, None, min(64 if kind == "tapered" else n, features_within(n, limits.work)))
    if isinstance(settings.partition, Tree):
        tree, n_trees = settings.partition, n_trees or 1
        leaf_size = int(tree.size[tree.leaves].max())
    if leaf_size is not None:
        several = 8 if leaf_size < n else 1
        return Shape(n_trees or several, leaf_size, max(1, min(leaf_size, n) // _RATIO))
    d, memory = points.values_per_point or UNKNOWN, limits.memory / points.dtype.itemsize
    single = kind_of(points.device).single_matrix
    if (points.values_per_point or 0) >= n:  # kernel values are most of the work, of many trees as well
        single = max(1.0, single)
    return forest_shape((n, d), Limits(limits.work, memory), n_trees, single)


def forest_shape(
    size: tuple[int, int], limits: Limits, n_trees: int | None = None, single: float = 0.25
) -> Shape:
    """The largest leaves for which a forest takes no more work and memory than is allowed.

    Here memory is that of a tree, in numbers. By default there are 8 trees, or a single leaf if that takes no
    more than the part `single` of the work.
    """
    n, d = size  # points and features
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
