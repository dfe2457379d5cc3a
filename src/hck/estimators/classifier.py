"""Classification by kernel ridge regression on ±1, one class against all others, and by other losses."""

from functools import partial

import numpy as np
import torch
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from hck.backend.checks import require
from hck.conformal import LeftOutErrors, check_level
from hck.estimators.base import device_of
from hck.estimators.intervals import classification_errors, errors_of
from hck.estimators.online_ridge import OnlineRidge
from hck.estimators.parameters import Predictions, Weights, described
from hck.estimators.penalised import check_loss_of_classes, problems_of_classes, refuse_zero
from hck.estimators.promise import keeps_time
from hck.estimators.ridge import NOTHING_LEFT_OUT, SAVED
from hck.estimators.slopes import forest_slopes
from hck.estimators.training import Fitted
from hck.estimators.updating import check_updatable
from hck.losses import Logistic
from hck.persistence.classes import saved
from hck.preparation.arrays import PointsLike, TargetsLike, to_host
from hck.preparation.coding import (
    as_labels,
    check_classes,
    codes_among,
    codes_of,
    new_labels,
    refuse_missing,
    refuse_sparse,
    signs,
)
from hck.selection.loss import Calibration


@saved(*SAVED, "classes_", "calibration_", device=device_of)
@described
class HCKClassifier(ClassifierMixin, OnlineRidge):
    """Classification with a hierarchically compositional kernel.

    By default kernel ridge regression on targets ±1; with more than two classes one against all others, all
    with one factorization. Other losses take a few factorizations: kernel logistic regression, and support
    vector machines with the square of the hinge. Trains in O(n r²) time and O(n r) memory.

    Parameters
    ----------
    {ridge}
    loss : {"squared", "logistic", "squared_hinge", "auto"}, default="squared"
        What is minimised. ``"logistic"``: −log p(class), where p is a softmax of decision values.
        ``"squared_hinge"``: ½ max(0, 1 ∓ f)², for which only points inside the margin
        count; many classes are one against all others. ``"auto"``: logistic, where that predicts left-out
        points better (by −log p) than calibrated least squares.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    calibration_ : hck.selection.loss.Calibration
        From decision values to probabilities.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The (weighted) mean of the ±1 targets, or the constant of the least loss.
    {steps}
    {residuals}
    {attributes}

    References
    ----------
    {paper}.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from hck import HCKClassifier
    >>> X, y = make_moons(2000, noise=0.1, random_state=0)
    >>> model = HCKClassifier(lengthscale=0.3, rank=64, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    """

    _loss = "log_loss"
    classes_: np.ndarray
    calibration_: Calibration | None

    def _validate_loaded(self) -> None:
        super()._validate_loaded()
        count = check_classes(self.classes_)
        columns = 1 if count == 2 else count
        found = self.forest_.columns
        require(found == columns, f"classes_ are {count}, but the model has {found} columns")

    @_fit_context(prefer_skip_nested_validation=True)
    @keeps_time
    def fit(self, X: PointsLike, y: TargetsLike, sample_weight: Weights = None) -> "HCKClassifier":
        """Train.

        Parameters
        ----------
        X : {array-like, sparse matrix, torch.Tensor} of shape (n_samples, n_features)
            Or, if the kernel is a function, a sequence of objects that it takes.
        y : array-like of shape (n_samples,)
            Class labels of any type.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the losses: a point of weight 2 counts as if it were there twice.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, None)

    def _fit(
        self, X: PointsLike, y: TargetsLike, sample_weight: Weights, known: np.ndarray | None
    ) -> "HCKClassifier":
        """Train; where the classes are `known`, y need not have them all."""
        given = X
        X, y = self._validate_training(X, y)
        check_classification_targets(y)
        check_loss_of_classes(self.loss)
        classes, code = np.unique(y, return_inverse=True)
        if known is not None:
            classes, code = known, codes_among(y, known)
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes, but y has one class only: {classes[0]!r}"
            )
        problems = None
        if self.loss != "squared" and not (self.loss == "auto" and len(np.unique(code)) < len(classes)):
            refuse_zero(self.alpha)
            name = "logistic" if self.loss == "auto" else str(self.loss)
            problems = partial(problems_of_classes, name, len(classes), code)
        fitted = self._train(X, given, signs(code, len(classes)), sample_weight, code, problems)
        others, weighed, calibration, errors = fitted.left_out, fitted.weighed, None, None
        if others is not None:
            observed = code[weighed.rows]
            calibrate = Calibration.straight if _has_logits(fitted) else Calibration.fit
            calibration = calibrate(others, observed, weighed.weights)
            errors = classification_errors(calibration(others), observed, weighed.weights)
        elif _has_logits(fitted):
            calibration = Calibration(1.0)
        self._keep(fitted)
        self.classes_, self.calibration_, self._left_out_errors = classes, calibration, errors
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: PointsLike, y: TargetsLike, classes: TargetsLike | None = None, sample_weight: Weights = None
    ) -> "HCKClassifier":
        """Take in more observations, without a refit; the first call is a fit.

        The result is that of a fit with all observations, where kernel, ridge, intercept, scaling,
        calibration and, except for leaves that grow too large, tree and landmarks are those that there are.
        An observation costs O(n₀² + r³ log(n/r)). See also `forget`, `update` and `drift_`.

        Parameters
        ----------
        X : as in `fit`
        y : array-like of shape (n_samples,)
            Labels of classes that are known.
        classes : array-like of shape (n_classes,), default=None
            All classes that may occur. Needed where y has others than those that are known, which then are
            classes of the model as well.
        sample_weight : as in `fit`

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKClassifier
        >>> X = np.linspace(0, 1, 100)[:, None]
        >>> model = HCKClassifier("matern32", lengthscale=0.5, alpha=0.1, rank=32, random_state=0)
        >>> _ = model.fit(X[:50], ["low"] * 25 + ["middle"] * 25)
        >>> _ = model.partial_fit(X[50:], ["high"] * 50, classes=["low", "middle", "high"])
        >>> model.predict([[0.1], [0.4], [0.9]])
        array(['low', 'middle', 'high'], dtype='<U6')
        """
        check_updatable(self)
        if not hasattr(self, "trees_"):
            return self._fit(X, y, sample_weight, None if classes is None else _different(classes))
        X, y = self._validate_training(X, y, reset=False)
        check_classification_targets(y)
        if classes is not None:
            self._know(_different(classes))
        self._add(X, self._right_sides(y), sample_weight)
        return self

    def _errors_of(
        self, targets: np.ndarray, left_out: np.ndarray, weight: np.ndarray | None
    ) -> LeftOutErrors:
        code = (targets[:, 0] > 0).astype(int) if targets.shape[1] == 1 else targets.argmax(1)
        if self.calibration_ is None:
            raise ValueError(NOTHING_LEFT_OUT)
        return classification_errors(self.calibration_(left_out), code, weight)

    def _right_sides(self, y: TargetsLike) -> Tensor:
        refuse_sparse(y)
        labels = np.atleast_1d(to_host(y))
        if labels.size != len(labels):
            raise ValueError(f"y has the shape {labels.shape}: labels must be one column")
        refuse_missing(labels)
        codes = codes_among(labels, self.classes_)
        return self._centred(signs(codes, len(self.classes_)))

    def _know(self, classes: np.ndarray) -> None:
        """Have more classes: what is not of a new one is −1 there, and the new intercept is −1 as well."""
        more = new_labels(classes, self.classes_)
        if not len(more):
            return
        states, before = self._versions(), self.classes_
        every = np.union1d(before, more)
        place = np.searchsorted(every, before)
        old = [[-1.0, 1.0]] if len(before) == 2 else np.eye(len(before))
        change = np.zeros((len(old), len(every)))
        change[:, place] = old
        intercept = np.full(len(every), -1.0)
        intercept[place] = self.intercept_ @ np.asarray(old)
        self._go_on([state.recode(torch.from_numpy(change)) for state in states])
        self.classes_, self.intercept_ = every, intercept

    def decision_function(self, X: PointsLike) -> Predictions:
        """Real-valued scores, positive for the class (with two classes: for ``classes_[1]``).

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes); a tensor on X's device if X is a tensor

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKClassifier
        >>> X = np.linspace(0, 1, 100)[:, None]
        >>> model = HCKClassifier("matern32", lengthscale=0.5, alpha=0.1, rank=32, random_state=0)
        >>> model.fit(X, X[:, 0] > 0.5).decision_function([[0.1], [0.9]]) > 0
        array([False,  True])
        """
        values = self._evaluate(X)
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict_gradient(self, X: PointsLike) -> Predictions:
        """The gradient of `decision_function` by x, in closed form, in the units that X has.

        See `HCKRegressor.predict_gradient`.

        Parameters
        ----------
        X : as in `fit`, but dense

        Returns
        -------
        ndarray of shape (n_samples, n_features) or (n_samples, n_features, n_classes)
            NaN for columns that are categories; where a value is missing, the slope at the mean that takes
            its place. A tensor on X's device if X is a tensor.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from hck import HCKClassifier
        >>> X, y = make_moons(1000, noise=0.1, random_state=0)
        >>> model = HCKClassifier("gaussian", lengthscale=0.5, random_state=0).fit(X, y)
        >>> model.predict_gradient([[0.5, 0.25]])[0, 1] < 0  # the class 1 is below
        np.True_
        """
        slopes = forest_slopes(self, X)
        return slopes[:, :, 0] if len(self.classes_) == 2 else slopes

    def predict(self, X: PointsLike) -> Predictions:
        """Predict class labels.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n_samples,); a tensor on X's device if X is a tensor and labels are numbers

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKClassifier
        >>> X = np.linspace(0, 1, 100)[:, None]
        >>> model = HCKClassifier("matern32", lengthscale=0.5, alpha=0.1, rank=32, random_state=0)
        >>> model.fit(X, np.where(X[:, 0] > 0.5, "right", "left")).predict([[0.1], [0.9]])
        array(['left', 'right'], dtype='<U5')
        """
        code = codes_of(self.decision_function(X))
        if isinstance(code, Tensor) and self.classes_.dtype.kind in "biuf":
            return torch.as_tensor(self.classes_, device=code.device)[code]
        return self.classes_[to_host(code)]

    def predict_proba(self, X: PointsLike) -> np.ndarray:
        """Probabilities of the classes.

        A softmax of the decision values, with the slope and, unless the loss is logistic, the bend that fit
        those of left-out training points best, which needs ``leave_one_out=True``; without it, those of the
        logistic loss are taken as they are.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n_samples, n_classes)

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKClassifier
        >>> X = np.linspace(0, 1, 100)[:, None]
        >>> model = HCKClassifier("matern32", lengthscale=0.5, alpha=0.1, rank=32, random_state=0)
        >>> p = model.fit(X, X[:, 0] > 0.5).predict_proba([[0.1], [0.9]])
        >>> p.shape, p.argmax(1)
        ((2, 2), array([0, 1]))
        """
        check_is_fitted(self)
        if self.calibration_ is None:
            raise ValueError(NOTHING_LEFT_OUT)
        score = to_host(self.decision_function(X))
        return self.calibration_(score.reshape(len(score), -1))

    def predict_set(self, X: PointsLike, coverage: float = 0.9) -> np.ndarray:
        """Sets of classes, of which a share `coverage` should hold the class that is observed.

        In a set are all classes of a probability as large as left-out training points ask for, and the
        likeliest one always, so that no set is empty. With too few training points for the coverage, all
        classes are in every set: it may be n / (n + 1). docs/uncertainty.md says what is proven of the
        coverage and what is measured. Needs ``leave_one_out=True``.

        Parameters
        ----------
        X : as in `fit`
        coverage : float, default=0.9

        Returns
        -------
        ndarray of bool, of shape (n_samples, n_classes)
            Whether each of `classes_` is in the set.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import make_moons
        >>> from hck import HCKClassifier
        >>> X, y = make_moons(2000, noise=0.4, random_state=0)
        >>> model = HCKClassifier("gaussian", lengthscale=0.3, random_state=0).fit(X[:1000], y[:1000])
        >>> sets = model.predict_set(X[1000:], coverage=0.95)
        >>> bool(0.93 < sets[np.arange(1000), y[1000:]].mean() < 0.98)
        True
        >>> sets.sum(axis=1).max()  # where both are possible
        np.int64(2)
        """
        check_is_fitted(self)
        check_level(coverage)
        within = errors_of(self).threshold(coverage)[0]
        proba = self.predict_proba(X)
        return (1 - proba <= within) | (proba == proba.max(axis=1, keepdims=True))

    def loo_decision_function(self) -> np.ndarray:
        """The scores of each training point by all others, in closed form; the mean over trees.

        Of losses other than the squared one they are those of a step of Newton's method from the minimum.

        Needs ``leave_one_out=True``.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Without points of weight 0.

        Examples
        --------
        >>> import numpy as np
        >>> from hck import HCKClassifier
        >>> X = np.linspace(0, 1, 100)[:, None]
        >>> model = HCKClassifier("matern32", lengthscale=0.5, alpha=0.1, rank=32, random_state=0)
        >>> left_out = model.fit(X, X[:, 0] > 0.5).loo_decision_function()
        >>> float(np.mean((left_out > 0) == (X[:, 0] > 0.5))) > 0.95
        True
        """
        values = self._left_out_values()
        return values[:, 0] if len(self.classes_) == 2 else values


def _different(classes: TargetsLike) -> np.ndarray:
    """Different labels, sorted."""
    return np.unique(as_labels(np.asarray(to_host(classes)), where=" of classes"))


def _has_logits(fitted: Fitted) -> bool:
    """Whether decision values are log p/(1 − p) already, but for a factor."""
    return any(isinstance(loss, Logistic) for loss in fitted.losses)
