"""How good a model is on some data."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import confusion_matrix

from hck import metrics
from hck.estimators import (
    HCKClassifier,
    HCKGaussianProcessClassifier,
    HCKGaussianProcessRegressor,
    HCKKernelPCA,
)
from hck.estimators.base import HCKEstimator
from hck.estimators.inspection import reach_of
from hck.metrics import as_array, check_finite
from hck.preparation.arrays import PointsLike
from hck.report._text import PageTable, Section, number, plural

MOST_CLASSES = 20  # of a confusion matrix
LEVELS = np.arange(1, 20) / 20  # of intervals, the last the one that is drawn
_MOST_COMPONENTS = 20
_NO_INTERVALS = (
    "There are no intervals: the noise of new observations is not known, since that of the training points "
    "was given one by one."
)


@dataclass(frozen=True)
class Regression:
    """Targets and predictions, (n, targets); standard deviations of observations too, if they are known.

    Intervals of the level `LEVELS[i]` reach ``reach[i]``, (targets,), of them to both sides.
    """

    y: np.ndarray
    mean: np.ndarray
    std: np.ndarray | None = None
    reach: np.ndarray | None = None
    note: str = ""

    def target(self, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Of one target, each (n,)."""
        return self.y[:, k], self.mean[:, k], None if self.std is None else self.std[:, k]

    def inside(self, k: int) -> np.ndarray | None:
        """The share of observations of one target in intervals of each level, if there are any."""
        y, mean, std = self.target(k)
        if std is None or self.reach is None:
            return None
        return metrics.calibration_curve(y, mean, std, LEVELS, self.reach[:, k])[1]


@dataclass(frozen=True)
class Classification:
    """Labels and predictions (n,); probabilities (n, classes), if they are known.

    `known`, (n,), says whether a label is one of the model's classes.
    """

    y: np.ndarray
    predicted: np.ndarray
    classes: np.ndarray
    known: np.ndarray
    proba: np.ndarray | None = None

    @property
    def labels(self) -> list[object]:
        """The model's classes, and others that occur."""
        return list(dict.fromkeys([*self.classes.tolist(), *self.y.tolist()]))


Outcome = Regression | Classification | None  # None: there is nothing to compare with


# Predictions --------------------------------------------------------------------------------------------


def predict(model: HCKEstimator, X: PointsLike, y: ArrayLike | None) -> Outcome:
    """What a model says of data, beside what was observed."""
    if isinstance(model, HCKKernelPCA):
        return None
    if y is None:
        raise ValueError(f"a report of a {type(model).__name__} needs the targets, y")
    y = as_array(y)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if len(y) != n:
        raise ValueError(f"X has {n} points but y has {len(y)} values")
    if isinstance(model, HCKClassifier | HCKGaussianProcessClassifier):
        return _classify(model, X, y)
    return _regress(model, X, y)


def _regress(model: HCKEstimator, X: PointsLike, y: np.ndarray) -> Regression:
    std, reach, note = None, None, ""
    if not isinstance(model, HCKGaussianProcessRegressor):
        mean = as_array(model.predict(X))
    elif np.ndim(model.noise_):
        mean, note = as_array(model.predict(X)), _NO_INTERVALS
    else:
        mean, std = (as_array(part) for part in model.predict(X, return_std=True, observed=True))
        targets = mean[0].size
        reach = np.stack([np.broadcast_to(reach_of(model, level), targets) for level in LEVELS.tolist()])
    try:
        y = y.astype(float)
    except (TypeError, ValueError):
        raise ValueError(f"y must be numbers, since the model is a {type(model).__name__}") from None
    y, mean = y.reshape(len(y), -1), mean.reshape(len(mean), -1)
    std = None if std is None else std.reshape(mean.shape)
    if y.shape != mean.shape:
        raise ValueError(f"y has {y.shape[1]} targets, but the model predicts {mean.shape[1]}")
    check_finite(y=y)
    return Regression(y, mean, std, reach, note)


