"""Tables that pandas reads: CSV and Parquet. They stay frames, because columns may be categories."""

import csv
import warnings
from pathlib import Path
from typing import Any

from hck.datasets._streams import OPEN
from hck.datasets.table import Table, listed


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
    names = [str(name) for name in frame.columns]
    if len(frame) == 0:
        raise ValueError(f"{path.name} has no records, only the names {listed(names)}")
    table = Table(frame, None, names)
    return table if target is None else table.with_target(target, path.name)


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
