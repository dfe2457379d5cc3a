"""Kernel values, landmark factors, transfers, leaf bases and leaf residuals."""

import torch
from torch import Tensor

from hck import linalg
from hck.blocks import Batch
from hck.hierarchy.layout import Layout
from hck.hierarchy.matrix import HierarchicalMatrix
from hck.kernels import Kernel
from hck.memory import per_chunk
from hck.parallel import chunks, for_each, parallel_map
from hck.partition import Landmarks, Tree
from hck.points import Points, cross


def build_matrix(
    kernel: Kernel,
    points: Points,
    tree: Tree,
    landmarks: Landmarks,
    jitter: float,
    budget: int,
    verbose: bool = False,
) -> tuple[HierarchicalMatrix, Tensor]:
    """K_h on points in the tree's order, and the landmark factors C.

    ::

        C_p C_pᵀ = K(Z_p, Z_p) + jitter I
        W_i = C_i⁻¹ K(Z_i, Z_p) C_p⁻ᵀ              inner node i with parent p
        V_j = K(X_j, Z_p) C_p⁻ᵀ                    leaf j with parent p
        D_j = K(X_j, X_j) − V_j V_jᵀ
    """
    rank, d = landmarks.rank, points.values_per_point
    itemsize = points.dtype.itemsize

    def leaves_at_once(width: int) -> int:
        return per_chunk(
            itemsize * (2 * width * (width + rank) + 4 * (width + rank) * d), budget, points.device
        )

    layout = Layout.of(tree, leaves_at_once)
    nodes_at_once = per_chunk(itemsize * (4 * rank * rank + 6 * rank * d), budget, points.device)
    factor = _landmark_factors(kernel, landmarks, jitter, nodes_at_once, verbose)
    transfer = _transfers(kernel, landmarks, factor, layout, nodes_at_once, verbose)

    def leaf_blocks(batch: Batch) -> tuple[Tensor, Tensor]:
        parent = layout.parents(batch)
        own = cross(kernel, points, batch, points, batch)
        far = cross(kernel, points, batch, landmarks.points, landmarks.blocks[parent])
        v = linalg.whiten_right(far, factor[parent])
        own = torch.baddbmm(own, v, v.mT, alpha=-1)
        if not batch.full:
            own.diagonal(dim1=-2, dim2=-1).add_((~batch.mask).to(own.dtype))
        return own, v

    leaves = list(parallel_map(leaf_blocks, layout.leaves, points.device, "Leaves: kernel", verbose))
    residual, basis = [own for own, _ in leaves], [v for _, v in leaves]
    return HierarchicalMatrix(layout, residual, basis, transfer), factor


def _landmark_factors(
    kernel: Kernel, landmarks: Landmarks, jitter: float, step: int, verbose: bool
) -> Tensor:
    z, blocks = landmarks.points, landmarks.blocks
    out = torch.empty(len(blocks), landmarks.rank, landmarks.rank, dtype=z.dtype, device=z.device)

    def work(here: slice) -> None:
        block = blocks[here]
        values = cross(kernel, z, block, z, block)
        # a padded landmark has a zero row and 1 on the diagonal
        values.diagonal(dim1=-2, dim2=-1).add_(torch.where(block.mask, values.new_tensor(jitter), 1.0))
        out[here] = linalg.factor(values, "the landmark matrix K(Z, Z) + jitter I")

    for_each(work, chunks(0, len(blocks), step), z.device, "Landmarks: factors", verbose)
    return out


def _transfers(
    kernel: Kernel, landmarks: Landmarks, factor: Tensor, layout: Layout, step: int, verbose: bool
) -> Tensor:
    z, blocks = landmarks.points, landmarks.blocks
    out = torch.zeros_like(factor)  # the root's stays 0

    def work(here: slice) -> None:
        parent = layout.slot_parent[here]
        values = cross(kernel, z, blocks[here], z, blocks[parent])
        half = linalg.whiten_right(values, factor[parent])
        out[here] = linalg.whiten(factor[here], half)

    for_each(work, chunks(1, len(blocks), step), z.device, "Landmarks: transfers", verbose)
    return out
