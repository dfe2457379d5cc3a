"""Models that learn from one observation after another, with the interface of river.

Features come as a dict, by their names. Where river is installed, these models are river's own: its metrics,
pipelines and evaluations take them.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from copy import deepcopy
from numbers import Real
from types import SimpleNamespace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from sklearn.base import clone

from hck.backend.checks import is_whole
from hck.backend.memory import bytes_held
from hck.estimators.classifier import HCKClassifier
from hck.estimators.gaussian_process import HCKGaussianProcessRegressor
from hck.estimators.regressor import HCKRegressor
from hck.estimators.training import check_size
from hck.estimators.updating import check_updatable
from hck.estimators.whole import at_this_moment, changing, one_at_a_time
from hck.kernels.inputs import object_array
from hck.points import as_points
from hck.preparation.coding import as_known, as_labels, as_targets, new_labels

_river: Any
try:
    from river import base as _river
except ImportError:
    _river = SimpleNamespace(Regressor=object, Classifier=object)

Features: TypeAlias = Mapping[Hashable, float]

_FIRST = 200  # observations before the first fit
_AGAIN = 2.0  # times as many observations as in the last fit, when all is chosen anew
_LATE = 0.02  # of a window, by which it may be too large before the oldest are forgotten


class _Stream:
    """What is kept: the model, the names of features, and observations as they came, for the next fit.

    Names are in the order in which they were seen first. Rows have those that were known when they came.
    """

    _supervised: ClassVar[bool] = True  # as river asks
    _models: ClassVar[Any]  # classes

    def __init__(self, model: Any, first: int, again: float | None, window: int | None) -> None:
        if not isinstance(model, self._models):
            names = " or ".join(each.__name__ for each in self._models)
            raise TypeError(f"model must be of the class {names}, got {model!r:.100}")
        check_updatable(model)
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

    def learn_one(self, x: Features, y: Any) -> None:
        """Take in an observation: without a refit, unless there are many more than at the last one.

        If that fails or is interrupted, all is as it was.
        """
        with one_at_a_time(self):
            names = self._names_with(x)
            row, y = self._row(x, names), self._target(y)
            before, trained, n = dict(vars(self)), vars(self.model), len(self._rows)
            try:
                self._rows.append(row)
                self._seen.append(y)
                with one_at_a_time(self.model), changing(self.model) as model:
                    after = self._learn(model, row, y, len(names))
                    self.names = names  # of which the model before has some
                vars(self).update(after)
            except BaseException:
                vars(self).update(before)
                self.model.__dict__ = trained
                del self._rows[n:], self._seen[n:]
                raise

    def _learn(self, model: Any, row: list[float], y: Any, width: int) -> dict[str, Any]:
        """Have a model learn from the last observation, and return the attributes that follow."""
        rows, seen, fitted_to = self._rows, self._seen, self._fitted_to
        if fitted_to:
            self._take_in(model, np.array([row[: model.n_features_in_]]), y)
        if self.window is not None and len(rows) >= self.window + max(1, _LATE * self.window):
            if fitted_to:
                model.forget(keep=self.window)
            rows, seen = rows[-self.window :], seen[-self.window :]
        if len(rows) >= (self._again_at if fitted_to else self.first) and self._can_fit(seen):
            model.fit(_table(rows, width), np.array(seen))
            fitted_to = len(rows)
        return {"_rows": rows, "_seen": seen, "_fitted_to": fitted_to}

    def _target(self, y: Any) -> Any:
        """A number that can be learned from; ValueError if it is none."""
        found = as_targets([y])
        if found.ndim > 1 or not np.isfinite(found).all():
            raise ValueError(f"the target of a stream must be a finite number, got {y!r}")
        check_size(found)
        return float(found[0])

    def _take_in(self, model: Any, x: np.ndarray, y: Any) -> None:
        model.partial_fit(x, np.array([y]))

    def _can_fit(self, seen: list[Any]) -> bool:
        return True

    # What river asks of its own models ----------------------------------------------------------------

    def clone(self, new_params: dict[str, Any] | None = None, include_attributes: bool = False) -> Self:
        """Another one with the same parameters, or new ones, that has seen nothing.

        With `include_attributes` it has seen what this one has; another model is fitted to that with the next
        observation.
        """
        others = new_params or {}
        state = deepcopy(self.__getstate__()) if include_attributes else self._get_params()
        params = {name: others.get(name, state[name]) for name in self._get_params()}
        made = type(self)(**{**params, "model": clone(params["model"])})
        if include_attributes:
            vars(made).update({name: value for name, value in state.items() if name not in others})
            if "model" in others:
                made._fitted_to = 0
        return made

    def _get_params(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("model", "first", "again", "window")}

    @property
    def _raw_memory_usage(self) -> int:
        """Bytes of what is kept, what the model needs for updates included."""
        return bytes_held(self)

    def __getstate__(self) -> dict[str, Any]:
        with one_at_a_time(self):
            mine = {"_rows": list(self._rows), "_seen": list(self._seen), "model": at_this_moment(self.model)}
            return {**vars(self), **mine}

    # What is known ------------------------------------------------------------------------------------

    @property
    def _is_fitted(self) -> bool:
        return self._fitted_to > 0

    @property
    def _again_at(self) -> float:
        return np.inf if self.again is None else self.again * self._fitted_to

    def _names_with(self, x: Features) -> list[Hashable]:
        """With those that a point has for the first time, if there can be a fit that takes them."""
        known = self.names or []
        if not isinstance(x, Mapping) or (self._is_fitted and self.again is None):
            return known
        return [*known, *sorted(x.keys() - set(known), key=str)] if x.keys() - set(known) else known

    def _row(self, x: Features, names: Sequence[Hashable]) -> list[float]:
        """Features in the order of their names; 0 where one is missing, and those that are new left out."""
        if not isinstance(x, Mapping):
            raise TypeError(f"a point of a stream is a dict of features by name, got {type(x).__name__}")
        try:
            row = as_targets([x.get(name, 0.0) for name in names])
        except ValueError:
            row = np.full(1, np.nan)
        if row.ndim != 1 or not row.size or not np.isfinite(row).all():
            raise ValueError(f"features of a stream must be finite numbers, at least one, got {dict(x)}")
        as_points(row[None])  # or an error
        return row.tolist()

    def _array(self, x: Features, model: Any) -> np.ndarray:
        """A point (1, features) for a model, which may know fewer features than there are by now."""
        names = self.names or []
        return np.array([self._row(x, names[: model.n_features_in_])])


def _table(rows: list[list[float]], width: int) -> np.ndarray:
    """Rows (n, width), with 0 for features that were not known when they came."""
    if len(rows[0]) == width:  # and so all that came later
        return np.array(rows)
    table = np.zeros((len(rows), width))
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    return table


class StreamingRegressor(_Stream, _river.Regressor):
    """Regression of a stream, one observation at a time, with `learn_one` and `predict_one`.

    The first fit is one to `first` observations. Then each costs O(n₀² + r³ log(n/r)), until there are
    `again` times as many as in the last fit and parameters are chosen anew. A feature that is missing is 0;
    one that is new counts from the next fit on.

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

    _models = HCKRegressor, HCKGaussianProcessRegressor

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
        model = at_this_moment(self.model)
        return float(model.predict(self._array(x, model))[0])


