"""Where the records of a data set are: in a folder, in the cache, or at its public home."""

import contextlib
import http.client
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import fetch_openml

from hck.datasets._download import check, download
from hck.datasets._entry import Entry, File
from hck.datasets._formats import OPEN, read_libsvm
from hck.datasets._frames import as_tables, csv_files, read_frames
from hck.datasets.npz import opened, parts_of, read_npz, write_npz
from hck.datasets.table import Table

Folder = str | os.PathLike[str] | None


@dataclass(frozen=True)
class Place:
    """A folder, and how it is called."""

    folder: Path
    called: str

    def files(self, entry: Entry) -> list[Path]:
        """Those of a data set: its npz or CSV files, or all others; none if some are not here."""
        if entry.frame is not None and (tables := csv_files(self.folder, entry.frame)):
            return tables
        npz = self.folder / f"{entry.npz}.npz"
        if npz.is_file():
            return [npz]
        found = [_present(self.folder, file) for file in entry.files]
        here = [path for path in found if path is not None]
        return here if len(here) == len(found) else []


def is_there(entry: Entry, folder: Folder) -> bool:
    """Whether a data set need not be downloaded."""
    return any(place.files(entry) for place in _places(folder))


def find(name: str, entry: Entry, folder: Folder, show: bool) -> tuple[list[Table], str]:
    """All records, or those to train on and those to test on, and a sentence on where they came from."""
    places = _places(folder)
    for place in places:
        if files := place.files(entry):
            called = " and ".join(path.name for path in files)
            source = f"Found as {called} in {place.called}; its home is {entry.home}."
            return _read(files, entry, place is places[-1], show), source
    return _fetch(name, entry, places[-1], show), f"Downloaded from {entry.home} to {places[-1].called}."


