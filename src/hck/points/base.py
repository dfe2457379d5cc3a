"""What points are: a sequence that can be taken from, joined, moved, and compared by a kernel."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from hck.backend.blocks import Blocks
from hck.backend.caches import cached_property
from hck.kernels.placement import Block, Placement

PointsLike: TypeAlias = Any  # Points, an array, a sparse matrix, or a sequence of objects
Evaluate: TypeAlias = Callable[[Block, Block], Tensor]  # values between two blocks of points

_PLACING = Lock()
_REMEMBERED = ("_placed", "reach", "in_span")  # is not pickled


class Points(ABC):
    """A finite sequence of points of one kind, with the dtype and device of numbers computed from it.

    Examples
    --------
    >>> import torch
    >>> from hck.points import as_points
    >>> points = as_points([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    >>> len(points), points.take(torch.tensor([2, 0])).x.tolist()
    (3, [[4.0, 5.0], [0.0, 1.0]])
    """

    x: Block  # what holds the points
    dtype: torch.dtype
    device: torch.device

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def take(self, index: Tensor) -> "Points":
        """The points at `index` (1-D), in that order."""

    @abstractmethod
    def join(self, others: "list[Points]") -> "Points":
        """These points followed by others of the same kind."""

    @abstractmethod
    def to(self, device: torch.device) -> "Points":
        """The same points with their numbers on another device."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Memory held, in bytes."""

    @property
    @abstractmethod
    def values_per_point(self) -> int:
        """How many numbers a point has once gathered; 0 if none are gathered."""

    @abstractmethod
    def between(self, evaluate: Evaluate, rows: Blocks, other: "Points", columns: Blocks) -> Tensor:
        """What a function gives between blocks of these points and of others, 0 for padding."""


class VectorPoints(Points):
    """Points with coordinates, which can be projected and averaged.

    Examples
    --------
    >>> import torch
    >>> from hck.points import as_points
    >>> points = as_points([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    >>> points.n_features, points.reach
    (2, 5.0)
    >>> every, one = torch.arange(3), torch.zeros(3, dtype=torch.long)
    >>> points.mean(every, one, groups=1)
    tensor([[2., 3.]], dtype=torch.float64)
    """

    n_features: int
    _placed: "WeakKeyDictionary[Placement, tuple[tuple[int, ...], VectorPoints]] | None" = None

    @cached_property
    @abstractmethod
    def reach(self) -> float:
        """The largest of all coordinates, whatever its sign."""

    @abstractmethod
    def project(self, rows: Tensor, directions: Tensor, which: Tensor) -> Tensor:
        """⟨x[rows[i]], directions[which[i]]⟩ for each i; the rows are distinct."""

    @abstractmethod
    def accumulate(self, rows: Tensor, weights: Tensor, which: Tensor, groups: int) -> Tensor:
        """Row g is the sum of weights[i] · x[rows[i]] over the i with which[i] = g."""

    def mean(self, rows: Tensor, which: Tensor, groups: int) -> Tensor:
        """Row g is the mean of the x[rows[i]] with which[i] = g."""
        return self.accumulate(rows, equal_weights(which, groups, self.dtype), which, groups)

    @abstractmethod
    def variance(self, rows: Tensor, which: Tensor, groups: int) -> Tensor:
        """Row g has the variances of the coordinates of the x[rows[i]] with which[i] = g."""

    @abstractmethod
    def scaled(self, factor: Tensor) -> "VectorPoints":
        """The same points with each feature multiplied by a number (d,), or all by a matrix (d, k)."""

    @abstractmethod
    def numpy(self, rows: Tensor) -> np.ndarray | sp.csr_matrix:
        """Some of the points as scikit-learn takes them: an array, or a CSR matrix."""

    @abstractmethod
    def holding(self, x: Block) -> "VectorPoints":
        """Points of the same dtype and device that are held by `x`: of the same kind, or dense."""

    def placed(self, placement: Placement | None) -> "VectorPoints":
        """The points where a kernel is isotropic, without gradients.

        They are remembered as long as the placement is there: all blocks of a fit and of its predictions ask
        for them, in several threads at once.
        """
        if placement is None:
            return self
        state = placement.state()
        found = self._remembered(placement, state)
        if found is None:
            with _PLACING, torch.no_grad():
                found = self._remembered(placement, state)
                if found is None:
                    found = self.holding(placement(self.x))
                    if self._placed is None:
                        self._placed = WeakKeyDictionary()
                    self._placed[placement] = state, found
        return found

    def _remembered(self, placement: Placement, state: tuple[int, ...]) -> "VectorPoints | None":
        known: Any = None if self._placed is None else self._placed.get(placement)
        return None if known is None or known[0] != state else known[1]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.copy().items() if name not in _REMEMBERED}


def check_same_kind(left: Points, right: Points) -> None:
    """Raise TypeError unless both sets hold points of one kind.

    Parameters
    ----------
    left, right : Points

    Examples
    --------
    >>> from hck.points import as_points, check_same_kind
    >>> try:
    ...     check_same_kind(as_points([[0.0]]), as_points(["leaf"], objects=True))
    ... except TypeError as error:
    ...     print(error)
    points of different kinds cannot be combined: DensePoints, ObjectPoints
    """
    if type(left) is not type(right):
        raise TypeError(
            f"points of different kinds cannot be combined: {type(left).__name__}, {type(right).__name__}"
        )


def check_reach(points: Points, dtype: torch.dtype | None = None) -> None:
    """Raise ValueError if squares of coordinates overflow, as numbers of the points' type, or of another.

    Parameters
    ----------
    points : Points
    dtype : torch.dtype, optional
        By default that of the points.

    Examples
    --------
    >>> import torch
    >>> from hck.points import as_points, check_reach
    >>> check_reach(as_points([[1e30]]))  # nothing is wrong in float64
    >>> try:
    ...     check_reach(as_points([[1e30]]), torch.float32)
    ... except ValueError as error:
    ...     print(str(error).partition(":")[0])
    X has values up to 1e+30, whose squared distances overflow
    """
    dtype = points.dtype if dtype is None else dtype
    if not isinstance(points, VectorPoints):
        return
    most = (torch.finfo(dtype).max / 1024 / max(1, points.n_features)) ** 0.5
    if points.reach > most:
        raise ValueError(
            f"X has values up to {points.reach:.2g}, whose squared distances overflow: with "
            f"{points.n_features} features and dtype={str(dtype).removeprefix('torch.')!r} values may be up "
            f"to {most:.1e}. Scale the features"
        )


def equal_weights(which: Tensor, groups: int, dtype: torch.dtype) -> Tensor:
    """1 over the size of its group for each i."""
    return (1 / torch.bincount(which, minlength=groups).to(dtype))[which]


def mask(values: Tensor, rows: Blocks, columns: Blocks) -> Tensor:
    """Values with 0 where either side is padding."""
    if not rows.full:
        values = values * rows.mask[:, :, None]
    return values if columns.full else values * columns.mask[:, None, :]


def block_by_block(
    evaluate: Evaluate, left: Points, rows: Blocks, right: Points, columns: Blocks
) -> Tensor:  # fmt: skip
    """`Points.between` for points that are compared on the CPU, one block after another."""
    shape = len(rows), rows.index.shape[1], columns.index.shape[1]
    out = torch.zeros(shape, dtype=left.dtype, device="cpu")
    for block, i, j in zip(out, rows.index.cpu().numpy(), columns.index.cpu().numpy(), strict=True):
        i, j = i[i >= 0], j[j >= 0]
        if len(i) and len(j):
            block[: len(i), : len(j)] = evaluate(left.x[i], right.x[j])
    return out.to(left.device)