class StreamingClassifier(_Stream, _river.Classifier):
    """Classification of a stream, one observation at a time.

    With `learn_one`, `predict_one` and `predict_proba_one`. Parameters are those of `StreamingRegressor`,
    with an HCKClassifier as the model. A class that was not there before is taken in when it comes.
    """

    _models = (HCKClassifier,)
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
        """A label that can stand beside those before, of their type; ValueError if it cannot."""
        try:
            label = as_labels(object_array([y.item() if isinstance(y, np.ndarray) and y.ndim == 0 else y]))
        except ValueError:
            raise ValueError(
                f"the label of an observation must be a whole number, True or False, or text, got {y!r:.60}"
            ) from None
        return (as_known(label, np.array(self._seen[-1:])) if self._seen else label)[0].item()

    def _take_in(self, model: Any, x: np.ndarray, y: Any) -> None:
        label = np.array([y])
        new = new_labels(label, model.classes_)
        model.partial_fit(x, label, classes=new if len(new) else None)

    def _can_fit(self, seen: list[Any]) -> bool:
        return len(set(seen)) > 1

    def predict_one(self, x: Features) -> Any:
        """The class of a point: before the first fit the most frequent one, or None."""
        if not self._is_fitted:
            return Counter(self._seen).most_common(1)[0][0] if self._seen else None
        model = at_this_moment(self.model)
        return model.predict(self._array(x, model))[0].item()

    def predict_proba_one(self, x: Features) -> dict[Any, float]:
        """The probability of each class; none before the first observation."""
        if not self._is_fitted:
            seen = list(self._seen)  # to which others may add
            return {label: count / len(seen) for label, count in Counter(seen).items()}
        model = at_this_moment(self.model)
        chances = model.predict_proba(self._array(x, model))[0]
        return dict(zip(model.classes_.tolist(), chances.tolist(), strict=True))
