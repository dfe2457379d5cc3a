"""What files hold: CSV and Parquet, which stay frames since columns may be categories, and LIBSVM text."""

import bz2
import csv
import gzip
import io
import lzma
import warnings
import zlib
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from hck.datasets._download import with_bar
from hck.datasets.table import Table, listed, refuse_missing

if TYPE_CHECKING:
    import pandas as pd

# Compressed files, by their endings.
OPEN: dict[str, Callable[..., IO]] = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}


_SEPARATORS = (";", "\t", "|")
_DAMAGE = (EOFError, OSError, lzma.LZMAError, zlib.error)


class _NullError(ValueError):
    """A null byte was read."""


class _WithoutNulls(io.RawIOBase):
    """Bytes of a file, with an error at the first that is null: parsers end a field there, or take it in."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self.file.read(len(buffer))
        if b"\0" in found:
            raise _NullError
        buffer[: len(found)] = found
        return len(found)


def read_csv(path: Path, **options: Any) -> Table:
    """A CSV file whose first line has the names, unless options of pandas say otherwise."""
    pd = _pandas()
    try:
        with (
            warnings.catch_warnings(),
            OPEN.get(path.suffix, open)(path, "rb") as raw,
            io.BufferedReader(_WithoutNulls(raw)) as file,
        ):
            warnings.simplefilter("error", pd.errors.ParserWarning)  # says that fields were dropped
            frame = pd.read_csv(file, index_col=False, encoding="utf-8", **options)
    except pd.errors.EmptyDataError:
        raise ValueError(f"{path.name} is empty") from None
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        raise ValueError(f"{path.name} is ragged: some lines have more fields than names: {error}") from None
    except _NullError:
        raise ValueError(
            f"{path.name} has null bytes, which text has not: it is damaged, or of another format or "
            "encoding (CSV is read as UTF-8)"
        ) from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name} is not UTF-8, write it as such: {error}") from None
    except _DAMAGE as error:
        raise ValueError(f"{path.name} could not be read, it may be damaged: {error}") from None
    if not options:
        _check_names(path, frame.shape[1])
    if frame.shape[1] > 1 and frame.iloc[:, -1].isna().any():  # a line that is too short looks like this
        _refuse_short_lines(path, frame.shape[1])
    return _table(frame, path)


def read_parquet(path: Path) -> Table:
    """A Parquet file."""
    pd = _pandas()
    try:
        frame = pd.read_parquet(path, engine="pyarrow")
    except ImportError:
        raise ImportError("Parquet files are read with pyarrow: pip install pyarrow") from None
    return _table(frame, path)


def _table(frame: "pd.DataFrame", path: Path) -> Table:
    names = [str(name) for name in frame.columns]
    if len(frame) == 0:
        raise ValueError(f"{path.name} has no records, only the names {listed(names)}")
    return Table(frame, None, names)


def _check_names(path: Path, width: int) -> None:
    """Refuse what pandas takes: a name for several columns, and names that something else separates."""
    with OPEN.get(path.suffix, open)(path, "rt", newline="", encoding="utf-8-sig") as file:
        names = next((fields for fields in csv.reader(file) if any(map(str.strip, fields))), [])
    other = next((mark for mark in _SEPARATORS if width == 1 and mark in names[0]), None)
    if other is not None:
        raise ValueError(
            f"{path.name} has a single column, {names[0]!r:.80}: separate columns by commas, not by {other!r}"
        )
    twins = [name for i, name in enumerate(names) if name and name in names[:i]]
    if twins:
        raise ValueError(f"{path.name} has several columns called {twins[0]!r}: give each its own name")


def _refuse_short_lines(path: Path, width: int) -> None:
    """pandas takes what a line lacks for missing values."""
    with OPEN.get(path.suffix, open)(path, "rt", newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        for fields in lines:
            if fields and len(fields) < width:
                raise ValueError(
                    f"{path.name} is ragged: line {lines.line_num:,} has {len(fields)} fields, not {width}"
                )


def _pandas() -> ModuleType:
    try:
        import pandas
    except ImportError:
        raise ImportError("CSV and Parquet files are read with pandas: pip install pandas") from None
    return pandas


def read_libsvm(
    path: Path, n_features: int | None = None, show: bool = False, target_needed: bool = True
) -> Table:
    """LIBSVM text: a line for each record, a target and then pairs index:value; what is 0 is left out.

    Indices may begin at 1, as they should, or at 0; without `n_features` the largest says how many there are.
    A progress bar is shown if `show`.
    """
    try:
        with (
            path.open("rb") as raw,
            with_bar(raw, path.stat().st_size, f"reading {path.name}", show) as counted,
            OPEN.get(path.suffix, nullcontext)(counted) as file,
        ):
            X, y = load_svmlight_file(file)
    except OverflowError:
        raise ValueError(
            f"{path.name} has an index beyond 2,147,483,647, the most that is possible"
        ) from None
    except ValueError as error:
        raise ValueError(
            f"{path.name} is not LIBSVM text, whose lines are 'target index:value index:value ...' with "
            f"numbers in ascending order of the indices: {error}"
        ) from None
    except _DAMAGE as error:
        raise ValueError(f"{path.name} could not be read, it may be damaged: {error}") from None
    if len(y) == 0:
        raise ValueError(f"{path.name} has no records")
    if n_features is not None and X.shape[1] > n_features:
        raise ValueError(f"{path.name} has {X.shape[1]} columns, but there should be {n_features}")
    X.resize(len(y), n_features or X.shape[1])
    if target_needed:
        refuse_missing(np.isnan(y), "the target", path.name)
    return Table(X, y)
