"""Features and targets on disk, read side by side, surveyed, and dealt out to branches."""

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from hck.backend.progress import track
from hck.branches import Plan
from hck.errors import RunFileError
from hck.outofcore.job import POINTS, Job
from hck.outofcore.rows import ParquetRows, Readable, Rows, as_rows
from hck.outofcore.spool import Spool, record_of
from hck.preparation.coding import Coding, Tally, as_labels
from hck.preparation.sample import Sample, draw_rows
from hck.preparation.survey import Chunk, Survey, as_numbers

_UNEVEN = 1.5  # times the mean, from which a branch is too large


@dataclass
class Training:
    """The rows of X and y, of which y may be class labels. Made by `Training.of`."""

    rows: Rows
    target: Rows
    labels: bool = False
    show: bool = False

    @classmethod
    def of(cls, X: Readable, y: Readable, labels: bool = False, show: bool = False) -> "Training":
        """Of whatever `hck.outofcore.as_rows` takes; y may be the name of a column of X in parquet files."""
        rows = as_rows(X)
        if isinstance(rows, ParquetRows) and isinstance(y, str) and not os.path.exists(y):
            files, others = rows.data.files, [name for name in rows.columns if name != y]
            target: Rows = ParquetRows(files, [y], "y")
            rows = ParquetRows(files, others)
        else:
            target = as_rows(y, "y")
        if rows.n != target.n:
            raise ValueError(f"X has {rows.n:,} rows but y has {target.n:,}")
        if target.width == 0:
            raise ValueError("y has no columns: at least one target is needed")
        if rows.n < 2 or rows.width == 0:
            raise ValueError(f"X has {rows.n} rows and {rows.width} columns: too few to learn from")
        return cls(rows, target, labels, show)

    @property
    def n(self) -> int:
        return self.rows.n

    @property
    def features(self) -> int:
        """How many there are."""
        return self.rows.width

    def survey(self, size: int, seed: int) -> tuple[Sample, Tally]:
        """Check all rows, and draw some of them; also what is known of all targets."""
        chosen = draw_rows(self.n, size, np.random.default_rng(seed))
        surveys, drawn = [], []
        for first, chunk in self._chunks(0, 0, "Look at all rows"):
            surveys.append(Survey.of(chunk, self.labels))
            begin, end = np.searchsorted(chosen, [first, first + len(chunk)])
            drawn.append(chunk.take(chosen[begin:end] - first))
        known, some = reduce(add, surveys), Chunk.join(drawn)
        return Sample(some.x, some.y, known.moments), known.targets

    def deal(self, job: Job, plan: Plan, coding: Coding) -> Spool:
        """Every row in the files of its branches, one for each tree, in the folder of a job."""
        columns, first = len(coding.intercept), as_numbers(next(self.rows.blocks(1)), self.rows.called)
        record = record_of(self.features, columns, first.dtype)
        spool = Spool(job.folder / POINTS, [len(each) for each in plan.branches], record, job.run or "")
        for _, chunk in self._chunks(spool.done, columns, "Deal rows to branches"):
            parts = [plan.split(tree, chunk.x) for tree in range(len(plan.trunks))]
            spool.add(chunk.x, coding(chunk.y), parts)
        if any(sum(counts) != self.n for counts in spool.counts):
            raise RunFileError(f"{spool.folder} is not as it was written: remove it, and call fit again")
        uneven = max(max(counts) * len(counts) / self.n for counts in spool.counts)
        if uneven > _UNEVEN:
            warnings.warn(
                f"so many rows are alike that a branch has {uneven:.1f} times as many as others: it will "
                "take more memory than memory_budget",
                UserWarning,
                stacklevel=2,
            )
        return spool

    def _chunks(self, done: int, more: int, what: str) -> Iterator[tuple[int, Chunk]]:
        """The number of the first row of each chunk, and the chunk, checked, from row `done` on.

        With each row come `more` numbers beside its features and targets.
        """
        step = self.rows.block_size(self.target.width + more)
        features, targets = self.rows.blocks(step, done), self.target.blocks(step, done)
        for first in track(range(done, self.n, step), what, self.show):
            x = as_numbers(next(features), self.rows.called, first)
            yield first, Chunk(x, self._check_targets(next(targets), first))

    def _check_targets(self, y: np.ndarray, first: int) -> np.ndarray:
        """Targets (rows, columns), of which the first row has this number: (rows,) if there is one column."""
        if self.labels:
            return as_labels(y, first)
        y = as_numbers(y, "y", first).astype(np.float64, copy=False)
        return y if y.shape[1] > 1 else y[:, 0]
