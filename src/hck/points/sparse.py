"""Points as rows of a sparse matrix."""

import warnings

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from hck.backend.blocks import Blocks
from hck.backend.caches import cached_property
from hck.backend.checks import require
from hck.kernels.placement import Block, Linear
from hck.points.base import Evaluate, Points, VectorPoints, block_by_block, equal_weights
from hck.points.dense import DensePoints


class SparsePoints(VectorPoints):
    """Rows of a CSR matrix, never made dense as a whole, unless a matrix takes them to few coordinates.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from hck.points import SparsePoints, as_points
    >>> points = as_points(sp.csr_matrix([[0.0, 1.0], [0.0, 0.0]]))
    >>> isinstance(points, SparsePoints), points.x.nnz
    (True, 1)
    """

    def __init__(self, x: sp.csr_matrix, dtype: torch.dtype, device: torch.device) -> None:
        self.x = x
        self.dtype, self.device, self.n_features = dtype, device, x.shape[1]

    def validate(self) -> None:
        """Raise ValueError unless it is a matrix of floats with at least one column."""
        require(self.dtype in (torch.float64, torch.float32), f"dtype must be a float, got {self.dtype}")
        require(self.n_features > 0, "x must have features")

    def __len__(self) -> int:
        return self.x.shape[0]

    def take(self, index: Tensor) -> "SparsePoints":
        return self._rows(self.x[index.cpu().numpy()])

    def to(self, device: torch.device) -> "SparsePoints":
        return SparsePoints(self.x, self.dtype, device)

    def join(self, others: list[Points]) -> "SparsePoints":
        return self._rows(sp.vstack([self.x, *(other.x for other in others)], format="csr"))

    def _rows(self, x: sp.csr_matrix) -> "SparsePoints":
        return SparsePoints(x, self.dtype, self.device)

    def holding(self, x: Block) -> VectorPoints:
        return DensePoints(x.to(self.device, self.dtype)) if isinstance(x, Tensor) else self._rows(x)

    @cached_property
    def reach(self) -> float:
        return float(np.abs(self.x.data).max(initial=0.0))

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
        weights = equal_weights(which, groups, self.dtype)
        squares = self._gather(self.x.multiply(self.x), rows, weights, which, groups)
        return squares - self.accumulate(rows, weights, which, groups).square()

    def _gather(
        self, x: sp.csr_matrix, rows: Tensor, weights: Tensor, which: Tensor, groups: int
    ) -> Tensor:  # fmt: skip
        pick = (which.cpu().numpy(), rows.cpu().numpy())
        gather = sp.csr_matrix((weights.cpu().numpy(), pick), shape=(groups, len(self)))
        return torch.from_numpy((gather @ x).toarray()).to(self.device, self.dtype)

    def scaled(self, factor: Tensor) -> VectorPoints:
        if factor.ndim == 2:
            return self.holding(Linear(factor)(self.x))
        data = self.x.data * factor.cpu().numpy().astype(self.x.dtype)[self.x.indices]
        return self._rows(sp.csr_matrix((data, self.x.indices, self.x.indptr), shape=self.x.shape))

    def numpy(self, rows: Tensor) -> sp.csr_matrix:
        return self.x[rows.cpu().numpy()]

    def between(self, evaluate: Evaluate, rows: Blocks, other: Points, columns: Blocks) -> Tensor:
        return block_by_block(evaluate, self, rows, other, columns)


def csr_tensor(start: Tensor, column: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """A sparse matrix by its rows: where each starts, the columns of its nonzeros, and these.

    torch says each time that this is new, or that nothing is checked.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse (CSR tensor support is in beta|invariant checks)")
        return torch.sparse_csr_tensor(
            start,
            column,
            values,
            shape,
            dtype=values.dtype,
            device=values.device,
            check_invariants=False,
        )
