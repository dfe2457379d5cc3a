"""What all estimators share: parameters, validation, the way to a blueprint."""

from dataclasses import replace
from inspect import cleandoc
from numbers import Integral, Real
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_X_y
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from hck.approximations import Approximation, Iterative
from hck.approximations.make import NAMES, approximate, for_other_points
from hck.backend.device import resolve_device
from hck.kernels import Kernel, make_kernel
from hck.kernels.inputs import looks_like_objects
from hck.partition import Cutter, Landmarks, Tree
from hck.persistence.model import save
from hck.points import Points, as_points
from hck.preparation.categories import Categories
from hck.selection.candidate import Shape
from hck.settings import Settings

Result = TypeVar("Result")

_ACCEPTED = [np.float64, np.float32]  # other numbers become the first
FEW = 4000  # points of which the exact kernel is affordable a hundred times
_DTYPES = {"float64": torch.float64, "float32": torch.float32}


_SETTINGS = """approximation : str or hck.approximations.Iterative, default="hierarchical"
    What stands in for the kernel. ``"hierarchical"``: exact in leaves, low rank across them, up the tree;
    ``"compositional"``: the same with one level; ``"independent"``: exact in leaves, 0 across them;
    ``"nystrom"``: of rank r, by landmarks; ``"fourier"``: of rank r, by random features (Gaussian, Laplace
    and Matérn kernels); ``"tapered"``: sparse, with r numbers in a row (dense features); ``"exact"``: the
    kernel itself, in O(n²) memory and O(n³) time, or, where memory is short, by iteration (`Iterative`).
leaf_size : int or None, default=None
    n₀, the largest number of points in a leaf, where the kernel is exact. None: between r and 2r. This and
    `partition` are for approximations with trees, and for the preconditioner of `Iterative`.
partition : {"random_projection", "pca", "kd", "kmeans", "kernel"}, Cutter or Tree, \
        default="random_projection"
    How the domain is cut. ``"kernel"`` needs only kernel values, so it works for objects of any kind.
landmarks : {"uniform", "kmeans", "farthest", "same"}, array, list of arrays or Landmarks, default="uniform"
    How landmarks are chosen; see `hck.partition.choose_landmarks`.
jitter : float or None, default=None
    λ', added to the landmarks' kernel matrices for stability. None: 1e-8 in float64, 1e-4 in float32,
    times the mean of k(x, x).
device : str, torch.device or None, default=None
    ``"cpu"`` or ``"cuda"``. None: where X is, if it is a tensor, else the CPU.
dtype : {"float64", "float32"}, default="float64"
memory_budget : int, float, str or None, default=None
    Bytes, or text such as ``"4GiB"``, that training may take beside the data; less than storing everything
    needs costs up to twice the time. None: half of the memory that is free, or four fifths of a GPU's.
random_state : int, RandomState instance or None, default=None
    Makes partition and landmarks reproducible.
verbose : int, default=0
    Whether to show progress."""

_ATTRIBUTES = """trees_ : list of Tree
    The partitions of the training points; none for approximations without trees.
n_features_in_ : int
    Number of features seen during fit.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of features seen during fit, if X has feature names that are all strings."""


def describe_parameters(cls: type) -> type:
    """Put what is said of all estimators into the docstring of one."""
    for field, text in (("{settings}", _SETTINGS), ("{attributes}", _ATTRIBUTES)):
        cls.__doc__ = cleandoc(cls.__doc__ or "").replace(field, text)
    return cls


