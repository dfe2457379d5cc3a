"""Gaussian process classification."""

from collections.abc import Iterator
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from hck.approximations import Approximation, Iterative
from hck.approximations.make import for_each_tree
from hck.backend.checks import check_floats, require
from hck.estimators.base import MOST_TREES, device_of
from hck.estimators.gaussian_process import HCKGaussianProcessRegressor
from hck.estimators.parameters import KernelLike, LandmarksLike, PartitionLike, Predictions, assign, described
from hck.estimators.process_learning import Bounds, ProcessLearning
from hck.hierarchy.extremes import extremes, warn_of_rounding
from hck.kernels import Kernel
from hck.kernels.inputs import real_array
from hck.persistence.classes import saved
from hck.points import Points, check_kernel, own
from hck.preparation.arrays import PointsLike, TargetsLike, count
from hck.preparation.coding import check_classes
from hck.process import Mixture, Process, laplace
from hck.process.laplace import labels_of, probability
from hck.selection import Observations, Space
from hck.selection.likelihood import evaluate_classes, standard_errors


@saved(
    *("classes_", "kernels_", "theta_", "theta_names_", "history_", "n_iter_"),
    *("log_marginal_likelihood_value_", "posteriors_", "_space"),
    device=device_of,
)
@described
class HCKGaussianProcessClassifier(ClassifierMixin, ProcessLearning):
    """Gaussian process classification with a hierarchically compositional kernel.

    p(y = 1) = σ(f(x)), where f is a Gaussian process with mean 0, by Laplace's approximation. Lengthscales
    and output scale are those of the largest approximate likelihood. Several classes are one against all
    others, each with parameters of its own. Training takes O(n r²) time and O(n r) memory. With a single leaf
    (``rank`` at least n) it is `sklearn.gaussian_process.GaussianProcessClassifier`.

    Parameters
    ----------
    {process_of_classes}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    kernels_ : list of Kernel
        With the parameters that were learned: of two classes one, else one for each class.
    theta_ : ndarray of shape (n_kernels, n_parameters)
        The logarithms of what was learned; `theta_names_` says of which parameters.
    theta_names_ : list of str
    history_ : list of float
        The objective, per observation, at each step of learning; `n_iter_` is their number.
    log_marginal_likelihood_value_ : float
        Of all training data; the mean over kernels.
    posteriors_ : list of hck.process.Mixture
        What predictions are made of, one for each kernel.
    {attributes}

    References
    ----------
    {paper}.
    C. E. Rasmussen, C. K. I. Williams, Gaussian Processes for Machine Learning (2006), sections 3.4 and 5.5.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from hck import HCKGaussianProcessClassifier
    >>> X, y = make_moons(1000, noise=0.2, random_state=0)
    >>> model = HCKGaussianProcessClassifier(rank=32, max_iter=20, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    classes_: np.ndarray
    kernels_: list[Kernel]
    posteriors_: list[Mixture]
    history_: list[float]
    n_iter_: int
    theta_names_: list[str]
    _of_classes = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        name: rule
        for name, rule in HCKGaussianProcessRegressor._parameter_constraints.items()
        if name not in ("noise", "trend", "normalize_y", "fit_time", "calibrate")
    } | {
        "lengthscale": [Interval(Real, 0, None, closed="neither"), "array-like", None],
        "n_trees": [Interval(Integral, 1, MOST_TREES, closed="both")],
        "rank": [Interval(Integral, 1, None, closed="left")],
        "learn_size": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        kernel: KernelLike = "matern32",
        *,
        lengthscale: ArrayLike | None = None,
        ard: bool = True,
        optimizer: str | None = "auto",
        max_iter: int = 100,
        n_restarts: int = 0,
        bounds: Bounds | None = None,
        priors: dict[str, tuple[float, float]] | None = None,
        learn_size: int | None = 20_000,
        approximation: str | Iterative = "hierarchical",
        n_trees: int = 1,
        rank: int = 128,
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

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        number = check_classes(self.classes_)
        wanted = 1 if number == 2 else number
        require(len(self.posteriors_) == len(self.kernels_) == wanted, f"{wanted} posteriors are needed")
        check_floats("theta_", torch.from_numpy(self.theta_), wanted, len(self._space.start))
        for kernel in self.kernels_:
            check_kernel(kernel, self._trained_points())

    def _trained_points(self) -> Points:
        return self.posteriors_[0].members[0].mean.points

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: PointsLike, y: TargetsLike) -> "HCKGaussianProcessClassifier":
        """Learn the parameters, then condition on all labels.

        Parameters
        ----------
        X : {array-like, sparse matrix, torch.Tensor} of shape (n_samples, n_features)
            Or, if the kernel is a function, a sequence of objects that it takes.
        y : array-like of shape (n_samples,)
            Class labels of any type.

        Returns
        -------
        self
        """
        given = X
        X, y = self._validate_training(X, y)
        check_classification_targets(y)
        classes, code = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes, but y has one class only: {classes[0]!r}"
            )
        points, rng = own(self._points(X), given), check_random_state(self.random_state)
        space = Space.of(self._start_kernel(points, 1.0), None, self.bounds, self.priors, 1.0)
        found = [self._condition(points, each, space, rng) for each in _one_against_all(code, len(classes))]
        kernels, posteriors, thetas, histories = zip(*found, strict=True)
        self.classes_, self.kernels_, self.posteriors_ = classes, list(kernels), list(posteriors)
        self.theta_, self.theta_names_, self._space = np.stack(thetas), space.names, space
        self.history_ = [value for history in histories for value in history]
        self.n_iter_ = max(1, len(self.history_))
        self.log_marginal_likelihood_value_ = float(np.mean([each.log_likelihood for each in posteriors]))
        trees = (member.source.tree for member in posteriors[0].members)
        self.trees_ = [tree for tree in trees if tree is not None]
        return self

    def _condition(
        self, points: Points, y: Tensor, space: Space, rng: np.random.RandomState
    ) -> tuple[Kernel, Mixture, np.ndarray, list[float]]:
        """One class against all others: kernel, posterior, theta and history."""
        learned = self._learn(space, Observations(points, y), rng)
        kernel = space.at(learned.theta)[0]
        seeds = rng.randint(2**31 - 1, size=1 if self._is_fixed() else int(self.n_trees)).tolist()

        def condition(approximation: Approximation) -> Process:
            self._check_memory(approximation)
            found = laplace(approximation, y)
            warn_of_rounding([extremes(found.solution.predictor, points, found.mode)])
            return found.process()

        members = for_each_tree(condition, kernel, points, self._settings(self._shape), seeds)
        return kernel, Mixture(members), learned.theta, learned.history

    # Predictions ------------------------------------------------------------------------------------

    def predict_latent(self, X: PointsLike, return_std: bool = False) -> Predictions:
        """The latent functions f at new points.

        Parameters
        ----------
        X : as in `fit`
        return_std : bool, default=False
            Whether to return standard deviations as well.

        Returns
        -------
        mean : ndarray of shape (n_samples,), or (n_samples, n_classes) for more than two classes
            A tensor on X's device if X is a tensor.
        std : the same, if `return_std`

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKGaussianProcessClassifier
        >>> X = np.linspace(0, 1, 60)[:, None]
        >>> process = HCKGaussianProcessClassifier("matern52", lengthscale=0.3, optimizer=None, rank=64)
        >>> _ = process.fit(X, X[:, 0] > 0.5)
        >>> mean, std = process.predict_latent([[0.5], [9.0]], return_std=True)
        >>> bool(std[0] < std[1])
        True
        """
        X = self._validate_new(X)
        found = [self._out(X, torch.stack(each, 1)) for each in zip(*self._latent(X), strict=True)]
        mean, std = (each[:, 0] if len(self.classes_) == 2 else each for each in found)
        return (mean, std**0.5) if return_std else mean

    def _latent(self, X: PointsLike) -> Iterator[tuple[Tensor, Tensor]]:
        """Mean and variance at validated points, (points,) each, for each kernel."""
        none = torch.zeros(count(X), 0, dtype=torch.float64, device="cpu")
        for posterior in self.posteriors_:
            yield posterior.variance(X, none, bool(self.verbose))

    def predict_proba(self, X: PointsLike) -> np.ndarray:
        """Probabilities of the classes, averaged over what is not known of f.

        Of more than two classes those of each against all others, normalised.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n_samples, n_classes)

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKGaussianProcessClassifier
        >>> X = np.linspace(0, 1, 60)[:, None]
        >>> process = HCKGaussianProcessClassifier("matern52", lengthscale=0.3, optimizer=None, rank=64)
        >>> _ = process.fit(X, X[:, 0] > 0.5)
        >>> inside, outside = process.predict_proba([[1.0], [9.0]])[:, 1]
        >>> bool(inside > outside), round(float(outside), 2)  # far away nothing is known
        (True, 0.5)
        """
        X = self._validate_new(X)
        each = torch.stack([probability(*latent) for latent in self._latent(X)], 1).double().cpu().numpy()
        if len(self.classes_) == 2:
            return np.hstack([1 - each, each])
        total = each.sum(1, keepdims=True)
        return np.where(total > 0, each / np.where(total > 0, total, 1.0), 1 / each.shape[1])

    def predict(self, X: PointsLike) -> np.ndarray:
        """Predict class labels: the most probable ones.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n_samples,)

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKGaussianProcessClassifier
        >>> X = np.linspace(0, 1, 60)[:, None]
        >>> process = HCKGaussianProcessClassifier("matern52", lengthscale=0.3, optimizer=None, rank=64)
        >>> process.fit(X, np.where(X[:, 0] > 0.5, "right", "left")).predict([[0.1], [0.9]])
        array(['left', 'right'], dtype='<U5')
        """
        code = self.predict_proba(X).argmax(1)
        return self.classes_[code]

    # Likelihood -------------------------------------------------------------------------------------

    def log_marginal_likelihood(
        self, theta: ArrayLike | None = None, eval_gradient: bool = False, clone_kernel: bool = True
    ) -> Any:
        """The approximate log-likelihood of all training data; the mean over kernels.

        Parameters
        ----------
        theta : array-like of shape (n_parameters,) or (n_kernels, n_parameters), default=None
            Logarithms of parameters, of all kernels or of each; None for those that were learned.
        eval_gradient : bool, default=False
            Whether to return the gradient with respect to theta as well.
        clone_kernel : bool, default=True
            As scikit-learn has it; here kernels are never changed.

        Returns
        -------
        value : float
        gradient : ndarray of the shape of theta, if `eval_gradient`

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKGaussianProcessClassifier
        >>> X = np.linspace(0, 1, 60)[:, None]
        >>> process = HCKGaussianProcessClassifier("matern52", lengthscale=0.3, optimizer=None, rank=64)
        >>> _ = process.fit(X, X[:, 0] > 0.5)
        >>> value, gradient = process.log_marginal_likelihood(process.theta_, eval_gradient=True)
        >>> value < 0, gradient.shape
        (True, (1, 2))
        """
        check_is_fitted(self, "posteriors_")
        if theta is None and not eval_gradient:
            return self.log_marginal_likelihood_value_
        theta = self.theta_ if theta is None else real_array(theta)
        rows = np.tile(theta, (len(self.theta_), 1)) if theta.ndim == 1 else theta
        if rows.shape != self.theta_.shape:
            raise ValueError(f"theta must be {self.theta_.shape}, or one row of it, got {theta.shape}")
        found = [self._likelihood(number, row) for number, row in enumerate(rows)]
        value = float(np.mean([one for one, _ in found]))
        slope = np.stack([one for _, one in found]) / len(found)
        return (value, slope if theta.ndim == 2 else slope.sum(0)) if eval_gradient else value

    def _likelihood(self, number: int, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Of one kernel: the mean over trees, and its gradient."""
        members = self.posteriors_[number].members
        labels = labels_of(members[0])
        found = [evaluate_classes(self._space, each.source, labels, theta, self.jitter) for each in members]
        return float(np.mean([value for value, _ in found])), np.mean([slope for _, slope in found], 0)

    def standard_errors(self, step: float = 1e-3) -> Any:
        """Standard errors of the logarithms of the parameters, as those of the regressor.

        Parameters
        ----------
        step : float, default=1e-3
            For the differences.

        Returns
        -------
        list of dict
            For each kernel and each parameter's name, an array of its shape.

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKGaussianProcessClassifier
        >>> X = np.linspace(0, 1, 60)[:, None]
        >>> process = HCKGaussianProcessClassifier("matern52", lengthscale=0.3, optimizer=None, rank=64)
        >>> _ = process.fit(X, X[:, 0] > 0.5)
        >>> [list(each) for each in process.standard_errors()]  # of each class against all others
        [['lengthscale', 'scale']]
        """
        check_is_fitted(self, "posteriors_")
        rows = self.theta_ if self.theta_.size else ()
        errors = [standard_errors(partial(self._slope, k), row, step) for k, row in enumerate(rows)]
        return [self._space.split(each) for each in errors]

    def _slope(self, number: int, theta: np.ndarray) -> np.ndarray:
        return self._likelihood(number, theta)[1]


def _one_against_all(code: np.ndarray, number: int) -> list[Tensor]:
    """Labels 0 and 1, (n,), for each class, or for the second of two."""
    which = range(1, 2) if number == 2 else range(number)
    return [torch.tensor(code == each, dtype=torch.float64, device="cpu") for each in which]
