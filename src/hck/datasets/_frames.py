"""Data sets that are pandas frames: columns of text are categories, and "?" is a missing value."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hck.datasets._entry import Frame
from hck.datasets._formats import OPEN, read_csv
from hck.datasets.table import Table

if TYPE_CHECKING:
    import pandas as pd


def csv_files(folder: Path, frame: Frame) -> list[Path]:
    """The CSV files of a data set, compressed or not; none if some are not in the folder."""
    forms = ([folder / f"{name}.csv{ending}" for ending in ("", *OPEN)] for name in frame.files)
    found = [next((path for path in paths if path.is_file()), None) for paths in forms]
    here = [path for path in found if path is not None]
    return here if len(here) == len(found) else []


def read_frames(paths: list[Path], frame: Frame, features: Sequence[str]) -> list[Table]:
    """The records of CSV files or, if they have other names, of files as UCI has them: without names."""
    parts = [
        read_csv(path).X if ".csv" in path.suffixes else _read_uci(path, [*features, frame.target])
        for path in paths
    ]
    return as_tables(parts, frame, " and ".join(path.name for path in paths))


def as_tables(parts: "list[pd.DataFrame]", frame: Frame, source: str) -> list[Table]:
    """Frames of a data set as tables, whose categories are the same in all of them."""
    parts = [part.copy() for part in parts]
    for name in parts[0].columns:
        if parts[0][name].dtype.kind == "O" and name != frame.target:
            _as_categories(parts, name, frame.ordered.get(name), source)
    return [Table(part).with_target(frame.target, source) for part in parts]


def _read_uci(path: Path, names: list[str]) -> "pd.DataFrame":
    """Fields behind ", ", comments behind "|", and in some files a full stop at the end of a line."""
    found = read_csv(path, header=None, names=names, skipinitialspace=True, comment="|").X
    return found.assign(**{names[-1]: found[names[-1]].str.rstrip(".")})


def _as_categories(
    parts: "list[pd.DataFrame]", name: str, order: tuple[str, ...] | None, source: str
) -> None:
    """Change a column of frames."""
    columns = [part[name].astype(object) for part in parts]
    columns = [column.mask(column == "?") for column in columns]
    found = set().union(*(column.dropna() for column in columns))
    if order and not found <= set(order):
        raise ValueError(f"{source}: {name} is one of {', '.join(order)}, not {(found - set(order)).pop()!r}")
    for part, column in zip(parts, columns, strict=True):
        categories = column.astype("category").cat
        part[name] = categories.set_categories(order or sorted(found), ordered=order is not None)