def _classify(
    model: HCKClassifier | HCKGaussianProcessClassifier, X: PointsLike, y: np.ndarray
) -> Classification:  # fmt: skip
    y = y.reshape(len(y), -1)[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.ndim != 1:
        raise ValueError(f"y must be labels of shape (n_samples,), got {y.shape}")
    classes = set(model.classes_.tolist())
    known = np.array([label in classes for label in y.tolist()])
    if not known.any():
        raise ValueError(
            f"y has none of the model's classes: it has labels such as {y[0]!r}, they are such as "
            f"{model.classes_[0]!r}"
        )
    has_none = isinstance(model, HCKClassifier) and model.calibration_ is None
    proba = None if has_none else as_array(model.predict_proba(X))
    return Classification(y, as_array(model.predict(X)), model.classes_, known, proba)


# Scores -------------------------------------------------------------------------------------------------


def scores_section(model: HCKEstimator, outcome: Outcome) -> Section:
    """Tables of how good the predictions are."""
    if isinstance(outcome, Regression):
        return _regression_scores(outcome)
    if isinstance(outcome, Classification):
        return _class_scores(outcome)
    shares, values = model.explained_variance_ratio_, model.eigenvalues_
    few = range(min(len(shares), _MOST_COMPONENTS))
    rows = [[f"{k + 1}", number(values[k]), f"{100 * shares[k]:.3g} %"] for k in few]
    table = PageTable("Components", ["Component", "Eigenvalue", "Share of the variance"], rows)
    sentence = f"The components hold {100 * shares.sum():.3g} % of the variance."
    return Section("How good it is", [sentence], [table])


def _regression_scores(outcome: Regression) -> Section:
    columns = [_scores_of(outcome, k) for k in range(outcome.y.shape[1])]
    targets = ["Value"] if len(columns) == 1 else [f"Target {k}" for k in range(len(columns))]
    head = ["", *targets, "Meaning"]
    rows = [_row(name, *(column[name] for column in columns)) for name in columns[0]]
    sentences = [f"On {plural(len(outcome.y), 'point')} of the given data.", outcome.note]
    return Section("How good it is", [s for s in sentences if s], [PageTable("Scores", head, rows)])


def _scores_of(outcome: Regression, k: int) -> dict[str, float]:
    found = metrics.scores(*outcome.target(k))
    if (inside := outcome.inside(k)) is not None:
        found["coverage"] = float(inside[-1])
    return found


def _class_scores(outcome: Classification) -> Section:
    rows = [_row(name, value) for name, value in class_scores(outcome).items()]
    sentences = [f"On {plural(len(outcome.y), 'point')} of the given data."]
    strange = int((~outcome.known).sum())
    if strange:
        sentences.append(
            f"{plural(strange, 'point')} of a class that the model does not know: wrong for the accuracy, "
            "and left out of the other scores."
        )
    if outcome.proba is None:
        sentences.append("There are no probabilities: the model was fitted with leave_one_out=False.")
    if len(outcome.labels) > MOST_CLASSES:
        sentences.append(f"There is no confusion matrix: it would have {len(outcome.labels):,} classes.")
    return Section("How good it is", sentences, [PageTable("Scores", ["", "Value", "Meaning"], rows)])


def class_scores(outcome: Classification) -> dict[str, float]:
    """Accuracy, and how good the probabilities are, if there are any."""
    scores = {"accuracy": metrics.accuracy(outcome.y, outcome.predicted)}
    if outcome.proba is not None:
        y, proba = outcome.y[outcome.known], outcome.proba[outcome.known]
        right = outcome.classes[proba.argmax(1)] == y
        scores["log_loss"] = metrics.log_loss(y, proba, outcome.classes)
        scores["calibration_error"] = metrics.calibration_error(right, proba.max(1))
    return scores


def confusion(outcome: Outcome) -> dict[str, list] | None:
    """How often each class (a row) was predicted as each (a column), also as shares of the row.

    None if there are no classes, or too many.
    """
    if not isinstance(outcome, Classification) or len(labels := outcome.labels) > MOST_CLASSES:
        return None
    place = {label: k for k, label in enumerate(labels)}
    true, predicted = ([place[each] for each in part.tolist()] for part in (outcome.y, outcome.predicted))
    counts = confusion_matrix(true, predicted, labels=range(len(labels)))
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    return {"labels": labels, "counts": counts.tolist(), "shares": shares.round(3).tolist()}


def _row(name: str, *values: float) -> list[str]:
    label, meaning = _SCORES[name]
    return [label, *map(number, values), meaning]


_SCORES = {
    "rmse": ("RMSE", "root of the mean squared error, in the unit of the target"),
    "mae": ("MAE", "mean absolute error, in the unit of the target"),
    "r2": ("R²", "share of the variance that is explained; 1 is perfect, 0 no better than the mean"),
    "relative_error": ("Relative error", "norm of the errors over that of the targets"),
    "nlpd": ("NLPD", "mean negative log density of what was observed; smaller is better"),
    "crps": (
        "CRPS",
        "mean distance between predicted distributions and observations, in the unit of the target",
    ),
    "coverage": ("Coverage", "share of observations inside 95 % intervals; 0.95 is ideal"),
    "accuracy": ("Accuracy", "share of classes that are right"),
    "log_loss": ("Log-loss", "mean of −log p(class); smaller is better"),
    "calibration_error": (
        "Calibration error",
        "mean difference between the probability of the predicted class and how often it is right; 0 is "
        "ideal",
    ),
}
