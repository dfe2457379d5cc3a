"""Tables that pandas reads: CSV and Parquet. They stay frames, because columns may be categories."""

import csv
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from hck.datasets._streams import OPEN
from hck.datasets._table import Table, refuse_missing


def read_csv(path: Path, target: str | int | None) -> Table:
    """A CSV file whose first line has the names."""
    pd = _pandas()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # says that fields were dropped
            frame = pd.read_csv(path, index_col=False)
    except pd.errors.EmptyDataError:
        raise ValueError(f"{path.name} is empty") from None
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        raise ValueError(f"{path.name} is ragged: some lines have more fields than names: {error}") from None
    if frame.shape[1] > 1 and frame.iloc[:, -1].isna().any():  # a line that is too short looks like this
        _refuse_short_lines(path, frame.shape[1])
    return _table(frame, target, path)


def read_parquet(path: Path, target: str | int | None) -> Table:
    """A Parquet file."""
    pd = _pandas()
    try:
        frame = pd.read_parquet(path, engine="pyarrow")
    except ImportError:
        raise ImportError("Parquet files are read with pyarrow: pip install pyarrow") from None
    return _table(frame, target, path)


def _table(frame: Any, target: str | int | None, path: Path) -> Table:
    if len(frame) == 0:
        raise ValueError(f"{path.name} has no records, only the names {_listed(frame)}")
    if target is None:
        return Table(frame, None, [str(name) for name in frame.columns])
    where = _position(frame, target, path)
    column, rest = frame.iloc[:, where], frame.drop(columns=frame.columns[where])
    refuse_missing(column.isna().to_numpy(), f"the target {column.name!r}", path)
    return Table(rest, np.asarray(column), [str(name) for name in rest.columns], str(column.name))


def _position(frame: Any, target: str | int, path: Path) -> int:
    """Of the target among the columns."""
    names = list(frame.columns)
    if target in names:
        return names.index(target)
    if isinstance(target, int) and -len(names) <= target < len(names):
        return target % len(names)
    raise ValueError(f"{path.name} has no column {target!r}; it has {_listed(frame)}")


def _listed(frame: Any, most: int = 20) -> str:
    names = [repr(name) for name in frame.columns]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _refuse_short_lines(path: Path, width: int) -> None:
    """pandas takes what a line lacks for missing values."""
    with OPEN.get(path.suffix, open)(path, "rt", newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        for fields in lines:
            if fields and len(fields) < width:
                raise ValueError(
                    f"{path.name} is ragged: line {lines.line_num:,} has {len(fields)} fields, not {width}"
                )


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise ImportError("CSV and Parquet files are read with pandas: pip install pandas") from None
    return pandas
