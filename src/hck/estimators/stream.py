"""Models that learn from one observation after another, with the interface of river.

Features come as a dict, by their names. The packages need not know each other: if river is there, its metrics
and evaluations take these models as its own.
"""

import pickle
import sys
from collections import Counter
from collections.abc import Hashable, Mapping
from copy import deepcopy
from numbers import Real
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from sklearn.base import clone

from hck.backend.checks import is_whole
from hck.estimators.classifier import HCKClassifier
from hck.estimators.gaussian_process import HCKGaussianProcessRegressor
from hck.estimators.regressor import HCKRegressor
from hck.estimators.training import check_size
from hck.kernels.inputs import object_array
from hck.points import as_points
from hck.preparation.coding import as_labels, as_targets, new_labels

Features: TypeAlias = Mapping[Hashable, float]

_FIRST = 200  # observations before the first fit
_AGAIN = 2.0  # times as many observations as in the last fit, when all is chosen anew
_LATE = 0.02  # of a window, by which it may be too large before the oldest are forgotten


class _Stream:
    """What is kept: the model, the names of features, and observations as they came, for the next fit."""

    _supervised: ClassVar[bool] = True  # as river asks
    _role: ClassVar[str]  # of river's base classes

    def __init__(self, model: Any, first: int, again: float | None, window: int | None) -> None:
        whole = is_whole(first) and (window is None or is_whole(window))
        real = again is None or (isinstance(again, Real) and bool(again > 1))
        if not (whole and real and first >= 2 and (window is None or window >= first)):
            raise ValueError(
                "first must be a whole number, at least 2, window one that is at least as much, and again a "
                f"number above 1: got first={first!r}, window={window!r}, again={again!r}"
            )
        self.model, self.first, self.again, self.window = model, first, again, window
        self.names: list[Hashable] | None = None
        self._rows: list[list[float]] = []
        self._seen: list[Any] = []
        self._fitted_to = 0
        known = sys.modules.get("river.base")
        if known is not None:
            getattr(known, self._role).register(type(self))

    def learn_one(self, x: Features, y: Any) -> None:
        """Take in an observation: without a refit, unless there are many more than at the last one.

        If that fails or is interrupted, all is as it was.
        """
        names = sorted(x, key=str) if self.names is None and isinstance(x, Mapping) else self.names
        row, y = self._row(x, names), self._target(y)
        before, trained, n = dict(vars(self)), vars(self.model), len(self._rows)
        try:
            self._rows.append(row)
            self._seen.append(y)
            vars(self).update(self._learn(row, y), names=names)
        except BaseException:
            vars(self).update(before)
            self.model.__dict__ = trained  # which updates and fits do not change, but put others in its place
            del self._rows[n:], self._seen[n:]
            raise

    def _learn(self, row: list[float], y: Any) -> dict[str, Any]:
        """Have the model learn from the last observation, and return the attributes that follow."""
        rows, seen, fitted_to = self._rows, self._seen, self._fitted_to
        if fitted_to:
            self._take_in(row, y)
        if self.window is not None and len(rows) >= self.window + max(1, _LATE * self.window):
            if fitted_to:
                self.model.forget(keep=self.window)
            rows, seen = rows[-self.window :], seen[-self.window :]
        if len(rows) >= (self._again_at if fitted_to else self.first) and self._can_fit(seen):
            self.model.fit(np.array(rows), np.array(seen))
            fitted_to = len(rows)
        return {"_rows": rows, "_seen": seen, "_fitted_to": fitted_to}

    def _target(self, y: Any) -> Any:
        """A number that can be learned from; ValueError if it is none."""
        found = as_targets([y])
        if found.ndim > 1 or not np.isfinite(found).all():
            raise ValueError(f"the target of a stream must be a finite number, got {y!r}")
        check_size(found)
        return float(found[0])

    def _take_in(self, row: list[float], y: Any) -> None:
        self.model.partial_fit(np.array([row]), np.array([y]))

    def _can_fit(self, seen: list[Any]) -> bool:
        return True

    # What river asks of its own models ----------------------------------------------------------------

    def clone(self, new_params: dict[str, Any] | None = None, include_attributes: bool = False) -> Self:
        """Another one with the same parameters, or new ones, that has seen nothing.

        With `include_attributes` it has seen what this one has.
        """
        if include_attributes and not new_params:
            return deepcopy(self)
        return type(self)(**{**self._get_params(), **(new_params or {})})

    def _get_params(self) -> dict[str, Any]:
        others = {name: getattr(self, name) for name in ("first", "again", "window")}
        return {"model": clone(self.model), **others}

    @property
    def _raw_memory_usage(self) -> int:
        """Bytes of what is kept."""
        return len(pickle.dumps(self))

    # What is known ------------------------------------------------------------------------------------

    @property
    def _is_fitted(self) -> bool:
        return self._fitted_to > 0

    @property
    def _again_at(self) -> float:
        return np.inf if self.again is None else self.again * self._fitted_to

    def _row(self, x: Features, names: list[Hashable] | None) -> list[float]:
        """Features in the order of their names; 0 where one is missing, and those that are new left out."""
        if not isinstance(x, Mapping):
            raise TypeError(f"a point of a stream is a dict of features by name, got {type(x).__name__}")
        try:
            row = as_targets([x.get(name, 0.0) for name in names or ()])
        except ValueError:
            row = np.full(1, np.nan)
        if row.ndim != 1 or not row.size or not np.isfinite(row).all():
            raise ValueError(f"features of a stream must be finite numbers, at least one, got {dict(x)}")
        as_points(row[None])  # or an error
        return row.tolist()

    def _array(self, x: Features) -> np.ndarray:
        return np.array([self._row(x, self.names)])


