"""The log-likelihood of a Gaussian process and its gradient, at the memory of one up-sweep.

Going up, each inner node hears Ξ and τ from its children, and nothing else is kept. Coming down, each chunk
of a level is computed once more, now recorded by autograd, and differentiated by itself: what it is asked for
is the gradient with respect to what it sent, which its parents have just found.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from hck import linalg
from hck.hierarchy.blueprint import Blueprint
from hck.hierarchy.steps import LEAF, NODE, ROOT
from hck.parallel import parallel_map


def log_likelihood(
    blueprint: Blueprint, noise: Tensor, y: Tensor, parameters: Sequence[Tensor] = ()
) -> tuple[Tensor, list[Tensor]]:
    """log N(y; 0, K_h + noise), summed over columns of y, and its gradient.

    ::

        leaf j:        s = −½ aᵀa − log det L
        inner node i:  s = ½ (νᵀν − qᵀ M q) − log det A + ½ log det M
        log-likelihood = Σ s − ½ n log 2π

    Parameters
    ----------
    blueprint : Blueprint
        With a kernel that is made of `parameters`.
    noise : Tensor of shape () or (n,)
    y : Tensor of shape (n,) or (n, columns)
    parameters : sequence of Tensor
        What to differentiate by: leaves that require a gradient, of the kernel, or `noise` itself.

    Returns
    -------
    value : Tensor of shape ()
    gradient : list of Tensor
        For each of `parameters`.
    """
    if any(not parameter.requires_grad or not parameter.is_leaf for parameter in parameters):
        raise ValueError("parameters must be leaves that require a gradient")
    layout = blueprint.layout
    padded_noise = blueprint.pad_noise(noise)
    variance = padded_noise.detach().requires_grad_()
    b = layout.pad(y, variance)
    sweep = _Sweep(blueprint, variance, b)
    value, heard = sweep.up()
    value = value - b.shape[1] * layout.tree.n_points * math.log(2 * math.pi) / 2
    gradient = [torch.zeros_like(parameter) for parameter in parameters]
    if parameters:
        at_variance = sweep.down(heard, parameters, gradient)
        for k, parameter in enumerate(parameters):
            if parameter is noise:
                gradient[k] = gradient[k] + torch.autograd.grad(padded_noise, noise, at_variance)[0]
    return value, gradient


class _Sweep:
    """The two sweeps, chunk by chunk, through functions that autograd can differentiate."""

    def __init__(self, blueprint: Blueprint, variance: Tensor, b: Tensor) -> None:
        self.blueprint, self.variance, self.b = blueprint, variance, b
        self.layout, self.rank = blueprint.layout, blueprint.rank

    def up(self) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """Σ s, and for each level Ξ (nodes, r, r) and τ (nodes, r, columns)."""
        layout, columns = self.layout, self.b.shape[1]
        shapes = [(stop - first, self.rank) for first, stop in layout.levels]
        heard = [(self.b.new_zeros(*shape, self.rank), self.b.new_zeros(*shape, columns)) for shape in shapes]
        total = torch.zeros((), dtype=torch.float64, device=self.b.device)
        with torch.no_grad():
            every = range(len(layout.leaves))
            for k, (theta, t, s) in enumerate(parallel_map(self._leaves, every, self.b.device)):
                self._tell(heard[layout.leaf_levels[k]], layout.within_level(k), theta, t)
                total += s
            for level in reversed(range(len(layout.levels))):

                def nodes(part: slice, level: int = level) -> tuple[Tensor, Tensor, Tensor]:
                    return self._nodes(level, part, *self._here(heard, level, part))

                parts = self._chunks(level)
                for part, (theta, t, s) in zip(parts, parallel_map(nodes, parts, self.b.device), strict=True):
                    if level > 0:
                        self._tell(heard[level - 1], layout.parent_within_level(level, part), theta, t)
                    total += s
        return total, heard

    def down(
        self, heard: list[tuple[Tensor, Tensor]], parameters: Sequence[Tensor], gradient: list[Tensor]
    ) -> Tensor:
        """Add to the gradient, and return that with respect to the variances of the noise.

        What was heard is replaced by the gradient with respect to it.
        """
        layout, device = self.layout, self.b.device
        one = torch.ones((), dtype=self.b.dtype, device=device)

        def add(found: Sequence[Tensor]) -> None:
            for total, part in zip(gradient, found, strict=True):
                total += part

        for level in range(len(layout.levels)):

            def nodes(part: slice, level: int = level) -> Sequence[Tensor]:
                xi, tau = (each.clone().requires_grad_() for each in self._here(heard, level, part))
                with torch.enable_grad():
                    theta, t, s = self._nodes(level, part, xi, tau)
                if level == 0:
                    return _differentiate([s], [one], [xi, tau, *parameters])
                which = layout.parent_within_level(level, part)
                above = [each[which] for each in heard[level - 1]]
                return _differentiate([theta, t, s], [*above, one], [xi, tau, *parameters])

            parts = self._chunks(level)
            for part, found in zip(parts, parallel_map(nodes, parts, device), strict=True):
                for kept, new in zip(self._here(heard, level, part), found[:2], strict=True):
                    kept.copy_(new)
                add(found[2:])

        def leaves(k: int) -> Sequence[Tensor]:
            above = [each[layout.within_level(k)] for each in heard[layout.leaf_levels[k]]]
            with torch.enable_grad():
                outputs = self._leaves(k)
            return _differentiate(outputs, [*above, one], [self.variance, *parameters])

        at_variance = torch.zeros_like(self.variance)
        for found in parallel_map(leaves, range(len(layout.leaves)), device):
            at_variance += found[0]
            add(found[1:])
        return at_variance

    def _leaves(self, k: int) -> tuple[Tensor, Tensor, Tensor]:
        """Θ, t and Σ s of a batch of leaves."""
        layout, batch = self.layout, self.layout.leaves[k]
        slots, which = torch.unique(layout.slot[layout.parents(batch)], return_inverse=True)
        factor = self.blueprint.landmark_factor(slots)
        residual, basis = self.blueprint.leaf_from(k, factor, which).blocks()
        noise = self.variance[batch.index]
        noise = noise if batch.full else noise.where(batch.mask, 1)
        factor = linalg.factor_(residual + torch.diag_embed(noise), LEAF)
        y, a = linalg.whiten_(factor, basis.clone()), linalg.whiten_(factor, self.b[batch.index])
        s = -a.square().sum() / 2 - self.b.shape[1] * linalg.half_log_determinant(factor)
        return y.mT @ y, y.mT @ a, s

    def _nodes(self, level: int, part: slice, xi: Tensor, tau: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Θ, t and Σ s of some inner nodes of a level."""
        identity = torch.eye(self.rank, dtype=xi.dtype, device=xi.device)
        factor = linalg.factor_(identity + (xi + xi.mT) / 2, NODE)
        nu = linalg.whiten_(factor, tau.clone())
        w = self._transfer(level, part)
        h = linalg.whiten_(factor, w.clone())
        root = linalg.factor_(identity - w.mT @ w + h.mT @ h, ROOT)
        m = linalg.inverse(root)
        q = h.mT @ nu
        t = m @ q
        half = linalg.half_log_determinant(factor) + linalg.half_log_determinant(root)
        s = (nu.square().sum() - (q * t).sum()) / 2 - self.b.shape[1] * half
        return m - identity, t, s

    def _transfer(self, level: int, part: slice) -> Tensor:
        """W of some inner nodes of a level; 0 for the root."""
        layout, blueprint = self.layout, self.blueprint
        if level == 0:
            return self.b.new_zeros(1, self.rank, self.rank)
        slots, which = torch.unique(layout.slot[layout.parent[part]], return_inverse=True)
        own, above = (blueprint.landmark_factor(some) for some in (layout.slot[part], slots))
        return blueprint.node_from(level, part, own, above, which).transfer()

    def _chunks(self, level: int) -> list[slice]:
        return self.blueprint.chunks(*self.layout.levels[level])

    def _here(self, heard: list[tuple[Tensor, Tensor]], level: int, part: slice) -> tuple[Tensor, Tensor]:
        first = self.layout.levels[level][0]
        xi, tau = (both[part.start - first : part.stop - first] for both in heard[level])
        return xi, tau

    @staticmethod
    def _tell(parents: tuple[Tensor, Tensor], which: Tensor, theta: Tensor, t: Tensor) -> None:
        parents[0].index_add_(0, which, theta)
        parents[1].index_add_(0, which, t)


def _differentiate(
    outputs: Sequence[Tensor], at: Sequence[Tensor], inputs: Sequence[Tensor]
) -> Sequence[Tensor]:
    """The gradient with respect to the inputs of Σ ⟨at, output⟩; 0 for inputs that do not matter."""
    used = [(out, to) for out, to in zip(outputs, at, strict=True) if out.requires_grad]
    return torch.autograd.grad([o for o, _ in used], inputs, [to for _, to in used], materialize_grads=True)
