"""Estimators whose trees are worked on branch by branch: what they share, wherever the branches are."""

import inspect
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from torch import Tensor

from hck.backend.memory import resolve_budget
from hck.branches import Branch, Message, Reply, Trunk, branches_for
from hck.branches.trunk import POINTS_PER_BRANCH, check_partition
from hck.estimators.base import _DTYPES
from hck.estimators.ridge import RidgeEstimator
from hck.hierarchy import Extension, Forest
from hck.kernels import Kernel
from hck.partition import leaf_size_for
from hck.points import DensePoints, Points, as_points
from hck.preparation.coding import OneAgainstAll
from hck.preparation.moments import Moments
from hck.preparation.scaling import Scaling
from hck.selection import Selection
from hck.selection.loss import Calibration

_CHOSEN_ON = 50_000  # points on which parameters are chosen
_PROBED = 100_000  # points that are predicted from all others, about
_LANDMARKS = ("uniform", "kmeans", "farthest")
_MORE = ("_one_target", "classes_", "calibration_")  # that a regressor or a classifier has
_AUTO = (1024, 128)  # leaf size and rank to reckon with before they are chosen


@dataclass
class Plan:
    """All that is settled before branches are worked on, and that each of them needs beside its points.

    Attributes
    ----------
    kernel : Kernel
        For scaled features.
    noise : float
    scaling : Scaling
    trunks : list of Trunk
        One for each tree.
    seeds : list of int
        One for each tree.
    leaf_size : int or None
    partition, landmarks : str
    dtype, device : str
    memory_budget : int, float, str or None
        For one branch.
    """

    kernel: Kernel
    noise: float
    scaling: Scaling
    trunks: list[Trunk]
    seeds: list[int]
    leaf_size: int | None
    partition: str
    landmarks: str
    dtype: str
    device: str
    memory_budget: Any = None

    @property
    def branches(self) -> list[range]:
        """The numbers of the branches of each tree."""
        return [range(trunk.n_branches) for trunk in self.trunks]

    def points(self, x: Any) -> Points:
        """Scaled points, on the device."""
        return self.scaling(as_points(x, device=torch.device(self.device)), _DTYPES[self.dtype])

    def split(self, tree: int, x: Any) -> list[np.ndarray]:
        """The rows of x that fall into each branch of a tree."""
        number = self.trunks[tree].route(self.points(x)).cpu().numpy()
        order = np.argsort(number, kind="stable")
        ends = np.cumsum(np.bincount(number, minlength=self.trunks[tree].n_branches))
        return np.split(order, ends[:-1])

    def grow(self, tree: int, branch: int, x: Any) -> Branch:
        """A branch, of the features as they came."""
        points = self.points(x)
        seed = (self.seeds[tree] + 7919 * (branch + 1)) % (2**31 - 1)
        return Branch.grow(
            self.trunks[tree],
            branch,
            points,
            self.leaf_size,
            self.partition,
            self.landmarks,
            self.memory_budget,
            torch.Generator(points.device).manual_seed(seed),
        )

    def up(self, tree: int, branch: int, x: Any, b: Any) -> Message:
        """What a branch sends up, for right-hand sides b (points, columns)."""
        grown = self.grow(tree, branch, x)
        return Branch.message(grown.factor(self.noise, torch.as_tensor(b)))

    def down(
        self, tree: int, branch: int, x: Any, b: Any, reply: Reply, probes: np.ndarray | None = None
    ) -> "Piece":
        """What a branch becomes once it has heard from the trunk.

        Parameters
        ----------
        probes : ndarray of int, optional
            Rows of x that are to be predicted from all others.
        """
        grown, b = self.grow(tree, branch, x), torch.as_tensor(b)
        factor = grown.factor(self.noise, b)
        solved = grown.solve(factor, reply)
        if probes is None or reply.covariance is None:
            return Piece(solved)
        weights = grown.blueprint.layout.unsort(solved.weights).double().cpu()
        above = reply.covariance.to(solved.weights.device)[None]
        diagonal = factor.inverse_diagonal(above).double().cpu()
        some = torch.as_tensor(probes)
        return Piece(solved, b[some].double() - weights[some] / diagonal[some, None], b[some])


@dataclass
class Piece:
    """A branch that predicts.

    Attributes
    ----------
    extension : Extension
    left_out, observed : Tensor of shape (probes, columns), or None
        Right-hand sides predicted from all others, and what they are.
    rows : Tensor of shape (points,), or None
        Where the points of the branch are among all.
    """

    extension: Extension
    left_out: Tensor | None = None
    observed: Tensor | None = None
    rows: Tensor | None = None

    def probed(self, n: int) -> "LeftOut":
        """What was predicted from all others, of n rows in all."""
        assert self.rows is not None
        assert self.observed is not None
        assert self.left_out is not None
        number = self.rows.cpu().numpy()
        observed, values = self.observed.cpu().numpy(), self.left_out.cpu().numpy()
        return LeftOut(number[probes_of(number, n)], observed, values)


