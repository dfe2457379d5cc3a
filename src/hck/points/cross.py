"""Kernel values between blocks of points: computed at once, or when they are needed."""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from hck.backend.blocks import Blocks
from hck.backend.checks import check_floats, require
from hck.backend.interrupts import check_wanted
from hck.backend.kernels import DenseCross, Profile, fusable, fused_cross, wants_gradient
from hck.backend.kinds import kind_of
from hck.backend.memory import require_bytes
from hck.errors import NoGradientError
from hck.kernels import Kernel
from hck.kernels.distance import check_finite
from hck.kernels.placement import Block, Placement
from hck.kernels.stationary import evaluate
from hck.points.base import Points, VectorPoints, check_reach, check_same_kind, mask
from hck.points.dense import DensePoints
from hck.points.sparse import SparsePoints

USE_LESS = "use an approximation (approximation='hierarchical'), a smaller leaf_size, or fewer points at once"


def cross(kernel: Kernel, left: Points, rows: Blocks, right: Points, columns: Blocks) -> Tensor:
    """Kernel values between blocks of points: those of `KernelBlocks`.

    Parameters
    ----------
    kernel : Kernel
    left, right : Points
    rows, columns : Blocks
        Equally many blocks of positions in `left` and in `right`.

    Examples
    --------
    >>> import torch
    >>> from hck.backend.blocks import Blocks
    >>> from hck.kernels import Gaussian
    >>> from hck.points import as_points, cross
    >>> points = as_points([[0.0], [1.0], [5.0], [6.0]])
    >>> pairs = Blocks(torch.tensor([[0, 1], [2, 3]]), full=True)  # two blocks of two points
    >>> values = cross(Gaussian(1.0), points, pairs, points, pairs)
    >>> values.shape, values[0].round(decimals=2)
    (torch.Size([2, 2, 2]), tensor([[1.0000, 0.6100],
            [0.6100, 1.0000]], dtype=torch.float64))
    """
    return KernelBlocks(kernel, left, rows, right, columns).tensor()


def self_values(kernel: Kernel, points: Points, blocks: Blocks) -> Tensor:
    """k(x, x) for each point of some blocks, in their shape; 0 for padding.

    Parameters
    ----------
    kernel : Kernel
    points : Points
    blocks : Blocks
        Positions in `points`.

    Examples
    --------
    >>> import torch
    >>> from hck.backend.blocks import Blocks
    >>> from hck.kernels import Gaussian
    >>> from hck.points import as_points, self_values
    >>> points = as_points([[0.0], [1.0], [5.0]])
    >>> self_values(3.0 * Gaussian(1.0), points, Blocks(torch.tensor([[0, 1], [2, -1]]), full=False))
    tensor([[3., 3.],
            [3., 0.]], dtype=torch.float64)
    """
    profile = kernel.profile() if isinstance(points, VectorPoints) else None
    if profile is not None and not isinstance(profile.amplitude, Tensor):
        values = torch.full(
            blocks.index.shape, float(profile.amplitude), dtype=points.dtype, device=points.device
        )
        return values if blocks.full else values * blocks.mask
    singles = Blocks(blocks.index.reshape(-1, 1), blocks.full)
    return cross(kernel, points, singles, points, singles).reshape(blocks.index.shape)


