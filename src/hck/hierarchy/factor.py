"""Factor K_h + noise once, solve many times: a Kalman filter and smoother on the tree.

K_h is the covariance of leaf vectors y_j = V_j z_p + e_j, where the latent z of the root is N(0, I), that of
an inner node i with parent p is W_i z_p plus independent noise, and every latent is N(0, I) by itself. So
solving with K_h + noise is inference in a tree of Gaussians (the paper's Algorithm 2, in whitened form).
"""

import torch
from torch import Tensor

from hck import linalg
from hck.hierarchy.matrix import HierarchicalMatrix
from hck.memory import per_chunk
from hck.parallel import chunks, for_each, parallel_map
from hck.progress import track


class Factor:
    """The factored matrix K_h + diag(noise).

    Up-sweep, leaves first. Leaf j: L Lᵀ = D_j + noise, Y_j = L⁻¹ V_j, and Θ_j = Y_jᵀ Y_j goes up.
    Inner node i, with Ξ the sum of what its children sent::

        A Aᵀ = I + Ξ;   H = A⁻¹ W_i;   B Bᵀ = M⁻¹ = I − W_iᵀ W_i + Hᵀ H
        Θ_i = M − I goes up;           J_i = A⁻ᵀ H M is the smoother's gain

    Only matrices that are at least I, or well away from 0, are factored.

    Parameters
    ----------
    matrix : HierarchicalMatrix
        The kernel matrix, with identity cores.
    noise : Tensor of shape (n,)
        Variance of the noise on each point, in the original order.
    budget : int
        Bytes that temporaries should stay within.
    overwrite : bool
        Whether to take over the leaf blocks of `matrix`, which is then of no further use.
    verbose : bool
        Whether to show progress.
    """

    def __init__(
        self,
        matrix: HierarchicalMatrix,
        noise: Tensor,
        budget: int,
        overwrite: bool = False,
        verbose: bool = False,
    ) -> None:
        self.layout, self.transfer, self.budget = matrix.layout, matrix.transfer, budget
        self.device = self.transfer.device
        self.log_determinant = torch.zeros((), dtype=torch.float64, device=self.device)
        precision = torch.zeros_like(self.transfer)  # Ξ, then A
        padded = self.layout.pad(noise[:, None])[:, 0]
        self.leaf_factor: list[Tensor] = []  # L
        self.leaf_basis: list[Tensor] = []  # Y

        def factor_leaves(k: int) -> tuple[Tensor, Tensor, Tensor]:
            residual, basis = matrix.residual[k], matrix.basis[k]
            if overwrite:
                matrix.residual[k] = matrix.basis[k] = residual.new_empty(0)
            else:
                residual = residual.clone()
            residual.diagonal(dim1=-2, dim2=-1).add_(padded[self.layout.leaves[k].index])
            factor = linalg.cholesky(residual, "the leaf matrix D + alpha I")
            y = linalg.solve_lower(factor, basis)
            return factor, y, y.mT @ y

        every = range(len(self.layout.leaves))
        results = parallel_map(factor_leaves, every, self.device, "Leaves: factor", verbose)
        for batch, (factor, y, sent) in zip(self.layout.leaves, results, strict=True):
            precision.index_add_(0, self.layout.parents(batch), sent)
            self.log_determinant += 2 * linalg.half_log_determinant(factor)
            self.leaf_factor.append(factor)
            self.leaf_basis.append(y)
        self.gain = torch.zeros_like(self.transfer)  # J
        self.inner_factor = precision  # A
        for first, stop in track(self.layout.levels[::-1], "Inner nodes: factor", verbose):
            parts = self._chunks(first, stop)
            done = parallel_map(self._factor_nodes, parts, self.device)
            for part, (sent, half_log_determinant) in zip(parts, done, strict=True):
                self.log_determinant += 2 * half_log_determinant
                if first > 0:
                    precision.index_add_(0, self.layout.slot_parent[part], sent)

    def _factor_nodes(self, part: slice) -> tuple[Tensor, Tensor]:
        """Factor inner nodes of one level, all of whose children are done.

        Returns what they send to their parents, and their part of half the log-determinant.
        """
        here = self.inner_factor[part]
        here.diagonal(dim1=-2, dim2=-1).add_(1)
        factor = linalg.cholesky(here, "the information matrix I + Ξ of an inner node")
        here.copy_(factor)
        w = self.transfer[part]
        h = linalg.solve_lower(factor, w)
        innovation = h.mT @ h - w.mT @ w
        innovation.diagonal(dim1=-2, dim2=-1).add_(1)
        root = linalg.cholesky(innovation, "the matrix I − X of an inner node")
        log_determinant = linalg.half_log_determinant(factor) + linalg.half_log_determinant(root)
        m = torch.cholesky_inverse(root)
        self.gain[part] = linalg.solve_lower_transposed(factor, h @ m)
        m.diagonal(dim1=-2, dim2=-1).sub_(1)
        return m, log_determinant

    def _chunks(self, first: int, stop: int) -> list[slice]:
        """Inner nodes in slices small enough for their temporaries."""
        rank = self.transfer.shape[-1]
        step = per_chunk(self.transfer.itemsize * 6 * rank * rank, self.budget, self.device)
        return chunks(first, stop, step)

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        parts = [*self.leaf_factor, *self.leaf_basis, self.transfer, self.gain, self.inner_factor]
        return sum(part.nbytes for part in parts)

    def solve(self, b: Tensor) -> Tensor:
        """(K_h + noise)⁻¹ b for a vector or for a matrix of several."""
        columns = b[:, None] if b.ndim == 1 else b
        w, _ = self.solve_padded(self.layout.pad(columns.to(self.transfer)))
        return self.layout.unpad(w).reshape(b.shape)

    def solve_padded(self, b: Tensor) -> tuple[Tensor, Tensor]:
        """The solution w of (K_h + noise) w = b and what the inner nodes hear of it, all in the tree's order.

        Parameters
        ----------
        b : Tensor of shape (n + 1, columns)
            In the tree's order, with a zero row at the end.

        Returns
        -------
        w : Tensor of shape (n + 1, columns)
            With a zero row at the end.
        ambient : Tensor of shape (leaves, r, columns)
            d_j = ẑ_p − V_jᵀ w_j for each leaf: what it hears of w in all other leaves.
        """
        layout, leaves = self.layout, range(len(self.layout.leaves))
        whitened = torch.empty_like(b)  # a = L⁻¹ b
        total = b.new_zeros(layout.n_slots, self.transfer.shape[-1], b.shape[1])  # τ

        def up(k: int) -> Tensor:
            index = layout.leaves[k].index
            whitened[index] = a = linalg.solve_lower(self.leaf_factor[k], b[index])
            return self.leaf_basis[k].mT @ a

        for batch, sent in zip(layout.leaves, parallel_map(up, leaves, self.device), strict=True):
            total.index_add_(0, layout.parents(batch), sent)
        for first, stop in reversed(layout.levels[1:]):
            sent = self.gain[first:stop].mT @ total[first:stop]
            total.index_add_(0, layout.slot_parent[first:stop], sent)
        state = torch.empty_like(total)  # μ, then ẑ

        def update(part: slice) -> None:
            state[part] = torch.cholesky_solve(total[part], self.inner_factor[part])

        for_each(update, self._chunks(0, layout.n_slots), self.device)
        for first, stop in layout.levels[1:]:
            surprise = (
                state[layout.slot_parent[first:stop]] - self.transfer[first:stop].mT @ state[first:stop]
            )
            state[first:stop] += self.gain[first:stop] @ surprise
        w = torch.empty_like(b)
        ambient = b.new_empty(layout.tree.n_leaves, *state.shape[1:])

        def down(k: int) -> None:
            batch, y = layout.leaves[k], self.leaf_basis[k]
            z = state[layout.parents(batch)]
            rest = whitened[batch.index] - y @ z
            w[batch.index] = linalg.solve_lower_transposed(self.leaf_factor[k], rest)
            ambient[batch.groups] = z - y.mT @ rest  # V_jᵀ w_j = Y_jᵀ (a_j − Y_j ẑ_p)

        for_each(down, leaves, self.device)
        w[-1] = 0
        return w, ambient

    def posterior(self) -> Tensor:
        """P, the covariance of every inner node's latent given all data: shape (slots, r, r)."""
        covariance = torch.cholesky_inverse(self.inner_factor)
        for first, stop in self.layout.levels[1:]:
            gain, own = self.gain[first:stop], covariance[first:stop]
            above = covariance[self.layout.slot_parent[first:stop]]
            change = gain @ (above @ gain.mT - self.transfer[first:stop].mT @ own)
            covariance[first:stop] = own + (change + change.mT) / 2
        return covariance

    def inverse(self) -> HierarchicalMatrix:
        """(K_h + noise)⁻¹ as a hierarchical matrix: D⁻¹, D⁻¹V, J and −P in place of D, V, W and I."""
        residual, basis = [], []
        for _, factor, y in self._leaves():
            residual.append(torch.cholesky_inverse(factor))
            basis.append(linalg.solve_lower_transposed(factor, y))
        return HierarchicalMatrix(self.layout, residual, basis, self.gain, -self.posterior())

    def inverse_diagonal(self) -> Tensor:
        """The diagonal of (K_h + noise)⁻¹, in the original order."""
        covariance = self.posterior()
        out = covariance.new_empty(self.layout.tree.n_points + 1, 1)
        for batch, factor, y in self._leaves():
            u = linalg.solve_lower_transposed(factor, y)
            own = torch.cholesky_inverse(factor).diagonal(dim1=-2, dim2=-1)
            out[batch.index] = (own - ((u @ covariance[self.layout.parents(batch)]) * u).sum(-1))[..., None]
        return self.layout.unpad(out)[:, 0]

    def _leaves(self) -> zip:
        return zip(self.layout.leaves, self.leaf_factor, self.leaf_basis, strict=True)
