"""Estimators whose trees are worked on branch by branch: what they share, wherever the branches are."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state

from hck.backend.memory import resolve_budget
from hck.branches import Plan, Probes, branches_for
from hck.branches.plan import DTYPES
from hck.branches.trunk import POINTS_PER_BRANCH, check_partition
from hck.estimators.ridge import RidgeEstimator
from hck.hierarchy import Forest, TreePredictor
from hck.kernels import Kernel
from hck.partition import leaf_size_for
from hck.points import DensePoints, as_points
from hck.preparation.coding import OneAgainstAll
from hck.preparation.sample import Sample
from hck.preparation.scaling import Scaling
from hck.selection import Selection
from hck.selection.loss import Calibration

_CHOSEN_ON = 50_000  # points on which parameters are chosen
_LANDMARKS = ("uniform", "kmeans", "farthest")
_MORE = ("_one_target", "classes_", "calibration_")  # that a regressor or a classifier has
_AUTO = (1024, 128)  # leaf size and rank to reckon with before they are chosen


def calibrate(coding: OneAgainstAll, probes: Probes | None) -> Calibration | None:
    """From decision values to probabilities, if something was left out."""
    if probes is None:
        return None
    return Calibration.fit(probes.predicted + coding.intercept, coding.codes(probes.observed))


def assign(estimator: Any, given: dict[str, Any]) -> None:
    """Set the parameters that the `__init__` of an estimator was given: its `locals()`."""
    for name, value in given.items():
        if name != "self":
            setattr(estimator, name, value)


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


@dataclass(frozen=True)
class Extent:
    """How large a problem is: n rows, d features, and the columns of right-hand sides."""

    n: int
    d: int
    columns: int


def sizes_for(estimator: Any, extent: Extent) -> tuple[int, int]:
    """How many branches, and how many points to draw to settle the rest, given the memory budget."""
    leaf, rank = estimator.leaf_size, estimator.rank
    if isinstance(rank, str):
        leaf, rank = leaf or _AUTO[0], _AUTO[1]
    number = branches_within(estimator, extent, leaf, rank)
    each = 32 * (extent.d + extent.columns)
    room = max(64 * number, int(_budget(estimator) / each))  # a quarter of the budget
    return number, min(extent.n, room, sample_for(number))


def sample_for(n_branches: int) -> int:
    """How many points to draw, where memory is not short."""
    return max(_CHOSEN_ON, POINTS_PER_BRANCH * n_branches)


def branches_within(estimator: Any, extent: Extent, leaf_size: int | None, rank: int) -> int:
    """How many branches, so that one takes half of the memory budget."""
    leaf = min(extent.n, leaf_size or leaf_size_for(extent.n, rank))
    own, heard = leaf + rank + 3 * rank**2 / leaf, 10 * extent.columns * (1 + rank / leaf)
    each = DTYPES[estimator.dtype].itemsize * (own + 8 * extent.d + heard + 8)
    return branches_for(extent.n, leaf, each, _budget(estimator) / 2)


def _budget(estimator: Any) -> int:
    return resolve_budget(estimator.memory_budget, torch.device(estimator.device or "cpu"))


def plan_ridge(
    estimator: RidgeEstimator, plain: RidgeEstimator, n_branches: Callable[[Selection], int], sample: Sample
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
    sample : Sample
        With the moments of all points, by which features are scaled if that is asked for.
    """
    rng = check_random_state(estimator.random_state)
    device, kernel = str(estimator.device or "cpu"), estimator._given_kernel()
    kind = None if estimator.scale == "auto" else estimator.scale
    scaling, x = sample.moments.scaling(kind, torch.device(device)), sample.x
    if kernel is not None and not isinstance(estimator.alpha, str) and not isinstance(estimator.rank, str):
        n_trees = 1 if isinstance(estimator.n_trees, str) else estimator.n_trees
        selection = Selection(kernel, float(estimator.alpha), n_trees, estimator.leaf_size, estimator.rank)
    else:
        some = rng.permutation(len(x))[:_CHOSEN_ON]
        selection, scaling = _choose(plain, scaling, x[some], sample.y[some])
    seeds = rng.randint(2**31 - 1, size=selection.n_trees).tolist()
    plan = Plan(
        *(selection.kernel, selection.alpha, scaling, [], seeds, selection.leaf_size),
        *(estimator.partition, estimator.landmarks, estimator.dtype, device, estimator.memory_budget),
    )
    return plan.cut(x, n_branches(selection), selection.rank, estimator.jitter), selection


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


def as_plain(estimator: Any, plan: Plan, members: list[TreePredictor]) -> RidgeEstimator:
    """An estimator of one machine, as if it had been fitted in memory.

    Parameters
    ----------
    estimator : estimator
        What was fitted branch by branch.
    members : list of TreePredictor
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
