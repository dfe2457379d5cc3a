"""Cuts by hyperplanes, balanced at the median: random projections, principal axes, coordinate axes."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from itertools import accumulate

import torch
from torch import Tensor

from hck.backend.blocks import ranges
from hck.backend.checks import check_floats, check_indices, require
from hck.backend.cuts import Directions, Halvings, halve_all
from hck.backend.random import Random
from hck.partition.cutter import Cutter, Frontier
from hck.partition.rules import Rule, as_vectors
from hck.partition.tree import Tree
from hck.points import DensePoints, Points, VectorPoints

# Principal axes are only a direction to cut by: a sample of each node and a few iterations suffice.
_POWER_ITERATIONS = 10
_MOST_POINTS_PER_AXIS = 512
# Directions that the nodes of one level share in a random projection: few, so that one product serves all.
_SHARED_DIRECTIONS = 8
# Directions for nodes whose halves are so close that rounding could mix them up. In double precision that
# happens only where values repeat, which other directions do not change.
_SPARE_DIRECTIONS = {torch.float32: 3, torch.float64: 0}
# Attempts to separate points that a hyperplane does not: how far each turns its direction.
_TURNS = (1e-3, 1.0)


@dataclass(frozen=True)
class HyperplaneRule(Rule):
    """Child 1 if ⟨x, direction⟩ exceeds the threshold of the node, else child 0."""

    directions: Tensor  # (directions, d)
    pick: Tensor  # (nodes,): the direction of each node
    threshold: Tensor  # (nodes,)

    def check(self, children: Tensor, d: int) -> None:
        nodes = len(children)
        check_floats("directions", self.directions, None, d)
        check_indices("pick", self.pick, len(self.directions), nodes)
        require(self.pick.dtype == torch.int64, "pick must be int64")
        beyond = self.threshold == torch.inf  # of a node with an only child
        check_floats("threshold", self.threshold.masked_fill(beyond, 0.0), nodes)
        suits = (children == 2) | (beyond & (children == 1))
        require(bool(suits.all()), "threshold must cut a node into two children, or be infinite for one")

    def choose(self, points: Points, rows: Tensor, which: Tensor) -> Tensor:
        value = as_vectors(points).project(rows, self.directions, self.pick[which])
        return (value > self.threshold[which]).long()

    def after_scaling(self, factor: Tensor) -> "HyperplaneRule":
        factor = factor.to(self.directions)
        through = self.directions * factor if factor.ndim == 1 else self.directions @ factor.mT
        return replace(self, directions=through)


def hyperplane_rules(tree: Tree) -> tuple[HyperplaneRule, ...]:
    """The rules of a tree that was cut by hyperplanes, level by level."""
    rules = tree.rules or ()
    found = tuple(rule for rule in rules if isinstance(rule, HyperplaneRule))
    if len(found) < len(rules):
        raise TypeError(f"expected a tree that is cut by hyperplanes, got one with rules {rules}")
    return found


class HyperplaneCutter(Cutter):
    """Halves each node at the median of its points' projections on a direction."""

    measures = True

    @abstractmethod
    def directions(self, frontier: Frontier) -> tuple[Tensor, Tensor]:
        """Directions (directions, d), and which of them each node takes (nodes,)."""

    def cut(self, frontier: Frontier) -> tuple[Tensor, Rule]:
        points = as_vectors(frontier.points)
        directions, pick = self.directions(frontier)
        rows, which = frontier.members()
        below, above, child = frontier.halve(points.project(rows, directions, pick[which]))
        is_tied = _tied(below, above)
        if frontier.doubts is not None:
            frontier.doubts.append(is_tied.any())
        for attempt, turn in enumerate(_TURNS if frontier.doubts is None else ()):
            tied = is_tied.nonzero().squeeze(1)
            if len(tied) == 0:
                break
            turned = _turned(directions[pick[tied]], turn, frontier.random.child(2, attempt))
            redo = frontier.subset(tied)
            rows, which = redo.members()
            below[tied], above[tied], _ = redo.halve(points.project(rows, turned, which))
            pick[tied] = torch.arange(len(tied), device=pick.device) + len(directions)
            directions = torch.cat([directions, turned])
            is_tied = _tied(below, above)
        # Equal points on both sides cannot be told apart: new ones like them go to the first child.
        threshold = torch.where(is_tied, below, (below + above) / 2)
        return child, HyperplaneRule(directions, pick, threshold)


