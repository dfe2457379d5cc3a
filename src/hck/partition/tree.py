"""The tree that a partition of the domain makes, as flat arrays."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import wraps
from itertools import accumulate

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from hck.backend.blocks import send
from hck.backend.caches import cached_property
from hck.backend.checks import check_indices, check_permutation, require
from hck.backend.kinds import kind_of
from hck.partition.given import Route, finder, lay_out, nodes_of_labels
from hck.partition.rules import FlatRule, Rule, function_rules
from hck.points import Points, PointsLike, as_points


def _shape(compute: Callable[["Tree"], Tensor]) -> cached_property[Tensor]:
    """A property that depends on the shape of a tree alone: found on the CPU, kept on the tree's device."""

    def find(tree: "Tree") -> Tensor:
        return compute(tree) if tree.host is tree else send(getattr(tree.host, compute.__name__), tree.device)

    return cached_property(wraps(compute)(find))


@dataclass(frozen=True, eq=False)
class Tree:
    """A rooted tree over a sequence of points.

    Nodes are numbered level by level from the root, which is node 0; the children of a node are consecutive.
    `order` lists the points so that those of every node are consecutive too.

    Attributes
    ----------
    parent : Tensor of shape (nodes,)
        The parent of each node; -1 for the root.
    start, stop : Tensor of shape (nodes,)
        Node i owns the points ``order[start[i]:stop[i]]``.
    order : Tensor of shape (n,)
        A permutation of the points.
    rules : tuple of Rule, or None
        One for each level but the last: how new points find their leaf.

    Examples
    --------
    >>> from hck.partition import Tree
    >>> tree = Tree.from_labels([["a", "x"], ["b", "x"], ["a", "y"], ["a", "x"]])
    >>> tree.n_leaves, tree.depth, tree.order.tolist()
    (3, 2, [0, 3, 2, 1])
    """

    parent: Tensor
    start: Tensor
    stop: Tensor
    order: Tensor
    rules: tuple[Rule, ...] | None = field(default=None, repr=False)

    def validate(self) -> None:
        """Raise ValueError unless it is a tree as described, over as many points as its order has."""
        nodes, n = len(self.parent), len(self.order)
        require(nodes > 0, "parent is empty")
        for name in ("parent", "start", "stop", "order"):
            require(getattr(self, name).dtype == torch.int64, f"{name} must be int64")
        check_indices("parent", self.parent, nodes, nodes, low=-1)
        parent = self.parent[1:]
        before = torch.arange(nodes - 1, device=parent.device)
        own = int(self.parent[0]) == -1 and bool(((parent >= 0) & (parent <= before)).all())
        require(own, "parent must be -1 for the root, and a node before it for every other")
        require(bool((parent.diff() >= 0).all()), "parent must ascend: nodes are numbered level by level")
        check_permutation("order", self.order, n)
        for name in ("start", "stop"):
            check_indices(name, getattr(self, name), n + 1, nodes)
        self._validate_ranges(n)
        rules = len(self.rules or ())
        require(self.rules is None or rules == self.depth, f"rules are {rules} for a depth of {self.depth}")

    def _validate_ranges(self, n: int) -> None:
        """Children own the points of their parent, one child after another."""
        start, stop, parent = self.start, self.stop, self.parent[1:]
        require((int(start[0]), int(stop[0])) == (0, n), "start and stop of the root must span all points")
        first = torch.ones_like(parent, dtype=torch.bool)
        first[1:] = parent.diff() > 0
        expected = torch.where(
            first, start[parent], stop[:-1]
        )  # where the parent, or the sibling before, does
        require(torch.equal(start[1:], expected), "start must follow that of the parent or sibling")
        last = first.roll(-1)
        require(torch.equal(stop[1:][last], stop[parent[last]]), "stop must be that of the parent")
        smallest = int((stop - start).min())
        require(smallest >= min(n, 1), "stop must be behind start: every node has points")

    def check_rules(self, d: int) -> None:
        """Raise ValueError unless new points of d features find their leaf."""
        require(self.rules is not None or self.depth == 0, "rules are missing")
        for (first, stop), rule in zip(self.inner_levels, self.rules or (), strict=True):
            rule.check(self.n_children[self.inner[first:stop]], d)

    # Shape ------------------------------------------------------------------------------------------

    @cached_property
    def host(self) -> "Tree":
        """The shape of the tree in the CPU's memory, to be asked for without waiting for a GPU.

        Its points and rules stay where they are.
        """
        if kind_of(self.device).is_host:
            return self
        host = Tree(self.parent.cpu(), self.start.cpu(), self.stop.cpu(), self.order)
        host.__dict__["host"] = host
        return host

    @_shape
    def level(self) -> Tensor:
        """The distance of each node from the root."""
        level = torch.zeros_like(self.parent)
        first, stop = 0, 1
        while stop < self.n_nodes:
            first, stop = stop, stop + int(self.n_children[first:stop].sum())
            level[first:] += 1
        return level

    @_shape
    def n_children(self) -> Tensor:
        """The number of children of each node."""
        return torch.bincount(self.parent[1:], minlength=self.n_nodes)

    @_shape
    def first_child(self) -> Tensor:
        """The first child of each node; meaningless for leaves."""
        return self.n_children.cumsum(0) - self.n_children + 1

    @_shape
    def is_leaf(self) -> Tensor:
        """Whether each node is a leaf: shape (nodes,)."""
        return self.n_children == 0

    @_shape
    def leaves(self) -> Tensor:
        """The nodes that are leaves, ascending. A leaf's position here is its leaf number."""
        return self.is_leaf.nonzero().squeeze(1)

    @_shape
    def inner(self) -> Tensor:
        """The nodes that are not leaves, ascending. Such a node's position here is its slot."""
        return (~self.is_leaf).nonzero().squeeze(1)

    @_shape
    def slot(self) -> Tensor:
        """The slot of each node; -1 for leaves."""
        slot = torch.full_like(self.parent, -1)
        slot[self.inner] = torch.arange(len(self.inner), device=slot.device)
        return slot

    @cached_property
    def inner_levels(self) -> list[tuple[int, int]]:
        """The slots of each level, as ranges; from the root down."""
        host = self.host
        counts = torch.bincount(host.level[host.inner], minlength=host.depth).tolist()
        stops = list(accumulate(counts))
        return [(stop - count, stop) for stop, count in zip(stops, counts, strict=True)]

    @_shape
    def leaf_parent(self) -> Tensor:
        """The slot of each leaf's parent; 0 for a leaf that is the root."""
        return self.slot[self.parent[self.leaves].clamp_min(0)].clamp_min(0)

    @_shape
    def size(self) -> Tensor:
        """The number of points of each node."""
        return self.stop - self.start

    @property
    def n_points(self) -> int:
        """How many points it is over."""
        return len(self.order)

    @property
    def n_nodes(self) -> int:
        """How many nodes there are, leaves included."""
        return len(self.parent)

    @property
    def n_leaves(self) -> int:
        """How many leaves there are."""
        return len(self.host.leaves)

    @cached_property
    def depth(self) -> int:
        """The level of the deepest leaf."""
        return int(self.host.level.max())

    @property
    def device(self) -> torch.device:
        return self.parent.device

    @cached_property
    def leaf_of_point(self) -> Tensor:
        """The leaf number of each training point, in the points' original order."""
        leaf = torch.empty_like(self.order)
        leaf[self.order] = self._leaf_in_order
        return leaf

    @property
    def _leaves_in_order(self) -> Tensor:
        """Leaf numbers in the order of their points."""
        return self.start[self.leaves].argsort()

    @property
    def _leaf_in_order(self) -> Tensor:
        """The leaf number of each point in the tree's order."""
        leaves = self._leaves_in_order
        return leaves.repeat_interleave(self.size[self.leaves][leaves], output_size=self.n_points)

    # Use --------------------------------------------------------------------------------------------

    def route(self, x: PointsLike) -> Tensor:
        """The leaf number of each point of `x` (an array, a sparse matrix or Points)."""
        points = as_points(x, device=self.device) if not isinstance(x, Points) else x
        node = torch.zeros(len(points), dtype=torch.long, device=self.device)
        if self.depth == 0:
            return node
        if self.rules is None:
            raise ValueError(
                "this tree has no rule that sends new points to leaves: give `route` when you make it, "
                "or fit it with points, so that nearest centres can be used"
            )
        for (first, _), rule in zip(self.inner_levels, self.rules, strict=True):
            rows = (~self.is_leaf[node]).nonzero().squeeze(1)
            here = node[rows]
            node[rows] = self.first_child[here] + rule.choose(points, rows, self.slot[here] - first)
        return torch.searchsorted(self.leaves, node)

    def join(self, leaf: Tensor) -> "Tree":
        """The same tree with more points, in the leaves of these numbers.

        The points that are there are now numbered in the tree's order, and the new ones follow.
        """
        by_start = self._leaves_in_order
        starts, place = self.start[self.leaves][by_start], by_start.argsort()
        more = torch.bincount(place[leaf], minlength=len(place))
        before = torch.cat([more.new_zeros(1), more.cumsum(0)])
        start, stop = (ends + before[torch.searchsorted(starts, ends)] for ends in (self.start, self.stop))
        order = place[torch.cat([self._leaf_in_order, leaf])].argsort(stable=True)
        return Tree(self.parent, start, stop, order, self.rules)

    def flat(self) -> "Tree":
        """The same leaves, in the order of their points, as children of the root."""
        if self.depth < 2:
            return self
        by_start = self._leaves_in_order
        nodes = torch.cat([self.parent.new_zeros(1), self.leaves[by_start]])
        parent = torch.zeros_like(nodes)
        parent[0] = -1
        start, stop = self.start[nodes], self.stop[nodes]
        rules = None if self.rules is None else (FlatRule(self, by_start.argsort()),)
        return Tree(parent, start, stop, self.order, rules)

    def to(self, device: torch.device | str) -> "Tree":
        """The same tree on another device."""
        device = torch.device(device)
        rules = None if self.rules is None else tuple(rule.to(device) for rule in self.rules)
        parent, start, stop, order = (t.to(device) for t in (self.parent, self.start, self.stop, self.order))
        return Tree(parent, start, stop, order, rules)

    def __repr__(self) -> str:
        sizes = self.size[self.leaves]
        span = f"{int(sizes.min())} to {int(sizes.max())} points"
        return (
            f"Tree({self.n_points} points, {self.n_nodes} nodes, "
            f"{self.n_leaves} leaves of {span}, depth {self.depth})"
        )

    # Trees given by the user ------------------------------------------------------------------------

    @classmethod
    def from_parents(cls, parent: ArrayLike, leaf: ArrayLike, route: Route | None = None) -> "Tree":
        """A tree from the parent of each node and the leaf of each point.

        Parameters
        ----------
        parent : array-like of shape (nodes,)
            -1 for the root. Nodes may be numbered in any way.
        leaf : array-like of shape (n,)
            The node, a leaf, in which each point lies. Every leaf needs a point.
        route : callable, optional
            Takes new points, as an array (or a sparse matrix), and returns the node (a leaf) of each. Called
            once for each level. Without it, new points go down the tree to the child with the nearest centre.
        """
        parents = np.asarray(parent, dtype=np.int64)
        renumber, sizes, order = lay_out(parents, np.asarray(leaf, dtype=np.int64))
        new_parent = np.full(len(parents), -1)
        new_parent[renumber] = np.where(parents >= 0, renumber[parents], -1)
        start = np.zeros(len(parents), dtype=np.int64)
        taken = start.copy()
        for i in range(1, len(parents)):
            p = new_parent[i]
            start[i] = start[p] + taken[p]
            taken[p] += sizes[i]
        ends = torch.from_numpy(start + sizes)
        tree = cls(torch.from_numpy(new_parent), torch.from_numpy(start), ends, torch.from_numpy(order))
        return tree if route is None else replace(tree, rules=function_rules(tree, route, renumber))

    @classmethod
    def from_labels(cls, labels: ArrayLike, route: Route | None = None) -> "Tree":
        """A tree from nested labels of the points, such as country, state, county.

        Parameters
        ----------
        labels : array-like of shape (n,) or (n, levels)
            Points that share their first ℓ labels share a node at level ℓ. Where a label does not divide
            a group, no level is made for it.
        route : callable, optional
            Takes new points and returns their labels, in the same form. A combination of labels that no
            training point has is an error.
        """
        table, parents, node = nodes_of_labels(labels)
        if route is None:
            return cls.from_parents(parents, node)
        return cls.from_parents(parents, node, finder(route, table, node))
