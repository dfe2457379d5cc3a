"""Kernel ridge regression for any targets: what the regressor and the classifier share."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from hck.approximations import Iterative
from hck.approximations.exact import ExactPredictor
from hck.approximations.make import for_each_tree
from hck.backend.checks import check_floats, check_indices, require
from hck.backend.kinds import kind_of
from hck.backend.memory import resolve_budget
from hck.backend.reuse import reusing
from hck.conformal import LeftOutErrors
from hck.estimators.base import MOST_TREES, HCKEstimator
from hck.estimators.parameters import KernelLike, LandmarksLike, PartitionLike, Predictions, Weights, assign
from hck.estimators.penalised import Penalties, Problems, warn_unless_converged
from hck.estimators.promise import deadline
from hck.estimators.training import (
    Ensemble,
    Equations,
    Fitted,
    Solve,
    Solved,
    Weighed,
    blend,
    check_sample_weight,
    draw_in,
    scale,
    weigh,
)
from hck.hierarchy import Forest, TreePredictor
from hck.kernels.base import shares
from hck.losses import Loss as PointLoss
from hck.partition import Tree
from hck.points import (
    DensePoints,
    Points,
    SparsePoints,
    VectorPoints,
    as_points,
    as_points_like,
    features_of,
    own,
)
from hck.preparation.arrays import PointsLike
from hck.preparation.scaling import Scaling
from hck.preparation.ties import Ties
from hck.selection import Candidate, Observations, Selection
from hck.selection.anisotropic import MOST_LENGTHSCALES
from hck.selection.auto import given_kernel, select
from hck.selection.candidate import Given, Shape
from hck.selection.contest import Contest
from hck.selection.loss import LOSSES, Loss
from hck.selection.penalty import better_than_squares, penalise
from hck.selection.work import Limits, allowed_work

_MOST_DENSE = 10**8  # numbers: smaller sparse data are made dense where that is faster

NOTHING_LEFT_OUT = (
    "nothing was left out in `fit`: use leave_one_out=True; if you do, memory was too short for it "
    "(memory_budget), or equations were solved by iteration"
)

# What is saved of a fitted regressor or classifier.
SAVED = ("forest_", "intercept_", "selection_", "residuals_", "_scaling", "_left_out", "_used", "_weight")


class RidgeEstimator(HCKEstimator):
    """Kernel ridge regression with a hierarchically compositional kernel, for any targets."""

    loss: str | PointLoss
    losses_: list[PointLoss]
    n_iter_: int
    gradient_norm_: float
    forest_: Forest
    intercept_: np.ndarray
    selection_: Selection
    residuals_: list[list[float]]
    _scaling: Scaling
    _left_out: np.ndarray | None
    _left_out_errors: LeftOutErrors | None  # which models of earlier versions lack
    _used: np.ndarray
    _weight: np.ndarray | None
    _targets: np.ndarray  # (points that count, columns), without the intercept; earlier versions lack it
    _takes_values = True
    _blends = True  # several candidates may share the trees
    _loss: ClassVar[str]  # by which candidates are compared: of `hck.selection.loss.LOSSES`

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **HCKEstimator._parameter_constraints,
        "lengthscale": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither"), "array-like", None],
        "alpha": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "loss": [str, PointLoss],
        "scale": [StrOptions({"auto", "standard", "minmax"}), None],
        "fit_time": [StrOptions({"fast", "balanced", "best"}), Interval(Real, 0, None, closed="neither")],
        "leave_one_out": ["boolean"],
        "n_trees": [StrOptions({"auto"}), Interval(Integral, 1, MOST_TREES, closed="both")],
        "rank": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        kernel: KernelLike = "auto",
        *,
        lengthscale: ArrayLike | None = "auto",
        alpha: float | str = "auto",
        loss: str | PointLoss = "squared",
        scale: str | None = "auto",
        fit_time: float | str = "balanced",
        leave_one_out: bool = True,
        approximation: str | Iterative = "hierarchical",
        n_trees: int | str = "auto",
        rank: int | str = "auto",
        leaf_size: int | None = None,
        partition: PartitionLike = "random_projection",
        landmarks: LandmarksLike = "uniform",
        jitter: float | None = None,
        device: str | torch.device | None = None,
        dtype: str = "float64",
        memory_budget: float | str | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        assign(self, locals())

    # Training ---------------------------------------------------------------------------------------

    def _train(
        self,
        X: PointsLike,
        given: PointsLike,
        targets: np.ndarray,
        sample_weight: Weights,
        observed: np.ndarray,
        problems: Callable[[np.ndarray, Tensor | None], Problems] | None = None,
    ) -> Fitted:
        """Solve (K_h + α diag(1/weight)) w = targets − intercept, for several targets (n, columns) at once.

        X is validated; `given` is X as it came, whose memory is not kept. What was observed, (n, …), is what
        the loss compares predictions with. With another loss than the squared one `problems` makes, of rows
        and their weights, what is minimised instead; then targets only stand in for what was observed.
        """
        with torch.no_grad(), reusing():
            points, rng = self._points(X), check_random_state(self.random_state)
            weighed = weigh(targets, check_sample_weight(sample_weight, len(points)), self._dtype())
            points = self._counting(points, weighed)
            scaled = scale(points, self._scale_kind(), self.scale == "auto", self._dtype(), self._ties())
            scaled = replace(scaled, points=own(scaled.points, given))
            noise = weighed.noise(isinstance(self.alpha, str))
            data = weighed.observations(scaled.points, noise)
            loss = weighed.loss(LOSSES[self._loss], observed)
            contest = self._contest(data, loss, scaled.ties, rng)
            if self.scale == "auto":
                scaled = draw_in(scaled, points, self._given(), contest)
                contest.data = replace(data, points=scaled.points)
            selection = select(self._given(), contest, scaled.units)
            equations: Equations | Penalties = Equations(scaled.points, weighed.y, noise, self.leave_one_out)
            if problems is not None:
                made = problems(weighed.rows, None if noise is None else 1 / noise)
                settle = better_than_squares if self.loss == "auto" else penalise
                if (found := settle(made, selection, self._given(), contest)) is not None:
                    equations = Penalties(scaled.points, found[0], self.leave_one_out)
                    weighed, selection = replace(weighed, intercept=equations.intercept), found[1]
            seeds = iter(rng.randint(2**31 - 1, size=int(selection.n_trees)).tolist())
            parts: Sequence[Selection | Candidate] = selection.blend or [selection]
            trained = [
                self._train_trees(equations, each, selection.shape, list(islice(seeds, each.n_trees)))
                for each in parts
            ]
            whole = blend(trained, [each.weight for each in selection.blend])
            return Fitted(whole, weighed, scaled.scaling, selection, equations.losses)

    def _contest(
        self, data: Observations, loss: Loss, ties: Ties | None, rng: np.random.RandomState
    ) -> Contest:
        """Where what was not given is chosen."""
        n, device = len(data), data.points.device
        memory = resolve_budget(self.memory_budget, device)
        limits = Limits(allowed_work(self.fit_time, n, device) / 2, memory, deadline(self.fit_time))
        settings = self._settings(Shape(1, self.leaf_size, 1))  # the rank is that of `_given`, or chosen
        return Contest(data, loss, settings, limits, rng, ties)

    def _given(self) -> Given:
        """What is not to be chosen."""
        n_trees, rank, alpha = (
            None if isinstance(value, str) else value for value in (self.n_trees, self.rank, self.alpha)
        )
        n_trees = 1 if self._is_fixed() else n_trees
        blends = self._blends and self.approximation == "hierarchical" and self.loss == "squared"
        kernel = given_kernel(self._base_kernel(), self.lengthscale)
        return Given(kernel, None if alpha is None else float(alpha), rank, n_trees, blends)

    def _train_trees(
        self, equations: Equations | Penalties, chosen: Selection | Candidate, shape: Shape, seeds: list[int]
    ) -> Ensemble:
        """Solve for each tree, or for what else stands in for the chosen kernel."""
        settings = self._settings(shape)

        def trees(solve: Solve, seeds: list[int]) -> list[Solved]:
            return for_each_tree(solve, chosen.kernel, equations.points, settings, seeds)

        return Ensemble.of(equations.train(trees, chosen.alpha, seeds))

    def _keep(self, fitted: Fitted) -> None:
        """Set the fitted attributes."""
        members, certificates = fitted.trained.members, fitted.trained.certificates
        warn_unless_converged(certificates)
        self.losses_ = fitted.losses
        self.n_iter_ = max([each.n_iter for each in certificates], default=1)
        self.gradient_norm_ = max([each.gradient for each in certificates], default=0.0)
        self.trees_ = [member.tree for member in members if isinstance(member, TreePredictor)]
        self.forest_ = Forest(members, fitted.trained.weights)
        self.intercept_ = fitted.weighed.intercept.numpy()
        self.selection_ = fitted.selection
        self.residuals_ = [each.residuals for each in members if isinstance(each, ExactPredictor)]
        self._scaling = fitted.scaling
        self._left_out = fitted.left_out
        self._used = fitted.weighed.rows
        self._weight = fitted.weighed.weights
        self.__dict__.pop("_targets", None)
        if not fitted.losses:  # of which alone there are updates
            self._targets = fitted.weighed.y.numpy()
        if self._is_precomputed():
            self._given_values.forget()

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        columns = self.forest_.columns
        check_floats("intercept_", torch.from_numpy(self.intercept_), columns)
        self._scaling.check(features_of(self._trained_points()))
        rows = check_rows("_used", self._used)
        if self._left_out is not None:
            check_floats("_left_out", torch.from_numpy(self._left_out), rows, columns)
        if (errors := getattr(self, "_left_out_errors", None)) is not None:
            require(len(errors.values) == rows, "_left_out_errors must be of the points that were left out")
        if self._weight is not None:
            check_floats("_weight", torch.from_numpy(self._weight), rows)
        if hasattr(self, "_targets"):
            check_floats("_targets", torch.from_numpy(self._targets), rows, columns)

    # Parameters -------------------------------------------------------------------------------------

    def _points(self, X: PointsLike) -> Points:
        """Data as they came, on the device."""
        points = super()._points(X) if self._takes_objects(X) else self._as_they_came(X)
        if isinstance(points, SparsePoints) and self._chooses_lengthscales():
            n, d = points.x.shape
            if n * d <= _MOST_DENSE and (d <= MOST_LENGTHSCALES or kind_of(points.device).makes_dense):
                dense = torch.from_numpy(points.x.toarray())
                return DensePoints(dense.to(points.device, points.dtype))
        return points

    def _as_they_came(self, X: PointsLike) -> Points:
        single = str(X.dtype).endswith("float32") or (sp.issparse(X) and self._dtype() == torch.float32)
        return as_points(X, torch.float32 if single else torch.float64, self._resolve_device(X))

    def _counting(self, points: Points, weighed: Weighed) -> Points:
        """The points that count."""
        if len(weighed.rows) == len(points):
            return points
        if isinstance(self.partition, Tree):
            raise ValueError("points of weight 0 are left out, but the tree given as partition has them")
        return points.take(torch.from_numpy(weighed.rows).to(points.device))

    def _chooses_lengthscales(self) -> bool:
        return isinstance(self._base_kernel(), str) and isinstance(self.lengthscale, str)

    def _scale_kind(self) -> str | None:
        placed = isinstance(self.partition, Tree) or not isinstance(self.landmarks, str)
        if self.scale == "auto":
            return "standard" if self._chooses_lengthscales() and not placed else None
        if self.scale is not None and placed:
            raise ValueError(
                "a tree or landmarks that are given belong to features as they are: use scale=None, and "
                "scale them yourself"
            )
        return self.scale

    def _errors(self) -> LeftOutErrors | None:
        """Errors of left-out points, by which intervals are made; None if there are none."""
        return getattr(self, "_left_out_errors", None)

    def _left_out_values(self) -> np.ndarray:
        check_is_fitted(self)
        if self._left_out is None:
            raise ValueError(NOTHING_LEFT_OUT)
        return self._left_out.copy()

    @property
    def feature_importances_(self) -> np.ndarray:
        """How much each feature matters: its part of squared distances between training points.

        These are measured in the metric of the kernel; where several kernels share the trees, it is their
        mean by weight. Shape (n_features_in_,), 1 in all.
        """
        check_is_fitted(self, "trees_")
        points = self._every_point()
        if not isinstance(points, VectorPoints):
            raise AttributeError("points that are no vectors have no features")
        every = torch.arange(len(points), device=points.device)
        spread = points.variance(every, torch.zeros_like(every), 1)[0].double().clamp_min(0).cpu()
        whole = shares(self.selection_.kernels, spread.numpy())
        whole = whole if self._columns_in is None else self._columns_in.of_columns(whole, self.n_features_in_)
        return whole / (whole.sum() or 1.0)

    # Evaluation -------------------------------------------------------------------------------------

    def _evaluate(self, X: PointsLike) -> Predictions:
        """The trained functions at new points: shape (points, columns); a tensor if X is one."""
        X = self._validate_new(X)
        verbose = bool(self.verbose)
        values = torch.cat([self.forest_(self._placed(part), verbose=verbose) for part in self._parts(X)])
        intercept = torch.as_tensor(self.intercept_, device=values.device)
        return self._out(X, (values + intercept).to(values.dtype))

    def _parts(self, X: PointsLike) -> list[PointsLike]:
        """Rows of new data; several parts where sparse data have to be made dense."""
        if not sp.issparse(X) or isinstance(self._trained_points(), SparsePoints):
            return [X]
        step = max(1, _MOST_DENSE // X.shape[1])
        return [X[i : i + step].toarray() for i in range(0, X.shape[0], step)]

    def _trained_points(self) -> Points:
        return self.forest_.members[0].points

    def _every_point(self) -> Points:
        """All training points, in any order."""
        return self._trained_points()

    def _placed(self, X: PointsLike) -> Points:
        trained = self._trained_points()
        dense = isinstance(trained, DensePoints)
        points = as_points(X, device=trained.device) if dense else as_points_like(X, trained)
        return self._scaling(points, trained.dtype)


def check_rows(name: str, rows: np.ndarray) -> int:
    """How many rows of a table there are; ValueError unless these are numbers of rows, ascending."""
    check_indices(name, torch.from_numpy(rows), 2**62, None)
    require(bool((np.diff(rows) > 0).all()), f"{name} must ascend")
    return len(rows)
