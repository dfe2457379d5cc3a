"""Draws from the Gaussian process itself: down the tree, from the root's latent to the leaves."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from hck.backend import linalg
from hck.backend.parallel import for_each
from hck.backend.random import Random, RandomLike, as_random
from hck.hierarchy.blueprint import Blueprint
from hck.hierarchy.predictor import TreePredictor
from hck.hierarchy.smooth import Weights
from hck.hierarchy.waves import Waves
from hck.points import PointsLike, as_points_like


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
    down = _Down(blueprint, count, as_random(generator))
    values = down.normal.clone()

    def leaves(k: int) -> None:
        index = down.layout.leaves[k].index
        factor, basis = down.leaf(k)
        values[index] = down.values(k, factor, basis)

    for_each(leaves, range(len(down.layout.leaves)), values.device, "Sample: leaves", verbose)
    return down.layout.unpad(values)


@torch.no_grad()
def sample_functions(
    blueprint: Blueprint, count: int, generator: RandomLike, n_waves: int
) -> "tuple[TreePaths, Tensor]":
    """The same as functions that can be evaluated anywhere; and their values (n, count), in the tree's order.

    In leaf j, with its own waves h, whose covariance is the base kernel's (`Waves`)::

        s = C_p⁻¹ (h(Z_p) + N(0, jitter))
        w = (D_j + jitter)⁻¹ (f_j − h(X_j) − N(0, jitter) − V_j (z_p − s))
        f(x) = k(x, X_j) w + k(x, Z_p) g + h(x),   g = C_p⁻ᵀ (z_p − s − V_jᵀ w)

    that is what z_p and f_j say of f(x), and what is left of h(x) when they say nothing (Matheron's rule). So
    waves stand only for what the latents and the values at the leaf's points leave open.
    """
    random = as_random(generator)
    down = _Down(blueprint, count, random)
    source, layout, points = down.source, down.layout, blueprint.points
    tree, rank, jitter = layout.tree, blueprint.rank, blueprint.jitter**0.5
    waves = Waves.of(blueprint.kernel, points, n_waves, count, random.child(2))
    found = Weights.room(layout, down.normal, rank)
    values, heard = down.normal.clone(), random.child(3).normal(tuple(found.ambient.shape), *down.place)
    at_points = torch.cat([waves(points, tree.leaf_of_point[tree.order]), down.normal[-1:]])
    at_points[:-1] += jitter * random.child(4).normal((len(points), count), *down.place)

    def leaves(k: int) -> None:
        batch, parents = layout.leaves[k], layout.parents(layout.leaves[k])
        factor, basis = down.leaf(k)
        values[batch.index] = down.values(k, factor, basis)
        rest, latent = at_points[batch.index], down.latents[parents]
        if tree.depth:
            block = source.landmarks.blocks[layout.slot[parents]]
            z = source.landmarks.points.take(block.safe.flatten())
            far = waves(z, batch.groups.repeat_interleave(rank)).view(len(batch.groups), rank, count)
            far = (far + jitter * heard[batch.groups]) * block.mask[:, :, None]
            landmark, which = source.factors[layout.leaf_levels[k]], layout.within_level(k)
            s = linalg.whiten_(landmark, far, which)
            rest, latent = rest - basis @ s, latent - s
        w = linalg.unwhiten_(factor, down.normal[batch.index] - linalg.whiten_(factor, rest))
        found.own[batch.index] = w
        found.ambient[batch.groups] = latent - basis.mT @ w

    for_each(leaves, range(len(layout.leaves)), points.device)
    if tree.depth:
        source.put_landmark_weights(found.ambient)
    return TreePaths(TreePredictor.of(source, found), waves), values[:-1]


@dataclass
class TreePaths:
    """Functions that were drawn: in each leaf a combination of kernel values, and waves."""

    predictor: TreePredictor
    waves: Waves

    @property
    def columns(self) -> int:
        """How many there are."""
        return self.predictor.columns

    @torch.no_grad()
    def __call__(self, x: PointsLike, verbose: bool = False) -> Tensor:
        """Their values at points: shape (points, columns)."""
        x = as_points_like(x, self.predictor.points)
        return self.predictor(x, verbose) + self.waves(x, self.predictor.tree.route(x))

    def plus(self, other: TreePredictor, change: Tensor | None = None) -> "TreePaths":
        """The sum with functions of the same tree, whose columns `change` combines."""
        mine, more = self.predictor, (other.weights, other.landmark_weights)
        own, heard = more if change is None else (each @ change.to(each) for each in more)
        added = replace(mine, weights=mine.weights + own, landmark_weights=mine.landmark_weights + heard)
        return replace(self, predictor=added)

    def take(self, which: Tensor) -> "TreePaths":
        """Some of them, by number."""
        own, heard = self.predictor.weights[:, which], self.predictor.landmark_weights[..., which]
        return TreePaths(replace(self.predictor, weights=own, landmark_weights=heard), self.waves.take(which))


class _Down:
    """Latents of all inner nodes, (nodes, r, count), and what is needed to go on to the leaves."""

    def __init__(self, blueprint: Blueprint, count: int, random: Random) -> None:
        if count < 1 or count != int(count):
            raise ValueError(f"count must be a whole number, at least 1, got {count}")
        self.layout, points, rank = blueprint.layout, blueprint.points, blueprint.rank
        self.place = points.dtype, points.device
        self.latents = z = random.child(0).normal((self.layout.n_slots, rank, count), *self.place)
        own = random.child(1).normal((len(points), count), *self.place)
        self.normal = torch.cat([own, z.new_zeros(1, count)])  # for the leaves, in the tree's order
        self.source = source = blueprint.part(self.layout)
        for level, (first, stop) in enumerate(self.layout.levels):
            source.prepare(level)

            def nodes(part: slice, level: int = level) -> None:
                w = source.node(level, part).transfer()
                rest = torch.eye(rank, dtype=w.dtype, device=w.device) - w @ w.mT
                own = linalg.color(linalg.factor_(rest, "the covariance I − W Wᵀ of an inner node"), z[part])
                z[part] = torch.baddbmm(own, w, z[self.layout.parent[part]])

            if level > 0:
                for_each(nodes, source.chunks(first, stop), points.device)
                if level - 1 not in self.layout.leaf_levels:
                    source.release(level - 1)

    def leaf(self, k: int) -> tuple[Tensor, Tensor]:
        """A factor of D + jitter, and V, of a batch of leaves."""
        batch, source = self.layout.leaves[k], self.source
        residual, basis = source.leaf(k).blocks()
        jitter = residual.new_full(batch.index.shape, source.jitter)
        residual.diagonal(dim1=-2, dim2=-1).add_(jitter if batch.full else jitter.where(batch.mask, 1))
        return linalg.factor_(residual, "the residual D of a leaf"), basis

    def values(self, k: int, factor: Tensor, basis: Tensor) -> Tensor:
        """Those of the draws at the points of a batch of leaves."""
        batch = self.layout.leaves[k]
        own = linalg.color(factor, self.normal[batch.index])
        return torch.baddbmm(own, basis, self.latents[self.layout.parents(batch)])
