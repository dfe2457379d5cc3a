"""Columns of a table that are categories, not numbers."""

from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import config_context
from sklearn.preprocessing import OneHotEncoder

from hck.backend.checks import require
from hck.preparation.arrays import Table
from hck.preparation.coding import is_missing

_MISSING = "(missing)"
_NO_NUMBERS = ("date", "timedelta", "period", "duration", "time", "interval", "list", "struct")


@dataclass(frozen=True)
class Categories:
    """Turns the categories of a table into columns of 0 and 1, one for each, which come first.

    Columns of text, of pandas' categories and of objects other than numbers are categories. A missing value
    is a category of its own; one that was not seen in training has 0 in all columns. The columns that are
    categories have these names and positions.
    """

    names: list[Any]
    positions: list[int]
    encoder: OneHotEncoder

    @classmethod
    def of(cls, table: Table) -> "Categories | None":
        """Those of a table; None if it has none."""
        positions = _categorical(table)
        if not positions:
            return None
        names = [table.columns[i] for i in positions]
        made = cls(names, positions, OneHotEncoder(handle_unknown="ignore"))
        made.encoder.fit(made._text(table))
        return made

    def width(self, columns: int) -> int:
        """How many features a table of so many columns becomes; ValueError if it has too few."""
        require(max(self.positions) < columns, f"categories are beyond the {columns} columns of a table")
        return sum(map(len, self.encoder.categories_)) + columns - len(self.positions)

    def __call__(self, table: Table) -> sp.csr_matrix | np.ndarray:
        """A table's encoded categories and numbers: a sparse matrix where there are many categories."""
        if not hasattr(table, "columns"):
            raise ValueError(
                "the estimator was fitted to a table with the categories "
                f"{', '.join(map(str, self.names))}: pass a table with the same columns"
            )
        rest = [i for i in range(table.shape[1]) if i not in self.positions]
        with config_context(transform_output="default"):  # whatever the surrounding program has set
            encoded = self.encoder.transform(self._text(table))
        numbers = _numbers(_columns(table, rest))
        if encoded.shape[1] > 256:
            return sp.hstack([encoded, sp.csr_matrix(numbers)], format="csr")
        return np.hstack([encoded.toarray(), numbers])

    def of_columns(self, values: np.ndarray, columns: int) -> np.ndarray:
        """Sums over what columns were encoded to, for each of them: shape (columns,)."""
        out, at = np.empty(columns), 0
        for position, known in zip(self.positions, self.encoder.categories_, strict=True):
            out[position] = values[at : at + len(known)].sum()
            at += len(known)
        out[[i for i in range(columns) if i not in self.positions]] = values[at:]
        return out

    def encoded_names(self) -> list[str]:
        """Of the columns of 0 and 1, one for each category."""
        both = zip(self.names, self.encoder.categories_, strict=True)
        return [f"{name}: {value}" for name, values in both for value in values]

    def _text(self, table: Table) -> np.ndarray:
        """The categories as text, so that values of several types can be told apart and sorted."""
        values = _columns(table, self.positions)
        return np.array([[_word(value) for value in row] for row in values], dtype=object)


def _columns(table: Table, positions: list[int]) -> np.ndarray:
    """Some columns, as they are: shape (rows, columns)."""
    out = np.empty((table.shape[0], len(positions)), dtype=object)
    for k, i in enumerate(positions):
        column = table.iloc[:, i] if hasattr(table, "iloc") else table[:, i]
        out[:, k] = np.asarray(column, dtype=object)
    return out


def _numbers(values: np.ndarray) -> np.ndarray:
    try:
        return values.astype(float)
    except TypeError as error:
        raise ValueError(
            f"Complex data not supported: columns that are no categories must be of real numbers: {error}"
        ) from None


def _categorical(table: Table) -> list[int]:
    if not (hasattr(table, "columns") and hasattr(table, "dtypes")):
        return []
    found = []
    for i, (name, dtype) in enumerate(zip(table.columns, table.dtypes, strict=True)):
        kind = str(dtype).lower()
        if kind.startswith(_NO_NUMBERS):
            raise TypeError(f"column {name!r} has dtype {dtype}: turn it into numbers first")
        text = kind.startswith(("categor", "str", "enum"))
        if text or (kind == "object" and not all(map(_is_number, _columns(table, [i])[:, 0]))):
            found.append(i)
    return found


def _word(value: object) -> str:
    """A value as text; 1 and 1.0 are the same, as a table changes one to the other if values are missing."""
    if isinstance(value, str):  # text that says "(missing)" is another word than the one for a missing value
        return "\\" + value if value.lstrip("\\") == _MISSING else value
    if is_missing(value):
        return _MISSING
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _is_number(value: object) -> bool:
    return value is None or isinstance(value, Number)
