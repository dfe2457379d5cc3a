"""Kernel values between blocks of points: computed at once, or when they are needed."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from hck.backend.blocks import Blocks
from hck.backend.gradients import wants_gradient
from hck.backend.kernels import Profile, fusable, fused_cross
from hck.kernels import Kernel
from hck.kernels.stationary import evaluate
from hck.points.base import Points, VectorPoints, check_same_kind, mask
from hck.points.dense import DensePoints
from hck.points.sparse import SparsePoints


class Isotropic(NamedTuple):
    """An isotropic kernel, and the points where it is one."""

    profile: Profile
    left: VectorPoints
    right: VectorPoints


def isotropic(kernel: Kernel, left: Points, right: Points) -> Isotropic | None:
    """A kernel and points for code that knows isotropic kernels without gradients; None if it is no such."""
    profile = kernel.profile() if isinstance(left, VectorPoints) else None
    if profile is None or wants_gradient(left.x, right.x):
        return None
    assert isinstance(left, VectorPoints)
    assert isinstance(right, VectorPoints)
    return Isotropic(profile, left.placed(kernel.placement), right.placed(kernel.placement))


def cross(
    kernel: Kernel,
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
    placed = isotropic(kernel, left, right)
    if placed is None:
        values = left.between(kernel.evaluate, rows, right, columns)
    else:
        profile, left, right = placed
        if isinstance(left, DensePoints) and fusable(left.x, rows, right.x, columns):
            return fused_cross(profile, (left.x, rows), (right.x, columns), upper, out)
        values = left.between(partial(evaluate, profile), rows, right, columns)
    return values if out is None else out.copy_(values)


def self_values(kernel: Kernel, points: Points, blocks: Blocks) -> Tensor:
    """k(x, x) for each point of some blocks, in their shape; 0 for padding."""
    singles = Blocks(blocks.index.reshape(-1, 1), blocks.full)
    return cross(kernel, points, singles, points, singles).reshape(blocks.index.shape)


@dataclass
class KernelBlocks:
    """Kernel values between blocks of points (see `cross`), computed when they are needed."""

    kernel: Kernel
    left: Points
    rows: Blocks
    right: Points
    columns: Blocks
    upper: bool = False

    @classmethod
    def between(cls, kernel: Kernel, left: Points, right: Points) -> "KernelBlocks":
        """One block: all of some points, with all of others."""
        rows, columns = (
            Blocks(torch.arange(len(points), device=points.device)[None], full=True)
            for points in (left, right)
        )
        return cls(kernel, left, rows, right, columns)

    def tensor(self) -> Tensor:
        return cross(self.kernel, self.left, self.rows, self.right, self.columns, self.upper)

    def of(self, kernel: Kernel) -> Tensor:
        """The values of another kernel."""
        return cross(kernel, self.left, self.rows, self.right, self.columns)

    def compilable(self) -> Isotropic | None:
        """The kernel and the points for compiled code, if that can and should compute the values."""
        placed = isotropic(self.kernel, self.left, self.right)
        if placed is None or not isinstance(self.left, DensePoints):
            return None
        return placed if fusable(placed.left.x, self.rows, placed.right.x, self.columns) else None

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

    def recorded(self, kernel: Kernel) -> Tensor:
        """The values of a kernel, so that they can be differentiated by its parameters."""
        if not isinstance(self.left, SparsePoints):
            return self.of(kernel)
        left, right, device = self.left.x, self.right.x, self.left.device
        values = []
        for i, j in zip(self.rows.safe.cpu().numpy(), self.columns.safe.cpu().numpy(), strict=True):
            x, z = (torch.from_numpy(part.toarray()).to(device) for part in (left[i], right[j]))
            values.append(kernel.evaluate(x, z))
        return mask(torch.stack(values), self.rows, self.columns)
