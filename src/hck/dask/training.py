"""The training data on workers: read, checked, surveyed, and some of them drawn."""

from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
import scipy.sparse as sp
from distributed import Future

from hck.dask.cluster import Work, lazy
from hck.dask.collections import Collection, beside, lazy_points
from hck.preparation.coding import as_labels
from hck.preparation.sample import Sample, draw_rows
from hck.preparation.survey import Chunk, Survey, as_numbers


@dataclass
class Training(Survey):
    """The training data as chunks, with so many rows each, and what is known of all: also features' names."""

    chunks: list[Future]
    rows: list[int]
    names: np.ndarray | None

    @property
    def first(self) -> list[int]:
        """The number of the first row of each chunk."""
        return np.cumsum([0, *self.rows[:-1]]).tolist()


def read(work: Work, X: Collection, y: Collection, labels: bool, least: int) -> Training:
    """Bring X and y into the workers' memory, in at least so many chunks if they are here, and check them."""
    points = lazy_points(X, least, known=True)
    pairs = enumerate(zip(points.delayed, beside(points, y, "y"), strict=True))
    chunks = work.compute([lazy(prepare)(x, t, i, points.features, labels) for i, (x, t) in pairs])
    described = work.compute([lazy(Survey.of)(chunk, labels) for chunk in chunks])
    surveys: list[Survey] = work.gather(described, "read")
    work.release(described)
    rows = [each.n for each in surveys]
    if sum(rows) < 2:
        raise ValueError(
            f"X {'has one row' if any(rows) else 'is empty'}: a tree on a cluster has at least two branches, "
            "which need at least two rows"
        )
    known = reduce(add, [each for each in surveys if each.n])
    return Training(**vars(known), chunks=chunks, rows=rows, names=points.names)


def draw(work: Work, data: Training, size: int, rng: np.random.RandomState) -> Sample:
    """So many rows, drawn at random from all, in a random order; the same whatever chunks they are in."""
    generator = np.random.default_rng(rng.randint(2**31 - 1))
    rows = draw_rows(data.n, min(size, data.n), generator)
    mine = np.split(rows, np.searchsorted(rows, data.first[1:]))
    every = zip(data.chunks, mine, data.first, strict=True)
    asked = work.compute([lazy(Chunk.take)(chunk, own - first) for chunk, own, first in every if len(own)])
    drawn = Chunk.join(work.gather(asked, "sample")).take(generator.permutation(len(rows)))
    work.release(asked)
    return Sample(drawn.x, drawn.y, data.moments)


# Chunks on workers -----------------------------------------------------------------------------------


def prepare(x: Collection, y: Collection, number: int, features: int, labels: bool) -> Chunk:
    """Chunks of X and y, checked."""
    x = as_matrix(x, number, features)
    y = label_chunk(y, number) if labels else number_chunk(y, number)
    check_length(y, number, len(x))
    return Chunk(x, y)


def as_matrix(x: Collection, number: int, features: int) -> np.ndarray:
    """A chunk of X as finite floats (rows, d)."""
    if sp.issparse(x):
        raise ValueError(
            f"block {number} of X is sparse, which is not possible here: make it dense, for example with "
            "X.map_blocks(lambda x: x.toarray())"
        )
    x = _as_array(x, "X", number)
    if x.ndim != 2 or x.shape[1] != features:
        raise ValueError(f"block {number} of X has the shape {x.shape}; it must have {features} columns")
    return as_numbers(x, "X", where=f" of block {number}")


def number_chunk(y: Collection, number: int, name: str = "y") -> np.ndarray:
    """A chunk of y as finite floats (rows,) or (rows, targets)."""
    y = _as_array(y, name, number)
    if y.ndim not in (1, 2):
        raise ValueError(f"block {number} of {name} has the shape {y.shape}; it must have one axis or two")
    return as_numbers(y, name, where=f" of block {number}").astype(np.float64, copy=False)


def label_chunk(y: Collection, number: int) -> np.ndarray:
    """A chunk of y as labels (rows,)."""
    return as_labels(_as_array(y, "y", number), where=f" of block {number}")


def check_length(values: np.ndarray, number: int, rows: int, name: str = "y") -> None:
    if len(values) != rows:
        raise ValueError(
            f"block {number} of X has {rows} rows, but that of {name} has {len(values)}: they must have the "
            "same chunks (partitions)"
        )


def _as_array(values: Collection, name: str, number: int) -> np.ndarray:
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(
            f"block {number} of {name} is masked, which is not possible here: fill it, for example with "
            f"dask.array.ma.filled({name}, 0.0)"
        )
    return np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
