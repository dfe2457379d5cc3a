"""Columns of a table that are categories, not numbers."""

from numbers import Number
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder


def encoder_of(table: Any) -> ColumnTransformer | None:
    """What turns the categories of a table into columns of 0 and 1, one for each; None if it has none.

    Columns of text, of pandas' categories and of objects other than numbers are categories. A missing value
    is a category of its own; one that was not seen in training has 0 in all columns.
    """
    columns = _categorical(table)
    if not columns:
        return None
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return ColumnTransformer([("categories", one_hot, columns)], remainder="passthrough").fit(table)


def encode(encoder: ColumnTransformer, table: Any) -> np.ndarray:
    """A table's numbers and encoded categories."""
    if not hasattr(table, "columns"):
        names = ", ".join(map(str, encoder.transformers_[0][2]))
        raise ValueError(
            f"the estimator was fitted to a table with the categories {names}: pass a table with the same "
            "columns"
        )
    return np.asarray(encoder.transform(table))


def _categorical(table: Any) -> list[Any]:
    if not (hasattr(table, "columns") and hasattr(table, "dtypes")):
        return []
    found = []
    for name, dtype in zip(table.columns, table.dtypes, strict=True):
        kind = str(dtype).lower()
        if kind.startswith(("datetime", "timedelta", "period")):
            raise TypeError(f"column {name!r} has dtype {dtype}: turn times into numbers first")
        text = kind == "category" or kind.startswith(("str", "enum"))
        if text or (kind == "object" and not all(isinstance(v, Number | None) for v in table[name])):
            found.append(name)
    return found
