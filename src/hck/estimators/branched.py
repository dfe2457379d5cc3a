"""Estimators whose trees are worked on branch by branch: what they share, wherever the branches are."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags, check_random_state

from hck.backend.memory import resolve_budget
from hck.branches import Plan, Probes, branches_for
from hck.branches.plan import DTYPES
from hck.branches.trunk import POINTS_PER_BRANCH, check_partition
from hck.errors import NoGradientError
from hck.estimators.base import HCKEstimator
from hck.estimators.intervals import classification_errors, regression_errors
from hck.estimators.parameters import Predictions, assign
from hck.estimators.ridge import RidgeEstimator
from hck.hierarchy import Forest, TreePredictor
from hck.kernels import Kernel
from hck.partition import leaf_size_for
from hck.points import DensePoints, as_points
from hck.preparation.arrays import PointsLike
from hck.preparation.coding import Coding, OneAgainstAll
from hck.preparation.sample import Sample
from hck.preparation.scaling import Scaling
from hck.selection import Selection
from hck.selection.auto import given_kernel
from hck.selection.candidate import Shape
from hck.selection.loss import Calibration
from hck.settings import Settings

_CHOSEN_ON = 50_000  # points on which parameters are chosen
_LANDMARKS = ("uniform", "kmeans", "farthest")
_KEPT = (
    *("intercept_", "selection_", "n_features_in_", "feature_names_in_", "_left_out"),
    *(
        "_left_out_errors",
        "_one_target",
        "classes_",
        "calibration_",
    ),  # of which a regressor or a classifier has some
)
_AUTO = (1024, 128)  # leaf size and rank to reckon with before they are chosen


class Branched(HCKEstimator):
    """An estimator whose trees are cut into branches, on disk or on workers."""

    _takes_values = False
    _plain: ClassVar[Any]  # the estimator in memory
    _labels: ClassVar[bool] = False  # whether targets are class labels
    _updatable = False

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = False
        return tags

    def _given_plain(self) -> dict[str, Any]:
        """The parameters that the estimator in memory has, too."""
        return self._parameters_for(self._plain)

    def _alone(self, **changes: object) -> Any:
        """The estimator in memory with the same parameters, not fitted."""
        return self._plain(**{**self._given_plain(), **changes})

    def predict_gradient(self, X: PointsLike, return_std: bool = False) -> Predictions:
        """Gradients are there in memory alone: use ``to_local().predict_gradient(X)``."""
        raise NoGradientError(
            f"{type(self).__name__} has no gradients, branch by branch: use to_local().predict_gradient(X), "
            "where the model fits into memory"
        )

    def _check_settings(self) -> None:
        """Raise an error for parameters that make no sense branch by branch."""
        check_partition(self.partition)
        if self.approximation != "hierarchical":
            raise ValueError(
                f"approximation={self.approximation!r} has no branches: only 'hierarchical' is possible here"
            )
        if not isinstance(self.landmarks, str) or self.landmarks not in _LANDMARKS:
            raise ValueError(f"landmarks of branches are chosen in each: use one of {', '.join(_LANDMARKS)}")
        if callable(self.kernel) and not isinstance(self.kernel, Kernel):
            raise ValueError("a function as the kernel is not possible here: use an object of hck.kernels")


def refuse(given: object, what: str) -> None:
    """Raise an error for what is taken into account on one machine only."""
    if given is not None:
        raise ValueError(f"{what} are not supported branch by branch: train in memory, on one machine")


class BranchedRidge(Branched, RidgeEstimator):
    """Ridge regression, branch by branch."""

    left_out_rows_: np.ndarray | None
    classes_: np.ndarray
    calibration_: Calibration | None

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.loss != "squared":
            raise ValueError(
                f"loss={self.loss!r} is not possible branch by branch: use 'squared' here, or train in memory"
            )

    def _set_outcome(self, coding: Coding, probes: Probes | None, one_target: bool) -> None:
        """Keep what was found of the targets, and what was predicted of the rows that were left out."""
        calibration, errors, left_out, rows = None, None, None, None
        if probes is not None:
            left_out, rows = probes.predicted + coding.intercept, probes.number
            if isinstance(coding, OneAgainstAll):
                code = coding.codes(probes.observed)
                calibration = Calibration.fit(left_out, code)
                errors = classification_errors(calibration(left_out), code, None)
            else:
                errors = regression_errors(probes.observed, probes.predicted, None)
        self._left_out_errors = errors
        self.intercept_, self._left_out, self.left_out_rows_ = coding.intercept, left_out, rows
        if isinstance(coding, OneAgainstAll):
            self.classes_, self.calibration_ = coding.classes, calibration
        else:
            self._one_target = one_target

    def _as_plain(self, plan: Plan, members: list[TreePredictor]) -> Any:
        """An estimator as if it had been fitted in memory, with these functions of the trees."""
        rows, plain = self.left_out_rows_, self._alone()
        assign(plain, {name: getattr(self, name) for name in _KEPT if hasattr(self, name)})
        plain.trees_, plain.forest_ = [member.tree for member in members], Forest([*members])
        plain.residuals_, plain._scaling = [], plan.scaling
        plain._used, plain._weight = np.arange(members[0].tree.n_points) if rows is None else rows, None
        plain._objects, plain._columns_in = False, None
        return plain


@dataclass(frozen=True)
class Extent:
    """How large a problem is: n rows, d features, and the columns of right-hand sides."""

    n: int
    d: int
    columns: int


def sizes_for(estimator: HCKEstimator, extent: Extent) -> tuple[int, int]:
    """How many branches, and how many points to draw to settle the rest, given the memory budget."""
    leaf, rank = estimator.leaf_size, estimator.rank
    if isinstance(rank, str):
        leaf, rank = leaf or _AUTO[0], _AUTO[1]
    number = branches_within(estimator, extent, Settings(rank, leaf))
    each = 32 * (extent.d + extent.columns)
    room = max(64 * number, int(_budget(estimator) / each))  # a quarter of the budget
    return number, min(extent.n, room, sample_for(number))


def sample_for(n_branches: int) -> int:
    """How many points to draw, where memory is not short."""
    return max(_CHOSEN_ON, POINTS_PER_BRANCH * n_branches)


def settings_for(estimator: HCKEstimator, chosen: Selection) -> Settings:
    """The parameters of an approximation, with the sizes that were chosen."""
    made: Settings = estimator._settings(Shape(chosen.n_trees, chosen.leaf_size, chosen.rank))
    return made


def branches_within(estimator: HCKEstimator, extent: Extent, settings: Settings) -> int:
    """How many branches, so that one takes half of the memory budget."""
    rank = settings.rank
    leaf = min(extent.n, settings.leaf_size or leaf_size_for(extent.n, rank))
    own, heard = leaf + rank + 3 * rank**2 / leaf, 10 * extent.columns * (1 + rank / leaf)
    each = DTYPES[estimator.dtype].itemsize * (own + 8 * extent.d + heard + 8)
    return branches_for(extent.n, leaf, each, _budget(estimator) / 2)


def _budget(estimator: HCKEstimator) -> int:
    return resolve_budget(estimator.memory_budget, torch.device(estimator.device or "cpu"))


def plan_ridge(
    estimator: RidgeEstimator, plain: RidgeEstimator, n_branches: Callable[[Selection], int], sample: Sample
) -> tuple[Plan, Selection]:
    """Settle everything for ridge regression by a sample of the points, and the moments of all.

    The parameters of `estimator` count; `plain` chooses what is not given, when it is fitted here. From what
    was chosen `n_branches` makes the number of branches.
    """
    rng = check_random_state(estimator.random_state)
    device, kernel = str(estimator.device or "cpu"), given_kernel(estimator.kernel, estimator.lengthscale)
    kind = None if estimator.scale == "auto" else estimator.scale
    scaling, x = sample.moments.scaling(kind, torch.device(device)), sample.x
    given = not isinstance(estimator.alpha, str) and not isinstance(estimator.rank, str)
    if given and isinstance(kernel, Kernel):
        n_trees = 1 if isinstance(estimator.n_trees, str) else estimator.n_trees
        selection = Selection(kernel, float(estimator.alpha), n_trees, estimator.leaf_size, estimator.rank)
    else:
        some = rng.permutation(len(x))[:_CHOSEN_ON]
        selection, scaling = _choose(plain, scaling, x[some], sample.y[some])
    seeds = rng.randint(2**31 - 1, size=int(selection.n_trees)).tolist()
    settings = settings_for(estimator, selection)
    plan = Plan(selection.kernel, selection.alpha, scaling, [], seeds, settings, str(estimator.dtype), device)
    return plan.cut(x, n_branches(selection)), selection


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
    plain.leave_one_out = plain._blends = plain._adds = False
    if plain.scale == "auto":
        plain.fit(x, y)
        scaling = plain._scaling
    else:
        plain.scale = None
        scaled = scaling(as_points(x, device=torch.device(plain.device or "cpu")), torch.float64)
        assert isinstance(scaled, DensePoints)
        plain.fit(scaled.x.cpu().numpy(), y)
    return replace(plain.selection_, held=None), scaling  # which would be rows of a sample