def cache() -> Path:
    """The folder that downloads are kept in."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "hck"


def _places(folder: Folder) -> list[Place]:
    """Where to look, in this order. Downloads go to the last."""
    if folder is not None:
        return [Place(Path(folder), f"the folder {folder}")]
    named = os.environ.get("HCK_DATA")
    first = [Place(Path(named), "the folder that HCK_DATA names")] if named else []
    return [*first, Place(cache(), "the cache of hck")]


def _present(folder: Path, file: File) -> Path | None:
    """A file, as it was downloaded, unpacked, or packed in another way."""
    path = folder / file.name
    plain = path.with_suffix("") if path.suffix in OPEN else path
    forms = [path, plain, *(plain.with_name(plain.name + ending) for ending in OPEN)]
    return next((form for form in forms if form.is_file()), None)


def _read(paths: list[Path], entry: Entry, keep: bool, show: bool) -> list[Table]:
    if entry.frame is not None:
        return read_frames(paths, entry.frame, entry.names or ())
    if paths[0].suffix == ".npz":
        return _read_npz(paths[0], entry)
    tables = []
    for path, file in zip(paths, entry.files, strict=True):
        check(path, file.sha256 if path.name == file.name else None)
        try:
            tables.append(_dense(read_libsvm(path, entry.d, show), entry))
        except ValueError as error:
            raise ValueError(
                f"{error}. Delete {path}, and {path.name}.sha256 beside it, to load it again"
            ) from None
    if keep:
        _keep(tables, entry, paths[0].parent)
    return tables


def _read_npz(path: Path, entry: Entry) -> list[Table]:
    if entry.npz == "flights3m":
        return [_with_coordinates(path, entry)]
    tables = [_read_part(path, part, entry) for part in parts_of(path)]
    if entry.validates:
        also = _read_part(path, "val", entry)
        y = (np.asarray(table.y) for table in (tables[0], also))
        tables[0] = Table(np.concatenate([tables[0].X, also.X]), np.concatenate([*y]))
    return tables


def _read_part(path: Path, part: str | None, entry: Entry) -> Table:
    table = _dense(read_npz(path, part), entry)
    if table.y is None:
        raise ValueError(f"{path.name} has no targets: it must hold y beside X")
    if table.X.shape[1] != entry.d:
        raise ValueError(f"{path.name} has {table.X.shape[1]} features, not {entry.d}: it is another file")
    return table


def _dense(table: Table, entry: Entry) -> Table:
    """Unless the data set is a sparse one."""
    return table if entry.sparse or not sp.issparse(table.X) else Table(table.X.toarray(), table.y)


def _keep(tables: list[Table], entry: Entry, folder: Path) -> None:
    """As arrays, which are read in seconds the next time, where text may take minutes."""
    parts: Sequence[str | None] = (None,) if len(tables) == 1 else ("train", "test")
    with contextlib.suppress(OSError):  # the folder is read-only, or full: then it is read as text again
        write_npz(folder / f"{entry.npz}.npz", dict(zip(parts, tables, strict=True)))


# From its public home --------------------------------------------------------------------------------


def _fetch(name: str, entry: Entry, place: Place, show: bool) -> list[Table]:
    """Download the files that are missing to a place, or get the records from OpenML."""
    try:
        if entry.openml is not None:
            return [_from_openml(entry.openml, entry, place.folder)]
        for file in entry.files:
            if _present(place.folder, file) is None:
                download(file.url, place.folder / file.name, file.sha256, show)
    except (OSError, http.client.HTTPException) as error:
        problem = f"{name} was not found, and could not be downloaded ({error})"
        raise FileNotFoundError(f"{problem}. {_by_hand(entry, place.folder)}") from error
    if not entry.files:
        raise FileNotFoundError(
            f"{name} was not found, and there is no file to download. {_by_hand(entry, place.folder)}"
        )
    return _read(place.files(entry), entry, True, show)


def _by_hand(entry: Entry, folder: Path) -> str:
    where = f"in {folder} or in the folder that the environment variable HCK_DATA names"
    if entry.files:
        urls = " and ".join(file.url for file in entry.files)
        them = "it, as it is," if len(entry.files) == 1 else "them, as they are,"
        return f"Download {urls} and put {them} {where}"
    arrays = entry.arrays or f"X with {entry.d} features, and y"
    called = f"{entry.npz}.npz"
    if entry.frame is not None:
        called, arrays = f"{entry.frame.files[0]}.csv", f"{entry.d} features, and {entry.frame.target}"
    return f"Put {called} {where}. It holds {arrays}. The records are at {entry.home} ({entry.citation})"


def _from_openml(number: int, entry: Entry, folder: Path) -> Table:
    """A frame; or features that vary, and the target."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scikit-learn, before it tries once more
        found = fetch_openml(
            data_id=number,
            as_frame=entry.frame is not None,
            parser="liac-arff",
            data_home=folder,
            n_retries=1,
        )
    if entry.frame is not None:
        with contextlib.suppress(OSError):  # see _keep
            found.frame.to_csv(folder / f"{entry.frame.files[0]}.csv", index=False)
        return as_tables([found.frame], entry.frame, f"data set {number} of OpenML")[0]
    X, y = found.data.astype(float), found.target.astype(float if entry.task == "regression" else str)
    X = X[:, np.ptp(X, axis=0) > 0]
    if X.shape[1] != entry.d:
        raise ValueError(f"data set {number} of OpenML has {X.shape[1]} features that vary, not {entry.d}")
    table = Table(X, y - y.mean() if entry.centred else y)
    _keep([table], entry, folder)
    return table


# Flights ---------------------------------------------------------------------------------------------

_DAYS_BEFORE = np.cumsum([0, 31, 28, 31, 30, 31])  # each month from January to June
_MINUTES = 24 * 60


def _with_coordinates(path: Path, entry: Entry) -> Table:
    """Features of flights, ordered by time, and their delays in minutes.

    The features: the day of the year, the minute of the day as a point on a circle, the distance, and the
    latitudes and longitudes of origin and destination.
    """
    with opened(path) as arrays:
        if not {"X", "y", "airport_latlon"} <= set(arrays):
            raise ValueError(f"{path.name} must hold {entry.arrays}; it has {', '.join(arrays)}")
        flights, places, delay = arrays["X"], arrays["airport_latlon"].astype(float), arrays["y"]
    month, day, minute, distance, origin, destination = flights.T.astype(int)
    angle = 2 * np.pi * minute / _MINUTES
    columns = [_DAYS_BEFORE[month - 1] + day, np.sin(angle), np.cos(angle), distance]
    return Table(np.column_stack([*columns, places[origin], places[destination]]), delay.astype(float))
