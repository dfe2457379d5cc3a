"""What is done at leaves and at inner nodes in the up- and the down-sweep.

Each step works on a stack of leaves or of nodes. On the CPU it is one compiled function; on a GPU, and where
gradients are asked for, it is put together from `hck.backend.linalg`.
"""

from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hck.backend import linalg
from hck.backend.kernels import GIVEN, Recipe, compiled_kernels, recipe
from hck.backend.linalg import flat
from hck.backend.reuse import room
from hck.points import KernelBlocks

# What is factored, for warnings and errors.
LEAF = "the leaf matrix D + alpha I"
NODE = "the information matrix I + Ξ of an inner node"
ROOT = "the matrix I − X of an inner node"


@dataclass
class LeafInput:
    """D and V of leaves, or what they are computed from.

    Attributes
    ----------
    own : KernelBlocks or Tensor of shape (leaves, n, n)
        K(X, X), or D.
    far : KernelBlocks of shape (leaves, r, n), or Tensor of shape (leaves, n, r)
        K(Z, X), or V.
    landmark : Tensor of shape (nodes, r, r) or None
        C; None if D and V are given.
    which : Tensor of shape (leaves,)
        The leaves' parents, counted within their level; C is in the same order.
    """

    own: KernelBlocks | Tensor
    far: KernelBlocks | Tensor
    landmark: Tensor | None
    which: Tensor

    def blocks(self) -> tuple[Tensor, Tensor]:
        """D (its upper triangle) and V; what is given may be overwritten."""
        if self.landmark is None:
            return _tensor(self.own), _tensor(self.far)
        v = linalg.whiten_(self.landmark, _tensor(self.far), self.which)  # Vᵀ
        return linalg.subtract_gram_(v, _tensor(self.own)), v.mT


@dataclass
class NodeInput:
    """W of inner nodes, or what it is computed from.

    Attributes
    ----------
    far : KernelBlocks or Tensor of shape (nodes, r, r)
        K(Z_p, Z_i), or W.
    own : Tensor of shape (nodes, r, r) or None
        C of the nodes; None if W is given.
    above : Tensor of shape (parents, r, r) or None
        C of their parents.
    which : Tensor of shape (nodes,)
        The nodes' parents, counted within their level.
    """

    far: KernelBlocks | Tensor
    own: Tensor | None
    above: Tensor | None
    which: Tensor

    def transfer(self) -> Tensor:
        """W; what it is computed from may be overwritten, W itself may not."""
        if self.own is None or self.above is None:
            return _tensor(self.far)
        half = linalg.whiten_(self.above, _tensor(self.far), self.which)  # C_p⁻¹ K(Z_p, Z_i)
        return linalg.whiten_(self.own, half.mT)


@dataclass
class Inbox:
    """What the nodes of a level hear from their children, with the sign changed.

    Attributes
    ----------
    information : Tensor of shape (nodes, r, r)
        −ΣΘ; only the upper triangle counts.
    mean : Tensor of shape (nodes, r, k)
        −Σt, for k right-hand sides, perhaps none.
    """

    information: Tensor
    mean: Tensor

    @classmethod
    def empty(cls, nodes: int, rank: int, b: Tensor) -> "Inbox":
        """For that many nodes, and the right-hand sides b (·, columns)."""
        information = room((nodes, rank, rank), b.dtype, b.device).zero_()
        return cls(information, b.new_zeros(nodes, rank, b.shape[1]))

    def add(self, where: Tensor, theta: Tensor, t: Tensor) -> None:
        """Receive Θ (children, r, r) and t (children, r, k)."""
        self.information.index_add_(0, where, theta, alpha=-1)
        self.mean.index_add_(0, where, t, alpha=-1)

    def subtract_identity(self, where: Tensor) -> None:
        """Receive −I from children."""
        diagonal = self.information.diagonal(dim1=-2, dim2=-1)
        diagonal.index_add_(0, where, diagonal.new_ones(len(where), diagonal.shape[1]))

    def pour(self, where: Tensor, other: "Inbox") -> None:
        """Receive what another inbox has received, row by row."""
        self.information.index_add_(0, where, other.information)
        self.mean.index_add_(0, where, other.mean)


