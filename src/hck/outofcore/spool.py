"""The points of branches, as files that grow block by block."""

import json
import shutil
from pathlib import Path

import numpy as np

from hck.files import replacing

_COUNTS = "counts.json"


class Spool:
    """A file for each branch of each tree, with a record for each of its points.

    Points are added block by block. Whatever interrupts it, blocks are there whole or not at all: how many
    points belong to whole blocks is written after each, and what is beyond is cut off.

    Parameters
    ----------
    folder : Path
    trees, branches : int
    features, columns : int
        Numbers of a point, and of its right-hand sides.
    dtype : str
        Of the features.
    """

    def __init__(
        self, folder: Path, trees: int, branches: int, features: int, columns: int, dtype: str
    ) -> None:  # fmt: skip
        self.folder = folder
        self.record = np.dtype([("row", "i8"), ("b", "f8", (columns,)), ("x", dtype, (features,))])
        self.counts = np.zeros((trees, branches), dtype=np.int64)
        self.blocks = 0
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / _COUNTS).exists():
            known = json.loads((folder / _COUNTS).read_text())
            self.blocks, self.counts = known["blocks"], np.array(known["counts"], dtype=np.int64)
        for (tree, branch), count in np.ndenumerate(self.counts):
            path = self._path(tree, branch)
            path.touch()
            with path.open("r+b") as file:
                file.truncate(int(count) * self.record.itemsize)

    def add(self, first: int, x: np.ndarray, b: np.ndarray, parts: list[list[np.ndarray]]) -> None:
        """Add a block.

        Parameters
        ----------
        first : int
            The number of its first row.
        x, b : ndarray of shape (rows, features) and (rows, columns)
        parts : list of list of ndarray
            For each tree and branch, which of the block's rows belong to it.
        """
        for tree, branches in enumerate(parts):
            for branch, rows in enumerate(branches):
                if len(rows):
                    records = np.empty(len(rows), self.record)
                    records["row"], records["b"], records["x"] = first + rows, b[rows], x[rows]
                    with self._path(tree, branch).open("ab") as file:
                        records.tofile(file)
                    self.counts[tree, branch] += len(rows)
        self.blocks += 1
        with replacing(self.folder / _COUNTS) as draft:
            draft.write_text(json.dumps({"blocks": self.blocks, "counts": self.counts.tolist()}))

    def read(self, tree: int, branch: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The row numbers, features and right-hand sides of a branch."""
        records = np.fromfile(self._path(tree, branch), self.record)
        return tuple(np.ascontiguousarray(records[name]) for name in ("row", "x", "b"))  # type: ignore[return-value]

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, tree: int, branch: int) -> Path:
        return self.folder / f"{tree}-{branch}.points"
