"""What is done at leaves and at inner nodes in the up- and the down-sweep.

Each step works on a stack of leaves or of nodes. Some devices do it in one go (`hck.backend.steps`);
elsewhere it is put together from `hck.backend.linalg`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from hck.backend import linalg
from hck.backend.reuse import room
from hck.backend.steps import LEAF, NODE, ROOT, Leaves, Nodes, Parents, Wanted, whole_steps
from hck.points import KernelBlocks


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
    whole = whole_steps(b)
    if whole is not None:
        wanted = _wanted(given.far)
        values = (_tensor(given.own), _tensor(given.far)) if wanted is None else wanted
        leaves = Leaves(values, given.landmark, given.which, noise, b)
        return whole.leaf_up(leaves, Parents(parents.information, parents.mean, where))
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
    whole = whole_steps(inbox.mean)
    if whole is not None:
        values = _wanted(given.far) or _tensor(given.far)
        nodes = Nodes(values, given.own, given.above, given.which, inbox.information, inbox.mean)
        return whole.node_up(nodes, Parents(parents.information, parents.mean, given.which))
    w = given.transfer()
    information = inbox.information.neg_()
    information.diagonal(dim1=-2, dim2=-1).add_(1)
    factor = linalg.factor_(information, NODE)
    gram = w.mT @ w
    h = linalg.whiten_(factor, w.clone() if given.own is None else w)  # a W that was given stays as it is
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
    whole = whole_steps(above)
    if whole is not None:
        return whole.node_down((packed, diagonal, h), nu, q, above)
    gain = linalg.multiply_packed(packed, diagonal, above - q)
    return linalg.unwhiten_packed(packed, diagonal, torch.baddbmm(nu, h, gain))


def leaf_down(factor: Tensor, y: Tensor, a: Tensor, above: Tensor) -> tuple[Tensor, Tensor]:
    """w = L⁻ᵀ (a − Y ẑ_p), and d = ẑ_p − Vᵀ w, what a leaf hears of w elsewhere.

    `a` (leaves, n, k) and `above`, which is ẑ_p (leaves, r, k), may be overwritten.
    """
    whole = whole_steps(a)
    if whole is not None:
        return whole.leaf_down(factor, y, a, above)
    rest = torch.baddbmm(a, y, above, alpha=-1)
    return linalg.unwhiten_(factor, rest), torch.baddbmm(above, y.mT, rest, alpha=-1)


def _tensor(values: KernelBlocks | Tensor) -> Tensor:
    return values if isinstance(values, Tensor) else values.tensor()


def _wanted(values: KernelBlocks | Tensor) -> Wanted | None:
    """Kernel values to be computed on the way; None if they have to be computed beforehand."""
    placed = values.compilable() if isinstance(values, KernelBlocks) else None
    if placed is None or isinstance(values, Tensor):
        return None
    return Wanted(placed.profile, placed.left.x, values.rows.index, placed.right.x, values.columns.index)
