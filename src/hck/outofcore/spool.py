"""The points of branches, as files that grow chunk by chunk."""

import shutil
import zlib
from pathlib import Path

import numpy as np

from hck.backend.files import replacing
from hck.branches import Share
from hck.errors import RunFileError
from hck.outofcore.sealed import sealed, unsealed
from hck.persistence.arrays import JSON

_COUNTS = "counts.json"


class Spool:
    """A file for each branch of each tree, with a record for each of its points.

    Points are added chunk by chunk. Whatever stops it, chunks are there whole or not at all: how many points
    belong to whole chunks, `done`, of these to each branch of each tree, `counts`, and the checksums of their
    records, `sums`, are written after each, and what is beyond is cut off. `branches` says how many each tree
    has, and `run` to whom the files belong; what an earlier version has dealt, without checksums, is dealt
    anew.
    """

    def __init__(self, folder: Path, branches: list[int], record: np.dtype, run: str) -> None:
        self.folder, self.record, self.run = folder, record, run
        self.counts, self.sums, self.done = [[0] * k for k in branches], [[0] * k for k in branches], 0
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / _COUNTS).exists():
            self._go_on(unsealed(folder / _COUNTS, self._remedy))
        for tree, counts in enumerate(self.counts):
            for branch, count in enumerate(counts):
                self._cut(self._path(tree, branch), count * record.itemsize)
                if self.done:  # by a run that was stopped
                    self._records(tree, branch)

    def _go_on(self, known: dict[str, JSON]) -> None:
        """After what a stopped run has dealt."""
        if "sums" not in known:
            return
        if known.get("run") != self.run or [len(each) for each in known["counts"]] != list(
            map(len, self.counts)
        ):
            raise RunFileError(f"{self.folder / _COUNTS} is not of this run: {self._remedy}")
        self.done, self.counts, self.sums = known["done"], known["counts"], known["sums"]

    def _cut(self, path: Path, size: int) -> None:
        """What a file has beyond a size belongs to a chunk that is not there as a whole."""
        if path.exists() and not path.is_file():
            raise RunFileError(f"{path} is no file: {self._remedy}")
        path.touch()
        if path.stat().st_size < size:
            raise RunFileError(f"{path} is shorter than it was: {self._remedy}")
        with path.open("r+b") as file:
            file.truncate(size)

    def add(self, x: np.ndarray, b: np.ndarray, parts: list[list[np.ndarray]]) -> None:
        """Add x (rows, features) and b (rows, columns), given which rows belong to each tree's branches."""
        for tree, branches in enumerate(parts):
            for branch, rows in enumerate(branches):
                if len(rows):
                    records = np.empty(len(rows), self.record)
                    records["row"], records["b"], records["x"] = self.done + rows, b[rows], x[rows]
                    with self._path(tree, branch).open("ab") as file:
                        records.tofile(file)
                    self.counts[tree][branch] += len(rows)
                    self.sums[tree][branch] = _checksum(records, self.sums[tree][branch])
        self.done += len(x)
        known = {"done": self.done, "counts": self.counts, "sums": self.sums, "run": self.run}
        with replacing(self.folder / _COUNTS) as draft:
            draft.write_text(sealed(known))

    def read(self, tree: int, branch: int) -> Share:
        """The rows of a branch, with their right-hand sides."""
        records = self._records(tree, branch)
        return Share(*(np.ascontiguousarray(records[name]) for name in ("x", "b", "row")))

    def _records(self, tree: int, branch: int) -> np.ndarray:
        """What was written of a branch, or an error."""
        path = self._path(tree, branch)
        if not path.is_file():
            raise RunFileError(f"{path} is missing: {self._remedy}")
        records = np.fromfile(path, self.record)
        if len(records) != self.counts[tree][branch] or _checksum(records) != self.sums[tree][branch]:
            raise RunFileError(f"{path} is damaged, its rows are not as they were written: {self._remedy}")
        return records

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def _remedy(self) -> str:
        return f"remove {self.folder}, and call fit again: rows are dealt anew, and what is finished is kept"

    def _path(self, tree: int, branch: int) -> Path:
        return self.folder / f"{tree}-{branch}.points"


def record_of(features: int, columns: int, dtype: np.dtype) -> np.dtype:
    """Of a point: its row, so many right-hand sides, and so many features of a type."""
    return np.dtype([("row", "i8"), ("b", "f8", (columns,)), ("x", dtype, (features,))])


def _checksum(records: np.ndarray, before: int = 0) -> int:
    """CRC-32 of records, after others."""
    return zlib.crc32(records.view(np.uint8).data, before)