class HCKEstimator(BaseEstimator):
    """An estimator with a hierarchically compositional kernel."""

    kernel: Any
    approximation: Any
    n_trees: int
    rank: int
    leaf_size: int | None
    partition: Any
    landmarks: Any
    jitter: float | None
    device: Any
    dtype: str
    memory_budget: Any
    random_state: Any
    verbose: int
    trees_: list[Tree]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [str, Kernel, callable],
        "approximation": [StrOptions(set(NAMES)), Iterative],
        "lengthscale": [Interval(Real, 0, None, closed="neither"), "array-like", None],
        "n_trees": [Interval(Integral, 1, None, closed="left")],
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # Input ------------------------------------------------------------------------------------------

    def _validate_training(self, X: Any, y: Any, **check_y: Any) -> tuple[Any, np.ndarray]:
        """Check X and y; X stays a tensor if it is one, and objects stay objects."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        self._objects = self._takes_objects(X)
        self._categories = None if self._objects else Categories.of(X)
        if self._categories is not None:
            validate_data(self, X, y="no_validation", skip_check_array=True)
            numbers = self._categories(X)
            X, y = check_X_y(
                numbers, y, accept_sparse="csr", dtype=_ACCEPTED, estimator=self, **check_y
            )  # fmt: skip
            return X, y
        if not (isinstance(X, Tensor) or self._objects):
            X, y = validate_data(self, X, y, accept_sparse="csr", dtype=_ACCEPTED, **check_y)
            return X, y
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if isinstance(X, Tensor):
            _check_tensor(X)
        y = y.detach().cpu().numpy() if isinstance(y, Tensor) else y
        y = validate_data(self, X="no_validation", y=y, **check_y)
        if len(y) != len(X):
            raise ValueError(f"X has {len(X)} points but y has {len(y)} values")
        if len(y) == 0:
            raise ValueError("X is empty: at least one point is needed")
        if isinstance(X, Tensor):
            self.n_features_in_ = X.shape[1]
        return X, y

    def _validate_alone(self, X: Any) -> Any:
        """Check X, of which there are no targets; X stays a tensor if it is one, and objects stay objects."""
        self._objects = self._takes_objects(X)
        self._categories = None if self._objects else Categories.of(X)
        if self._categories is not None:
            validate_data(self, X, skip_check_array=True)
            return check_array(self._categories(X), accept_sparse="csr", dtype=_ACCEPTED, estimator=self)
        if not (isinstance(X, Tensor) or self._objects):
            return validate_data(self, X, accept_sparse="csr", dtype=_ACCEPTED)
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if isinstance(X, Tensor):
            _check_tensor(X)
            self.n_features_in_ = X.shape[1]
        elif len(X) == 0:
            raise ValueError("X is empty: at least one point is needed")
        return X

    def _validate_new(self, X: Any) -> Any:
        check_is_fitted(self, "trees_")
        if self._objects:
            looks_like_objects(X)  # or an error
            return X
        if self._categories is not None:
            if hasattr(X, "columns"):
                validate_data(self, X, skip_check_array=True, reset=False)
            return check_array(self._categories(X), accept_sparse="csr", dtype=_ACCEPTED, estimator=self)
        if isinstance(X, Tensor):
            _check_tensor(X)
            if X.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input"
                )
            return X
        return validate_data(self, X, accept_sparse="csr", dtype=_ACCEPTED, reset=False)

    def _validate_points(self, X: Any) -> Any:
        """Check points of which nothing is known yet."""
        if isinstance(X, Tensor):
            _check_tensor(X)
        elif not self._takes_objects(X):
            X = check_array(X, accept_sparse="csr", dtype=_ACCEPTED)
        return X

    @property
    def tree_(self) -> Tree:
        """The first of `trees_`."""
        check_is_fitted(self, "trees_")
        if not self.trees_:
            raise AttributeError(f"there is no tree with approximation={self.approximation!r}")
        return self.trees_[0]

    def _takes_objects(self, X: Any) -> bool:
        """Whether the points are no vectors: the kernel is a function, and X a sequence of other things."""
        known = isinstance(self.kernel, Kernel) or callable(self.kernel)
        return known and make_kernel(self.kernel).takes_objects and looks_like_objects(X)

    def _resolve_device(self, X: Any) -> torch.device:
        if self.device is not None:
            return resolve_device(self.device)
        return resolve_device(X.device if isinstance(X, Tensor) else "cpu")

    # Files ------------------------------------------------------------------------------------------

    def save(self, path: Any, force: bool = False) -> None:
        """Save this estimator after `fit`, as a folder of data without code; `hck.load` loads it.

        Parameters
        ----------
        path : path-like
        force : bool, default=False
            Whether to replace a saved model that is there.
        """
        save(self, path, force)

    # The hierarchical kernel ------------------------------------------------------------------------

    def _points(self, X: Any) -> Points:
        """Validated data on the device and in the dtype that were asked for."""
        device = self._resolve_device(X)
        return as_points(X, self._dtype(), device, objects=self._takes_objects(X))

    def _dtype(self) -> torch.dtype:
        return _DTYPES[self.dtype]

    def _settings(self, shape: Shape) -> Settings:
        """The parameters of an approximation, with a size that may have been chosen."""
        places = self.partition, self.landmarks, self.jitter, self.memory_budget
        return Settings(shape.rank, shape.leaf_size, *places, bool(self.verbose), self.approximation)

    def _approximation(
        self, kernel: Kernel, points: Points, seed: int, shape: Shape, scouting: bool = False
    ) -> Approximation:
        """What stands in for the kernel, as the parameters say.

        With `scouting`, a tree or landmarks that were given for other points are left aside, and in the place
        of the exact kernel of many points there is the hierarchical one.
        """
        settings = self._settings(shape)
        if scouting:
            approximation = self.approximation
            if self._is_exact():
                approximation = "hierarchical" if len(points) > FEW else "exact"
            settings = replace(settings, approximation=approximation, verbose=False)
            settings = for_other_points(settings, points)
        generator = torch.Generator(points.device).manual_seed(seed)
        return approximate(kernel.to(points.device, points.dtype), points, settings, generator)

    def _is_exact(self) -> bool:
        return self.approximation == "exact" or isinstance(self.approximation, Iterative)

    def _is_fixed(self) -> bool:
        """Whether nothing about the approximation is random, so that several of it are one."""
        return self._is_exact() or self.approximation == "tapered"

    @staticmethod
    def _out(X: Any, values: Tensor) -> Any:
        """Results as X came: a tensor on its device, or an array."""
        return values.to(X.device) if isinstance(X, Tensor) else values.detach().cpu().numpy()

    def _set_fitted(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)


def _check_tensor(X: Tensor) -> None:
    if X.layout != torch.strided or X.is_complex():
        raise ValueError("Complex data not supported, and sparse tensors neither: use a scipy.sparse matrix")
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got a tensor of shape {tuple(X.shape)}. Reshape your data")
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise ValueError(f"X is empty: got a tensor of shape {tuple(X.shape)}")
    if not torch.isfinite(X).all():
        raise ValueError("Input X contains NaN or infinity")
