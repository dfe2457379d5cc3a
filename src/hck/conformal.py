"""Intervals and sets of a coverage, from what models predict of training points that were left out.

The k-th smallest of n errors of left-out points, k = ⌈(n + 1) level⌉, is exceeded by that of a new point in
1 − level of all cases, if both have the same distribution: the jackknife. Errors are compared in units of
their local scale, so that intervals are wide where errors are large. Points that shaped the metric of the
kernel have smaller errors than new ones, even where they are left out. Where there are others, these say by
how much (`as_if_held`).

Its relative, the jackknife+ (Barber, Candès, Ramdas and Tibshirani, Annals of Statistics 49, 2021), shifts
the end of each point by what it has changed at x, and then covers at least 1 − 2 (1 − level) of all cases,
whatever the data. A point changes f(x) by its weight in f(x) times its left-out error: nothing, but for the
few close to x. The two differ by these few among n.
"""

import math
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, TypeGuard

import numpy as np
import torch

from hck.approximations.base import part_of
from hck.backend.checks import check_floats, check_indices, require
from hck.backend.parallel import chunks
from hck.hierarchy import Forest, TreePredictor
from hck.hierarchy.forest import Predictor
from hck.kernels import Kernel
from hck.kernels.stationary import Stationary
from hck.points import Points

_NEIGHBOURS = 30  # in each tree
_PRIOR = 1.0  # neighbours, in each tree, with the mean error of all: what a local mean starts from
_LEAST = 0.01  # of a local scale, in mean errors
_MOST = 20_000  # training points that errors in local units are computed of
_AT_ONCE = 2**16  # new points whose neighbours are looked for together
_ROUNDING = 1e-9  # of a number of points


@dataclass
class LeftOutErrors:
    """What models that have not seen training points got wrong about these.

    Attributes
    ----------
    values : ndarray of shape (n, targets)
        Observed less predicted; of classes, 1 less the probability of the class that was observed.
    weight : ndarray of shape (n,), optional
        A point of weight 2 counts as two. A new point has the mean weight.
    held : ndarray of shape (m,), optional
        Points that shaped no metric, of size m.

    Examples
    --------
    >>> import numpy as np
    >>> from hck.conformal import LeftOutErrors
    >>> errors = LeftOutErrors(np.array([[3.0], [-1.0], [2.0]]))
    >>> errors.threshold(0.5), errors.threshold(0.75), errors.threshold(0.9)
    (array([2.]), array([3.]), array([inf]))
    """

    values: np.ndarray
    weight: np.ndarray | None = None
    held: np.ndarray | None = None
    _kept: "np.ndarray | None" = field(default=None, repr=False, compare=False)

    def validate(self) -> None:
        check_floats("values", torch.from_numpy(self.values), None, None)
        require(len(self.values) > 0, "values must not be empty")
        if self.weight is not None:
            check_floats("weight", torch.from_numpy(self.weight), len(self.values))
            require(bool((self.weight > 0).all()), "weight must be positive")
        if self.held is not None:
            check_indices("held", torch.from_numpy(self.held), len(self.values), None)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": None}

    def reaches(self, level: float) -> bool:
        """Whether there are enough points for a level: whether thresholds are finite."""
        return bool(np.isfinite(self.threshold(level)).all())

    def threshold(self, level: float, local: "LocalScale | None" = None) -> np.ndarray:
        """What a share `level` of errors, those of new points included, stays within: shape (targets,).

        Infinite if there are too few points. In units of a local scale, if there is one.
        """
        check_level(level)
        rows = np.arange(len(self.values)) if local is None else self._some()
        size = np.abs(self.values) if local is None else self._scores(rows, local)
        weight = None if self.weight is None else self.weight[rows]
        if self.held is not None:
            size = as_if_held(size, np.isin(rows, self.held), weight)
        return threshold(size, weight, level)

    def _some(self) -> np.ndarray:
        """Rows from all over, at most so many that their scales are known soon."""
        n = len(self.values)
        return np.arange(n) if n <= _MOST else np.linspace(0, n - 1, _MOST).astype(np.int64)

    def _scores(self, rows: np.ndarray, local: "LocalScale") -> np.ndarray:
        """Errors in units of their scale, as all others have it."""
        if self._kept is None:
            self._kept = np.abs(self.values[rows]) / local.left_out(rows)
        return self._kept


