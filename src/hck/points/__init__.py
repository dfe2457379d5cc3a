"""Sets of points: dense, sparse, or objects of any kind, behind one small interface.

The rest of the package never asks what a point is. It asks for kernel values between blocks of points
(`cross`), and, to cut a domain by hyperplanes, for projections on directions.
"""

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from hck.backend import cuts
from hck.backend.blocks import Blocks
from hck.backend.gradients import wants_gradient
from hck.backend.kernels import Profile, fusable, fused_cross
from hck.kernels.objects import object_array

if TYPE_CHECKING:
    from hck.kernels import Kernel

__all__ = ["DensePoints", "ObjectPoints", "Points", "SparsePoints", "as_points", "as_points_like", "cross"]

_CHUNK = 2**17  # numbers gathered at once: about what a cache holds
_AT_ONCE = 2**26  # kernel values


class Points(ABC):
    """A finite sequence of points of one kind, with the dtype and device of numbers computed from it."""

    x: Any  # what holds the points
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
    def _cross(self, kernel: "Kernel", rows: Blocks, other: "Points", columns: Blocks) -> Tensor: ...


class VectorPoints(Points):
    """Points with coordinates, which can be projected and averaged."""

    n_features: int

    @abstractmethod
    def project(self, rows: Tensor, directions: Tensor, which: Tensor) -> Tensor:
        """⟨x[rows[i]], directions[which[i]]⟩ for each i; the rows are distinct."""

    @abstractmethod
    def accumulate(self, rows: Tensor, weights: Tensor, which: Tensor, groups: int) -> Tensor:
        """Row g is the sum of weights[i] · x[rows[i]] over the i with which[i] = g."""

    def mean(self, rows: Tensor, which: Tensor, groups: int) -> Tensor:
        """Row g is the mean of the x[rows[i]] with which[i] = g."""
        return self.accumulate(rows, _equal_weights(which, groups, self.dtype), which, groups)

    @abstractmethod
    def variance(self, rows: Tensor, which: Tensor, groups: int) -> Tensor:
        """Row g has the variances of the coordinates of the x[rows[i]] with which[i] = g."""

    @abstractmethod
    def scaled(self, factor: Tensor) -> "VectorPoints":
        """The same points with each feature multiplied by a number; `factor` has shape (d,)."""

    @abstractmethod
    def numpy(self, rows: Tensor) -> Any:
        """Some of the points as scikit-learn takes them: an array, or a CSR matrix."""


