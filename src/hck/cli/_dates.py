"""Dates in tables of text, which a CSV file has no other way to write."""

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

# ISO 8601, with all of a day at least; the group is the time zone.
_DAY, _TIME, _ZONE = r"\d{4}-\d{2}-\d{2}", r"\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?", r" ?(Z|[+-]\d{2}:?\d{2})"
_ISO = re.compile(rf"{_DAY}(?:[T ]{_TIME}(?:{_ZONE})?)?")


def with_dates(table: "pd.DataFrame") -> "pd.DataFrame":
    """The table with columns of text as dates where all that is there are some.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"sold": ["2024-02-29", None], "code": ["2024-02-30", "1-2-3"]})
    >>> with_dates(table).dtypes.map(lambda dtype: dtype.kind).to_dict()
    {'sold': 'M', 'code': 'O'}
    """
    made = table.copy(deep=False)
    for i in range(table.shape[1]):
        first = table.iloc[:, i].dropna().head(1)
        if _is_text(first) and len(first) and not _parsed(first)[1].any():
            dates, wrong = _parsed(table.iloc[:, i])
            if not wrong.any():
                made.isetitem(i, dates)
    return made


def as_dates(table: "pd.DataFrame", positions: Collection[int], source: str) -> "pd.DataFrame":
    """The table with columns at some positions as dates, or an error that names a record which has none."""
    made = table.copy(deep=False)
    for i in positions:
        column = table.iloc[:, i]
        if column.dtype.kind == "M":
            continue
        dates, wrong = _parsed(column)
        if wrong.any():
            first = int(np.argmax(wrong))
            found = column.iloc[first : first + 1].tolist()[0]
            raise ValueError(
                f"{source}: column {column.name!r} must be dates such as 2024-02-29, as in training, all or "
                f"none with a time zone, but record {first + 1:,} has {found!r}"
            )
        made.isetitem(i, dates)
    return made


def _is_text(column: "pd.Series") -> bool:
    return column.dtype.kind == "O" and column.dtype.name != "category"


def _parsed(column: "pd.Series") -> "tuple[pd.Series, np.ndarray]":
    """Values as dates; and which records (rows,) have anything else, or a time zone unlike the first."""
    import pandas as pd

    found = [_ISO.fullmatch(value) if isinstance(value, str) else None for value in column]
    zoned = [match[1] is not None for match in found if match]
    alike = [match is not None and (match[1] is not None) == zoned[0] for match in found]
    text = column.astype(object).where(np.array(alike, dtype=bool), None)
    dates = pd.to_datetime(text, format="ISO8601", errors="coerce", utc=bool(zoned[:1] == [True]))
    return dates, np.asarray(dates.isna() & column.notna())
