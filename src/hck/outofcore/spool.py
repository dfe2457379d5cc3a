"""The points of branches, as files that grow chunk by chunk."""

import json
import shutil
from pathlib import Path

import numpy as np

from hck.backend.files import replacing
from hck.branches import Share

_COUNTS = "counts.json"


class Spool:
    """A file for each branch of each tree, with a record for each of its points.

    Points are added chunk by chunk. Whatever stops it, chunks are there whole or not at all: how many points
    belong to whole chunks, `done`, and of these to each branch of each tree, `counts`, is written after each,
    and what is beyond is cut off. A point has so many features, of type `dtype`, and columns of right-hand
    sides; `branches` says how many each tree has.
    """

    def __init__(
        self, folder: Path, branches: list[int], features: int, columns: int, dtype: np.dtype
    ) -> None:  # fmt: skip
        self.folder = folder
        self.record = np.dtype([("row", "i8"), ("b", "f8", (columns,)), ("x", dtype, (features,))])
        self.counts, self.done = [[0] * number for number in branches], 0
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / _COUNTS).exists():
            known = json.loads((folder / _COUNTS).read_text())
            self.done, self.counts = known["done"], known["counts"]
        for tree, counts in enumerate(self.counts):
            for branch, count in enumerate(counts):
                self._cut(self._path(tree, branch), count * self.record.itemsize)

    def _cut(self, path: Path, size: int) -> None:
        """What a file has beyond a size belongs to a chunk that is not there as a whole."""
        path.touch()
        if path.stat().st_size < size:
            raise OSError(f"{path} is shorter than it was: remove {self.folder.parent}, and begin again")
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
        self.done += len(x)
        with replacing(self.folder / _COUNTS) as draft:
            draft.write_text(json.dumps({"done": self.done, "counts": self.counts}))

    def read(self, tree: int, branch: int) -> Share:
        """The rows of a branch, with their right-hand sides."""
        records = np.fromfile(self._path(tree, branch), self.record)
        if len(records) != self.counts[tree][branch]:
            raise OSError(f"{self._path(tree, branch)} is not as it was written")
        return Share(*(np.ascontiguousarray(records[name]) for name in ("x", "b", "row")))

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, tree: int, branch: int) -> Path:
        return self.folder / f"{tree}-{branch}.points"
