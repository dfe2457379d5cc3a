"""Kernel principal component analysis."""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from hck.approximations import Iterative, Predictor
from hck.approximations.eigenvectors import principal_components
from hck.backend.checks import check_floats, require
from hck.backend.interrupts import interruptible
from hck.estimators.base import HCKEstimator, device_of
from hck.estimators.parameters import KernelLike, LandmarksLike, PartitionLike, Predictions, assign, described
from hck.estimators.regressor import HCKRegressor
from hck.kernels import make_kernel
from hck.persistence.classes import saved
from hck.points import DensePoints, Points, own
from hck.preparation.arrays import PointsLike, to_host
from hck.selection.candidate import Shape

_MOST = 1e150  # of means of components

# Parameters that are not those of the way back: its points are components.
_OF_THE_POINTS = ("approximation", "partition", "landmarks", "device", "random_state")


@saved(
    *("eigenvalues_", "eigenvectors_", "explained_variance_", "explained_variance_ratio_"),
    *("_predictor", "_mean", "_back"),
    device=device_of,
)
@described
class HCKKernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, HCKEstimator):
    """Kernel principal component analysis with a hierarchically compositional kernel.

    Principal components of the points in the kernel's feature space: the leading eigenvectors of the centred
    kernel matrix. With a single leaf (``rank`` or ``leaf_size`` at least n) it is exact kernel PCA, as in
    `sklearn.decomposition.KernelPCA`, with the same signs.

    The eigenvectors are found by Lanczos' method (ARPACK), which multiplies the matrix with a vector, O(n r),
    some twenty to a hundred times for a few components; where the approximation is one by features, by the
    eigenvectors of their r × r covariance; where there are few points, by those of the whole matrix. New
    points take O(n₀ + r) each. The approximation is stored, n (n₀ + r) numbers, whatever the memory budget.

    Leading components are smooth, and depend on how well the landmarks far up in the tree are placed:
    ``landmarks="kmeans"`` is often worth its time. Where a few components carry most of the variance,
    ``approximation="nystrom"`` is closer to the exact kernel at the same rank, and faster. Where eigenvalues
    are close to each other, single components mean little, but the space of all of them does.

    Parameters
    ----------
    n_components : int, default=2
        How many components, at most n_samples.
    kernel : str, Kernel or callable, default="gaussian"
        The base kernel: a name (one of ``hck.kernels.kernel_names()``), an object of `hck.kernels`, or a
        function k(A, B) that returns the matrix of kernel values between two sets of points.
    lengthscale : float, array-like of shape (n_features,) or None, default=None
        σ of a named kernel: one number, or one per feature; None means 1.
    rank : int, default=128
        r, the number of landmarks of a node, or what corresponds to it in other approximations. Accuracy and
        cost (time r², memory r) grow with it.
    fit_inverse_transform : bool, default=False
        Whether to learn the way back from components to points, by kernel ridge regression (`HCKRegressor`)
        with the same kernel between components; for dense points, and one lengthscale for all features.
    alpha : float, default=1e-3
        λ ≥ 0, the ridge of that regression.
    tol : float, default=0
        The relative error of eigenvalues at which Lanczos' method stops. 0: the precision of the numbers.
    {settings}

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Of the centred kernel matrix, in descending order. Those that are lost in rounding are 0.
    eigenvectors_ : ndarray of shape (n_samples, n_components)
        Of length 1. Those of features are 0 where the eigenvalue is.
    explained_variance_ : ndarray of shape (n_components,)
        The variance of the training points along each component, in feature space: eigenvalues_ / n_samples.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The same as a share of the variance along all components.
    {attributes}

    References
    ----------
    B. Schölkopf, A. Smola, K.-R. Müller, Nonlinear component analysis as a kernel eigenvalue problem, Neural
    Computation 10 (1998).
    {paper}: section 5.6.

    Examples
    --------
    Two circles, one inside the other, are apart along the first component:

    >>> import numpy as np
    >>> from hck import HCKKernelPCA
    >>> angle = np.linspace(0, 2 * np.pi, 2000, endpoint=False)
    >>> radius = np.where(np.arange(2000) % 2, 1.0, 0.3)
    >>> X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    >>> model = HCKKernelPCA(n_components=2, lengthscale=0.4, rank=64, random_state=0).fit(X)
    >>> first = model.transform(X)[:, 0]
    >>> inner, outer = np.sort([first[::2], first[1::2]])
    >>> bool(inner[-1] < outer[0] or outer[-1] < inner[0])
    True
    """

    alpha: float
    fit_inverse_transform: bool
    lengthscale: Any
    n_components: int
    tol: float
    eigenvalues_: np.ndarray
    eigenvectors_: np.ndarray
    explained_variance_: np.ndarray
    explained_variance_ratio_: np.ndarray
    _mean: Tensor
    _predictor: Predictor
    _back: HCKRegressor | None
    _takes_values = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **HCKEstimator._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "fit_inverse_transform": ["boolean"],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: KernelLike = "gaussian",
        lengthscale: ArrayLike | None = None,
        approximation: str | Iterative = "hierarchical",
        rank: int = 128,
        fit_inverse_transform: bool = False,
        alpha: float = 1e-3,
        tol: float = 0,
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

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self.fit_inverse_transform:
            tags.input_tags.sparse = tags.input_tags.allow_nan = False
        tags.transformer_tags.preserves_dtype = [self.dtype]
        return tags

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        count = self._predictor.columns
        check_floats("_mean", self._mean, count)
        require(bool((self._mean.abs() < _MOST).all()), "_mean must not be so large that components overflow")
        for name in ("eigenvalues_", "explained_variance_", "explained_variance_ratio_"):
            check_floats(name, torch.from_numpy(getattr(self, name)), count)
        check_floats("eigenvectors_", torch.from_numpy(self.eigenvectors_), None, count)
        if self._back is not None:
            require(self._back.n_features_in_ == count, f"_back must be of {count} components")

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    # Training ---------------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: PointsLike, y: object = None) -> "HCKKernelPCA":
        """Find the principal components.

        Parameters
        ----------
        X : {array-like, sparse matrix, torch.Tensor} of shape (n_samples, n_features)
            Or, if the kernel is a function, a sequence of objects that it takes.
        y : None
            Not used.

        Returns
        -------
        self
        """
        given = X
        X = self._validate_alone(X)
        points, rng = own(self._points(X), given), check_random_state(self.random_state)
        if self.n_components > len(points):
            raise ValueError(
                f"n_components={self.n_components} is more than n_samples={len(points)}: there are no more "
                "components than points"
            )
        if self.fit_inverse_transform:
            self._check_way_back(points)
        approximation = self._approximation(
            make_kernel(self._base_kernel(), self.lengthscale),
            points,
            rng.randint(2**31 - 1),
            Shape(1, self.leaf_size, self.rank),
        )
        found = principal_components(approximation, self.n_components, self.tol, rng)
        self._back = self._inverse(found.embedding, X) if self.fit_inverse_transform else None
        self.eigenvalues_, self.eigenvectors_ = found.values, found.vectors
        self.explained_variance_ = found.values / len(points)
        self.explained_variance_ratio_ = found.values / found.total
        self.trees_ = [] if approximation.tree is None else [approximation.tree]
        self._predictor, self._mean = found.predictor, found.mean
        if self._is_precomputed():
            self._given_values.forget()
        return self

    def fit_transform(self, X: PointsLike, y: object = None) -> Predictions:
        """Find the principal components, and the coordinates of the training points along them.

        These are what `transform` gives, unless copies of a point were put into several leaves: new points
        all go to one.

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        ndarray of shape (n_samples, n_components); a tensor on X's device if X is a tensor

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKKernelPCA
        >>> X = np.random.default_rng(0).uniform(size=(100, 3))
        >>> pca = HCKKernelPCA(2, rank=100)
        >>> pca.fit_transform(X).shape
        (100, 2)
        """
        self.fit(X)
        return self._out(X, torch.from_numpy(self.eigenvectors_ * np.sqrt(self.eigenvalues_)))

    # New points -------------------------------------------------------------------------------------

    @torch.no_grad()
    def transform(self, X: PointsLike) -> Predictions:
        """The coordinates of points along the principal components.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n_samples, n_components); a tensor on X's device if X is a tensor

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKKernelPCA
        >>> X = np.random.default_rng(0).uniform(size=(100, 3))
        >>> pca = HCKKernelPCA(2, rank=100)
        >>> x = pca.fit_transform(X)
        >>> bool(np.abs(pca.transform(X) - x).max() < 1e-6)
        True
        """
        X = self._validate_new(X)
        return self._out(X, interruptible(self._predictor)(X, verbose=bool(self.verbose)) - self._mean)

    def _trained_points(self) -> Points:
        return self._predictor.points

    # The way back -----------------------------------------------------------------------------------

    def inverse_transform(self, X: PointsLike) -> Predictions:
        """Points that have, nearly, these coordinates along the principal components.

        Parameters
        ----------
        X : {array-like, torch.Tensor} of shape (n_samples, n_components)

        Returns
        -------
        ndarray of shape (n_samples, n_features); a tensor on X's device if X is a tensor

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKKernelPCA
        >>> X = np.random.default_rng(0).uniform(size=(100, 3))
        >>> pca = HCKKernelPCA(2, rank=100, fit_inverse_transform=True)
        >>> back = pca.inverse_transform(pca.fit_transform(X))
        >>> bool(np.abs(back - X).mean() < np.abs(X.mean(0) - X).mean())
        True
        """
        check_is_fitted(self, "trees_")
        if self._back is None:
            raise NotFittedError("the way back was not learned: use fit_inverse_transform=True")
        return self._back.predict(X)

    def _check_way_back(self, points: Points) -> None:
        if not isinstance(points, DensePoints) or self._ties() is not None:
            raise ValueError(
                "fit_inverse_transform=True needs dense points of numbers: neither sparse data, categories, "
                "dates nor missing values (NaN)"
            )
        if np.ndim(self.lengthscale) or make_kernel(self.kernel, self.lengthscale).stretch() is not None:
            raise ValueError(
                "fit_inverse_transform=True needs one lengthscale for all features, and no metric: the "
                "kernel is used between components too"
            )

    def _inverse(self, embedding: np.ndarray, X: PointsLike) -> HCKRegressor:
        """Ridge regression of the points on their components."""
        same = self._parameters_for(HCKRegressor, without=_OF_THE_POINTS)
        model = HCKRegressor(
            **same,
            scale=None,
            leave_one_out=False,
            n_trees=1,
            device=self._resolve_device(X),
            random_state=0,
        )
        return model.fit(embedding, to_host(X))
