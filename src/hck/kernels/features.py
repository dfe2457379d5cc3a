"""Places and cycles: coordinates in which distances of kernels are those on a sphere, or on a circle.

Both are transformers that replace some columns of a table by others, and leave all else as it is. Kernels
see distances along chords, which between near points are those that one would walk.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from numbers import Real
from typing import Any, Self

import narwhals as nw
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from hck.backend.checks import is_whole
from hck.kernels.inputs import Data, refuse_times, unmasked

__all__ = ["EARTH", "Circle", "Sphere"]

EARTH = 6371.0088  # kilometres: its mean radius


class _Replacing(TransformerMixin, BaseEstimator, ABC):
    """Replaces some columns, which are numbers, by others that come last."""

    positions_: list[int]
    n_features_in_: int

    @abstractmethod
    def _given(self) -> list[str | int]:
        """The columns to replace, by name or position."""

    @abstractmethod
    def _endings(self) -> list[str]:
        """What is added to the names of these for those that replace them."""

    @abstractmethod
    def _placed(self, values: np.ndarray) -> np.ndarray:
        """Values (n, columns) as coordinates (n, endings), or ValueError; NaN where one is missing."""

    def _check(self) -> None:
        """Raise ValueError if a parameter is wrong."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.requires_fit = True
        return tags

    def fit(self, X: Data, y: object = None) -> Self:
        """Find the columns.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
        y : None
            Not used.

        Returns
        -------
        self
        """
        self._check()
        found = copy(self)  # so that a fit that fails changes nothing
        found._validated(X, reset=True)
        found.positions_ = [found._position(each) for each in found._given()]
        if len({*found.positions_}) < len(found.positions_):
            raise ValueError(f"the columns {self._given()} must be different ones")
        self.__dict__ = found.__dict__
        return self

    def transform(self, X: Data) -> Any:
        """The other columns as they are, and then the coordinates.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        data frame of the same library, or ndarray of shape (n_samples, n_features_out)
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        if isinstance(X, np.ndarray):
            rest = np.delete(X, self.positions_, axis=1)
            return np.hstack([rest, self._placed(X[:, self.positions_]).astype(X.dtype, copy=False)])
        frame = nw.from_native(X, eager_only=True)
        given = list(frame.iter_columns())
        old = [given[i].name for i in self.positions_]
        placed = self._placed(np.stack([_numbers(given[i]) for i in self.positions_], 1))
        made = [
            nw.new_series(name, each, backend=nw.get_native_namespace(frame))
            for name, each in zip(self._made(old), placed.T.copy(), strict=True)
        ]
        kept = frame.drop(old)
        if hasattr(X, "iloc"):  # rows of pandas have labels, by which others would be put beside them
            made = [nw.from_native(each.to_native().set_axis(X.index), series_only=True) for each in made]
        both = kept.with_columns(made) if kept.columns else frame.select(*made)
        return both.to_native()

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Names of the columns that `transform` returns.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Of X, where it had none.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        made = self._made([names[i] for i in self.positions_])
        return np.append(np.delete(names, self.positions_), np.array(made, dtype=object))

    def _made(self, old: list[Any]) -> list[str]:
        return [f"{'_'.join(map(str, old))}_{ending}" for ending in self._endings()]

    def _validated(self, X: Data, reset: bool) -> Any:
        """An array of numbers, or a frame as it is."""
        if nw.dependencies.is_into_dataframe(X):
            validate_data(self, X, skip_check_array=True, reset=reset)
            return X
        kinds = [np.float64, np.float32]
        X = unmasked(X)
        refuse_times(X, "X")
        return validate_data(self, X, reset=reset, dtype=kinds, ensure_all_finite="allow-nan")

    def _position(self, column: str | int) -> int:
        names = list(getattr(self, "feature_names_in_", []))
        if isinstance(column, str):
            if column not in names:
                known = f"it has {', '.join(map(repr, names[:20]))}" if names else "its columns have no names"
                raise ValueError(f"X has no column {column!r}: {known}")
            return names.index(column)
        if not is_whole(column):
            raise ValueError(f"a column is named by text or by a whole number, got {column!r}")
        if not -self.n_features_in_ <= column < self.n_features_in_:
            raise ValueError(f"X has no column {column}: n_features={self.n_features_in_}")
        return int(column) % self.n_features_in_


class Sphere(_Replacing):
    """Latitude and longitude as a point in space: x, y and z on a sphere.

    Parameters
    ----------
    latitude, longitude : str or int
        Columns with degrees, by name or position: latitudes from -90 to 90, longitudes from -360 to 360.
    radius : float, default=EARTH
        That of the earth in kilometres, so that distances are kilometres along chords.

    Attributes
    ----------
    positions_ : list of int
        Of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from hck.kernels.features import Sphere
    >>> berlin_and_paris = np.array([[52.52, 13.405], [48.857, 2.352]])
    >>> here, there = Sphere(0, 1).fit_transform(berlin_and_paris)
    >>> round(float(np.linalg.norm(here - there)))
    877
    """

    def __init__(self, latitude: str | int = 0, longitude: str | int = 1, *, radius: float = EARTH) -> None:
        self.latitude, self.longitude, self.radius = latitude, longitude, radius

    def _check(self) -> None:
        _check_positive("radius", self.radius)

    def _given(self) -> list[str | int]:
        return [self.latitude, self.longitude]

    def _endings(self) -> list[str]:
        return ["x", "y", "z"]

    def _placed(self, values: np.ndarray) -> np.ndarray:
        for degrees, name, most in zip(values.T, self._given(), (90, 360), strict=True):
            wrong = np.abs(degrees) > most
            if wrong.any():
                raise ValueError(
                    f"column {name!r} must be degrees from -{most} to {most}, got {degrees[wrong][0]:g}"
                )
        north, east = np.radians(values).T
        each = np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)
        gone = np.isnan(values).any(1, keepdims=True)
        return np.where(gone, np.nan, self.radius * np.stack(each, 1))


class Circle(_Replacing):
    """What comes back, such as an hour or an angle, as a point on a circle: sine and cosine.

    Parameters
    ----------
    column : str or int
        By name or position.
    period : float, default=1.0
        After which it is the same again. The circle is so long, so that between near points distances stay
        as they are.

    Attributes
    ----------
    positions_ : list of int
        Of the column.

    Examples
    --------
    >>> import pandas as pd
    >>> from hck.kernels.features import Circle
    >>> hours = pd.DataFrame({"hour": [23.5, 0.5], "day": ["Sunday", "Monday"]})
    >>> Circle("hour", period=24).fit_transform(hours).round(2)
          day  hour_sin  hour_cos
    0  Sunday      -0.5      3.79
    1  Monday       0.5      3.79
    """

    def __init__(self, column: str | int = 0, *, period: float = 1.0) -> None:
        self.column, self.period = column, period

    def _check(self) -> None:
        _check_positive("period", self.period)

    def _given(self) -> list[str | int]:
        return [self.column]

    def _endings(self) -> list[str]:
        return ["sin", "cos"]

    def _placed(self, values: np.ndarray) -> np.ndarray:
        period = float(self.period)  # of NumPy it may be of another precision
        angle = 2 * np.pi * (values[:, 0] % period) / period
        return np.stack([np.sin(angle), np.cos(angle)], 1) * (period / (2 * np.pi))


def _check_positive(name: str, value: float) -> None:
    known = isinstance(value, Real) and not isinstance(value, bool)
    if not known or not 1e-150 < float(value) < 1e150:
        raise ValueError(f"{name} must be a positive number, got {value!r}; between 1e-150 and 1e150")


def _numbers(column: "nw.Series[Any]") -> np.ndarray:
    if getattr(getattr(column.to_native(), "dtype", None), "kind", None) == "c":
        raise ValueError(f"column {column.name!r} must be numbers: Complex data not supported")
    try:
        values = column.cast(nw.Float64).to_numpy().astype(np.float64)
    except Exception as error:  # of the library that the frame is from
        raise ValueError(f"column {column.name!r} must be numbers, got {column.dtype}: {error}") from None
    if np.isinf(values).any():
        raise ValueError(f"column {column.name!r} contains infinity")
    return values
