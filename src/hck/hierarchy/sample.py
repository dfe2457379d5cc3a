"""Draws from the Gaussian process itself: down the tree, from the root's latent to the leaves."""

import torch
from torch import Tensor

from hck import linalg
from hck.hierarchy.kernel import HierarchicalKernel
from hck.parallel import for_each


def sample_prior(h: HierarchicalKernel, count: int, generator: torch.Generator | None = None) -> Tensor:
    """Values at the training points of functions drawn from N(0, K_h): shape (n, count).

    ::

        z_root ~ N(0, I);   z_i = W_i z_p + N(0, I − W_i W_iᵀ);   f_j = V_j z_p + N(0, D_j)

    It takes O(n r²) once and O(n r) for each function. `jitter` is added to D_j, since smooth kernels leave
    next to nothing there.

    Parameters
    ----------
    count : int
        How many functions.
    generator : torch.Generator, optional
        On the device of the points.
    """
    if count < 1 or count != int(count):
        raise ValueError(f"count must be a whole number, at least 1, got {count}")
    layout, matrix, transfer = h.matrix.layout, h.matrix, h.matrix.transfer
    generator = torch.Generator(h.points.device).manual_seed(0) if generator is None else generator

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, count, generator=generator, dtype=transfer.dtype, device=transfer.device)

    # all random numbers first, so that threads do not change them
    z = normal(*transfer.shape[:2])
    out = torch.cat([normal(h.tree.n_points), transfer.new_zeros(1, count)])
    for first, stop in layout.levels[1:]:
        w = transfer[first:stop]
        rest = torch.eye(w.shape[-1], dtype=w.dtype, device=w.device) - w @ w.mT
        own = linalg.color(linalg.factor_(rest, "the covariance I − W Wᵀ of an inner node"), z[first:stop])
        z[first:stop] = torch.baddbmm(own, w, z[layout.parent[first:stop]])

    def leaves(k: int) -> None:
        batch, basis = layout.leaves[k], matrix.basis[k]
        residual = matrix.residual[k].clone()
        residual.diagonal(dim1=-2, dim2=-1).add_(h.jitter)
        own = linalg.color(linalg.factor_(residual, "the residual D of a leaf"), out[batch.index])
        out[batch.index] = torch.baddbmm(own, basis, z[layout.parents(batch)])

    for_each(leaves, range(len(layout.leaves)), out.device)
    return layout.unpad(out)
