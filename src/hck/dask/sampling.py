"""Everything about the data that has to be known before branches are worked on."""

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from distributed import Future

from hck.dask import blocks as on_worker
from hck.dask.blocks import Summary
from hck.dask.cluster import Work, lazy
from hck.dask.collections import lazy_pairs
from hck.preparation.coding import Coding
from hck.preparation.moments import Moments
from hck.preparation.sample import Sample, draw_rows
from hck.preparation.targets import Targets


@dataclass
class Training:
    """The training data, on workers.

    Attributes
    ----------
    blocks : list of Future
    summaries : list of Summary
        Of each block.
    features : int
    names : ndarray of str, or None
    """

    blocks: list[Future]
    summaries: list[Summary]
    features: int
    names: np.ndarray | None

    @property
    def n(self) -> int:
        return sum(each.rows for each in self.summaries)

    @property
    def first(self) -> list[int]:
        """The number of the first row of each block."""
        rows = [each.rows for each in self.summaries]
        return np.cumsum([0, *rows[:-1]]).tolist()

    @property
    def bytes_per_row(self) -> int:
        """With the number of the row."""
        return max(each.itemsize for each in self.summaries) + 8

    @property
    def target_shape(self) -> tuple[int, ...]:
        return next(each.shape for each in self.summaries if each.rows)

    def coding(self) -> Coding:
        """How all targets become right-hand sides."""
        seen: list[Any] = [each.targets for each in self.summaries if each.rows]
        found: Targets = reduce(add, seen)
        return found.coding()

    def moments(self) -> Moments:
        """Of the features of all rows."""
        return reduce(add, [each.moments for each in self.summaries])


def read(work: Work, X: Any, y: Any, labels: bool, blocks: int) -> Training:
    """Bring X and y into the workers' memory, and check them."""
    points, targets = lazy_pairs(X, y, blocks)
    made = work.compute(
        [
            lazy(on_worker.prepare)(x, t, i, points.features, labels)
            for i, (x, t) in enumerate(zip(points.blocks, targets, strict=True))
        ]
    )
    described = work.compute([lazy(on_worker.describe)(block, labels) for block in made])
    found = Training(made, work.gather(described, "read"), points.features, points.names)
    work.release(described)
    if found.n < 2:
        raise ValueError(
            f"X {'has one row' if found.n else 'is empty'}: a tree on a cluster has at least two branches, "
            "which need at least two rows"
        )
    shapes = {each.shape for each in found.summaries if each.rows}
    if len(shapes) > 1:
        raise ValueError(f"blocks of y have different numbers of targets: {sorted(shapes)}")
    return found


def draw(work: Work, data: Training, size: int, rng: np.random.RandomState) -> Sample:
    """So many rows, drawn at random from all, in a random order; the same whatever blocks they are in."""
    generator = np.random.default_rng(rng.randint(2**31 - 1))
    rows = draw_rows(data.n, min(size, data.n), generator)
    mine = np.split(rows, np.searchsorted(rows, data.first[1:]))
    some = [
        (block, numbers - first)
        for block, numbers, first in zip(data.blocks, mine, data.first, strict=True)
        if len(numbers)
    ]
    drawn = work.compute([lazy(on_worker.pick)(*each) for each in some])
    parts = work.gather(drawn, "sample")
    work.release(drawn)
    order = generator.permutation(len(rows))
    x, y = (np.concatenate([getattr(part, name) for part in parts])[order] for name in ("x", "y"))
    return Sample(x, y, data.moments())
