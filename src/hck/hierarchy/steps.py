"""What is done at leaves and at inner nodes in the up- and the down-sweep.

Each step works on a stack of leaves or of nodes. Some devices do it in one go (`hck.backend.steps`);
elsewhere it is put together from `hck.backend.linalg`.
"""

import torch
from torch import Tensor

from hck.backend import linalg
from hck.backend.steps import LEAF, NODE, ROOT, Inbox, LeafInput, NodeInput, whole_steps


def leaf_up(
    given: LeafInput, noise: Tensor, b: Tensor, parents: Inbox, where: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """L, Y, a = L⁻¹ b and half the log-determinants, of leaves; Θ and t = Yᵀ a go to the parents.

    L Lᵀ = D + noise, Y = L⁻¹ V, Θ = Yᵀ Y. The noise (leaves, n) is 1 where a point is padding;
    b (leaves, n, k) may be overwritten; `where` (leaves,) says which of the parents each leaf sends to.
    """
    whole = whole_steps(b)
    if whole is not None:
        return whole.leaf_up(given, noise, b, parents, where)
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
    """A and M packed, M's diagonal, H, ν, q and half the log-determinants, of inner nodes.

    ::

        A Aᵀ = I + Ξ;  H = A⁻¹ W;  M = (I − Wᵀ W + Hᵀ H)⁻¹;  Θ = M − I goes to the parents
        ν = A⁻¹ τ;     q = Hᵀ ν;   t = M q                   goes to the parents

    The inbox has Ξ and τ, and may be overwritten.
    """
    whole = whole_steps(inbox.mean)
    if whole is not None:
        return whole.node_up(inbox, given, parents)
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


def node_down(factors: tuple[Tensor, Tensor, Tensor], nu: Tensor, q: Tensor, above: Tensor) -> Tensor:
    """ẑ = A⁻ᵀ (ν + H M (ẑ_p − q)) of inner nodes; `above` is ẑ_p (nodes, r, k), and may be overwritten.

    The factors are A and M packed, M's diagonal, and H.
    """
    whole = whole_steps(above)
    if whole is not None:
        return whole.node_down(factors, nu, q, above)
    packed, diagonal, h = factors
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