@dataclass
class KernelBlocks:
    """Kernel values between blocks of points of one kind, 0 for padding, computed when they are needed.

    `rows` and `columns` are equally many blocks of positions in `left` and in `right`. With `upper` only what
    lies on and above the diagonal of each block is needed; the rest may be anything.

    Examples
    --------
    >>> from hck.kernels import Gaussian
    >>> from hck.points import KernelBlocks, as_points
    >>> left, right = as_points([[0.0], [1.0]]), as_points([[0.0], [2.0], [3.0]])
    >>> KernelBlocks.between(Gaussian(1.0), left, right).tensor().shape  # one block
    torch.Size([1, 2, 3])
    """

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

    def tensor(self, out: Tensor | None = None) -> Tensor:
        """The values (blocks, rows' width, columns' width), perhaps in contiguous memory `out`."""
        check_wanted()
        check_same_kind(self.left, self.right)
        if out is None:
            count = len(self.rows) * self.rows.index.shape[1] * self.columns.index.shape[1]
            what = f"a kernel's matrix of {self.rows.index.shape[1]} × {self.columns.index.shape[1]} values"
            require_bytes(count * self.left.dtype.itemsize, self.left.device, what, USE_LESS)
        placed = self._placed()
        if placed is None:
            values = self.left.between(self.kernel.evaluate, self.rows, self.right, self.columns)
        else:
            profile, left, right = placed
            dense = self._dense(profile, left, right)
            if dense is not None:
                return fused_cross(dense, self.upper, out)
            values = left.between(partial(evaluate, profile), self.rows, right, self.columns)
        return values if out is None else out.copy_(values)

    def of(self, kernel: Kernel) -> Tensor:
        """The values of another kernel."""
        return cross(kernel, self.left, self.rows, self.right, self.columns)

    def compilable(self) -> DenseCross | None:
        """What compiled code computes the values from, if it can and should do so."""
        placed = self._placed()
        return None if placed is None else self._dense(*placed)

    def _placed(self) -> tuple[Profile, VectorPoints, VectorPoints] | None:
        """An isotropic kernel without gradients, and the points where it is one; None if it is no such."""
        left, right = self.left, self.right
        if not (isinstance(left, VectorPoints) and isinstance(right, VectorPoints)):
            return None
        profile = self.kernel.profile()
        if profile is None or wants_gradient(left.x, right.x):
            return None
        left, right = left.placed(self.kernel.placement), right.placed(self.kernel.placement)
        if kind_of(left.device).is_host and isinstance(profile.lengthscale, float):  # else to look is to wait
            reach = max(_reach(left, self.left), _reach(right, self.right))
            check_finite(reach / profile.lengthscale, left.dtype)
        return profile, left, right

    def _dense(self, profile: Profile, left: VectorPoints, right: VectorPoints) -> DenseCross | None:
        if not isinstance(left, DensePoints):
            return None
        cross = DenseCross(profile, left.x, self.rows, right.x, self.columns)
        return cross if fusable(cross) else None

    def weighted_squares(self, weight: Tensor) -> Tensor:
        """Σ weight · (x − x')² for each feature, (d,)."""
        if isinstance(self.left, SparsePoints):
            return self._weighted_squares_sparse(weight)
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

    def weighted_products(self, weight: Tensor, placement: Placement) -> Tensor:
        """Σ weight · (x − x') (p − p')ᵀ, (d, k), where p and p' are x and x' as they are placed.

        That is Xᵀ(diag(W1) P − W P') + X'ᵀ(diag(Wᵀ1) P' − Wᵀ P), with W, the weights, for each block.
        """
        left, right = self.left, self.right
        assert isinstance(left, VectorPoints)  # or there were no values
        assert isinstance(right, VectorPoints)
        p, q = left.placed(placement).x[self.rows.safe], right.placed(placement).x[self.columns.safe]
        centre = q.mean(-2, keepdim=True)  # distances do not depend on the origin, but their rounding does
        p, q = p - centre, q - centre
        one, k = q.new_ones(1, 1, 1), q.shape[-1]
        across = weight @ torch.cat([q, one.expand(*q.shape[:-1], 1)], -1)
        down = weight.mT @ torch.cat([p, one.expand(*p.shape[:-1], 1)], -1)
        at_rows, at_columns = p * across[..., k:] - across[..., :k], q * down[..., k:] - down[..., :k]
        if isinstance(left, SparsePoints):
            return _gathered(left, self.rows, at_rows) + _gathered(right, self.columns, at_columns)
        x, z = left.x[self.rows.safe], right.x[self.columns.safe]
        centre = z.mean(-2, keepdim=True)
        sides = ((x - centre, at_rows), (z - centre, at_columns))
        return sum(a.flatten(0, 1).mT @ b.flatten(0, 1) for a, b in sides)

    def coordinates(self, placement: Placement | None) -> tuple[Tensor, Tensor]:
        """Both sides' points (blocks, width, k), as they are placed; padding repeats a point."""
        sides = []
        for points, blocks in ((self.left, self.rows), (self.right, self.columns)):
            if not isinstance(points, DensePoints):
                raise NoGradientError(
                    "gradients by points are there for dense ones alone: sparse points and objects cannot be "
                    "moved a little in every direction"
                )
            sides.append(points.placed(placement).x[blocks.safe])
        return sides[0], sides[1]

    def masked(self, values: Tensor) -> Tensor:
        """Values (blocks, rows' width, …, columns' width) with 0 for padding."""
        more = (None,) * (values.ndim - 3)
        if not self.rows.full:
            values = values * self.rows.mask[:, :, *more, None]
        return values if self.columns.full else values * self.columns.mask[:, None, *more]

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


