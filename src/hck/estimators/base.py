"""What all estimators share: parameters, validation, the way to a blueprint."""

import os
import reprlib
from collections.abc import Callable, Sequence, Sized
from dataclasses import fields, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_array, get_tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_y, check_is_fitted, validate_data
from torch import Tensor

from hck.approximations import Approximation, Iterative
from hck.approximations.make import NAMES, approximate, for_other_points
from hck.backend.checks import require
from hck.backend.device import resolve_device
from hck.estimators.parameters import Predictions
from hck.estimators.whole import keep_whole
from hck.kernels import Kernel, Precomputed, make_kernel
from hck.kernels.inputs import looks_like_objects, refuse_single, refuse_times
from hck.kernels.precomputed import check_finite_values, check_values
from hck.partition import Cutter, Landmarks, Tree
from hck.persistence.model import save
from hck.points import ObjectPoints, Points, as_points, as_points_like, check_sparse, features_of
from hck.preparation.arrays import PointsLike, TargetsLike, check_has_numbers, count, to_host
from hck.preparation.coding import as_targets, refuse_missing, refuse_sparse
from hck.preparation.columns import Columns
from hck.preparation.copies import warn_of_copies
from hck.preparation.frames import has_numbers_only, is_frame, names_of, refuse_twins
from hck.preparation.levels import statistic_targets
from hck.preparation.scaling import Scaling
from hck.preparation.ties import Ties
from hck.selection.candidate import Shape
from hck.settings import Settings

ACCEPTED = [np.float64, np.float32]  # other numbers become the first
_NUMBERS = {"accept_sparse": "csr", "dtype": ACCEPTED}
MOST_TREES = 1_000_000  # whose seeds are drawn at once
FEW = 4000  # points of which the exact kernel is affordable a hundred times
_DTYPES = {"float64": torch.float64, "float32": torch.float32}