def as_if_held(size: np.ndarray, held: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Errors (n, targets) as large as if no point had shaped the metric, given which of them did not (n,).

    Those of all others are multiplied by the squared ratio of both kinds' mean roots: roots, since a few
    large errors must not settle that. Its logarithm l, with the standard error s, becomes l − s²/l, which is
    what is left of it when chance is taken away (James and Stein), and not less than 0.
    """
    if held.all() or not held.any():
        return size
    (mean, chance), (rest, rest_chance) = (
        _mean_root(size[part], None if weight is None else weight[part]) for part in (held, ~held)
    )
    with np.errstate(all="ignore"):
        ratio = np.log(mean / rest)
        ratio = ratio - (chance + rest_chance) / ratio
    known = np.isfinite(ratio) & (mean > rest)
    return np.where(held[:, None], size, size * np.exp(2 * np.where(known, ratio, 0.0).clip(0)))


def _mean_root(size: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The mean root of errors (n, targets) that are finite, (targets,), and its squared relative error."""
    known = np.isfinite(size)
    counts = known * (1.0 if weight is None else weight[:, None])
    root = np.sqrt(np.where(known, size, 0.0))
    with np.errstate(all="ignore"):  # where none is finite, or all are 0
        share = counts / counts.sum(0)
        mean = (share * root).sum(0)
        return mean, np.square(share * (root - mean)).sum(0) / mean**2


def check_level(level: object) -> None:
    """Raise ValueError unless it is a number between 0 and 1."""
    if isinstance(level, bool) or not isinstance(level, Real) or not 0 < float(level) < 1:
        raise ValueError(f"a level of coverage is a number between 0 and 1, such as 0.9, got {level!r}")


def threshold(size: np.ndarray, weight: np.ndarray | None, level: float) -> np.ndarray:
    """The smallest errors (n, targets) below which lies the share `level` of n + 1: shape (targets,)."""
    n, wanted = len(size), level * (len(size) + 1) - _ROUNDING
    if weight is None or n < 2:
        k = math.ceil(wanted) if n > 1 else 2  # of a single point, there are no others that predict it
        return np.full(size.shape[1], np.inf) if k > n else np.partition(size, k - 1, axis=0)[k - 1]
    order = np.argsort(size, axis=0)
    counted = np.cumsum((weight / weight.mean())[order], axis=0)
    place = (counted < wanted).sum(0)
    ends = np.concatenate([np.take_along_axis(size, order, 0), np.full((1, size.shape[1]), np.inf)])
    return np.take_along_axis(ends, place[None], 0)[0]


class LocalScale:
    """The mean of errors close to a point: those of its neighbours in its leaves, over all trees.

    Made by `LocalScale.of`.
    """

    def __init__(self, trees: list[TreePredictor], size: np.ndarray, overall: np.ndarray) -> None:
        self.trees, self.size, self.overall = trees, size, overall  # sizes of errors (n, targets), their mean

    @classmethod
    def of(cls, forest: Forest, errors: LeftOutErrors) -> "LocalScale | None":
        """For the points that a forest was trained with; None if it does not know which are close."""
        trees = [member for member in forest.members if _knows_neighbours(member, len(errors.values))]
        if len(trees) < len(forest.members):
            return None
        size = np.abs(errors.values)
        overall = np.average(size, 0, errors.weight)
        return cls(trees, size, np.where(overall > 0, overall, 1.0))

    def __call__(self, x: Points) -> np.ndarray:
        """At new points: shape (points, targets)."""
        parts = [part_of(x, part) for part in chunks(0, len(x), _AT_ONCE)]
        every = ([tree.neighbours(part, _NEIGHBOURS).cpu().numpy() for tree in self.trees] for part in parts)
        return np.concatenate([self._mean(near) for near in every])

    def left_out(self, rows: np.ndarray) -> np.ndarray:
        """At some training points, without their own errors: shape (rows, targets)."""
        found = []
        for tree in self.trees:
            x = tree.points.take(torch.from_numpy(rows).to(tree.points.device))
            near = tree.neighbours(x, _NEIGHBOURS + 1).cpu().numpy()
            found.append(np.where(near == rows[:, None], -1, near))
        return self._mean(found)

    def _mean(self, near: list[np.ndarray]) -> np.ndarray:
        """Of errors at neighbours (points, neighbours) in each tree, −1 for none."""
        prior = _PRIOR * len(near)
        total, count = np.tile(prior * self.overall, (len(near[0]), 1)), np.full((len(near[0]), 1), prior)
        sizes = np.concatenate([self.size, np.zeros((1, self.size.shape[1]))])  # −1 is the last
        for each in near:
            total += sizes[each].sum(1)
            count += (each >= 0).sum(1, keepdims=True)
        return np.maximum(total / count, _LEAST * self.overall)


def _knows_neighbours(member: Predictor, n: int) -> TypeGuard[TreePredictor]:
    """Whether it has all n training points in their order, and a kernel that falls with the distance."""
    if not isinstance(member, TreePredictor) or member.order is None:
        return False
    return len(member.points) == n and _of_differences(member.kernel)


def _of_differences(kernel: Kernel) -> bool:
    parts = [getattr(kernel, name, None) for name in ("left", "right", "kernel")]
    inner = [part for part in parts if isinstance(part, Kernel)]
    return all(map(_of_differences, inner)) if inner else isinstance(kernel, Stationary)