def _reach(placed: VectorPoints, points: Points) -> float:
    """The reach of points that are placed; infinite where infinities of a metric have cancelled to NaN."""
    lost = math.isnan(placed.reach) and isinstance(points, VectorPoints) and not math.isnan(points.reach)
    return math.inf if lost else placed.reach


def _gathered(points: VectorPoints, blocks: Blocks, values: Tensor) -> Tensor:
    """Σ x vᵀ over the points of blocks and a vector v for each, (d, k)."""
    rows = points.x[blocks.index[blocks.mask].cpu().numpy()]
    return torch.from_numpy(rows.T @ values[blocks.mask].cpu().numpy()).to(values)


def features_of(points: Points) -> int:
    """How many features points have; ValueError unless they are vectors.

    Parameters
    ----------
    points : Points

    Examples
    --------
    >>> from hck.points import as_points, features_of
    >>> features_of(as_points([[0.0, 1.0, 2.0]]))
    3
    """
    if not isinstance(points, VectorPoints):
        raise ValueError("points must be vectors")
    return points.n_features


def check_alike(left: Points, right: Points) -> None:
    """Raise an error unless both are vectors of one kind, with as many features, as numbers of one type.

    Parameters
    ----------
    left, right : Points

    Examples
    --------
    >>> from hck.points import as_points, check_alike
    >>> try:
    ...     check_alike(as_points([[0.0]]), as_points([[0.0, 1.0]]))
    ... except ValueError as error:
    ...     print(error)
    points must have as many features, and be of one type of numbers
    """
    check_same_kind(left, right)
    same = (features_of(left), left.dtype) == (features_of(right), right.dtype)
    require(same, "points must have as many features, and be of one type of numbers")


def are_alike(left: Points, right: Points) -> bool:
    """Whether `check_alike` finds nothing wrong.

    Parameters
    ----------
    left, right : Points

    Examples
    --------
    >>> from hck.points import are_alike, as_points
    >>> number, pair = as_points([[0.0]]), as_points([[0.0, 1.0]])
    >>> are_alike(number, number), are_alike(number, pair)
    (True, False)
    """
    try:
        check_alike(left, right)
    except (TypeError, ValueError):
        return False
    return True


@torch.no_grad()
def check_kernel(kernel: Kernel, points: Points) -> float:
    """k(x, x) at a point; ValueError unless the kernel takes such points, and distances do not overflow.

    Parameters
    ----------
    kernel : Kernel
    points : Points

    Examples
    --------
    >>> from hck.kernels import Gaussian
    >>> from hck.points import as_points, check_kernel
    >>> check_kernel(2.0 * Gaussian(1.0), as_points([[0.0], [1.0]]))
    2.0
    """
    check_reach(points)
    d = features_of(points)
    if isinstance(points.x, Tensor):
        zero: Block = points.x.new_zeros(1, d)
    else:
        zero = sp.csr_matrix((1, d), dtype=points.x.dtype)
    value = float(kernel.evaluate(zero, zero).max())
    require(math.isfinite(value) and value > 0, f"the kernel has the value {value} at 0")
    return value


def check_weights(name: str, weights: Tensor, most: float, *shape: int | None) -> None:
    """Floats of a shape, with which no sum of kernel values, `most` at most, overflows.

    Parameters
    ----------
    name : str
        For the error.
    weights : Tensor
    most : float
        The largest value that the kernel has.
    *shape : int or None
        What the shape must be; None: anything.

    Examples
    --------
    >>> import torch
    >>> from hck.points import check_weights
    >>> try:
    ...     check_weights("weights", torch.full((3, 1), 1e38), 1.0, 3, None)
    ... except ValueError as error:
    ...     print(error)
    weights must be so small that predictions do not overflow
    """
    check_floats(name, weights, *shape)
    total = float(weights.detach().abs().sum(0, dtype=torch.float64).max()) * most if weights.numel() else 0.0
    largest = torch.finfo(weights.dtype).max / 8
    require(total < largest, f"{name} must be so small that predictions do not overflow")
