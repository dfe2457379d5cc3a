"""Kernel ridge regression."""

import numpy as np
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils import Tags, check_array
from torch import Tensor

from hck.backend.checks import require
from hck.estimators.base import device_of
from hck.estimators.online_ridge import OnlineRidge
from hck.estimators.parameters import Predictions, Weights, described
from hck.estimators.ridge import SAVED
from hck.estimators.updating import check_updatable
from hck.persistence.classes import saved
from hck.preparation.arrays import PointsLike, TargetsLike, to_host
from hck.preparation.coding import as_targets


@saved(*SAVED, "_one_target", device=device_of)
@described
class HCKRegressor(RegressorMixin, OnlineRidge):
    """Kernel ridge regression with a hierarchically compositional kernel.

    Trains in O(n r²) time and O(n r) memory, where exact kernel ridge regression takes O(n³) and O(n²).
    With a single leaf (``rank`` or ``leaf_size`` at least n) it is exact kernel ridge regression. Targets
    are centred; several targets share one factorization.

    Parameters
    ----------
    {ridge}

    Attributes
    ----------
    intercept_ : ndarray of shape (n_targets,)
        The (weighted) mean of the targets.
    {residuals}
    {attributes}

    References
    ----------
    {paper}.

    Examples
    --------
    >>> import numpy as np
    >>> from hck import HCKRegressor
    >>> X = np.random.default_rng(0).uniform(size=(5000, 2))
    >>> y = np.sin(6 * X[:, 0]) + X[:, 1] ** 2
    >>> model = HCKRegressor(lengthscale=0.3, alpha=1e-3, rank=64, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.999
    True
    """

    _loss = "squared_error"
    _one_target: bool

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        require(not self._one_target or self.forest_.columns == 1, "_one_target, but there are several")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: PointsLike, y: TargetsLike, sample_weight: Weights = None) -> "HCKRegressor":
        """Train.

        Parameters
        ----------
        X : {array-like, sparse matrix, torch.Tensor} of shape (n_samples, n_features)
            Or, if the kernel is a function, a sequence of objects that it takes.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the squared errors: a point of weight 2 counts as if it were there twice.

        Returns
        -------
        self
        """
        given = X
        X, y = self._validate_training(X, y, multi_output=True, y_numeric=True)
        targets = y.reshape(len(y), -1)
        self._keep(self._train(X, given, targets, sample_weight, observed=targets))
        self._one_target = y.ndim == 1
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: PointsLike, y: TargetsLike, sample_weight: Weights = None) -> "HCKRegressor":
        """Take in more observations, without a refit; the first call is a fit.

        The result is that of a fit with all observations, where kernel, ridge, intercept, scaling and, except
        for leaves that grow too large, tree and landmarks are those that there are. An observation costs
        O(n₀² + r³ log(n/r)). See also `forget`, `update` and `drift_`.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKRegressor
        >>> X = np.random.default_rng(0).uniform(size=(3000, 2))
        >>> y = np.sin(6 * X[:, 0]) + X[:, 1] ** 2
        >>> model = HCKRegressor(lengthscale=0.3, alpha=1e-3, rank=64, random_state=0).fit(X[:2000], y[:2000])
        >>> model.partial_fit(X[2000:], y[2000:]).forget(keep=2500).tree_.n_points
        2500
        """
        check_updatable(self)
        if not hasattr(self, "trees_"):
            return self.fit(X, y, sample_weight)
        X, y = self._validate_training(X, y, reset=False, multi_output=True, y_numeric=True)
        self._add(X, self._centred(y.reshape(len(y), -1)), sample_weight)
        return self

    def _right_sides(self, y: TargetsLike) -> Tensor:
        if np.size(y) == 0:
            return self._centred(np.zeros((0, len(self.intercept_))))
        y = as_targets(check_array(to_host(y), ensure_2d=False, dtype=None, estimator=self))
        return self._centred(y.reshape(len(y), -1))

    def predict(self, X: PointsLike) -> Predictions:
        """Predict targets.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets); a tensor on X's device if X is a tensor
        """
        values = self._evaluate(X)
        return values[:, 0] if self._one_target else values

    def loo_predict(self) -> np.ndarray:
        """Each training target predicted from all others, in closed form; the mean over trees.

        The lengthscales and alpha are those that were chosen with all points. Needs ``leave_one_out=True``.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            Without points of weight 0.
        """
        values = self._left_out_values()
        return values[:, 0] if self._one_target else values