class HCKEstimator(BaseEstimator):
    """An estimator with a hierarchically compositional kernel."""

    kernel: Any
    approximation: str | Iterative
    n_trees: int
    rank: int
    leaf_size: int | None
    partition: Any
    landmarks: Any
    jitter: float | None
    device: str | torch.device | None
    dtype: str
    memory_budget: float | str | None
    random_state: int | np.random.RandomState | None
    verbose: int
    trees_: list[Tree]
    _updatable: ClassVar[bool] = True  # not where a model is made branch by branch
    _objects: bool  # whether points are objects that a kernel function takes
    _given_values: Precomputed  # of the kernel, where these are what is given as X
    _takes_values: ClassVar[bool] = False  # whether kernel="precomputed" is possible
    _adds = True  # means of targets to numbers that are codes
    _columns_in: Columns | None  # how columns become features; None: as they are, and none may be missing

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [str, Kernel, callable],
        "approximation": [StrOptions(set(NAMES)), Iterative],
        "lengthscale": [Interval(Real, 0, None, closed="neither"), "array-like", None],
        "rank": [Interval(Integral, 1, None, closed="left")],
        "leaf_size": [Interval(Integral, 1, None, closed="left"), None],
        "partition": [str, Cutter, Tree],
        "landmarks": [str, "array-like", list, Landmarks],
        "jitter": [Interval(Real, 0, None, closed="left"), None],
        "device": [str, torch.device, None],
        "dtype": [StrOptions(set(_DTYPES))],
        "memory_budget": [Interval(Real, 0, None, closed="neither"), str, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        keep_whole(cls)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        tags.input_tags.sparse = tags.input_tags.allow_nan = not tags.input_tags.pairwise
        return tags

    # Input ------------------------------------------------------------------------------------------

    def _validate_training(
        self, X: PointsLike, y: TargetsLike, reset: bool = True, **check_y: bool
    ) -> tuple[Any, Any]:
        """Check X and y; X stays a tensor if it is one, and objects stay objects.

        Without `reset`, X must be like the training points that the model has.
        """
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        refuse_single(X, "X")
        refuse_sparse(y)
        y, numeric = to_host(y), check_y.get("y_numeric", False)
        if getattr(y, "ndim", 0 if isinstance(y, Real) else 1) == 0:
            raise ValueError(f"y must have a value for each row of X, got {reprlib.repr(y)}")
        if numeric:
            y = as_targets(y)
        else:
            refuse_missing(np.asarray(y))
        if not (numeric and _is_plain(y, 1)):
            y = _check_y(y, estimator=self, **check_y)  # names of columns are not looked at yet
        if isinstance(X, Sized) and not sp.issparse(X) and getattr(X, "ndim", 1) != 0 and len(X) != len(y):
            raise _inconsistent(len(X), len(y))
        if reset:
            X = self._validate_alone(X, partial(statistic_targets, y, numeric))
        else:
            X = self._validate_new(X)
        if count(X) != len(y):
            raise _inconsistent(count(X), len(y))
        if reset and numeric and isinstance(getattr(self, "alpha", "auto"), str) and not self._objects:
            warn_of_copies(X, y)
        return X, y

    def _validate_alone(self, X: PointsLike, targets: Callable[[], np.ndarray] | None = None) -> PointsLike:
        """Check training points; tensors stay tensors, and objects stay objects.

        Where `targets` (rows, targets) are known, categories of many levels become statistics of them.
        """
        refuse_single(X, "X")
        self._objects, self._columns_in = self._takes_objects(X), None
        if self._is_precomputed():
            values = self._validate_values(X, reset=True)
            self._given_values = Precomputed.borrowing(check_values(values))
            return values
        if self._objects:
            for name in ("feature_names_in_", "n_features_in_"):  # of an earlier fit
                self.__dict__.pop(name, None)
            if len(X) == 0:
                raise ValueError("X is empty: at least one point is needed")
            return X
        if is_frame(X):
            refuse_twins(names_of(X))
            if not X.shape[1]:
                raise ValueError(f"X has no columns: got a table of shape {tuple(X.shape)}")
        if _is_mixed(X):
            self._columns_in, features = Columns.learn(X, targets)
            validate_data(self, X, skip_check_array=True, reset=True)
            return check_array(features, estimator=self, **_NUMBERS)
        X = self._validate_vectors(X, reset=True)
        if sp.issparse(X):
            return X
        values = to_host(X)
        if targets is None or not self._finds_codes():
            self._columns_in = Columns.of_array(values)
            return self._filled(X)
        self._columns_in, features = Columns.learn_array(values, targets)
        if features is values:
            return X
        return torch.from_numpy(features).to(X.device) if isinstance(X, Tensor) else features

    def _validate_new(self, X: PointsLike) -> PointsLike:
        """Check points that are like those of training."""
        check_is_fitted(self, "trees_")
        if self._is_precomputed():
            return self._validate_values(X, reset=False)
        if self._objects:
            looks_like_objects(X)  # or an error
            return X
        refuse_single(X, "X")
        known = self._columns_in
        if known is not None and (known.codings or _is_mixed(X)):
            known.check_frame(X)
            validate_data(self, X, skip_check_array=True, reset=False)
            return check_array(known(X), estimator=self, **_NUMBERS)
        return self._filled(self._validate_vectors(X, reset=False))

    def _validate_values(self, X: PointsLike, reset: bool) -> np.ndarray:
        """Check values of a precomputed kernel."""
        refuse_times(X, "X")
        values = validate_data(self, to_host(X), reset=reset, dtype=ACCEPTED, ensure_all_finite=False)
        check_finite_values(values)
        return values

    def _filled(self, X: PointsLike) -> PointsLike:
        """Validated vectors without missing values; a tensor stays one."""
        known = self._columns_in
        more = known is not None and (known.indicated or known.repeated)
        if known is None or (sp.issparse(X) and not more):
            return X
        if not isinstance(X, Tensor):
            return known.fill(X.toarray() if sp.issparse(X) else X)
        if not more and not torch.isnan(X).any():
            return X
        return torch.from_numpy(known.fill(to_host(X))).to(X.device)

    def _validate_vectors(self, X: PointsLike, reset: bool) -> PointsLike:
        """Check points that are no objects; with `reset`, remember number and names of features."""
        nameless = not reset and not hasattr(self, "feature_names_in_")
        if nameless and _is_plain(X, 2) and X.shape[1] == getattr(self, "n_features_in_", None):
            return X
        gaps = reset or (self._columns_in is not None and self._columns_in.means is not None)
        gaps = gaps and get_tags(self).input_tags.allow_nan
        if not isinstance(X, Tensor):
            X = check_sparse(X) if sp.issparse(X) else X
            refuse_times(X, "X")
            finite: bool | str = "allow-nan" if gaps and not sp.issparse(X) else True
            try:
                with np.errstate(over="ignore", invalid="ignore"):  # of sums of large values
                    return validate_data(self, to_host(X), reset=reset, **_NUMBERS, ensure_all_finite=finite)
            except (TypeError, ValueError) as error:
                if "complex" in str(error) and isinstance(error, TypeError):
                    raise ValueError(f"Complex data not supported: {error}") from None
                if sp.issparse(X) and "NaN" in str(error):
                    hint = "of sparse X none may be missing; give a dense array, or fill them"
                    raise ValueError(f"X contains NaN: {hint}") from None
                if not str(error).startswith(("could not convert", "float() argument", "setting an array")):
                    raise
                hint = "text and dates are understood in data frames only"
                raise type(error)(f"X must be a table of numbers: {error}; {hint}") from None
            except OverflowError:
                raise ValueError("X has a whole number that is too large for float64. Scale it") from None
        X = X.detach()
        _check_tensor(X, gaps)
        if reset:
            self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
            self.n_features_in_ = X.shape[1]
        self._check_width(X.shape[1])
        return X

    def _validate_points(self, X: PointsLike) -> PointsLike:
        """Check points of which nothing is known yet."""
        if isinstance(X, Tensor):
            X = X.detach()
            _check_tensor(X)
        elif not self._takes_objects(X):
            refuse_times(X, "X")
            X = check_array(check_sparse(X) if sp.issparse(X) else to_host(X), **_NUMBERS)
        return X

    def _check_width(self, n_features: int) -> None:
        if n_features != self.n_features_in_:
            raise ValueError(
                f"X has {n_features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )

    def _validate_loaded(self) -> None:
        """Raise ValueError unless what a file has set fits together."""
        columns: int = getattr(self, "n_features_in_", -1)
        require(not self._objects, "_objects must be False")
        require(
            type(columns) is int and columns > 0, f"n_features_in_ must be a whole number, got {columns!r}"
        )
        width = columns if self._columns_in is None else self._columns_in.width(columns)
        d = features_of(self._trained_points())
        require(width == d, f"n_features_in_ is {columns}, but points have {d} features")
        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            text = isinstance(names, np.ndarray) and all(isinstance(name, str) for name in names.ravel())
            require(text and names.shape == (columns,), "feature_names_in_ must be a text for each feature")
        require(not hasattr(self, "_metadata_request"), "_metadata_request is no part of a saved model")
        output = getattr(self, "_sklearn_output_config", {})
        known = [{"transform": kind} for kind in ("default", "pandas", "polars", None)]
        require(output in ({}, *known), f"_sklearn_output_config is {output!r}")

    @property
    def tree_(self) -> Tree:
        """The first of `trees_`."""
        check_is_fitted(self, "trees_")
        if not self.trees_:
            raise AttributeError(f"there is no tree with approximation={self.approximation!r}")
        return self.trees_[0]

    @property
    def kernel_feature_names_(self) -> list[str] | None:
        """The names of features as the kernel sees them.

        Categories, "name: value", and dates come first, and last those that say which values are missing.
        """
        columns, names = getattr(self, "_columns_in", None), getattr(self, "feature_names_in_", None)
        if columns is not None and columns.names:
            names = columns.names
        if names is None:
            return None
        called = [str(name) for name in names]
        return called if columns is None else columns.feature_names(called)

    @property
    def features_scaled_(self) -> bool:
        """Whether lengthscales are those of features that were scaled."""
        return self._own_scaling().factor is not None

    def _ties(self) -> Ties | None:
        """Which features have a weight in common; None if all have their own."""
        return None if self._columns_in is None else self._columns_in.ties(self.n_features_in_)

    def _finds_codes(self) -> bool:
        """Whether numbers of an array may get features beside them: where nothing is said of features."""
        chosen = all(isinstance(each, str) and each == "auto" for each in (self.kernel, self.lengthscale))
        named = isinstance(self.partition, str) and isinstance(self.landmarks, str)
        return self._adds and chosen and named

    def _takes_objects(self, X: PointsLike) -> bool:
        """Whether the points are no vectors: the kernel is a function, and X a sequence of other things.

        Points whose kernel values are given are numbers.
        """
        if self._is_precomputed():
            return True
        known = isinstance(self.kernel, Kernel) or callable(self.kernel)
        return known and make_kernel(self.kernel).takes_objects and looks_like_objects(X)

    def _is_precomputed(self) -> bool:
        """Whether X is a matrix of kernel values."""
        return self._takes_values and isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _base_kernel(self) -> Any:
        """The kernel that was given, as a name, a function or a `Kernel`."""
        return self._given_values if self._is_precomputed() else self.kernel

    def _resolve_device(self, X: PointsLike) -> torch.device:
        if self.device is not None:
            return resolve_device(self.device)
        return resolve_device(X.device if isinstance(X, Tensor) else "cpu")

    def _parameters_for(self, cls: type[BaseEstimator], without: Sequence[str] = ()) -> dict[str, Any]:
        """Those that another estimator has, too."""
        mine, known = self.get_params(deep=False), cls._get_param_names()
        return {name: mine[name] for name in known if name in mine and name not in without}

    # Files ------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], force: bool = False) -> None:
        """Save this estimator after `fit`, as a folder of data without code; `hck.load` loads it.

        Parameters
        ----------
        path : path-like
        force : bool, default=False
            Whether to replace a saved model that is there.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import hck
        >>> X = np.linspace(0, 1, 100)[:, None]
        >>> model = hck.HCKRegressor("matern32", lengthscale=0.5, alpha=0.1, rank=16).fit(X, X[:, 0])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/model")
        ...     print(hck.load(f"{folder}/model").kernel)
        matern32
        """
        save(self._settled(), path, force)

    def _settled(self) -> "HCKEstimator":
        """The same model as `fit` would have left it, without what updates keep."""
        return self

    # The hierarchical kernel ------------------------------------------------------------------------

    def _points(self, X: PointsLike) -> Points:
        """Validated data on the device and in the dtype that were asked for."""
        device = self._resolve_device(X)
        if self._is_precomputed():
            return ObjectPoints(np.arange(len(X)), self._dtype(), device)
        return as_points(X, self._dtype(), device, objects=self._takes_objects(X))

    def _dtype(self) -> torch.dtype:
        return _DTYPES[self.dtype]

    def _settings(self, shape: Shape) -> Settings:
        """The parameters of an approximation, with a size that may have been chosen."""
        options = {field.name for field in fields(Settings)}
        given = {name: value for name, value in self.get_params(deep=False).items() if name in options}
        chosen = {"rank": shape.rank, "leaf_size": shape.leaf_size, "verbose": bool(self.verbose)}
        return Settings(**{**given, **chosen})

    def _approximation(
        self, kernel: Kernel, points: Points, seed: int, shape: Shape, scouting: bool = False
    ) -> Approximation:
        """What stands in for the kernel, as the parameters say.

        With `scouting`, a tree or landmarks that were given for other points are left aside, and in the place
        of the exact kernel of many points there is the hierarchical one.
        """
        settings = self._settings(shape)
        if scouting:
            kind = self.approximation
            if self._is_exact():
                kind = "hierarchical" if len(points) > FEW else "exact"
            settings = for_other_points(replace(settings, approximation=kind, verbose=False), points)
        return approximate(kernel.to(points.device, points.dtype), points, settings, seed)

    def _is_exact(self) -> bool:
        return self.approximation == "exact" or isinstance(self.approximation, Iterative)

    def _is_fixed(self) -> bool:
        """Whether nothing about the approximation is random, so that several of it are one."""
        return self._is_exact() or self.approximation == "tapered"

    # Results ----------------------------------------------------------------------------------------

    def _trained_points(self) -> Points:
        """Those that predictions are made with."""
        raise NotImplementedError

    def _placed(self, X: PointsLike) -> Points:
        """Validated new points, as the trained functions take them."""
        trained = self._trained_points()
        return self._own_scaling()(as_points_like(X, trained), trained.dtype)

    def _own_scaling(self) -> Scaling:
        """How features are scaled before the kernel sees them."""
        return getattr(self, "_scaling", Scaling())  # which not all estimators have

    @staticmethod
    def _out(X: PointsLike, values: Tensor) -> Predictions:
        """Results as X came: a tensor on its device, or an array."""
        return values.to(X.device) if isinstance(X, Tensor) else values.detach().cpu().numpy()


keep_whole(HCKEstimator)  # as each of its subclasses


def device_of(model: HCKEstimator) -> torch.device:
    """Where a fitted one computes."""
    return model._trained_points().device


def _is_plain(array: object, dimensions: int) -> bool:
    """Whether it is an array that scikit-learn's checks would return as it is, which takes them a while."""
    if type(array) is not np.ndarray or array.dtype not in ACCEPTED:
        return False
    if array.ndim != dimensions or not array.size:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(array.sum()))


def _is_mixed(X: PointsLike) -> bool:
    """Whether it is a table with other columns than those of numbers."""
    return is_frame(X) and not has_numbers_only(X)


def _inconsistent(points: int, values: int) -> ValueError:
    return ValueError(f"inconsistent numbers of samples: X has {points} points but y has {values} values")


def _check_tensor(X: Tensor, gaps: bool = False) -> None:
    """Raise ValueError unless it has vectors of real numbers; with `gaps`, NaN may stand for some."""
    check_has_numbers(X)
    if X.layout != torch.strided or X.is_complex():
        raise ValueError("Complex data not supported, and sparse tensors neither: use a scipy.sparse matrix")
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got a tensor of shape {tuple(X.shape)}. Reshape your data")
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise ValueError(f"X is empty: got a tensor of shape {tuple(X.shape)}")
    if torch.isinf(X).any() or (torch.isnan(X).any() and not gaps):
        raise ValueError("Input X contains infinity" if gaps else "Input X contains NaN or infinity")
