"""The hierarchical matrix: what the kernel matrix and its inverse both are, and its blocks to be factored."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from hck.backend.memory import require_bytes
from hck.backend.parallel import for_each
from hck.backend.steps import LeafInput, NodeInput
from hck.hierarchy.layout import Layout


@dataclass
class HierarchicalMatrix:
    """A symmetric matrix whose off-diagonal blocks have nested low-rank factors.

    For a leaf j with parent p, and for leaves j, l whose last common ancestor is p::

        A_jj = R_j + U_j S_p U_jᵀ
        A_jl = (U_j W_a W_b …) S_p (U_l W_c W_d …)ᵀ      a, b, …: the nodes from j's parent up to below p

    The paper's Section 3 has A_jj, U, W and Σ. Here landmarks are whitened, so that the kernel matrix has
    S = I; its inverse has the same form with another R, U, W and S.

    Examples
    --------
    >>> import torch
    >>> from hck.hierarchy import HierarchicalKernel
    >>> x = torch.linspace(0, 1, 400, dtype=torch.float64)[:, None]
    >>> matrix = HierarchicalKernel.build("gaussian", x, rank=10, leaf_size=25, generator=0).matrix
    >>> matrix.shape, matrix.nbytes < matrix.to_dense().nbytes / 4
    ((400, 400), True)
    >>> bool((matrix @ x - matrix.to_dense() @ x).abs().max() < 1e-10)
    True
    """

    layout: Layout
    residual: list[Tensor]  # R (leaves, m, m) for each batch of leaves; a padded point has 1 on the diagonal
    basis: list[Tensor]  # U (leaves, m, r) for each batch of leaves
    transfer: Tensor  # W (slots, r, r); 0 for the root
    core: Tensor | None = None  # S (slots, r, r), or None for identities

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        n = self.layout.tree.n_points
        return (n, n)

    @property
    def dtype(self) -> torch.dtype:
        return self.transfer.dtype

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        parts = [*self.residual, *self.basis, self.transfer]
        return sum(part.nbytes for part in parts) + (0 if self.core is None else self.core.nbytes)

    @torch.no_grad()
    def __matmul__(self, b: Tensor) -> Tensor:
        """A b for a vector or for a matrix of several (Algorithm 1)."""
        padded = self.layout.pad(b, self.transfer)
        message = self.collect(padded)
        ambient = sweep(self.layout, self.transfer, self.core, message)
        out = torch.empty_like(padded)

        def multiply(k: int) -> None:
            batch = self.layout.leaves[k]
            near = self.residual[k] @ padded[batch.index]
            out[batch.index] = torch.baddbmm(near, self.basis[k], ambient[self.layout.parents(batch)])

        for_each(multiply, range(len(self.layout.leaves)), self.transfer.device)
        return self.layout.unpad(out).reshape(np.shape(b))

    def collect(self, padded: Tensor) -> Tensor:
        """U_jᵀ b_j for each leaf: shape (leaves, r, columns). `padded` is in the tree's order."""
        if any(basis.ndim < 3 for basis in self.basis):
            raise ValueError("this matrix was given up to a factor with overwrite=True; build it anew")
        r = self.transfer.shape[-1]
        message = padded.new_empty(self.layout.tree.n_leaves, r, padded.shape[1])

        def collect(k: int) -> None:
            batch = self.layout.leaves[k]
            message[batch.groups] = self.basis[k].mT @ padded[batch.index]

        for_each(collect, range(len(self.layout.leaves)), self.transfer.device)
        return message

    @torch.no_grad()
    def diagonal(self) -> Tensor:
        """The diagonal, in the original order of the points."""
        out = self.transfer.new_empty(self.shape[0] + 1, 1)
        for batch, residual, basis in zip(self.layout.leaves, self.residual, self.basis, strict=True):
            right = basis if self.core is None else basis @ self.core[self.layout.parents(batch)]
            own = residual.diagonal(dim1=-2, dim2=-1) + (right * basis).sum(-1)
            out[batch.index] = own[..., None]
        return self.layout.unpad(out)[:, 0]

    def to_dense(self) -> Tensor:
        """The whole matrix, (n, n). For small n."""
        n, device = self.shape[0], self.transfer.device
        needed = 4 * n * n * self.dtype.itemsize
        require_bytes(
            needed, device, f"the dense matrix of {n:,} points", "multiply with the matrix as it is (@)"
        )
        return self @ torch.eye(self.shape[0], dtype=self.dtype, device=self.transfer.device)


def sweep(layout: Layout, transfer: Tensor, core: Tensor | None, message: Tensor) -> Tensor:
    """Up and down the tree: what every inner node hears from all leaves.

    With c_j the message of leaf j, and for an inner node i with parent p::

        c_i = W_iᵀ Σ_children c            up
        e_i = W_i d_i + S_i Σ_children c   down, with d_i = e_p − S_p c_i and d_root = 0

    (Algorithm 1, where d gathers the siblings alone; e_i is that sum with the child itself put in.)

    From messages (leaves, r, columns) to e for every inner node (slots, r, columns).
    """
    total = message.new_zeros(layout.n_slots, *message.shape[1:])
    total.index_add_(0, layout.leaf_parent, message)
    own = torch.zeros_like(total)
    for first, stop in reversed(layout.levels[1:]):
        own[first:stop] = transfer[first:stop].mT @ total[first:stop]
        total.index_add_(0, layout.parent[first:stop], own[first:stop])
    if core is not None:
        total = core @ total
    for first, stop in layout.levels[1:]:
        parent = layout.parent[first:stop]
        sent = own[first:stop] if core is None else core[parent] @ own[first:stop]
        total[first:stop] += transfer[first:stop] @ (total[parent] - sent)
    return total


class Source(Protocol):
    """Where the blocks of K_h come from when they are factored: a `Blueprint`, or `Stored`.

    `budget` is the bytes that temporaries should stay within; `verbose` whether to show progress.
    """

    @property
    def layout(self) -> Layout: ...
    @property
    def rank(self) -> int: ...
    @property
    def budget(self) -> int: ...
    @property
    def verbose(self) -> bool: ...
    def prepare_leaves(self) -> None: ...
    def leaf(self, k: int) -> LeafInput: ...
    def prepare(self, level: int) -> None: ...
    def node(self, level: int, part: slice) -> NodeInput: ...
    def release(self, level: int) -> None: ...


@dataclass
class Stored:
    """The blocks of a matrix that is there. D and V are copied, or taken out of it; W stays as it is."""

    matrix: HierarchicalMatrix
    overwrite: bool
    budget: int
    verbose: bool = False

    @property
    def layout(self) -> Layout:
        return self.matrix.layout

    @property
    def rank(self) -> int:
        return self.matrix.transfer.shape[-1]

    def leaf(self, k: int) -> LeafInput:
        residual, basis = self.matrix.residual[k], self.matrix.basis[k]
        if self.overwrite:
            self.matrix.residual[k] = self.matrix.basis[k] = residual.new_empty(0)
        else:
            residual, basis = residual.clone(), basis.clone()
        if not self.layout.leaves[k].full:  # padding has 1 on the diagonal, which comes with the noise
            residual.diagonal(dim1=-2, dim2=-1).sub_((~self.layout.leaves[k].mask).to(residual.dtype))
        return LeafInput(residual, basis, None, self.layout.within_level(k))

    def node(self, level: int, part: slice) -> NodeInput:
        which = self.layout.parent_within_level(level, part)
        return NodeInput(self.matrix.transfer[part], None, None, which)

    def prepare_leaves(self) -> None: ...
    def prepare(self, level: int) -> None: ...
    def release(self, level: int) -> None: ...
