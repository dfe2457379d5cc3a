"""Kernel ridge regression for any targets: what the regressor and the classifier share."""

from functools import partial
from inspect import cleandoc
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted
from torch import Tensor

from hck.approximations.exact import ExactPredictor
from hck.approximations.make import for_each_tree
from hck.backend.kinds import kind_of
from hck.backend.memory import resolve_budget
from hck.backend.reuse import reusing
from hck.estimators.base import HCKEstimator, describe_parameters
from hck.estimators.training import Equations, Fitted, Trained, Weighed, blend, scale, weigh
from hck.hierarchy import Forest, TreePredictor
from hck.kernels import Kernel
from hck.partition import Tree
from hck.points import DensePoints, Points, SparsePoints, as_points, as_points_like
from hck.selection import Candidate, Observations, Selection
from hck.selection.auto import MOST_LENGTHSCALES, given_kernel, select
from hck.selection.candidate import Given, Shape
from hck.selection.contest import Contest
from hck.selection.isotropic import Units
from hck.selection.loss import LOSSES, Loss
from hck.selection.work import Limits, allowed_work

_MOST_DENSE = 10**8  # numbers: smaller sparse data are made dense where that is faster

NOTHING_LEFT_OUT = (
    "nothing was left out in `fit`: use leave_one_out=True; if you do, memory was too short for it "
    "(memory_budget), or equations were solved by iteration"
)

_PARAMETERS = """kernel : str, Kernel or callable, default="auto"
    The base kernel: a name (one of ``hck.kernels.kernel_names()``), an object of `hck.kernels`, a function
    k(A, B) that returns the matrix of kernel values between two sets of points, or ``"auto"``, to choose
    between Matérn-3/2, Matérn-1/2, Gaussian and Laplace (Gaussian where a lengthscale is given).
lengthscale : "auto", float, array-like of shape (n_features,) or None, default="auto"
    σ of a named kernel: one number, or one per feature; None means 1. ``"auto"``: one for all by
    leave-one-out loss, or one per feature by likelihood, whichever predicts left-out observations better
    (for classes: better by a fifth, since labels are not Gaussian).
alpha : "auto" or float, default="auto"
    λ ≥ 0, the ridge: larger is smoother. ``"auto"``: chosen on left-out observations, for points of mean
    weight.
scale : {"auto", "standard", "minmax"} or None, default="auto"
    How features are scaled first: to mean 0 and variance 1, to [0, 1], or not. ``"auto"``: standard where
    lengthscales are chosen and neither a tree nor landmarks are given, else not. Large sparse data stay
    sparse, and are not centred.
fit_time : {"fast", "balanced", "best"} or float, default="balanced"
    How much work may be done, where something is chosen: seconds, roughly, or a name. Balanced takes about
    half a minute and another for every 60,000 points on two cores; fast a fifth of that, best eight times as
    much. It is an amount of work rather than a clock, so that results are reproducible; only where memory is
    short they depend on how much of it is free (see `memory_budget`). Below some seconds, only Matérn-3/2 is
    tried. Best also averages the predictions of up to three candidates, with the weights that predict
    left-out observations best (needs `leave_one_out`).
leave_one_out : bool, default=True
    Whether `fit` also predicts each training point from all others, in closed form, which takes about half as
    long again: for errors without a hold-out, and for probabilities.
n_trees : "auto" or int, default="auto"
    How many trees, with partitions and landmarks of their own, to average (other approximations: how many,
    with landmarks or frequencies of their own). Auto: one where `rank` is given, and for approximations other
    than the hierarchical, else several.
rank : "auto" or int, default="auto"
    r, the number of landmarks of a node. Accuracy and cost (time r², memory r) grow with it. Auto: an eighth
    of the leaf size, which `fit_time` decides. Of other approximations: their rank, the size of leaves where
    `leaf_size` is not given, or the mean number of nonzeros of a row.
{settings}"""


# What is saved of a fitted regressor or classifier, and where it computes.
SAVED = ("forest_", "intercept_", "selection_", "residuals_", "_scaling", "_left_out", "_used", "_weight")