class DensePoints(VectorPoints):
    """Rows of a tensor of shape (n, d)."""

    def __init__(self, x: Tensor) -> None:
        self.x = x.contiguous()
        self.dtype, self.device, self.n_features = x.dtype, x.device, x.shape[1]

    def __len__(self) -> int:
        return self.x.shape[0]

    def take(self, index: Tensor) -> "DensePoints":
        return DensePoints(self.x[index])

    def to(self, device: torch.device) -> "DensePoints":
        return DensePoints(self.x.to(device))

    def join(self, others: list[Points]) -> "DensePoints":
        return DensePoints(torch.cat([self.x, *(other.x for other in others)]))

    @property
    def nbytes(self) -> int:
        return self.x.nbytes

    @property
    def values_per_point(self) -> int:
        return self.n_features

    def project(self, rows: Tensor, directions: Tensor, which: Tensor) -> Tensor:
        return cuts.project(self.x, rows, directions, which)

    def accumulate(self, rows: Tensor, weights: Tensor, which: Tensor, groups: int) -> Tensor:
        out = torch.zeros(groups, self.n_features, dtype=self.dtype, device=self.device)
        step = max(1, _CHUNK // self.n_features)
        for i in range(0, len(rows), step):
            part = self.x[rows[i : i + step]] * weights[i : i + step, None]
            out.index_add_(0, which[i : i + step], part)
        return out

    def variance(self, rows: Tensor, which: Tensor, groups: int) -> Tensor:
        weights = _equal_weights(which, groups, self.dtype)
        mean = self.accumulate(rows, weights, which, groups)
        out = torch.zeros_like(mean)
        step = max(1, _CHUNK // self.n_features)
        for i in range(0, len(rows), step):
            part = (self.x[rows[i : i + step]] - mean[which[i : i + step]]).square_()
            out.index_add_(0, which[i : i + step], part.mul_(weights[i : i + step, None]))
        return out

    def scaled(self, factor: Tensor) -> "DensePoints":
        return DensePoints(self.x * factor.to(self.x))

    def numpy(self, rows: Tensor) -> np.ndarray:
        return self.x[rows].cpu().numpy()

    def _cross(self, kernel: "Kernel", rows: Blocks, other: Points, columns: Blocks) -> Tensor:
        z, n = other.x[columns.safe], rows.index.shape[1]
        step = max(1, _AT_ONCE // max(1, z.shape[0] * z.shape[1]))  # temporaries are as large as the result
        if n <= step or wants_gradient(self.x, other.x, *kernel.tensors()):
            return _mask(kernel.evaluate(self.x[rows.safe], z), rows, columns)
        out = z.new_empty(len(z), n, z.shape[1])
        for i in range(0, n, step):
            out[:, i : i + step] = kernel.evaluate(self.x[rows.safe[:, i : i + step]], z)
        return _mask(out, rows, columns)


class _BlockwisePoints(Points):
    """Points whose kernel values are computed block after block on the CPU."""

    def _cross(self, kernel: "Kernel", rows: Blocks, other: Points, columns: Blocks) -> Tensor:
        shape = (len(rows), rows.index.shape[1], columns.index.shape[1])
        out = torch.zeros(shape, dtype=self.dtype)
        for block, i, j in zip(out, rows.index.cpu().numpy(), columns.index.cpu().numpy(), strict=True):
            i, j = i[i >= 0], j[j >= 0]
            if len(i) and len(j):
                block[: len(i), : len(j)] = kernel.evaluate(self.x[i], other.x[j])
        return out.to(self.device)


class SparsePoints(_BlockwisePoints, VectorPoints):
    """Rows of a CSR matrix, never made dense as a whole."""

    def __init__(self, x: sp.csr_matrix, dtype: torch.dtype, device: torch.device) -> None:
        self.x = x
        self.dtype, self.device, self.n_features = dtype, device, x.shape[1]

    def __len__(self) -> int:
        return self.x.shape[0]

    def take(self, index: Tensor) -> "SparsePoints":
        return SparsePoints(self.x[index.cpu().numpy()], self.dtype, self.device)

    def to(self, device: torch.device) -> "SparsePoints":
        return SparsePoints(self.x, self.dtype, device)

    def join(self, others: list[Points]) -> "SparsePoints":
        every = sp.vstack([self.x, *(other.x for other in others)], format="csr")
        return SparsePoints(every, self.dtype, self.device)

    @property
    def nbytes(self) -> int:
        return self.x.data.nbytes + self.x.indices.nbytes + self.x.indptr.nbytes

    @property
    def values_per_point(self) -> int:
        return 0

    def project(self, rows: Tensor, directions: Tensor, which: Tensor) -> Tensor:
        part = self.x[rows.cpu().numpy()]
        row = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
        weights = part.data * directions.cpu().numpy()[which.cpu().numpy()[row], part.indices]
        out = np.bincount(row, weights=weights, minlength=part.shape[0])
        return torch.from_numpy(out).to(self.device, self.dtype)

    def accumulate(self, rows: Tensor, weights: Tensor, which: Tensor, groups: int) -> Tensor:
        return self._gather(self.x, rows, weights, which, groups)

    def variance(self, rows: Tensor, which: Tensor, groups: int) -> Tensor:
        weights = _equal_weights(which, groups, self.dtype)
        squares = self._gather(self.x.multiply(self.x), rows, weights, which, groups)
        return squares - self.accumulate(rows, weights, which, groups).square()

    def _gather(self, x: Any, rows: Tensor, weights: Tensor, which: Tensor, groups: int) -> Tensor:
        pick = (which.cpu().numpy(), rows.cpu().numpy())
        gather = sp.csr_matrix((weights.cpu().numpy(), pick), shape=(groups, len(self)))
        return torch.from_numpy((gather @ x).toarray()).to(self.device, self.dtype)

    def scaled(self, factor: Tensor) -> "SparsePoints":
        data = self.x.data * factor.cpu().numpy().astype(self.x.dtype)[self.x.indices]
        x = sp.csr_matrix((data, self.x.indices, self.x.indptr), shape=self.x.shape)
        return SparsePoints(x, self.dtype, self.device)

    def numpy(self, rows: Tensor) -> sp.csr_matrix:
        return self.x[rows.cpu().numpy()]


class ObjectPoints(_BlockwisePoints):
    """Things of any kind, on which only a kernel that takes them can be evaluated."""

    def __init__(self, x: np.ndarray, dtype: torch.dtype, device: torch.device) -> None:
        self.x = x
        self.dtype, self.device = dtype, device

    def __len__(self) -> int:
        return len(self.x)

    def take(self, index: Tensor) -> "ObjectPoints":
        return ObjectPoints(self.x[index.cpu().numpy()], self.dtype, self.device)

    def to(self, device: torch.device) -> "ObjectPoints":
        return ObjectPoints(self.x, self.dtype, device)

    def join(self, others: list[Points]) -> "ObjectPoints":
        return ObjectPoints(np.concatenate([self.x, *(other.x for other in others)]), self.dtype, self.device)

    @property
    def nbytes(self) -> int:
        return self.x.nbytes

    @property
    def values_per_point(self) -> int:
        return 0


def cross(
    kernel: "Kernel",
    left: Points,
    rows: Blocks,
    right: Points,
    columns: Blocks,
    upper: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Kernel values between blocks of points, 0 where either side is padding.

    Parameters
    ----------
    left, right : Points
        Sets of points of the same kind.
    rows, columns : Blocks
        Blocks of positions in `left` and in `right`, equally many.
    upper : bool
        Whether only what lies on and above the diagonal of each block is needed. The rest may be anything.
    out : Tensor of shape (blocks, rows' width, columns' width), optional
        Contiguous memory for the result.

    Returns
    -------
    Tensor of shape (blocks, rows' width, columns' width)
    """
    check_same_kind(left, right)
    if isinstance(left, DensePoints):
        profile = fusable(kernel.profile(), left.x, rows, right.x, columns)
        if profile is not None:
            return fused_cross(profile, left.x, rows, right.x, columns, upper, out)
    values = left._cross(kernel, rows, right, columns)
    return values if out is None else out.copy_(values)


def self_values(kernel: "Kernel", points: Points, blocks: Blocks) -> Tensor:
    """k(x, x) for each point of some blocks, in their shape; 0 for padding."""
    singles = Blocks(blocks.index.reshape(-1, 1), blocks.full)
    return cross(kernel, points, singles, points, singles).reshape(blocks.index.shape)


@dataclass
class Values:
    """Kernel values between blocks of points (see `cross`), computed when they are needed."""

    kernel: "Kernel"
    left: Points
    rows: Blocks
    right: Points
    columns: Blocks
    upper: bool = False

    @classmethod
    def between(cls, kernel: "Kernel", left: Points, right: Points) -> "Values":
        """One block: all of some points, with all of others."""
        rows, columns = (
            Blocks(torch.arange(len(points), device=points.device)[None], full=True)
            for points in (left, right)
        )
        return cls(kernel, left, rows, right, columns)

    def tensor(self) -> Tensor:
        return cross(self.kernel, self.left, self.rows, self.right, self.columns, self.upper)

    def of(self, kernel: "Kernel") -> Tensor:
        """The values of another kernel."""
        return cross(kernel, self.left, self.rows, self.right, self.columns)

    def weighted_squares(self, weight: Tensor) -> Tensor | None:
        """Σ weight · (x − x')² for each feature, (d,); None if the points are no vectors."""
        if isinstance(self.left, SparsePoints):
            return self._weighted_squares_sparse(weight)
        if not isinstance(self.left, DensePoints):
            return None
        x, z = self.left.x[self.rows.safe], self.right.x[self.columns.safe]
        centre = z.mean(-2, keepdim=True)  # distances do not depend on the origin, but their rounding does
        x, z, d = x - centre, z - centre, x.shape[-1]
        sums = weight @ torch.cat([z, z.square(), z.new_ones(*z.shape[:-1], 1)], -1)
        squares = x.square() * sums[..., 2 * d :] + sums[..., d : 2 * d] - 2 * x * sums[..., :d]
        return squares.sum((0, 1))

    def _weighted_squares_sparse(self, weight: Tensor) -> Tensor:
        left, right, total = self.left.x, self.right.x, np.zeros(self.left.x.shape[1])
        blocks = zip(self.rows.index.cpu().numpy(), self.columns.index.cpu().numpy(), weight, strict=True)
        for i, j, block in blocks:
            w = block.cpu().numpy()[i >= 0][:, j >= 0]
            x, z = left[i[i >= 0]], right[j[j >= 0]]
            total += w.sum(1) @ x.multiply(x) + w.sum(0) @ z.multiply(z)
            total -= 2 * np.asarray(x.multiply(w @ z).sum(0)).ravel()
        return torch.from_numpy(total).to(weight)

    def recorded(self, kernel: "Kernel") -> Tensor:
        """The values of a kernel, so that they can be differentiated by its parameters."""
        if not isinstance(self.left, SparsePoints):
            return self.of(kernel)
        left, right, device = self.left.x, self.right.x, self.left.device
        values = []
        for i, j in zip(self.rows.safe.cpu().numpy(), self.columns.safe.cpu().numpy(), strict=True):
            x, z = (torch.from_numpy(part.toarray()).to(device) for part in (left[i], right[j]))
            values.append(kernel.evaluate(x, z))
        return _mask(torch.stack(values), self.rows, self.columns)

    def profile(self) -> "Profile | None":
        """The kernel's profile, if compiled code can evaluate it on these points."""
        if not isinstance(self.left, DensePoints):
            return None
        return fusable(self.kernel.profile(), self.left.x, self.rows, self.right.x, self.columns)


def _mask(values: Tensor, rows: Blocks, columns: Blocks) -> Tensor:
    """Values with 0 where either side is padding."""
    if not rows.full:
        values = values * rows.mask[:, :, None]
    return values if columns.full else values * columns.mask[:, None, :]


def as_points(
    x: Any,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
    objects: bool = False,
) -> Points:
    """Wrap data as Points: a 2-D array or tensor, a scipy sparse matrix, or, with `objects`, any sequence.

    By default tensors of floating-point numbers keep their dtype and stay where they are; all else is
    float64 on the CPU.
    """
    if isinstance(x, Points):
        return x
    if isinstance(x, Tensor):
        dtype = x.dtype if dtype is None and x.dtype.is_floating_point else dtype
        device = x.device if device is None else device
    dtype = torch.float64 if dtype is None else dtype
    device = torch.device("cpu" if device is None else device)
    if objects:
        return ObjectPoints(object_array(x), dtype, device)
    if sp.issparse(x):
        number = np.float64 if dtype == torch.float64 else np.float32
        return SparsePoints(sp.csr_matrix(x).astype(number, copy=False), dtype, device)
    tensor = x if isinstance(x, Tensor) else as_tensor(np.asarray(x, order="C"))
    if tensor.ndim != 2:
        raise ValueError(
            f"points must form a 2-D array (n_points, n_features), got shape {tuple(tensor.shape)}"
        )
    return DensePoints(tensor.to(device=device, dtype=dtype))


def as_tensor(array: np.ndarray) -> Tensor:
    """The same memory as a tensor, which nothing writes to."""
    if array.flags.writeable:
        return torch.from_numpy(array)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


def as_points_like(x: Any, points: Points) -> Points:
    """Wrap data as Points of the same kind as others: dense data become sparse, or sparse dense."""
    if isinstance(points, SparsePoints) and not (sp.issparse(x) or isinstance(x, Points)):
        x = sp.csr_matrix(x.cpu().numpy() if isinstance(x, Tensor) else np.asarray(x))
    if isinstance(points, DensePoints) and sp.issparse(x):
        x = x.toarray()
    if isinstance(points, DensePoints) and isinstance(x, DensePoints):
        x = x.x  # perhaps of another dtype, or elsewhere
    made = as_points(x, points.dtype, points.device, objects=isinstance(points, ObjectPoints))
    check_same_kind(points, made)
    expected = getattr(points, "n_features", None)
    if isinstance(made, VectorPoints) and made.n_features != expected:
        raise ValueError(f"these points have {made.n_features} features where {expected} are expected")
    return made


def check_same_kind(left: Points, right: Points) -> None:
    """Raise TypeError unless both sets hold points of one kind."""
    if type(left) is not type(right):
        raise TypeError(
            f"points of different kinds cannot be combined: {type(left).__name__}, {type(right).__name__}"
        )


def _equal_weights(which: Tensor, groups: int, dtype: torch.dtype) -> Tensor:
    """1 over the size of its group for each i."""
    return (1 / torch.bincount(which, minlength=groups).to(dtype))[which]
