"""Features and targets, read side by side and dealt out to branches."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hck.backend.progress import track
from hck.branches import Plan
from hck.outofcore.rows import Rows, as_pair, check_numbers
from hck.outofcore.spool import Spool
from hck.preparation.coding import Coding, as_labels
from hck.preparation.moments import Moments
from hck.preparation.sample import Sample, draw_rows
from hck.preparation.targets import Labels, Numbers, Targets

_UNEVEN = 1.5  # times the mean, from which a branch is too large


@dataclass
class Table:
    """Rows of X and y. Made by `Table.of`.

    Attributes
    ----------
    rows, target : Rows
    labels : bool
        Whether targets are class labels.
    show : bool
        Whether to show progress.
    """

    rows: Rows
    target: Rows
    labels: bool = False
    show: bool = False

    @classmethod
    def of(cls, X: Any, y: Any, labels: bool, show: bool = False) -> "Table":
        """Of whatever `hck.outofcore.as_rows` takes; y may be the name of a column of X in parquet files."""
        return cls(*as_pair(X, y), labels, show)

    @property
    def n(self) -> int:
        return self.rows.n

    @property
    def width(self) -> int:
        """The number of features."""
        return self.rows.width

    def survey(self, size: int, seed: int) -> tuple[Sample, Targets]:
        """Check all rows, and draw some of them; also what is known of all targets."""
        chosen = draw_rows(self.n, size, np.random.default_rng(seed))
        kind: Any = Labels if self.labels else Numbers
        seen: Any = None
        moments, found = Moments.none(self.width), []
        for first, x, y in self._blocks(0, 0, "Look at all rows"):
            moments += Moments.of(x)
            seen = kind.of(y) if seen is None else seen + kind.of(y)
            begin, end = np.searchsorted(chosen, [first, first + len(x)])
            mine = chosen[begin:end] - first
            found.append((x[mine], y[mine]))
        x, y = (np.concatenate(each) for each in zip(*found, strict=True))
        return Sample(x, y if y.shape[1] > 1 else y[:, 0], moments), seen

    def deal(self, folder: Path, plan: Plan, coding: Coding) -> Spool:
        """Every row in the files of its branches, one for each tree."""
        columns, first = len(coding.intercept), check_numbers(next(self.rows.blocks(1)), 0, self.rows.called)
        spool = Spool(folder, [len(each) for each in plan.branches], self.width, columns, first.dtype)
        for _, x, y in self._blocks(spool.done, columns, "Deal rows to branches"):
            spool.add(x, coding(y), [plan.split(tree, x) for tree in range(len(plan.trunks))])
        if any(sum(counts) != self.n for counts in spool.counts):
            raise OSError(f"{spool.folder} is not as it was written: remove {spool.folder.parent}")
        uneven = max(max(counts) * len(counts) / self.n for counts in spool.counts)
        if uneven > _UNEVEN:
            warnings.warn(
                f"so many rows are alike that a branch has {uneven:.1f} times as many as others: it will "
                "take more memory than memory_budget",
                UserWarning,
                stacklevel=2,
            )
        return spool

    def _blocks(self, done: int, more: int, what: str) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """The number of the first row, features and targets of each block, checked, from row `done` on.

        With each row come `more` numbers beside its features and targets.
        """
        step = self.rows.block_size(self.target.width + more)
        every, other = self.rows.blocks(step, done), self.target.blocks(step, done)
        for first in track(range(done, self.n, step), what, self.show):
            x, y = check_numbers(next(every), first, self.rows.called), next(other)
            yield first, x, self._check_targets(y, first)

    def _check_targets(self, y: np.ndarray, first: int) -> np.ndarray:
        """A block (rows, columns) whose first row has this number, as it should be, or an error."""
        if self.labels:
            return as_labels(y, first)[:, None]
        return check_numbers(y, first, "y").astype(np.float64)
