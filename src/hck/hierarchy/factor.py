"""Factor K_h + noise once, solve many times: a Kalman filter and smoother on the tree.

K_h is the covariance of leaf vectors y_j = V_j z_p + e_j, where the latent z of the root is N(0, I), that of
an inner node i with parent p is W_i z_p plus independent noise, and every latent is N(0, I) by itself. So
solving with K_h + noise is inference in a tree of Gaussians (the paper's Algorithm 2, in whitened form).
"""

import numpy as np
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

        A Aᵀ = I + Ξ;   H_i = A⁻¹ W_i;   M = (I − W_iᵀ W_i + H_iᵀ H_i)⁻¹;   Θ_i = M − I goes up

    Only matrices that are at least I, or well away from 0, are factored. The smoother's gain J = A⁻ᵀ H M is
    applied factor by factor, and W is not needed again, since W_iᵀ A⁻ᵀ = H_iᵀ.

    Parameters
    ----------
    matrix : HierarchicalMatrix
        The kernel matrix, with identity cores.
    noise : Tensor of shape (n,)
        Variance of the noise on each point, in the original order.
    budget : int
        Bytes that temporaries should stay within.
    overwrite : bool
        Whether to take over the arrays of `matrix`, which is then of no further use.
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
        self.layout, self.budget, self.device = matrix.layout, budget, matrix.transfer.device
        self.log_determinant = torch.zeros((), dtype=torch.float64, device=self.device)
        padded = self.layout.pad(noise, noise)[:, 0]
        self.leaf_factor: list[Tensor] = []  # L
        self.leaf_whitened: list[Tensor] = []  # Y
        self.inner_factor = torch.zeros_like(matrix.transfer)  # Ξ, then A
        self.inner_whitened = matrix.transfer if overwrite else matrix.transfer.clone()  # W, then H
        self.inner_message = torch.empty_like(matrix.transfer)  # M = I + Θ

        def factor_leaves(k: int) -> tuple[Tensor, Tensor, Tensor]:
            residual, basis = matrix.residual[k], matrix.basis[k]
            if overwrite:
                matrix.residual[k] = matrix.basis[k] = residual.new_empty(0)
            else:
                residual = residual.clone()
            residual.diagonal(dim1=-2, dim2=-1).add_(padded[self.layout.leaves[k].index])
            factor = linalg.factor(residual, "the leaf matrix D + alpha I")
            y = linalg.whiten(factor, basis)
            return factor, y, y.mT @ y

        every = range(len(self.layout.leaves))
        results = parallel_map(factor_leaves, every, self.device, "Leaves: factor", verbose)
        for batch, (factor, y, sent) in zip(self.layout.leaves, results, strict=True):
            self.inner_factor.index_add_(0, self.layout.parents(batch), sent)
            self.log_determinant += 2 * linalg.half_log_determinant(factor)
            self.leaf_factor.append(factor)
            self.leaf_whitened.append(y)
        for first, stop in track(self.layout.levels[::-1], "Inner nodes: factor", verbose):
            parts = self._chunks(first, stop)
            done = parallel_map(self._factor_nodes, parts, self.device)
            for part, (sent, half_log_determinant) in zip(parts, done, strict=True):
                self.log_determinant += 2 * half_log_determinant
                if first > 0:
                    self.inner_factor.index_add_(0, self.layout.slot_parent[part], sent)

    def _factor_nodes(self, part: slice) -> tuple[Tensor, Tensor]:
        """Factor inner nodes of one level, all of whose children are done.

        Returns what they send to their parents, and their part of half the log-determinant.
        """
        information, w = self.inner_factor[part], self.inner_whitened[part]
        information.diagonal(dim1=-2, dim2=-1).add_(1)
        factor = linalg.factor(information, "the information matrix I + Ξ of an inner node")
        h = linalg.whiten(factor, w)
        innovation = torch.baddbmm(w.mT @ w, h.mT, h, beta=-1)
        innovation.diagonal(dim1=-2, dim2=-1).add_(1)
        root = linalg.factor(innovation, "the matrix I − X of an inner node")
        sent = linalg.inverse(root)
        information.copy_(factor)
        w.copy_(h)
        self.inner_message[part] = sent
        sent.diagonal(dim1=-2, dim2=-1).sub_(1)
        return sent, linalg.half_log_determinant(factor) + linalg.half_log_determinant(root)

    def _chunks(self, first: int, stop: int) -> list[slice]:
        """Inner nodes in slices small enough for their temporaries."""
        rank = self.inner_factor.shape[-1]
        step = per_chunk(self.inner_factor.itemsize * 6 * rank * rank, self.budget, self.device)
        return chunks(first, stop, step)

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        inner = [self.inner_factor, self.inner_whitened, self.inner_message]
        parts = [*self.leaf_factor, *self.leaf_whitened, *inner]
        return sum(part.nbytes for part in parts)

    def solve(self, b: Tensor) -> Tensor:
        """(K_h + noise)⁻¹ b for a vector or for a matrix of several."""
        w, _ = self.solve_padded(self.layout.pad(b, self.inner_factor))
        return self.layout.unpad(w).reshape(np.shape(b))

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
        state = b.new_zeros(layout.n_slots, self.inner_factor.shape[-1], b.shape[1])  # τ, then ν, then ẑ
        expected = torch.empty_like(state)  # q = Hᵀ ν

        def up(k: int) -> Tensor:
            index = layout.leaves[k].index
            whitened[index] = a = linalg.whiten(self.leaf_factor[k], b[index])
            return self.leaf_whitened[k].mT @ a

        for batch, sent in zip(layout.leaves, parallel_map(up, leaves, self.device), strict=True):
            state.index_add_(0, layout.parents(batch), sent)

        def inner_up(part: slice) -> Tensor:
            state[part] = nu = linalg.whiten(self.inner_factor[part], state[part])
            expected[part] = q = self.inner_whitened[part].mT @ nu
            return self.inner_message[part] @ q

        for first, stop in reversed(layout.levels):
            parts = self._chunks(first, stop)
            for part, sent in zip(parts, parallel_map(inner_up, parts, self.device), strict=True):
                if first > 0:
                    state.index_add_(0, layout.slot_parent[part], sent)

        def inner_down(part: slice) -> None:
            surprise = self.inner_message[part] @ (state[layout.slot_parent[part]] - expected[part])
            updated = torch.baddbmm(state[part], self.inner_whitened[part], surprise)
            state[part] = linalg.unwhiten(self.inner_factor[part], updated)

        for first, stop in layout.levels:
            for_each(inner_down, self._chunks(first, stop), self.device)
        w = torch.empty_like(b)
        ambient = b.new_empty(layout.tree.n_leaves, *state.shape[1:])

        def down(k: int) -> None:
            batch, y = layout.leaves[k], self.leaf_whitened[k]
            z = state[layout.parents(batch)]
            rest = whitened[batch.index] - y @ z
            w[batch.index] = linalg.unwhiten(self.leaf_factor[k], rest)
            ambient[batch.groups] = z - y.mT @ rest  # V_jᵀ w_j = Y_jᵀ (a_j − Y_j ẑ_p)

        for_each(down, leaves, self.device)
        w[-1] = 0
        return w, ambient

    def posterior(self) -> Tensor:
        """P, the covariance of every inner node's latent given all data: shape (slots, r, r).

        P_i = A⁻ᵀ (I + H (M P_p M − M) Hᵀ) A⁻¹.
        """
        covariance = torch.empty_like(self.inner_factor)
        identity = torch.eye(covariance.shape[-1], dtype=covariance.dtype, device=self.device)

        def visit(part: slice) -> None:
            factor, h, m = self.inner_factor[part], self.inner_whitened[part], self.inner_message[part]
            above = m if part.start == 0 else covariance[self.layout.slot_parent[part]]  # the root has H = 0
            inner = identity + h @ (m @ above @ m - m) @ h.mT
            half = linalg.unwhiten(factor, inner)
            whole = linalg.unwhiten(factor, half.mT)
            covariance[part] = (whole + whole.mT) / 2

        for first, stop in self.layout.levels:
            for_each(visit, self._chunks(first, stop), self.device)
        return covariance

    def inverse(self) -> HierarchicalMatrix:
        """(K_h + noise)⁻¹ as a hierarchical matrix: D⁻¹, D⁻¹V, J and −P in place of D, V, W and I."""
        residual, basis = [], []
        for _, factor, y in self._leaves():
            residual.append(linalg.inverse(factor))
            basis.append(linalg.unwhiten(factor, y))
        gain = linalg.unwhiten(self.inner_factor, self.inner_whitened @ self.inner_message)
        return HierarchicalMatrix(self.layout, residual, basis, gain, -self.posterior())

    def inverse_diagonal(self) -> Tensor:
        """The diagonal of (K_h + noise)⁻¹, in the original order."""
        covariance = self.posterior()
        out = covariance.new_empty(self.layout.tree.n_points + 1, 1)
        for batch, factor, y in self._leaves():
            u = linalg.unwhiten(factor, y)
            own = linalg.inverse(factor).diagonal(dim1=-2, dim2=-1)
            out[batch.index] = (own - ((u @ covariance[self.layout.parents(batch)]) * u).sum(-1))[..., None]
        return self.layout.unpad(out)[:, 0]

    def _leaves(self) -> zip:
        return zip(self.layout.leaves, self.leaf_factor, self.leaf_whitened, strict=True)