@dataclass
class LeftOut:
    """Some rows, each predicted from all others.

    Attributes
    ----------
    number : ndarray of shape (rows,)
        Where they are among all.
    observed, values : ndarray of shape (rows, columns)
        Right-hand sides, and predictions of them.
    """

    number: np.ndarray
    observed: np.ndarray
    values: np.ndarray

    @classmethod
    def in_order(cls, trees: Iterable[list["LeftOut"]]) -> "LeftOut":
        """Those of the branches of all trees: the mean over trees, in the order of rows."""
        every = []
        for branches in trees:
            found = zip(*((each.number, each.observed, each.values) for each in branches), strict=True)
            number, observed, values = map(np.concatenate, found)
            order = np.argsort(number)
            every.append(values[order])
        return cls(number[order], observed[order], np.mean(every, 0))


def calibrate(coding: OneAgainstAll, left_out: LeftOut | None) -> Calibration | None:
    """From decision values to probabilities, if something was left out."""
    if left_out is None:
        return None
    return Calibration.fit(left_out.values + coding.intercept, coding.codes(left_out.observed))


def with_parameters(**more: Any) -> Callable[[Any], Any]:
    """A decorator that gives an estimator more parameters than the class that it extends, with defaults."""

    def extend(cls: Any) -> Any:
        begin = cls.__init__
        old = inspect.signature(begin)
        extra = [inspect.Parameter(k, inspect.Parameter.KEYWORD_ONLY, default=v) for k, v in more.items()]

        def __init__(self: Any, *args: Any, **given: Any) -> None:
            for name, default in more.items():
                setattr(self, name, given.pop(name, default))
            begin(self, *args, **given)

        __init__.__signature__ = old.replace(parameters=[*old.parameters.values(), *extra])  # type: ignore[attr-defined]
        cls.__init__ = __init__
        return cls

    return extend


def parameters_of(estimator: Any) -> dict[str, Any]:
    """Those that the estimator of one machine has, too."""
    given = estimator.get_params(deep=False)
    return {name: given[name] for name in estimator._plain._get_param_names()}


def alone(estimator: Any, **changes: Any) -> Any:
    """The estimator of one machine with the same parameters, not fitted."""
    return estimator._plain(**{**parameters_of(estimator), **changes})


def refuse(given: Any, what: str) -> None:
    """Raise an error for what is taken into account on one machine only."""
    if given is not None:
        raise ValueError(f"{what} are not supported branch by branch: train in memory, on one machine")


def check_settings(estimator: Any) -> None:
    """Raise an error for parameters that make no sense branch by branch."""
    check_partition(estimator.partition)
    if estimator.approximation != "hierarchical":
        raise ValueError(
            f"approximation={estimator.approximation!r} has no branches: only 'hierarchical' is possible here"
        )
    if not isinstance(estimator.landmarks, str) or estimator.landmarks not in _LANDMARKS:
        raise ValueError(f"landmarks of branches are chosen in each: use one of {', '.join(_LANDMARKS)}")
    if callable(estimator.kernel) and not isinstance(estimator.kernel, Kernel):
        raise ValueError("a function as the kernel is not possible here: use an object of hck.kernels")


def sizes_for(estimator: Any, n: int, d: int, columns: int) -> tuple[int, int]:
    """How many branches, and how many points to draw to settle the rest, given the memory budget."""
    leaf, rank = estimator.leaf_size, estimator.rank
    if isinstance(rank, str):
        leaf, rank = leaf or _AUTO[0], _AUTO[1]
    number = branches_within(estimator, n, d, columns, leaf, rank)
    budget = resolve_budget(estimator.memory_budget, torch.device(estimator.device or "cpu"))
    room = max(64 * number, int(budget / (32 * (d + columns))))  # a quarter of the budget
    return number, min(n, room, sample_for(number))


def sample_for(n_branches: int) -> int:
    """How many points to draw, where memory is not short."""
    return max(_CHOSEN_ON, POINTS_PER_BRANCH * n_branches)


def draw_rows(n: int, size: int, generator: np.random.Generator) -> np.ndarray:
    """So many different numbers below n, sorted; in memory for as many, whatever n is."""
    if 4 * size >= n:
        return np.sort(generator.permutation(n)[:size])
    found = np.unique(generator.integers(0, n, size))
    while len(found) < size:
        found = np.union1d(found, generator.integers(0, n, size - len(found)))
    return found


def branches_within(
    estimator: Any, n: int, d: int, columns: int, leaf_size: int | None, rank: int
) -> int:  # fmt: skip
    """How many branches, so that one takes half of the memory budget."""
    leaf = min(n, leaf_size or leaf_size_for(n, rank))
    each = leaf + rank + 3 * rank**2 / leaf + 8 * d + 10 * columns * (1 + rank / leaf) + 8
    budget = resolve_budget(estimator.memory_budget, torch.device(estimator.device or "cpu"))
    return branches_for(n, leaf, _DTYPES[estimator.dtype].itemsize * each, budget / 2)


