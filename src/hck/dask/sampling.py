"""Everything about the data that has to be known before branches are worked on."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from distributed import Future

from hck.dask import blocks as on_worker
from hck.dask.blocks import Block, Summary
from hck.dask.cluster import Work, lazy
from hck.dask.collections import lazy_pairs


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

    def mean(self) -> np.ndarray:
        """Of the targets, one for each."""
        return np.atleast_1d(sum(each.total for each in self.summaries if each.total is not None) / self.n)

    def classes(self) -> tuple[np.ndarray, np.ndarray]:
        """All labels, sorted, and how often they occur."""
        seen = [each for each in self.summaries if each.rows]
        classes, code = np.unique(np.concatenate([each.classes for each in seen]), return_inverse=True)
        counts = np.bincount(code, np.concatenate([each.counts for each in seen]))
        return classes, counts


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
    if found.n == 0:
        raise ValueError("X is empty: at least one row is needed")
    shapes = {each.shape for each in found.summaries if each.rows}
    if len(shapes) > 1:
        raise ValueError(f"blocks of y have different numbers of targets: {sorted(shapes)}")
    return found


def draw(work: Work, data: Training, size: int, rng: np.random.RandomState) -> Block:
    """So many rows, drawn at random from all blocks, in a random order."""
    generator = np.random.default_rng(rng.randint(2**31 - 1))
    rows = [each.rows for each in data.summaries]
    counts = generator.multivariate_hypergeometric(rows, min(size, data.n), method="marginals")
    seeds = generator.integers(2**31, size=len(rows)).tolist()
    some = [i for i, count in enumerate(counts) if count]
    drawn = work.compute([lazy(on_worker.draw)(data.blocks[i], int(counts[i]), seeds[i]) for i in some])
    parts = work.gather(drawn, "sample")
    work.release(drawn)
    order = generator.permutation(sum(len(part.x) for part in parts))
    x, y = (np.concatenate([getattr(part, name) for part in parts])[order] for name in ("x", "y"))
    return Block(x, y)