class StreamingRegressor(_Stream):
    """Regression of a stream, one observation at a time, with `learn_one` and `predict_one`.

    The first fit is one to `first` observations. Then each costs O(n₀² + r³ log(n/r)), until there are
    `again` times as many as in the last fit and parameters are chosen anew.

    Parameters
    ----------
    model : HCKRegressor or HCKGaussianProcessRegressor, default=None
        None: an HCKRegressor that chooses its parameters within ``fit_time="fast"``.
    first : int, default=200
    again : float or None, default=2.0
        None: never fit again.
    window : int or None, default=None
        How many of the newest observations to keep, up to 2 % more; None for all.

    Examples
    --------
    >>> import math
    >>> from hck import HCKRegressor
    >>> from hck.estimators.stream import StreamingRegressor
    >>> inner = HCKRegressor(lengthscale=1.0, alpha=0.01, rank=20, random_state=0)
    >>> model = StreamingRegressor(inner, first=50)
    >>> for i in range(120):
    ...     model.learn_one({"t": i / 20}, math.sin(i / 20))
    >>> abs(model.predict_one({"t": 5.98}) - math.sin(5.98)) < 0.02
    True
    """

    _role = "Regressor"

    def __init__(
        self,
        model: HCKRegressor | HCKGaussianProcessRegressor | None = None,
        *,
        first: int = _FIRST,
        again: float | None = _AGAIN,
        window: int | None = None,
    ) -> None:
        super().__init__(HCKRegressor(fit_time="fast") if model is None else model, first, again, window)

    def predict_one(self, x: Features) -> float:
        """The target of a point: before the first fit the mean of those that were seen, or 0."""
        if not self._is_fitted:
            return float(np.mean(self._seen)) if self._seen else 0.0
        return float(self.model.predict(self._array(x))[0])


class StreamingClassifier(_Stream):
    """Classification of a stream, one observation at a time.

    With `learn_one`, `predict_one` and `predict_proba_one`. Parameters are those of `StreamingRegressor`,
    with an HCKClassifier as the model. A class that was not there before is taken in when it comes.
    """

    _role = "Classifier"
    _multiclass: ClassVar[bool] = True  # as river asks

    def __init__(
        self,
        model: HCKClassifier | None = None,
        *,
        first: int = _FIRST,
        again: float | None = _AGAIN,
        window: int | None = None,
    ) -> None:
        super().__init__(HCKClassifier(fit_time="fast") if model is None else model, first, again, window)

    def _target(self, y: Any) -> Any:
        """A label that can stand beside those before; ValueError if it cannot."""
        label = as_labels(object_array([y.item() if isinstance(y, np.ndarray) and y.ndim == 0 else y]))
        if self._seen:
            new_labels(label, np.array(self._seen[-1:]))
        return label[0].item()

    def _take_in(self, row: list[float], y: Any) -> None:
        label = np.array([y])
        new = new_labels(label, self.model.classes_)
        self.model.partial_fit(np.array([row]), label, classes=new if len(new) else None)

    def _can_fit(self, seen: list[Any]) -> bool:
        return len(set(seen)) > 1

    def predict_one(self, x: Features) -> Any:
        """The class of a point: before the first fit the most frequent one, or None."""
        if not self._is_fitted:
            return Counter(self._seen).most_common(1)[0][0] if self._seen else None
        return self.model.predict(self._array(x))[0].item()

    def predict_proba_one(self, x: Features) -> dict[Any, float]:
        """The probability of each class; none before the first observation."""
        if not self._is_fitted:
            return {label: count / len(self._seen) for label, count in Counter(self._seen).items()}
        chances = self.model.predict_proba(self._array(x))[0]
        return dict(zip(self.model.classes_.tolist(), chances.tolist(), strict=True))
