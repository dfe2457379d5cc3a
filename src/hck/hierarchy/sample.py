"""Draws from the Gaussian process itself: down the tree, from the root's latent to the leaves."""

import torch
from torch import Tensor

from hck.backend import linalg
from hck.backend.parallel import for_each
from hck.backend.random import RandomLike, as_random
from hck.hierarchy.blueprint import Blueprint


@torch.no_grad()
def sample_prior(
    blueprint: Blueprint, count: int, generator: RandomLike = None, verbose: bool = False
) -> Tensor:
    """Values at a blueprint's points of functions drawn from N(0, K_h): shape (n, count).

    ::

        z_root ~ N(0, I);   z_i = W_i z_p + N(0, I − W_i W_iᵀ);   f_j = V_j z_p + N(0, D_j)

    It takes O(n r²) once and O(n r) for each function; nothing but z and f is kept. `jitter` is added to D_j,
    since smooth kernels leave next to nothing there.
    """
    if count < 1 or count != int(count):
        raise ValueError(f"count must be a whole number, at least 1, got {count}")
    layout, points, rank = blueprint.layout, blueprint.points, blueprint.rank
    random, place = as_random(generator), (points.dtype, points.device)
    z = random.child(0).normal((layout.n_slots, rank, count), *place)
    out = torch.cat([random.child(1).normal((len(points), count), *place), z.new_zeros(1, count)])
    source = blueprint.part(layout)
    for level, (first, stop) in enumerate(layout.levels):
        source.prepare(level)

        def nodes(part: slice, level: int = level) -> None:
            w = source.node(level, part).transfer()
            rest = torch.eye(rank, dtype=w.dtype, device=w.device) - w @ w.mT
            own = linalg.color(linalg.factor_(rest, "the covariance I − W Wᵀ of an inner node"), z[part])
            z[part] = torch.baddbmm(own, w, z[layout.parent[part]])

        if level > 0:
            for_each(nodes, source.chunks(first, stop), points.device)
            if level - 1 not in layout.leaf_levels:
                source.release(level - 1)

    def leaves(k: int) -> None:
        batch = layout.leaves[k]
        residual, basis = source.leaf(k).blocks()
        jitter = residual.new_full(batch.index.shape, blueprint.jitter)
        residual.diagonal(dim1=-2, dim2=-1).add_(jitter if batch.full else jitter.where(batch.mask, 1))
        own = linalg.color(linalg.factor_(residual, "the residual D of a leaf"), out[batch.index])
        out[batch.index] = torch.baddbmm(own, basis, z[layout.parents(batch)])

    for_each(leaves, range(len(layout.leaves)), points.device, "Sample: leaves", verbose)
    return layout.unpad(out)