class RandomProjection(HyperplaneCutter):
    """Directions drawn at random, uniformly on the sphere: fast, and as good as principal axes.

    Each level has a few directions of its own, and each of its nodes takes one of them at random.

    Examples
    --------
    >>> import torch
    >>> from hck.kernels import Gaussian
    >>> from hck.partition import RandomProjection, make_tree
    >>> from hck.points import as_points
    >>> x = torch.rand(64, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> tree = make_tree(RandomProjection(), as_points(x), Gaussian(1.0), rank=8, generator=0)
    >>> tree.n_leaves, tree.size[tree.leaves].tolist()
    (8, [8, 8, 8, 8, 8, 8, 8, 8])
    """

    def directions(self, frontier: Frontier) -> tuple[Tensor, Tensor]:
        return self._draw(len(frontier), as_vectors(frontier.points), frontier.random)

    def cut_all(self, root: Frontier, leaf_size: int) -> list[tuple[Tensor, Rule]] | None:
        points, order, random = root.points, root.order, root.random
        if not isinstance(points, DensePoints):
            return None
        nodes = Halvings.of(len(points), leaf_size)
        if not nodes.counts:
            return []
        drawn = [self._draw(count, points, random.child(level)) for level, count in enumerate(nodes.counts)]
        spare = _random_directions(_SPARE_DIRECTIONS[points.dtype], points, random.child(len(drawn)))
        # All directions, those of a level after those of the levels above, and where they begin.
        directions = torch.cat([*(own for own, _ in drawn), spare])
        *first, first_spare = accumulate((len(own) for own, _ in drawn), initial=0)
        pick = torch.cat([which + at for (_, which), at in zip(drawn, first, strict=True)])
        ends = halve_all(points.x, order, nodes, Directions(directions, pick, len(spare)))
        if ends is None or _tied(*ends).any():  # to be done, or mended, level by level
            order.copy_(torch.arange(len(order), device=order.device))
            return None
        rules = []
        middles = ((ends[0] + ends[1]) / 2).split(nodes.counts)
        for (own, _), at, which, middle in zip(drawn, first, pick.split(nodes.counts), middles, strict=True):
            is_spare = which >= first_spare
            which = torch.where(is_spare, which - first_spare + len(own), which - at)
            rules.append(HyperplaneRule(torch.cat([own, spare]) if is_spare.any() else own, which, middle))
        return list(zip(nodes.halves, rules, strict=True))

    def _draw(self, nodes: int, points: VectorPoints, random: Random) -> tuple[Tensor, Tensor]:
        count = min(nodes, _SHARED_DIRECTIONS)
        pick = random.child(0).integers(count, nodes, points.device)
        return _random_directions(count, points, random.child(1)), pick


class PCA(HyperplaneCutter):
    """The principal axis of each node's points, by power iteration on their covariance.

    Examples
    --------
    >>> import torch
    >>> from hck.kernels import Gaussian
    >>> from hck.partition import PCA, make_tree
    >>> from hck.points import as_points
    >>> x = torch.rand(64, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> x[:, 1] *= 0.01  # so that all cuts are along the first feature
    >>> tree = make_tree(PCA(), as_points(x), Gaussian(1.0), rank=32, generator=0)
    >>> low, high = (x[tree.leaf_of_point == k, 0] for k in range(2))
    >>> bool(low.max() < high.min() or high.max() < low.min())
    True
    """

    looks_at_some = True

    def directions(self, frontier: Frontier) -> tuple[Tensor, Tensor]:
        nodes, points = len(frontier), as_vectors(frontier.points)
        start, size = frontier.sent
        sample, seen = size.clamp_max(_MOST_POINTS_PER_AXIS), frontier.size.clamp_max(_MOST_POINTS_PER_AXIS)
        number, which = ranges(torch.zeros_like(sample), sample, int(seen.sum()))
        rows = frontier.order[start[which] + number * (size // sample)[which]]
        mean = points.mean(rows, which, nodes)
        axis = _random_directions(nodes, points, frontier.random)
        for _ in range(_POWER_ITERATIONS):
            weight = points.project(rows, axis, which) - (mean * axis).sum(1)[which]
            # Σ weight (x − mean); the weights of a node add up to 0, but for rounding
            total = weight.new_zeros(nodes).index_add_(0, which, weight)
            product = points.accumulate(rows, weight, which, nodes) - total[:, None] * mean
            length = product.norm(dim=1, keepdim=True)
            axis = torch.where(length > 0, product / length, axis)
        return axis, torch.arange(nodes, device=points.device)


class KD(HyperplaneCutter):
    """The coordinate axis along which each node's points vary most.

    Where many points share the median coordinate, as in binary columns, the hyperplane is turned slightly
    in a random direction, so that they can be told apart.

    Examples
    --------
    >>> import torch
    >>> from hck.kernels import Gaussian
    >>> from hck.partition import KD, make_tree
    >>> from hck.points import as_points
    >>> x = torch.rand(64, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> x[:, 1] *= 0.5
    >>> tree = make_tree(KD(), as_points(x), Gaussian(1.0), rank=32)
    >>> left, right = (x[tree.leaf_of_point == k, 0] for k in range(2))  # cut along the longer side
    >>> bool(left.max() < right.min())
    True
    """

    def directions(self, frontier: Frontier) -> tuple[Tensor, Tensor]:
        nodes, points = len(frontier), as_vectors(frontier.points)
        rows, which = frontier.members()
        widest = points.variance(rows, which, nodes).argmax(1)
        axes, pick = torch.unique(widest, return_inverse=True)
        directions = torch.zeros(len(axes), points.n_features, dtype=points.dtype, device=points.device)
        return directions.scatter_(1, axes[:, None], 1.0), pick


def _random_directions(count: int, points: VectorPoints, random: Random) -> Tensor:
    direction = random.normal((count, points.n_features), points.dtype, points.device)
    return direction / direction.norm(dim=1, keepdim=True)


def _turned(direction: Tensor, turn: float, random: Random) -> Tensor:
    noise = random.normal(direction.shape, direction.dtype, direction.device)
    return direction + turn * noise / noise.norm(dim=1, keepdim=True)


def _tied(below: Tensor, above: Tensor) -> Tensor:
    """Whether the halves are not separated by more than rounding."""
    size = torch.maximum(below.abs(), above.abs())
    return above - below <= 32 * torch.finfo(below.dtype).eps * size
