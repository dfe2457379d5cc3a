"""Estimators whose trees are worked on branch by branch: what they share, wherever the branches are."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from torch import Tensor

from hck.branches import Branch, Message, Reply, Trunk, branches_for
from hck.branches.trunk import POINTS_PER_BRANCH, check_partition
from hck.estimators._base import _DTYPES
from hck.estimators._ridge import RidgeEstimator
from hck.estimators._scaling import Scaling
from hck.hierarchy import Extension, Forest
from hck.kernels import Kernel
from hck.memory import resolve_budget
from hck.partition import leaf_size_for
from hck.points import Points, as_points
from hck.selection.auto import Selection

_CHOSEN_ON = 50_000  # points on which parameters are chosen
_PROBED = 100_000  # points that are predicted from all others, about
_LANDMARKS = ("uniform", "kmeans", "farthest")
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
        diagonal = factor.inverse_diagonal(reply.covariance.to(solved.weights.device)).double().cpu()
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
    return number, min(n, room, max(_CHOSEN_ON, POINTS_PER_BRANCH * number))


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
    """
    rng = check_random_state(estimator.random_state)
    device = str(estimator.device or "cpu")
    kernel = estimator._given_kernel()
    if kernel is not None and not isinstance(estimator.alpha, str) and not isinstance(estimator.rank, str):
        n_trees = 1 if isinstance(estimator.n_trees, str) else estimator.n_trees
        selection = Selection(kernel, float(estimator.alpha), n_trees, estimator.leaf_size, estimator.rank)
        scaling = Scaling.of(estimator._scale_kind(), as_points(x, device=torch.device(device)))
    else:
        some = rng.permutation(len(x))[:_CHOSEN_ON]
        if isinstance(plain, ClassifierMixin) and len(np.unique(y[some])) < 2:
            raise ValueError(
                f"the {len(some):,} rows on which parameters are chosen are all of one class: give "
                "lengthscale, alpha and rank"
            )
        plain.fit(x[some], y[some])
        selection, scaling = plain.selection_, plain._scaling
        selection.blend = []
    seeds = rng.randint(2**31 - 1, size=selection.n_trees).tolist()
    plan = Plan(
        *(selection.kernel, selection.alpha, scaling, [], seeds, selection.leaf_size),
        *(estimator.partition, estimator.landmarks, estimator.dtype, device, estimator.memory_budget),
    )
    plan.trunks = make_trunks(plan, x, n_branches(selection), selection.rank, estimator.jitter)
    return plan, selection


def as_plain(plain: RidgeEstimator, plan: Plan, members: list[Extension], **fitted: Any) -> RidgeEstimator:
    """An estimator as if it had been fitted in memory.

    Parameters
    ----------
    plain : RidgeEstimator
        With the parameters that it should have.
    members : list of Extension
        The functions of the trees.
    fitted
        Other attributes.
    """
    plain._set_fitted(
        trees_=[member.tree for member in members],
        forest_=Forest([*members]),
        residuals_=[],
        _scaling=plan.scaling,
        _weight=None,
        _objects=False,
        _categories=None,
        **fitted,
    )
    return plain


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
