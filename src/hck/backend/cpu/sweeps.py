"""The steps of the sweeps on the CPU: from tensors to compiled code (`hck.backend.cpu.steps`) and back."""

import numpy as np
import torch
from torch import Tensor

from hck.backend import linalg
from hck.backend.cpu import steps
from hck.backend.cpu.arrays import flat
from hck.backend.cpu.dense import Factoring
from hck.backend.cpu.values import GIVEN, compiled_profile
from hck.backend.reuse import room
from hck.backend.steps import LEAF, NODE, ROOT, Leaves, Nodes, Parents, Wanted


class CompiledSteps:
    """What `hck.backend.steps` offers."""

    def leaf_up(self, leaves: Leaves, parents: Parents) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        a = leaves.b.contiguous()
        (count, n, k), r, nothing = a.shape, parents.mean.shape[1], a.new_empty(0)
        if isinstance(leaves.values, Wanted):
            own, far = room((count, n, n), a.dtype, a.device), nothing
        else:
            own, far = (values.contiguous() for values in leaves.values)
        if leaves.landmark is None:
            landmark, y, far = nothing, far, nothing
        else:
            landmark, y = leaves.landmark, room((count, n, r), a.dtype, a.device)
        half, jitter = np.empty(count), np.empty(count)
        wanted = _wanted(leaves.values, a)
        steps.leaf_up(
            wanted,
            steps.Leaves(*map(flat, (own, far, landmark, leaves.which, leaves.noise, a, y)), half, jitter),
            _parents(parents),
            steps.Sizes(n, r, k),
            _factoring((n, n), a),
        )
        linalg.warn_of_jitter(jitter, own.dtype, LEAF)
        return own, y, a, torch.tensor(half.sum())

    def node_up(
        self, nodes: Nodes, parents: Parents
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        xi, nu = nodes.information.contiguous(), nodes.mean.contiguous()
        (count, r, k), nothing = nu.shape, xi.new_empty(0)
        far = nothing if isinstance(nodes.values, Wanted) else nodes.values
        own, above = (nothing if c is None else c for c in (nodes.own, nodes.above))
        h, q, diagonal = room(xi.shape, xi.dtype, xi.device), torch.empty_like(nu), xi.new_empty(count, r)
        half, jitter = np.empty(count), np.empty((count, 2))
        wanted = _wanted(nodes.values, xi)
        arrays = map(flat, (xi, far, own, above, nodes.which, nu, h, q, diagonal))
        steps.node_up(
            wanted,
            steps.Nodes(*arrays, half, jitter.ravel()),
            _parents(parents),
            steps.Sizes(r, r, k),
            _factoring((4, r, r), xi),
        )
        linalg.warn_of_jitter(jitter[:, 0], xi.dtype, NODE)
        linalg.warn_of_jitter(jitter[:, 1], xi.dtype, ROOT)
        return xi, diagonal, h, nu, q, torch.tensor(half.sum())

    def node_down(self, factors: tuple[Tensor, Tensor, Tensor], nu: Tensor, q: Tensor, z: Tensor) -> Tensor:
        z = z.contiguous()
        steps.node_down(steps.Filtered(*map(flat, (*factors, nu, q))), flat(z), *z.shape[1:])
        return z

    def leaf_down(self, factor: Tensor, y: Tensor, a: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        w, d = a.contiguous(), z.contiguous()
        steps.leaf_down(*map(flat, (factor, y, w, d)), steps.Sizes(*y.shape[1:], a.shape[2]))
        return w, d


def _wanted(values: Wanted | Tensor | tuple[Tensor, Tensor], like: Tensor) -> "steps.Wanted":
    """For compiled code; nothing, and `GIVEN` for the kernel, if values are given."""
    if not isinstance(values, Wanted):
        nothing, position = flat(like.new_empty(0)), np.empty(0, np.int64)
        return steps.Wanted(nothing, position, nothing, position, GIVEN, 0)
    sides = map(flat, (values.left, values.rows, values.right, values.columns))
    kernel = compiled_profile(values.profile, like.itemsize)
    return steps.Wanted(*sides, kernel, values.left.shape[1])


def _parents(parents: Parents) -> "steps.Parents":
    return steps.Parents(flat(parents.information), flat(parents.mean), flat(parents.where))


def _factoring(spare: tuple[int, ...], like: Tensor) -> Factoring:
    return Factoring(*linalg.jitters(like.dtype), flat(room(spare, like.dtype, like.device)))
