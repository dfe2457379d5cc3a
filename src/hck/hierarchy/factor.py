"""Factor K_h + noise once, solve many times: a Kalman filter and smoother on the tree.

K_h is the covariance of leaf vectors y_j = V_j z_p + e_j, where the latent z of the root is N(0, I), that of
an inner node i with parent p is W_i z_p plus independent noise, and every latent is N(0, I) by itself. So
solving with K_h + noise is inference in a tree of Gaussians (the paper's Algorithm 2, in whitened form).
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from hck.backend import linalg
from hck.backend.blocks import Batch
from hck.backend.kinds import kind_of
from hck.backend.memory import Cost, at_once
from hck.backend.parallel import chunks, for_each, parallel_map
from hck.backend.progress import track
from hck.backend.steps import Inbox
from hck.hierarchy.matrix import HierarchicalMatrix, Source
from hck.hierarchy.smooth import Filtered, Weights, filter_up, smooth_down
from hck.hierarchy.steps import leaf_up, node_up


@dataclass
class NodeFactors:
    """A, M and H of some inner nodes of a level: those at `here`, with parents counted in the level above.

    A and M are in the room of one, `packed` and `diagonal` (`hck.backend.linalg.pack_`); H is `whitened`.
    """

    here: slice
    parent: Tensor
    packed: Tensor
    diagonal: Tensor
    whitened: Tensor

    def unpack(self) -> tuple[Tensor, Tensor, Tensor]:
        """A, H and M."""
        factor, message = linalg.unpack(self.packed, self.diagonal)
        return factor, self.whitened, message

    @property
    def nbytes(self) -> int:
        return self.packed.nbytes + self.diagonal.nbytes + self.whitened.nbytes


class Factor:
    """The factored matrix K_h + diag(noise), of a tree or of a part of one.

    Up-sweep, leaves first. Leaf j: L Lᵀ = D_j + noise, Y_j = L⁻¹ V_j, and Θ_j = Y_jᵀ Y_j goes up.
    Inner node i, with Ξ the sum of what its children sent::

        A Aᵀ = I + Ξ;   H_i = A⁻¹ W_i;   M = (I − W_iᵀ W_i + H_iᵀ H_i)⁻¹;   Θ_i = M − I goes up

    Only matrices that are at least I, or well away from 0, are factored. The smoother's gain J = A⁻ᵀ H M is
    applied factor by factor, and W is not needed again, since W_iᵀ A⁻ᵀ = H_iᵀ.

    Parameters
    ----------
    source : Source
        The blocks of K_h, of which D and V are overwritten.
    noise : Tensor of shape (n + 1,)
        Variance of the noise on each point, in the tree's order; the last is 0.
    b : Tensor of shape (n + 1, columns), optional
        Right-hand sides to take along, in the tree's order, with a zero row at the end; `filtered` is what
        became of them.
    received : Inbox, optional
        What the nodes of the lowest level hear from branches that are not part of this. In the same way
        `message` is what the roots send on: a row for each node above (`Layout.above`).

    Examples
    --------
    >>> import torch
    >>> from hck.hierarchy import HierarchicalKernel
    >>> x = torch.linspace(0, 1, 100, dtype=torch.float64)[:, None]
    >>> kernel = HierarchicalKernel.build("gaussian", x, rank=10, generator=0)
    >>> factor = kernel.factor(0.1)
    >>> dense = kernel.to_dense() + 0.1 * torch.eye(100, dtype=torch.float64)
    >>> bool((factor.log_determinant - torch.logdet(dense)).abs() < 1e-8)
    True
    >>> bool((factor.inverse().to_dense() @ dense - torch.eye(100)).abs().max() < 1e-8)
    True
    """

    def __init__(
        self, source: Source, noise: Tensor, b: Tensor | None = None, received: Inbox | None = None
    ) -> None:
        self.layout, self.rank, self.budget = source.layout, source.rank, source.budget
        self.device, self.dtype = noise.device, noise.dtype
        self.log_determinant = torch.zeros((), dtype=torch.float64, device=self.device)
        self.leaf_factor: list[Tensor] = []  # L
        self.leaf_whitened: list[Tensor] = []  # Y
        self.nodes: list[list[NodeFactors]] = [[] for _ in self.layout.levels]
        b = noise.new_empty(len(noise), 0) if b is None else b
        self.filtered = Filtered.start(self.layout, b, self.rank)
        inboxes = {} if received is None else {len(self.layout.levels) - 1: received}
        source.prepare_leaves()
        boxes = {level: self._inbox(level, inboxes) for level in self.layout.leaf_levels}
        every, work = range(len(self.layout.leaves)), partial(self._factor_leaves, source, noise, boxes)
        for k, done in enumerate(parallel_map(work, every, self.device, "Leaves: factor", source.verbose)):
            factor, y, a, half, private = done
            self.filtered.whitened.append(a)
            self.leaf_factor.append(factor)
            self.leaf_whitened.append(y)
            self.log_determinant += 2 * half.sum(dtype=torch.float64)
            if private is not None:
                boxes[self.layout.leaf_levels[k]].pour(self.layout.within_level(k), private)
        for level in track(range(len(self.layout.levels))[::-1], "Inner nodes: factor", source.verbose):
            self._factor_level(source, level, inboxes)

    def _inbox(self, level: int, inboxes: dict[int, Inbox]) -> Inbox:
        """The inbox of a level, empty at first; that of level -1 is for the nodes above."""
        if level not in inboxes:
            first, stop = self.layout.levels[level] if level >= 0 else (0, max(1, len(self.layout.above)))
            inboxes[level] = Inbox.empty(stop - first, self.rank, self.filtered.b)
        return inboxes[level]

    def _factor_leaves(
        self, source: Source, noise: Tensor, boxes: dict[int, Inbox], k: int
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Inbox | None]:
        """L, Y, a and half the log-determinants of a batch of leaves, whose messages go to their parents.

        Where another batch may send to the same parents at the same time they are in an inbox of their own,
        which is returned.
        """
        layout, b, private = self.layout, self.filtered.b, None
        batch, where, box = layout.leaves[k], layout.within_level(k), boxes[layout.leaf_levels[k]]
        variance = noise[batch.index]
        if not batch.full:
            variance = variance.where(batch.mask, 1)
        if kind_of(self.device).is_host and not layout.leaves_closed[k]:
            box = private = Inbox.empty(len(where), self.rank, b)
            where = torch.arange(len(where), device=where.device)
        factor, y, a, half = leaf_up(source.leaf(k), variance, b[batch.index], box, where)
        return factor, y, a, half, private

    def _factor_level(self, source: Source, level: int, inboxes: dict[int, Inbox]) -> None:
        """Factor the inner nodes of a level, all of whose children are done."""
        first = self.layout.levels[level][0]
        for needed in (level, level - 1):
            source.prepare(needed)
        inbox, parents = self._inbox(level, inboxes), self._inbox(level - 1, inboxes)
        del inboxes[level]  # whose memory is free once this level is done
        filtered = self.filtered

        def work(part: slice) -> tuple[NodeFactors, Tensor]:
            here = slice(part.start - first, part.stop - first)
            own = Inbox(inbox.information[here], inbox.mean[here])
            given = source.node(level, part)
            packed, diagonal, h, nu, q, half = node_up(own, given, parents)
            filtered.mean[level][here] = nu
            filtered.expected[level][here] = q
            return NodeFactors(here, given.which, packed, diagonal, h), half

        for nodes, half in parallel_map(work, self._chunks(level), self.device):
            self.nodes[level].append(nodes)
            self.log_determinant += 2 * half.sum(dtype=torch.float64)
        source.release(level)
        if level == 0:
            self.message = parents
            source.release(-1)

    def _chunks(self, level: int) -> list[slice]:
        """The inner nodes of a level in slices small enough for their temporaries.

        Children of one node are in one slice, since slices may be worked on at the same time.
        """
        first, stop = self.layout.levels[level]
        each = Cost(self.dtype.itemsize * 6 * self.rank * self.rank, 9 * self.rank**3)
        step = at_once(stop - first, self.layout.tree.n_leaves // 2, each, self.budget, self.device)
        if not kind_of(self.device).is_host:
            return chunks(first, stop, step)
        parent = self.layout.parent[first:stop].tolist()
        found, start = [], 0
        while start < len(parent):
            end = min(start + step, len(parent))
            while end < len(parent) and parent[end] == parent[end - 1]:
                end += 1
            found.append(slice(first + start, first + end))
            start = end
        return found

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        leaves = sum(part.nbytes for part in [*self.leaf_factor, *self.leaf_whitened])
        return leaves + sum(nodes.nbytes for level in self.nodes for nodes in level)

    def solve(self, b: Tensor) -> Tensor:
        """(K_h + noise)⁻¹ b for a vector or for a matrix of several."""
        like = torch.empty(0, dtype=self.dtype, device=self.device)
        return self.layout.unpad(self.solve_padded(self.layout.pad(b, like)).own).reshape(np.shape(b))

    @torch.no_grad()
    def solve_padded(self, b: Tensor) -> Weights:
        """The same for b (n + 1, columns) in the tree's order, with a zero row at the end."""
        return self.smooth(filter_up(self, b))

    @torch.no_grad()
    def smooth(self, filtered: Filtered, above: Tensor | None = None) -> Weights:
        """The same for right-hand sides that have gone up; `above` is ẑ of the roots' parents, if any."""
        out = Weights.room(self.layout, filtered.b, self.rank)
        smooth_down(self, filtered, out, above)
        return out

    @torch.no_grad()
    def posterior(self, above: Tensor | None = None) -> Tensor:
        """P, the covariance of every inner node's latent given all data: shape (slots, r, r).

        P_i = A⁻ᵀ (I + H (M P_p M − M) Hᵀ) A⁻¹. `above` is P of the roots' parents (nodes, r, r), if any.
        """
        identity = torch.eye(self.rank, dtype=self.dtype, device=self.device)

        def covariances(level: int, above: Tensor | None) -> Tensor:
            first, stop = self.layout.levels[level]
            out = identity.new_empty(stop - first, self.rank, self.rank)

            def visit(part: NodeFactors) -> None:
                factor, h, m = part.unpack()
                before = m if above is None else above[part.parent]  # the root of a whole tree has H = 0
                inner = identity + h @ (m @ before @ m - m) @ h.mT
                half = linalg.unwhiten_(factor, inner)
                whole = linalg.unwhiten_(factor, half.mT)
                out[part.here] = (whole + whole.mT) / 2

            for_each(visit, self.nodes[level], self.device)
            return out

        levels: list[Tensor] = []
        for level in range(len(self.layout.levels)):
            above = covariances(level, above)
            levels.append(above)
        return torch.cat(levels)

    def gain(self, level: int, number: int) -> Tensor:
        """J = A⁻ᵀ H M of an inner node, given by its level and its number there: shape (r, r)."""
        part = next(part for part in self.nodes[level] if part.here.start <= number < part.here.stop)
        at = slice(number - part.here.start, number - part.here.start + 1)
        factor, m = linalg.unpack(part.packed[at], part.diagonal[at])
        return linalg.unwhiten_(factor.contiguous(), part.whitened[at] @ m)[0]

    @torch.no_grad()
    def inverse(self) -> HierarchicalMatrix:
        """(K_h + noise)⁻¹ as a hierarchical matrix: D⁻¹, D⁻¹V, J and −P in place of D, V, W and I."""
        residual = [linalg.inverse(factor) for factor in self.leaf_factor]
        basis = [linalg.unwhiten_(factor, y.clone()) for _, factor, y in self._leaves()]
        gain = []
        for level in self.nodes:
            for part in level:
                factor, h, m = part.unpack()
                gain.append(linalg.unwhiten_(factor, h @ m))
        return HierarchicalMatrix(self.layout, residual, basis, torch.cat(gain), -self.posterior())

    @torch.no_grad()
    def inverse_diagonal(self, above: Tensor | None = None) -> Tensor:
        """The diagonal of (K_h + noise)⁻¹, in the original order; `above` as for `posterior`."""
        covariance = self.posterior(above)
        out = covariance.new_zeros(self.layout.tree.n_points + 1, 1)  # that of points that do not count

        def visit(leaves: tuple[Batch, Tensor, Tensor]) -> None:
            batch, factor, y = leaves
            u = linalg.unwhiten_(factor, y.clone())
            known = ((u @ covariance[self.layout.parents(batch)]) * u).sum(-1)
            out[batch.index] = (linalg.inverse_diagonal(factor) - known)[..., None]

        for_each(visit, list(self._leaves()), self.device)
        return self.layout.unpad(out)[:, 0]

    def _leaves(self) -> zip:
        return zip(self.layout.leaves, self.leaf_factor, self.leaf_whitened, strict=True)
