"""Kernel ridge regression for any targets: what the regressor and the classifier share."""

import time
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted
from torch import Tensor

from hck.approximations import Approximation, Predictor
from hck.approximations.exact import ExactPredictor
from hck.backend.kinds import kind_of
from hck.backend.memory import resolve_budget
from hck.backend.reuse import reusing
from hck.errors import NotPositiveDefiniteError
from hck.estimators.base import HCKEstimator, describe_parameters
from hck.hierarchy import Extension, Forest, share_points
from hck.kernels import Kernel, make_kernel
from hck.partition import Tree
from hck.points import DensePoints, Points, SparsePoints, as_points, as_points_like
from hck.preparation.scaling import Scaling, other_units
from hck.selection.auto import MOST_LENGTHSCALES, Candidate, Contest, Selection, choose
from hck.selection.blend import blend_weights
from hck.selection.likelihood import Observations
from hck.selection.loss import InUnits, Loss
from hck.selection.work import UNKNOWN, Shape, allowed_work, features_within, forest_shape

_BLENDED = 3  # candidates at most whose predictions are averaged
_REFINED = 20_000  # observations on which the ridge of approximations without a tree is chosen
_MOST_DENSE = 10**8  # numbers: smaller sparse data are made dense where that is faster

_PARAMETERS = """kernel : str, Kernel or callable, default="auto"
    The base kernel: a name (``"gaussian"``, ``"laplace"``, ``"inverse_multiquadric"``, ``"matern12"``,
    ``"matern32"``, ``"matern52"``), an object of `hck.kernels`, a function k(A, B) that returns the matrix of
    kernel values between two sets of points, or ``"auto"``, to choose between Matérn-3/2, Matérn-1/2,
    Gaussian and Laplace (Gaussian where a lengthscale is given).
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


def describe_ridge(cls: type) -> type:
    """Put the shared parameters and attributes into the docstring of an estimator."""
    cls.__doc__ = (cls.__doc__ or "").replace("{parameters}", _PARAMETERS.replace("\n", "\n    "))
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

    # By what part lengthscales for each feature have to lower the loss to be preferred to one for all.
    _margin: ClassVar[float] = 0.0

    # Training ---------------------------------------------------------------------------------------

    @torch.no_grad()
    @reusing()
    def _train(
        self,
        X: Any,
        targets: np.ndarray,
        sample_weight: Any,
        loss: Callable[[np.ndarray, np.ndarray | None], Loss],
    ) -> dict[str, Any]:
        """Solve (K_h + α diag(1/weight)) w = targets − intercept, for several targets at once.

        Parameters
        ----------
        X : validated points
        targets : ndarray of shape (n, columns)
        sample_weight : array-like of shape (n,), float or None
        loss : callable
            Some rows and their weights ↦ the loss of predictions of their targets.

        Returns
        -------
        dict
            The fitted attributes, to be set once nothing can fail any more.
        """
        points, rng = self._points(X), check_random_state(self.random_state)
        y = torch.tensor(targets, dtype=torch.float64)
        used = np.arange(len(y))
        weight = None if sample_weight is None else _check_weights(sample_weight, len(points))
        if weight is not None and (weight == 0).any():  # a point that counts for nothing is not there
            if isinstance(self.partition, Tree):
                raise ValueError("points of weight 0 are left out, but the tree given as partition has them")
            kept = weight.nonzero().squeeze(1)
            points, y, weight, used = points.take(kept.to(points.device)), y[kept], weight[kept], kept.numpy()
        scaling = Scaling.of(self._scale_kind(), points)
        units = other_units(scaling if self.scale == "auto" else Scaling(), points)
        points = scaling(points, self._dtype())
        intercept = y.mean(0) if weight is None else weight @ y / weight.sum()
        y = y - intercept
        spread = y.std(0, correction=0)
        spread = spread.where(spread > 0, 1.0)
        relative = (
            None if weight is None else (weight.mean() if isinstance(self.alpha, str) else 1.0) / weight
        )
        data = Observations(points, y / spread, noise=relative)

        def loss_of(rows: np.ndarray) -> Loss:
            inner = loss(used[rows], None if weight is None else weight.numpy()[rows])
            return InUnits(inner, spread.numpy(), intercept.numpy())

        selection = self._select(data, units, loss_of, rng)
        seeds = rng.randint(2**31 - 1, size=selection.n_trees).tolist()
        shape = Shape(selection.n_trees, selection.leaf_size, selection.rank)

        def forest(kernel: Kernel, alpha: float) -> tuple[list[Predictor], np.ndarray | None]:
            """Trained members, and what they predict of left-out observations."""
            noise: float | Tensor = alpha if relative is None else alpha * relative

            def train(approximation: Approximation) -> tuple[Predictor, Tensor | None]:
                found, others = approximation.ridge(noise, y, self.leave_one_out)
                found = share_points(found, points) if isinstance(found, Extension) else found
                return found, None if others is None else others.double().cpu()

            trained = self._for_each_tree(train, kernel, points, seeds, shape)
            others = [each for _, each in trained if each is not None]
            return [member for member, _ in trained], torch.stack(others).mean(0).numpy() if others else None

        groups, shares = [forest(selection.kernel, selection.alpha)], np.ones(1)
        if groups[0][1] is not None and len(selection.blend) > 1:
            groups += [forest(each.kernel, each.alpha) for each in selection.blend[1:]]
            shares = blend_weights([other for _, other in groups], y.numpy(), weight)
            for each, share in zip(selection.blend, shares, strict=True):
                each.weight = float(share)
        blended = [(*group, float(share)) for group, share in zip(groups, shares, strict=True) if share > 0]
        members = [member for group, _, _ in blended for member in group]
        weights = [share / len(group) for group, _, share in blended for _ in group]
        left_out: Any = None
        if blended[0][1] is not None:
            left_out = np.sum([share * other for _, other, share in blended if other is not None], axis=0)
        return {
            "trees_": [member.tree for member in members if isinstance(member, Extension)],
            "forest_": Forest(members, weights if len(blended) > 1 else None),
            "intercept_": intercept.numpy(),
            "selection_": selection,
            "residuals_": [member.residuals for member in members if isinstance(member, ExactPredictor)],
            "_scaling": scaling,
            "_left_out": None if left_out is None else left_out + intercept.numpy(),
            "_used": used,
            "_weight": None if weight is None else weight.numpy(),
        }

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
        if self._chooses_lengthscales():
            return None
        kernel = "gaussian" if isinstance(self.kernel, str) and self.kernel == "auto" else self.kernel
        return make_kernel(kernel, None if isinstance(self.lengthscale, str) else self.lengthscale)

    def _select(
        self,
        data: Observations,
        units: dict[str, Tensor | None],
        loss: Callable[[np.ndarray], Loss],
        rng: np.random.RandomState,
    ) -> Selection:
        """Choose what was not given."""
        start, points = time.perf_counter(), data.points
        work = allowed_work(self.fit_time, len(points), points.device)
        kernel, alpha = self._given_kernel(), None if isinstance(self.alpha, str) else float(self.alpha)
        if kernel is None:
            make_kernel("gaussian" if self.kernel == "auto" else self.kernel, 1.0)  # or an error
        blends = self.fit_time == "best" and self.leave_one_out and self.approximation == "hierarchical"
        shape = self._final_shape(points, work / 2)
        if blends:
            part = self._final_shape(points, work / 4)
            blends = part.n_trees == shape.n_trees  # one leaf of all points is worth more than several models
            shape = part if blends else shape
        if kernel is not None and alpha is not None:
            name = str(self.approximation)
            return Selection(kernel, alpha, shape.n_trees, shape.leaf_size, shape.rank, approximation=name)
        contest = Contest(
            data,
            loss,
            self._scout,
            work / 2,
            rng,
            bool(self.verbose),
            resolve_budget(self.memory_budget, points.device),
        )
        chosen: str | Kernel = self.kernel if kernel is None else kernel
        best, met, notes = choose(contest, chosen, alpha, units, self._margin)
        if alpha is None and self.approximation in ("nystrom", "fourier", "tapered"):
            best.alpha = self._refine(best, data, loss, shape, rng)
            notes.append(f"with this approximation: alpha {best.alpha:.3g}")
        seconds, sizes = time.perf_counter() - start, (shape.n_trees, shape.leaf_size, shape.rank)
        found = Selection(best.kernel, best.alpha, *sizes, met, notes, seconds, str(self.approximation))
        if blends:
            found.blend = [best, *(each for each in met[1:] if self._joins(each, best))][:_BLENDED]
        return found

    def _joins(self, candidate: Candidate, best: Candidate) -> bool:
        """Whether a candidate is nearly as good as the best, and of a kind that may win."""
        allowed = not self._margin or candidate.many == best.many
        return allowed and candidate.loss < 1.15 * best.loss

    def _refine(
        self,
        best: Candidate,
        data: Observations,
        loss: Callable[[np.ndarray], Loss],
        shape: Shape,
        rng: np.random.RandomState,
    ) -> float:
        """The ridge that suits an approximation without a tree best, around that of trees."""
        some, rows = data.draw(_REFINED, rng)
        made = self._approximation(best.kernel, some.points, rng.randint(2**31 - 1), shape, scouting=True)
        relative = 1.0 if some.noise is None else some.noise
        found = {best.alpha: np.inf}
        for factor in (0.03, 0.1, 0.3, 1.0, 3.0):
            alpha = best.alpha * factor
            try:
                others = made.ridge(alpha * relative, some.y, left_out=True)[1]
            except NotPositiveDefiniteError:
                continue
            if others is None:  # memory is short
                break
            value = float(loss(rows)(others.cpu().numpy())) if others.isfinite().all() else np.inf
            found[alpha] = value if np.isfinite(value) else np.inf
        return min(found, key=lambda alpha: found[alpha])

    def _final_shape(self, points: Points, work: float) -> Shape:
        n_trees = None if isinstance(self.n_trees, str) else self.n_trees
        if self.approximation != "hierarchical":
            n_trees = 1 if self._is_fixed() else n_trees or 1
        if not isinstance(self.rank, str):
            return Shape(n_trees or 1, self.leaf_size, self.rank)
        if self.approximation in ("nystrom", "fourier", "tapered"):
            most = len(points) if self.approximation != "tapered" else 64
            return Shape(n_trees or 1, None, min(most, features_within(len(points), work)))
        memory = resolve_budget(self.memory_budget, points.device) / points.dtype.itemsize
        leaf_size = self.leaf_size
        if isinstance(self.partition, Tree):
            leaf_size = int(self.partition.size[self.partition.leaves].max())
            n_trees = n_trees or 1
        if leaf_size is None:
            size = len(points), points.values_per_point or UNKNOWN
            single = kind_of(points.device).single_leaf
            return forest_shape(*size, work, memory, n_trees, single=single)
        several = 8 if leaf_size < len(points) else 1
        return Shape(n_trees or several, leaf_size, max(1, min(leaf_size, len(points)) // 8))

    def _left_out_values(self) -> np.ndarray:
        check_is_fitted(self)
        if self._left_out is None:
            raise ValueError(
                "nothing was left out in `fit`: use leave_one_out=True; if you do, memory was too short for "
                "it (memory_budget), or equations were solved by iteration"
            )
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


def _check_weights(weight: Any, n: int) -> Tensor:
    array = weight.detach().cpu().numpy() if isinstance(weight, Tensor) else weight
    array = _check_sample_weight(array, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True)
    if not array.any():
        raise ValueError("all sample weights are zero: at least one point must count")
    return torch.as_tensor(array)
