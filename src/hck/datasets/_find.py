"""Where the records of a data set are: in a folder, in the cache, or at its public home."""

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import scipy.sparse as sp

from hck.datasets._download import check
from hck.datasets._fetch import fetch
from hck.datasets._flights import with_coordinates
from hck.datasets._libsvm import read_libsvm
from hck.datasets._registry import Entry, File
from hck.datasets._streams import OPEN
from hck.datasets.npz import parts_of, read_npz, write_npz
from hck.datasets.table import Table

Folder = str | os.PathLike[str] | None


@dataclass(frozen=True)
class Place:
    """A folder, and how it is called."""

    folder: Path
    called: str

    def files(self, entry: Entry) -> list[Path]:
        """Those of a data set: its npz file, or all others; none if some are not here."""
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
    last = places[-1]
    table = fetch(name, entry, last.folder, [f for f in entry.files if not _present(last.folder, f)], show)
    source = f"Downloaded from {entry.home} to {last.called}."
    if table is None:
        return _read(last.files(entry), entry, True, show), source
    _keep([table], entry, last.folder)
    return [table], source


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
        return [with_coordinates(path)]
    tables = [_dense(read_npz(path, part), entry) for part in parts_of(path)]
    for table in tables:
        if table.y is None:
            raise ValueError(f"{path.name} has no targets: it must hold y beside X")
        if table.X.shape[1] != entry.d:
            raise ValueError(
                f"{path.name} has {table.X.shape[1]} features, not {entry.d}: it is another file"
            )
    return tables


def _dense(table: Table, entry: Entry) -> Table:
    """Unless the data set is a sparse one."""
    return table if entry.sparse or not sp.issparse(table.X) else Table(table.X.toarray(), table.y)


def _keep(tables: list[Table], entry: Entry, folder: Path) -> None:
    """As arrays, which are read in seconds the next time, where text may take minutes."""
    parts: Sequence[str | None] = (None,) if len(tables) == 1 else ("train", "test")
    with contextlib.suppress(OSError):  # the folder is read-only, or full: then it is read as text again
        write_npz(folder / f"{entry.npz}.npz", dict(zip(parts, tables, strict=True)))