def probes_of(rows: np.ndarray, n: int) -> np.ndarray:
    """Which of some rows of n are predicted from all others."""
    return (np.asarray(rows) % max(1, n // _PROBED) == 0).nonzero()[0]


def plan_ridge(
    estimator: RidgeEstimator,
    plain: RidgeEstimator,
    n_branches: Callable[[Selection], int],
    x: np.ndarray,
    y: np.ndarray,
    moments: Moments,
) -> tuple[Plan, Selection]:
    """Settle everything for ridge regression by a sample of the points.

    Parameters
    ----------
    estimator : RidgeEstimator
        Whose parameters count.
    plain : RidgeEstimator
        One that chooses what is not given when it is fitted on points in memory; it is fitted here.
    n_branches : callable
        What was chosen ↦ how many.
    x, y : ndarray of shape (sample, d) and (sample, …)
    moments : Moments
        Of the features of all points, by which they are scaled if that is asked for.
    """
    rng = check_random_state(estimator.random_state)
    device, kernel = str(estimator.device or "cpu"), estimator._given_kernel()
    kind = None if estimator.scale == "auto" else estimator.scale
    scaling = moments.scaling(kind, torch.device(device))
    if kernel is not None and not isinstance(estimator.alpha, str) and not isinstance(estimator.rank, str):
        n_trees = 1 if isinstance(estimator.n_trees, str) else estimator.n_trees
        selection = Selection(kernel, float(estimator.alpha), n_trees, estimator.leaf_size, estimator.rank)
    else:
        some = rng.permutation(len(x))[:_CHOSEN_ON]
        selection, scaling = _choose(plain, scaling, x[some], y[some])
    seeds = rng.randint(2**31 - 1, size=selection.n_trees).tolist()
    plan = Plan(
        *(selection.kernel, selection.alpha, scaling, [], seeds, selection.leaf_size),
        *(estimator.partition, estimator.landmarks, estimator.dtype, device, estimator.memory_budget),
    )
    plan.trunks = make_trunks(plan, x, n_branches(selection), selection.rank, estimator.jitter)
    return plan, selection


def _choose(
    plain: RidgeEstimator, scaling: Scaling, x: np.ndarray, y: np.ndarray
) -> tuple[Selection, Scaling]:
    """What a plain estimator chooses for points in memory, and how features are scaled for it.

    By the scaling that is given, unless the choice is its own; nothing is left out, and no candidates are
    averaged.
    """
    if isinstance(plain, ClassifierMixin) and len(np.unique(y)) < 2:
        raise ValueError(
            f"the {len(x):,} rows on which parameters are chosen are all of one class: give lengthscale, "
            "alpha and rank"
        )
    if plain.fit_time == "best":
        warnings.warn(
            "fit_time='best' averages several candidates on one machine only: branch by branch, the best of "
            "them is used",
            UserWarning,
            stacklevel=2,
        )
    plain.leave_one_out = False
    if plain.scale == "auto":
        plain.fit(x, y)
        return plain.selection_, plain._scaling
    plain.scale = None
    scaled = scaling(as_points(x, device=torch.device(plain.device or "cpu")), torch.float64)
    assert isinstance(scaled, DensePoints)
    plain.fit(scaled.x.cpu().numpy(), y)
    return plain.selection_, scaling


def as_plain(estimator: Any, plan: Plan, members: list[Extension]) -> RidgeEstimator:
    """An estimator of one machine, as if it had been fitted in memory.

    Parameters
    ----------
    estimator : estimator
        What was fitted branch by branch.
    members : list of Extension
        The functions of the trees.
    """
    rows, plain = estimator.left_out_rows_, alone(estimator)
    names = ("intercept_", "selection_", "n_features_in_", "feature_names_in_", "_left_out", *_MORE)
    plain._set_fitted(
        _used=np.arange(members[0].tree.n_points) if rows is None else rows,
        **{name: getattr(estimator, name) for name in names if hasattr(estimator, name)},
    )
    plain._set_fitted(
        trees_=[member.tree for member in members],
        forest_=Forest([*members]),
        residuals_=[],
        _scaling=plan.scaling,
        _weight=None,
        _objects=False,
        _categories=None,
    )
    made: RidgeEstimator = plain
    return made


def make_trunks(plan: Plan, x: np.ndarray, n_branches: int, rank: int, jitter: float | None) -> list[Trunk]:
    """A trunk for each tree, by a sample of the points."""
    points = plan.points(x)
    return [
        Trunk.of(
            *(plan.kernel, points, n_branches, rank, plan.partition, plan.landmarks, jitter),
            torch.Generator(points.device).manual_seed(seed),
        )
        for seed in plan.seeds
    ]
