"""The steps of the sweeps on the CPU: from tensors to compiled code (`hck.backend.cpu.steps`) and back."""

import numpy as np
import torch
from torch import Tensor

from hck.backend import linalg
from hck.backend.cpu import steps
from hck.backend.cpu.dense import Factoring
from hck.backend.cpu.kernels import flat_cross
from hck.backend.cpu.matrix import flat
from hck.backend.cpu.records import CompiledRecords
from hck.backend.reuse import room
from hck.backend.steps import LEAF, NODE, ROOT, Inbox, LeafInput, NodeInput, as_cross, as_tensor


class CompiledSteps(CompiledRecords):
    """What `hck.backend.steps` offers."""

    def leaf_up(
        self, given: LeafInput, noise: Tensor, b: Tensor, parents: Inbox, where: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        a, cross = b.contiguous(), as_cross(given.far)
        (count, n, k), r, nothing = a.shape, parents.mean.shape[1], a.new_empty(0)
        if cross is None:
            own, far = (as_tensor(values).contiguous() for values in (given.own, given.far))
        else:
            own, far = room((count, n, n), a.dtype, a.device), nothing
        if given.landmark is None:
            landmark, y, far = nothing, far, nothing
        else:
            landmark, y = given.landmark, room((count, n, r), a.dtype, a.device)
        half, jitter = np.empty(count), np.empty(count)
        arrays = map(flat, (own, far, landmark, given.which, noise, a, y))
        steps.leaf_up(
            flat_cross(cross, a),
            steps.LeafArrays(*arrays, half, jitter),
            _flat_inbox(parents, where),
            steps.Sizes(n, r, k),
            _factoring((n, n), a),
        )
        linalg.warn_of_jitter(jitter, own.dtype, LEAF)
        return own, y, a, torch.from_numpy(half)

    def node_up(
        self, inbox: Inbox, given: NodeInput, parents: Inbox
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        xi, nu, cross = inbox.information.contiguous(), inbox.mean.contiguous(), as_cross(given.far)
        (count, r, k), nothing = nu.shape, xi.new_empty(0)
        far = as_tensor(given.far) if cross is None else nothing
        own, above = (nothing if c is None else c for c in (given.own, given.above))
        h, q, diagonal = room(xi.shape, xi.dtype, xi.device), torch.empty_like(nu), xi.new_empty(count, r)
        half, jitter = np.empty(count), np.empty((count, 2))
        arrays = map(flat, (xi, far, own, above, given.which, nu, h, q, diagonal))
        steps.node_up(
            flat_cross(cross, xi),
            steps.NodeArrays(*arrays, half, jitter.ravel()),
            _flat_inbox(parents, given.which),
            steps.Sizes(r, r, k),
            _factoring((4, r, r), xi),
        )
        linalg.warn_of_jitter(jitter[:, 0], xi.dtype, NODE)
        linalg.warn_of_jitter(jitter[:, 1], xi.dtype, ROOT)
        return xi, diagonal, h, nu, q, torch.from_numpy(half)

    def node_down(
        self, factors: tuple[Tensor, Tensor, Tensor], nu: Tensor, q: Tensor, above: Tensor
    ) -> Tensor:
        z, r = above.contiguous(), above.shape[1]
        steps.node_down(tuple(map(flat, factors)), *map(flat, (nu, q, z)), steps.Sizes(r, r, z.shape[2]))
        return z

    def leaf_down(self, factor: Tensor, y: Tensor, a: Tensor, above: Tensor) -> tuple[Tensor, Tensor]:
        w, d = a.contiguous(), above.contiguous()
        steps.leaf_down(*map(flat, (factor, y, w, d)), steps.Sizes(*y.shape[1:], a.shape[2]))
        return w, d


def _flat_inbox(inbox: Inbox, where: Tensor) -> steps.InboxArrays:
    return steps.InboxArrays(flat(inbox.information), flat(inbox.mean), flat(where))


def _factoring(spare: tuple[int, ...], like: Tensor) -> Factoring:
    return Factoring(*linalg.jitters(like.dtype), flat(room(spare, like.dtype, like.device)))
