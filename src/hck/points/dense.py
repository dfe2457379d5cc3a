"""Points as rows of a tensor."""

import numpy as np
import torch
from torch import Tensor

from hck.backend import cuts
from hck.backend.blocks import Blocks
from hck.backend.caches import cached_property
from hck.backend.checks import check_floats, require
from hck.backend.parallel import chunks
from hck.kernels.placement import Placement
from hck.points.base import Evaluate, Points, VectorPoints, equal_weights, mask

_CHUNK = 2**17  # numbers gathered at once: about what a cache holds
_AT_ONCE = 2**26  # kernel values
_MANY, _SPANNING = 256, 3000  # features at least, and points at most, to find the space these span


class DensePoints(VectorPoints):
    """Rows of a tensor of shape (n, d).

    Examples
    --------
    >>> import torch
    >>> from hck.points import DensePoints
    >>> points = DensePoints(torch.zeros(3, 2))
    >>> len(points), points.n_features, points.dtype
    (3, 2, torch.float32)
    """

    def __init__(self, x: Tensor) -> None:
        self.x = x.contiguous()
        self.dtype, self.device, self.n_features = x.dtype, x.device, x.shape[1]

    def validate(self) -> None:
        """Raise ValueError unless it is a matrix of floats with at least one column."""
        check_floats("x", self.x, None, None)
        require(self.n_features > 0, "x must have features")

    def __len__(self) -> int:
        return self.x.shape[0]

    def take(self, index: Tensor) -> "DensePoints":
        return DensePoints(self.x[index])

    def to(self, device: torch.device) -> "DensePoints":
        return DensePoints(self.x.to(device))

    def join(self, others: list[Points]) -> "DensePoints":
        return DensePoints(torch.cat([self.x, *(other.x for other in others)]))

    def holding(self, x: Tensor) -> "DensePoints":
        return DensePoints(x)

    @cached_property
    def reach(self) -> float:
        low, high = torch.aminmax(self.x.detach()) if self.x.numel() else (0.0, 0.0)
        return max(-float(low), float(high))

    @property
    def is_wide(self) -> bool:
        """Whether there are many more features than points, so that it pays to know their span."""
        n, d = self.x.shape
        return d >= max(_MANY, 2 * n) and n <= _SPANNING

    def narrow(self, placement: Placement | None) -> VectorPoints:
        """Points at the same distances as where these are placed, with as many features as points at most.

        Without gradients.
        """
        placed = self.placed(placement)
        return placed.in_span if isinstance(placed, DensePoints) and placed.is_wide else placed

    @cached_property
    def in_span(self) -> "DensePoints":
        """Points by their coordinates in a basis of the space that they span."""
        return DensePoints(torch.linalg.qr(self.x.detach().mT, mode="r").R.mT)

    @property
    def nbytes(self) -> int:
        return self.x.nbytes

    @property
    def values_per_point(self) -> int:
        return self.n_features

    def project(self, rows: Tensor, directions: Tensor, which: Tensor) -> Tensor:
        return cuts.project(self.x, rows, directions.to(self.dtype), which)

    def accumulate(self, rows: Tensor, weights: Tensor, which: Tensor, groups: int) -> Tensor:
        out = torch.zeros(groups, self.n_features, dtype=self.dtype, device=self.device)
        for part in self._chunks(rows):
            out.index_add_(0, which[part], self.x[rows[part]] * weights[part, None])
        return out

    def variance(self, rows: Tensor, which: Tensor, groups: int) -> Tensor:
        weights = equal_weights(which, groups, self.dtype)
        mean = self.accumulate(rows, weights, which, groups)
        out = torch.zeros_like(mean)
        for part in self._chunks(rows):
            squares = (self.x[rows[part]] - mean[which[part]]).square_()
            out.index_add_(0, which[part], squares.mul_(weights[part, None]))
        return out

    def _chunks(self, rows: Tensor) -> list[slice]:
        return chunks(0, len(rows), max(1, _CHUNK // self.n_features))

    def scaled(self, factor: Tensor) -> "DensePoints":
        factor = factor.to(self.x)
        return DensePoints(self.x * factor if factor.ndim == 1 else self.x @ factor)

    def numpy(self, rows: Tensor) -> np.ndarray:
        return self.x[rows].cpu().numpy()

    def between(self, evaluate: Evaluate, rows: Blocks, other: Points, columns: Blocks) -> Tensor:
        z, n = other.x[columns.safe], rows.index.shape[1]
        step = max(1, _AT_ONCE // max(1, z.shape[0] * z.shape[1]))  # temporaries are as large as the result
        if n <= step:
            return mask(evaluate(self.x[rows.safe], z), rows, columns)
        out = z.new_empty(len(z), n, z.shape[1])
        for part in chunks(0, n, step):
            out[:, part] = evaluate(self.x[rows.safe[:, part]], z)
        return mask(out, rows, columns)