def device_of(model: "RidgeEstimator") -> torch.device:
    return model.forest_.members[0].points.device


def describe_ridge(cls: type) -> type:
    """Put the shared parameters and attributes into the docstring of an estimator."""
    cls.__doc__ = cleandoc(cls.__doc__ or "").replace("{parameters}", _PARAMETERS)
    return describe_parameters(cls)


class RidgeEstimator(HCKEstimator):
    """Kernel ridge regression with a hierarchically compositional kernel, for any targets."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **HCKEstimator._parameter_constraints,
        "lengthscale": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither"), "array-like", None],
        "alpha": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "scale": [StrOptions({"auto", "standard", "minmax"}), None],
        "fit_time": [StrOptions({"fast", "balanced", "best"}), Interval(Real, 0, None, closed="neither")],
        "leave_one_out": ["boolean"],
        "n_trees": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "rank": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        kernel: Any = "auto",
        *,
        lengthscale: Any = "auto",
        alpha: Any = "auto",
        scale: Any = "auto",
        fit_time: Any = "balanced",
        leave_one_out: bool = True,
        approximation: Any = "hierarchical",
        n_trees: Any = "auto",
        rank: Any = "auto",
        leaf_size: int | None = None,
        partition: Any = "random_projection",
        landmarks: Any = "uniform",
        jitter: float | None = None,
        device: Any = None,
        dtype: str = "float64",
        memory_budget: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.lengthscale = lengthscale
        self.alpha = alpha
        self.scale = scale
        self.fit_time = fit_time
        self.leave_one_out = leave_one_out
        self.approximation = approximation
        self.n_trees = n_trees
        self.rank = rank
        self.leaf_size = leaf_size
        self.partition = partition
        self.landmarks = landmarks
        self.jitter = jitter
        self.device = device
        self.dtype = dtype
        self.memory_budget = memory_budget
        self.random_state = random_state
        self.verbose = verbose

    # The name of the loss by which candidates are compared, of `hck.selection.loss.LOSSES`.
    _loss: ClassVar[str]

    # Training ---------------------------------------------------------------------------------------

    def _train(self, X: Any, targets: np.ndarray, sample_weight: Any, observed: np.ndarray) -> Fitted:
        """Solve (K_h + α diag(1/weight)) w = targets − intercept, for several targets at once.

        Parameters
        ----------
        X : validated points
        targets : ndarray of shape (n, columns)
        sample_weight : array-like of shape (n,), float or None
        observed : ndarray of shape (n, …)
            What the loss compares predictions with.
        """
        with torch.no_grad(), reusing():
            points, rng = self._points(X), check_random_state(self.random_state)
            weighed = weigh(targets, _check_weights(sample_weight, len(points)))
            points = self._counting(points, weighed)
            scaled = scale(points, self._scale_kind(), self.scale == "auto", self._dtype())
            noise = weighed.noise(isinstance(self.alpha, str))
            data = weighed.observations(scaled.points, noise)
            selection = self._select(data, weighed.loss(LOSSES[self._loss], observed), scaled.units, rng)
            seeds = rng.randint(2**31 - 1, size=selection.n_trees).tolist()
            equations = Equations(scaled.points, weighed.y, noise, self.leave_one_out)
            shape, others = selection.shape, selection.blend[1:]
            trained = [self._train_trees(equations, selection, shape, seeds)]
            if trained[0].left_out is not None:
                trained += [self._train_trees(equations, other, shape, seeds) for other in others]
            return Fitted(blend(trained, selection.blend, weighed), weighed, scaled.scaling, selection)

    def _select(
        self, data: Observations, loss: Loss, units: Units, rng: np.random.RandomState
    ) -> Selection:  # fmt: skip
        """Choose what was not given."""
        n, device = len(data), data.points.device
        memory = resolve_budget(self.memory_budget, device)
        limits = Limits(allowed_work(self.fit_time, n, device) / 2, memory)
        settings = self._settings(Shape(1, self.leaf_size, 1))  # the rank is that of `_given`, or chosen
        return select(self._given(), Contest(data, loss, settings, limits, rng), units)

    def _given(self) -> Given:
        """What is not to be chosen."""
        n_trees, rank, alpha = (
            None if isinstance(value, str) else value for value in (self.n_trees, self.rank, self.alpha)
        )
        n_trees = 1 if self._is_fixed() else n_trees
        blends = self.fit_time == "best" and self.leave_one_out and self.approximation == "hierarchical"
        kernel = given_kernel(self.kernel, self.lengthscale)
        return Given(kernel, None if alpha is None else float(alpha), rank, n_trees, blends)

    def _train_trees(
        self, equations: Equations, chosen: Selection | Candidate, shape: Shape, seeds: list[int]
    ) -> Trained:
        """Solve for each tree, or for what else stands in for the chosen kernel."""
        solve = partial(equations.solve, alpha=chosen.alpha)
        settings = self._settings(shape)
        return Trained.of(for_each_tree(solve, chosen.kernel, equations.points, settings, seeds))

    def _keep(self, fitted: Fitted) -> None:
        """Set the fitted attributes."""
        members = fitted.trained.members
        self.trees_ = [member.tree for member in members if isinstance(member, TreePredictor)]
        self.forest_ = Forest(members, fitted.trained.weights)
        self.intercept_ = fitted.weighed.intercept.numpy()
        self.selection_ = fitted.selection
        self.residuals_ = [each.residuals for each in members if isinstance(each, ExactPredictor)]
        self._scaling = fitted.scaling
        self._left_out = fitted.left_out
        self._used = fitted.weighed.rows
        self._weight = fitted.weighed.weights

    # Parameters -------------------------------------------------------------------------------------

    def _points(self, X: Any) -> Points:
        """Data as they came, on the device."""
        points = super()._points(X) if self._takes_objects(X) else self._as_they_came(X)
        if isinstance(points, SparsePoints) and self._chooses_lengthscales():
            n, d = points.x.shape
            if n * d <= _MOST_DENSE and (d <= MOST_LENGTHSCALES or kind_of(points.device).makes_dense):
                dense = torch.from_numpy(points.x.toarray())
                return DensePoints(dense.to(points.device, points.dtype))
        return points

    def _as_they_came(self, X: Any) -> Points:
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
        return isinstance(self.kernel, str) and isinstance(self.lengthscale, str)

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

    def _given_kernel(self) -> Kernel | None:
        """The kernel, unless something about it is to be chosen."""
        kernel = given_kernel(self.kernel, self.lengthscale)
        return None if isinstance(kernel, str) else kernel

    def _left_out_values(self) -> np.ndarray:
        check_is_fitted(self)
        if self._left_out is None:
            raise ValueError(NOTHING_LEFT_OUT)
        return self._left_out

    # Evaluation -------------------------------------------------------------------------------------

    def _evaluate(self, X: Any) -> Any:
        """The trained functions at new points: shape (points, columns); a tensor if X is one."""
        X = self._validate_new(X)
        values = torch.cat([self._forest_values(part) for part in self._parts(X)])
        intercept = torch.as_tensor(self.intercept_, device=values.device)
        return self._out(X, (values + intercept).to(values.dtype))

    def _parts(self, X: Any) -> list[Any]:
        """Rows of new data; several parts where sparse data have to be made dense."""
        if not sp.issparse(X) or isinstance(self.forest_.members[0].points, SparsePoints):
            return [X]
        step = max(1, _MOST_DENSE // X.shape[1])
        return [X[i : i + step].toarray() for i in range(0, X.shape[0], step)]

    def _forest_values(self, X: Any) -> Tensor:
        trained = self.forest_.members[0].points
        if isinstance(trained, DensePoints):
            points: Points = as_points(X, device=trained.device)
        else:
            points = as_points_like(X, trained)
        return self.forest_(self._scaling(points, trained.dtype), verbose=bool(self.verbose))


def _check_weights(weight: Any, n: int) -> Tensor | None:
    if weight is None:
        return None
    array = weight.detach().cpu().numpy() if isinstance(weight, Tensor) else weight
    array = _check_sample_weight(array, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True)
    if not array.any():
        raise ValueError("all sample weights are zero: at least one point must count")
    return torch.as_tensor(array)
