"""Classification by kernel ridge regression on ±1, one class against all others, and by other losses."""

from functools import partial

import numpy as np
import torch
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from hck.backend.checks import require
from hck.estimators.base import device_of
from hck.estimators.parameters import Predictions, Weights, described
from hck.estimators.penalised import check_loss_of_classes, problems_of_classes, refuse_zero
from hck.estimators.ridge import NOTHING_LEFT_OUT, SAVED, RidgeEstimator
from hck.losses import Logistic
from hck.persistence.classes import saved
from hck.preparation.arrays import PointsLike, TargetsLike, to_host
from hck.preparation.coding import check_classes, codes_of, signs
from hck.selection.loss import Calibration


@saved(*SAVED, "classes_", "calibration_", device=device_of)
@described
class HCKClassifier(ClassifierMixin, RidgeEstimator):
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
        require(self.forest_.columns == columns, f"classes_ are {count}, but the model has {columns} columns")

    @_fit_context(prefer_skip_nested_validation=True)
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
        given = X
        X, y = self._validate_training(X, y)
        check_classification_targets(y)
        check_loss_of_classes(self.loss)
        classes, code = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes, but y has one class only: {classes[0]!r}"
            )
        problems = None
        if self.loss != "squared":
            refuse_zero(self.alpha)
            name = "logistic" if self.loss == "auto" else str(self.loss)
            problems = partial(problems_of_classes, name, code)
        fitted = self._train(X, given, signs(code, len(classes)), sample_weight, code, problems)
        others, weighed, calibration = fitted.left_out, fitted.weighed, None
        if others is not None:
            calibration = Calibration.fit(others, code[weighed.rows], weighed.weights)
        elif any(isinstance(loss, Logistic) for loss in fitted.losses):
            calibration = Calibration(1.0)
        self._keep(fitted)
        self.classes_, self.calibration_ = classes, calibration
        return self

    def decision_function(self, X: PointsLike) -> Predictions:
        """Real-valued scores, positive for the class (with two classes: for ``classes_[1]``).

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes); a tensor on X's device if X is a tensor
        """
        values = self._evaluate(X)
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: PointsLike) -> Predictions:
        """Predict class labels.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n_samples,); a tensor on X's device if X is a tensor and labels are numbers
        """
        code = codes_of(self.decision_function(X))
        if isinstance(code, Tensor) and self.classes_.dtype.kind in "biuf":
            return torch.as_tensor(self.classes_, device=code.device)[code]
        return self.classes_[to_host(code)]

    def predict_proba(self, X: PointsLike) -> np.ndarray:
        """Probabilities of the classes.

        A softmax of the decision values, with the slope that fits those of left-out training points best,
        which needs ``leave_one_out=True``; without it, those of the logistic loss are taken as they are.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        if self.calibration_ is None:
            raise ValueError(NOTHING_LEFT_OUT)
        score = to_host(self.decision_function(X))
        return self.calibration_(score.reshape(len(score), -1))

    def loo_decision_function(self) -> np.ndarray:
        """The scores of each training point by all others, in closed form; the mean over trees.

        Of losses other than the squared one they are those of a step of Newton's method from the minimum.

        Needs ``leave_one_out=True``.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Without points of weight 0.
        """
        values = self._left_out_values()
        return values[:, 0] if len(self.classes_) == 2 else values
