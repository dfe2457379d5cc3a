"""Columns of data frames, of pandas, polars, pyarrow and others that narwhals knows, as arrays."""

import datetime
from collections.abc import Hashable
from numbers import Number, Real
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike

from hck.preparation.arrays import Table
from hck.preparation.coding import is_missing

Column: TypeAlias = nw.Series[Any]
MISSING = "(missing)"  # as a word
_WORDS = (nw.String, nw.Categorical, nw.Enum)
_OF_DATES = (nw.Datetime, nw.Date)


def is_frame(X: object) -> bool:
    """Whether it is a table whose columns may be of different types."""
    if isinstance(X, np.ndarray):  # which it would take narwhals some time to see
        return False
    if type(X).__name__ == "LazyFrame":
        raise TypeError("X is a LazyFrame, whose rows are not there yet: use X.collect()")
    if type(X).__name__ == "RecordBatch":
        raise TypeError("X is a RecordBatch, which is no table: use pyarrow.Table.from_batches([X])")
    return bool(nw.dependencies.is_into_dataframe(X))


def names_of(frame: Table) -> list[Any]:
    """Of the columns."""
    return list(frame.column_names if hasattr(frame, "column_names") else frame.columns)


def refuse_twins(names: list[Any]) -> None:
    """Raise ValueError if columns have the same name."""
    twins = [name for i, name in enumerate(names) if name in names[:i]]
    if twins:
        raise ValueError(f"several columns are called {twins[0]!r}: give each its own name")


def column_of(frame: Table, position: int) -> Column:
    """One column."""
    if hasattr(frame, "iloc"):
        native = frame.iloc[:, position]
    else:
        native = frame.column(position) if hasattr(frame, "column") else frame[:, position]
    return nw.from_native(native, series_only=True)


def has_numbers_only(frame: Table) -> bool:
    """Whether all columns are of numbers, by their types."""
    kinds = [getattr(dtype, "kind", "") for dtype in getattr(frame, "dtypes", [])]
    if kinds and all(kind in set("biuf") for kind in kinds):
        return True
    return all(_has_numbers(column_of(frame, i)) for i in range(frame.shape[1]))


def _has_numbers(column: Column) -> bool:
    dtype = column.dtype
    return (dtype.is_numeric() and not isinstance(dtype, nw.Decimal)) or isinstance(dtype, nw.Boolean)


def kind_of(column: Column, name: object) -> str:
    """What a column holds: "numbers", "words", "order" (words that have one) or "dates"; or a TypeError."""
    dtype = column.dtype
    if dtype.is_numeric() or isinstance(dtype, nw.Boolean | nw.Duration):
        return "numbers"
    if isinstance(dtype, _WORDS):
        return "words" if order_of(column) is None else "order"
    if isinstance(dtype, _OF_DATES):
        return "dates"
    if isinstance(dtype, nw.Object | nw.Unknown):
        there = [value for value in column.to_list() if not is_missing(value)]
        if all(isinstance(value, Number) for value in there):
            return "numbers"
        if all(isinstance(value, datetime.date) for value in there):
            return "dates"
        if isinstance(dtype, nw.Object) and all(map(_has_a_word, there)):
            return "words"
    native = getattr(column.to_native(), "dtype", dtype)
    raise TypeError(f"column {name!r} has dtype {native}: turn it into numbers, dates or text first")


def _has_a_word(value: object) -> bool:
    """Whether text says which value it is: not of what can change, nor of what is told by its address."""
    told = type(value).__str__ is not object.__str__ or type(value).__repr__ is not object.__repr__
    return isinstance(value, Hashable) and told


def order_of(column: Column) -> list[str] | None:
    """The words of ordered categories, the least first; None if they have no order."""
    native = column.to_native()
    if getattr(getattr(native, "type", None), "ordered", False) is True:  # of pyarrow, as a dictionary
        parts = [chunk.dictionary.to_pylist() for chunk in native.chunks]
        return [word(value) for value in max(parts, key=len, default=[])]
    return list(map(word, column.dtype.categories)) if isinstance(column.dtype, nw.Enum) else None


