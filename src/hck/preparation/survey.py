"""Rows that are seen chunk by chunk, on disk or on workers: checked, described, and some of them drawn."""

from dataclasses import dataclass

import numpy as np

from hck.kernels.inputs import refuse_times
from hck.preparation.coding import Coding, LabelTally, NumberTally, Tally, is_missing
from hck.preparation.sample import Moments


@dataclass
class Chunk:
    """Some rows of the training data: features (rows, d), and targets (rows,) or (rows, targets)."""

    x: np.ndarray
    y: np.ndarray

    @property
    def nbytes(self) -> int:
        return self.x.nbytes + self.y.nbytes

    def __len__(self) -> int:
        return len(self.x)

    def take(self, some: np.ndarray) -> "Chunk":
        return Chunk(self.x[some], self.y[some])

    @classmethod
    def join(cls, parts: list["Chunk"]) -> "Chunk":
        return cls(np.concatenate([part.x for part in parts]), np.concatenate([part.y for part in parts]))


@dataclass
class Survey:
    """What has to be known of all rows before any of them is worked on: of n rows, seen so far.

    `target_shape` is that of the target of one row, and `bytes_per_row` of its features and targets.
    """

    n: int
    moments: Moments
    targets: Tally
    target_shape: tuple[int, ...]
    bytes_per_row: int

    @classmethod
    def of(cls, chunk: Chunk, labels: bool) -> "Survey":
        """Of a chunk, whose targets are class labels or numbers."""
        x, y = chunk.x, chunk.y
        each = x.itemsize * x.shape[1] + y.itemsize * int(np.prod(y.shape[1:]))
        targets = LabelTally.of(y) if labels else NumberTally.of(y)
        return cls(len(x), Moments.of(x), targets, y.shape[1:], each)

    def __add__(self, other: "Survey") -> "Survey":
        shapes = sorted({self.target_shape, other.target_shape})
        if len(shapes) > 1:
            raise ValueError(f"blocks of y have different numbers of targets: {shapes}")
        return Survey(
            self.n + other.n,
            self.moments + other.moments,
            self.targets + other.targets,  # type: ignore[operator]  # both are numbers, or both labels
            self.target_shape,
            max(self.bytes_per_row, other.bytes_per_row),
        )

    @property
    def features(self) -> int:
        """How many there are."""
        return len(self.moments.mean)

    def coding(self) -> Coding:
        """How all targets become right-hand sides."""
        return self.targets.coding()


def as_numbers(values: np.ndarray, called: str, first: int = 0, where: str = "") -> np.ndarray:
    """Numbers (rows,) or (rows, columns) that are finite: float32 stays, all others become float64.

    For errors, `called` is their name, `first` the number of the first row, `where` more: " of block 3".
    """
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {called}{where}")
    refuse_times(values, f"{called}{where}")
    if values.dtype != np.float32 or not values.dtype.isnative:
        try:
            values = values.astype(np.float64, copy=False)
        except (TypeError, ValueError, OverflowError) as error:
            missing = [is_missing(each) for each in values.ravel()]
            _refuse(np.reshape(missing, values.shape), called, first, where)
            raise ValueError(
                f"{called} has something that is no number in rows from {first:,} on{where}: {error}"
            ) from None
    _refuse(~np.isfinite(values), called, first, where)
    return values


def _refuse(wrong: np.ndarray, called: str, first: int, where: str) -> None:
    if wrong.any():
        row = int(np.argmax(wrong.reshape(len(wrong), -1).any(1)))
        raise ValueError(f"{called} has NaN or infinity in row {first + row:,}{where}")