def leaf_up(
    given: LeafInput, noise: Tensor, b: Tensor, parents: Inbox, where: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """L, Y, a = L⁻¹ b and half the log-determinant, of leaves; Θ and t = Yᵀ a go to the parents.

    L Lᵀ = D + noise, Y = L⁻¹ V, Θ = Yᵀ Y.

    Parameters
    ----------
    noise : Tensor of shape (leaves, n)
        1 where a point is padding.
    b : Tensor of shape (leaves, n, k)
        It may be overwritten.
    where : Tensor of shape (leaves,)
        Which of `parents` each leaf sends to.
    """
    given = replace(given, own=_known(given.own), far=_known(given.far))
    if linalg.can_compile(b, noise, *_tensors(given.own, given.far, given.landmark)):
        return _leaf_up_compiled(given, noise, b, parents, where)
    residual, basis = given.blocks()
    residual.diagonal(dim1=-2, dim2=-1).add_(noise)
    factor = linalg.factor_(residual, LEAF)
    y = linalg.whiten_(factor, basis)
    a = linalg.whiten_(factor, b)
    parents.add(where, y.mT @ y, y.mT @ a)
    return factor, y, a, linalg.half_log_determinant(factor)


def node_up(
    inbox: Inbox, given: NodeInput, parents: Inbox
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """A and M packed, M's diagonal, H, ν, q and half the log-determinant, of inner nodes.

    ::

        A Aᵀ = I + Ξ;  H = A⁻¹ W;  M = (I − Wᵀ W + Hᵀ H)⁻¹;  Θ = M − I goes to the parents
        ν = A⁻¹ τ;     q = Hᵀ ν;   t = M q                   goes to the parents

    Parameters
    ----------
    inbox : Inbox
        Ξ and τ; it may be overwritten.
    """
    given = replace(given, far=_known(given.far))
    if linalg.can_compile(inbox.information, inbox.mean, *_tensors(given.far, given.own, given.above)):
        return _node_up_compiled(inbox, given, parents)
    w = given.transfer()
    information = inbox.information.neg_()
    information.diagonal(dim1=-2, dim2=-1).add_(1)
    factor = linalg.factor_(information, NODE)
    gram = w.mT @ w
    h = linalg.whiten_(factor, w.clone() if linalg.can_compile(factor, w) else w)  # W stays as it is
    innovation = gram.baddbmm_(h.mT, h, beta=-1)
    innovation.diagonal(dim1=-2, dim2=-1).add_(1)
    root = linalg.factor_(innovation, ROOT)
    m = linalg.inverse(root)
    nu = linalg.whiten_(factor, -inbox.mean)
    q = h.mT @ nu
    parents.add(given.which, m, m @ q)
    parents.subtract_identity(given.which)  # Θ = M − I
    half = linalg.half_log_determinant(factor) + linalg.half_log_determinant(root)
    return *linalg.pack_(m, factor), h, nu, q, half


def node_down(packed: Tensor, diagonal: Tensor, h: Tensor, nu: Tensor, q: Tensor, above: Tensor) -> Tensor:
    """ẑ = A⁻ᵀ (ν + H M (ẑ_p − q)) of inner nodes; `above` is ẑ_p (nodes, r, k), and may be overwritten."""
    if linalg.can_compile(packed, h, nu, q, above):
        r, k = above.shape[1:]
        z = above.contiguous()
        _compiled(packed.dtype).node_down(*map(flat, (packed, diagonal, h, nu, q, z)), r, k)
        return z
    gain = linalg.multiply_packed(packed, diagonal, above - q)
    return linalg.unwhiten_packed(packed, diagonal, torch.baddbmm(nu, h, gain))


def leaf_down(factor: Tensor, y: Tensor, a: Tensor, above: Tensor) -> tuple[Tensor, Tensor]:
    """w = L⁻ᵀ (a − Y ẑ_p), and d = ẑ_p − Vᵀ w, what a leaf hears of w elsewhere.

    `a` (leaves, n, k) and `above`, which is ẑ_p (leaves, r, k), may be overwritten.
    """
    if linalg.can_compile(factor, y, a, above):
        n, r, k = *y.shape[1:], a.shape[2]
        w, d = a.contiguous(), above.contiguous()
        _compiled(factor.dtype).leaf_down(*map(flat, (factor, y, w, d)), n, r, k)
        return w, d
    rest = torch.baddbmm(a, y, above, alpha=-1)
    return linalg.unwhiten_(factor, rest), torch.baddbmm(above, y.mT, rest, alpha=-1)


def _leaf_up_compiled(
    given: LeafInput, noise: Tensor, b: Tensor, parents: Inbox, where: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    (leaves, n, k), r = b.shape, parents.information.shape[-1]
    a = b.contiguous()
    points, kernel, d = _recipe(given.far)
    if kernel.tile:
        own, far = room((leaves, n, n), a.dtype, a.device), a.new_empty(0)
    else:
        own, far = _tensor(given.own).contiguous(), _tensor(given.far).contiguous()
    if given.landmark is None:
        landmark, y, far = a.new_empty(0), far, a.new_empty(0)
    else:
        landmark, y = given.landmark, room((leaves, n, r), a.dtype, a.device)
    half, jitter = np.empty(leaves), np.empty(leaves)
    z, columns, x, rows = points
    arrays = map(flat, (own, far, landmark, given.which, noise, a, y))
    spare = room((n, n), own.dtype, own.device)
    boxes = map(flat, (parents.information, parents.mean, where, spare))
    _compiled(own.dtype).leaf_up(
        x, rows, z, columns, kernel, *arrays, half, jitter, *boxes, n, r, k, d, *linalg.jitters(own.dtype),
    )  # fmt: skip
    linalg.report(jitter, own.dtype, LEAF)
    return own, y, a, torch.tensor(half.sum())


def _node_up_compiled(
    inbox: Inbox, given: NodeInput, parents: Inbox
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    xi, nu = inbox.information.contiguous(), inbox.mean.contiguous()
    nodes, r, k = nu.shape
    empty = xi.new_empty(0)
    (z, rows, _, columns), kernel, d = _recipe(given.far)
    far = empty if kernel.tile else _tensor(given.far)
    own, above = (empty if c is None else c for c in (given.own, given.above))
    h, q, diagonal = room((nodes, r, r), xi.dtype, xi.device), torch.empty_like(nu), xi.new_empty(nodes, r)
    half, jitter = np.empty(nodes), np.empty((nodes, 2))
    arrays = map(flat, (xi, far, own, above, given.which, nu, h, q, diagonal))
    spare = room((4, r, r), xi.dtype, xi.device)
    boxes = map(flat, (parents.information, parents.mean, spare))
    _compiled(xi.dtype).node_up(
        z, rows, columns, kernel, *arrays, half, jitter.ravel(), *boxes, r, k, d, *linalg.jitters(xi.dtype),
    )  # fmt: skip
    linalg.report(jitter[:, 0], xi.dtype, NODE)
    linalg.report(jitter[:, 1], xi.dtype, ROOT)
    return xi, diagonal, h, nu, q, torch.tensor(half.sum())


def _recipe(values: KernelBlocks | Tensor) -> tuple[list[np.ndarray], Recipe, int]:
    """Points and positions of both sides of kernel values, the kernel, and the number of features.

    Nothing, and `GIVEN` for the kernel, if they have to be computed beforehand.
    """
    placed = values.compilable() if isinstance(values, KernelBlocks) else None
    if placed is None or isinstance(values, Tensor):
        like = values if isinstance(values, Tensor) else values.left
        nothing, position = np.empty(0, _NUMPY[like.dtype]), np.empty(0, np.int64)
        return [nothing, position, nothing, position], GIVEN, 0
    sides = (placed.left.x, values.rows.index, placed.right.x, values.columns.index)
    made = recipe(placed.profile, values.left.dtype.itemsize)
    return [flat(side) for side in sides], made, placed.left.n_features


_NUMPY = {torch.float64: np.float64, torch.float32: np.float32}


def _tensor(values: KernelBlocks | Tensor) -> Tensor:
    return values if isinstance(values, Tensor) else values.tensor()


def _known(values: KernelBlocks | Tensor) -> KernelBlocks | Tensor:
    """Kernel values that compiled code cannot compute, computed."""
    return values if isinstance(values, Tensor) or values.compilable() else values.tensor()


def _tensors(*values: KernelBlocks | Tensor | None) -> list[Tensor]:
    """Those that are tensors."""
    return [value for value in values if isinstance(value, Tensor)]


@cache
def _compiled(dtype: torch.dtype) -> Any:
    """The compiled steps, loaded when they are first used: that takes a second."""
    compiled_kernels(dtype.itemsize)
    return import_module("hck.backend.cpu.steps")