# Values ----------------------------------------------------------------------------------------------


def numbers(column: Column, name: object) -> np.ndarray:
    """As float64, NaN where they are missing; durations as seconds. ValueError if they are no numbers."""
    dtype = column.dtype
    if isinstance(dtype, nw.Duration):
        return _seconds(column.to_numpy(), "timedelta64")
    if _has_numbers(column):
        found = column.to_numpy()
        if found.dtype.kind in "fiub":
            return found.astype(np.float64)
    try:
        values = [np.nan if is_missing(value) else _real(value) for value in column.to_list()]
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"column {name!r} must be numbers: {error}") from None
    return np.array(values, dtype=np.float64)


def _real(value: Any) -> float:
    if isinstance(value, Number) and not isinstance(value, Real) and not hasattr(value, "as_tuple"):
        raise ValueError(f"Complex data not supported, got {value!r}")
    return float(value)


def words(column: Column) -> list[str]:
    """Values as text, so that those of several types can be told apart and sorted."""
    values = column.to_list()
    if not isinstance(column.dtype, _WORDS) and not column.dtype.is_float():
        return list(map(word, values))
    known = {value: narrow(word(value), column) for value in set(values)}
    return [known[value] for value in values]


def narrow(text: str, column: Column) -> str:
    """What a word is called in a column: fractions by the digits of float32, which tables of any width have.

    Whole numbers keep all digits.
    """
    if not column.dtype.is_float():
        return text
    try:
        value = float(text)
    except ValueError:
        return text
    return word(float(str(np.float32(value)))) if np.isfinite(value) and not value.is_integer() else text


def word(value: object) -> str:
    """A value as text; 1 and 1.0 are the same, as a table changes one to the other if values are missing."""
    if isinstance(value, str):  # text that says "(missing)" is another word than the one for a missing value
        return "\\" + value if value.lstrip("\\") == MISSING else value
    if is_missing(value):
        return MISSING
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def zone_of(column: Column) -> str | None:
    """The time zone of dates; None if they have none."""
    if isinstance(column.dtype, nw.Datetime):
        return column.dtype.time_zone
    aware = isinstance(column.dtype, nw.Object) and any(map(_zone, column.to_list()))
    return "UTC" if aware else None


def clock(column: Column, name: object, zone: str | None) -> np.ndarray:
    """Dates as datetime64[us], NaT where they are missing: what clocks show in a time zone, if given."""
    if kind_of(column, name) != "dates" and not all(map(is_missing, column.to_list())):
        raise ValueError(f"column {name!r} must be dates, as in training, but has {column.dtype}")
    found = zone_of(column)
    if (found is None) != (zone is None) and column.null_count() < len(column):
        here, there = (f"the time zone {each}" if each else "no time zone" for each in (found, zone))
        raise ValueError(f"column {name!r} has {here}, but {there} in training: convert it")
    if isinstance(column.dtype, nw.Datetime) and zone is not None and found is not None:
        column = column.dt.convert_time_zone(zone).dt.replace_time_zone(None)
    if isinstance(column.dtype, _OF_DATES):
        return column.to_numpy().astype("datetime64[us]")
    values = [None if is_missing(value) else _at(value) for value in column.to_list()]
    return np.array(values, dtype="datetime64[us]")


def _zone(value: object) -> bool:
    return getattr(value, "tzinfo", None) is not None


def _at(value: Any) -> Any:
    """A date of Python's; one with a time zone as UTC has it, without the zone."""
    return value.astimezone(datetime.UTC).replace(tzinfo=None) if _zone(value) else value


def _seconds(values: ArrayLike, kind: str) -> np.ndarray:
    """Times of NumPy, NaN for NaT."""
    times = np.asarray(values).astype(f"{kind}[us]")
    return np.where(np.isnat(times), np.nan, times.astype(np.int64) / 1e6)
