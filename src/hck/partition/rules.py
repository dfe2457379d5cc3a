"""How new points find their leaf: rules that send the points of a level on to the children of its nodes."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from torch import Tensor

from hck.backend.checks import check_floats, check_indices, require
from hck.partition.given import Route
from hck.points import Points, PointsLike, VectorPoints

if TYPE_CHECKING:
    from hck.partition.tree import Tree


@dataclass(frozen=True)
class Rule(ABC):
    """Sends the points of the nodes of one level, those that have children, on to the children.

    Examples
    --------
    >>> import torch
    >>> from hck.kernels import Gaussian
    >>> from hck.partition import Rule, make_tree
    >>> from hck.points import as_points
    >>> x = torch.rand(64, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> tree = make_tree("kd", as_points(x), Gaussian(1.0), rank=8)
    >>> len(tree.rules) == tree.depth, isinstance(tree.rules[0], Rule)
    (True, True)
    >>> bool((tree.route(x) == tree.leaf_of_point).all())  # by its rules, points find their leaves again
    True
    """

    @abstractmethod
    def choose(self, points: Points, rows: Tensor, which: Tensor) -> Tensor:
        """The child number, from 0, for each i: points[rows[i]] lies in the level's inner node which[i]."""

    def check(self, children: Tensor, d: int) -> None:
        """Raise ValueError unless it suits inner nodes with these numbers of children, and d features."""
        raise ValueError(f"a {type(self).__name__} cannot be checked")

    def to(self, device: torch.device) -> Self:
        """The same rule with its arrays on `device`."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        moved = {k: v.to(device) for k, v in parts.items() if isinstance(v, Tensor | Points | Rule)}
        return replace(self, **moved)

    def after_scaling(self, factor: Tensor) -> "Rule":
        """The rule for points that are still to be multiplied: each feature by a number, or by a matrix."""
        return ScaledRule(self, factor)


def as_vectors(points: Points) -> VectorPoints:
    """The points, if they have coordinates; else a TypeError that says what to do."""
    if not isinstance(points, VectorPoints):
        raise TypeError(
            "points without coordinates cannot be cut by hyperplanes or centres: use partition='kernel', "
            "which needs the base kernel alone, or give a Tree"
        )
    return points


@dataclass(frozen=True)
class ScaledRule(Rule):
    """Another rule, applied to points whose features are multiplied by numbers, or by a matrix."""

    rule: Rule
    factor: Tensor  # (d,), or (d, k)

    def check(self, children: Tensor, d: int) -> None:
        is_matrix = self.factor.ndim == 2
        check_floats("factor", self.factor, d, *((None,) if is_matrix else ()))
        self.rule.check(children, self.factor.shape[1] if is_matrix else d)

    def choose(self, points: Points, rows: Tensor, which: Tensor) -> Tensor:
        every = torch.arange(len(rows), device=rows.device)
        return self.rule.choose(as_vectors(points.take(rows)).scaled(self.factor), every, which)


@dataclass(frozen=True)
class FunctionRule(Rule):
    """Routes by a function given by the user, which names the leaf at once."""

    function: Route
    child: Tensor  # (nodes,): which child here leads to the leaf; -1 for nodes that are no leaf below

    def choose(self, points: Points, rows: Tensor, which: Tensor) -> Tensor:
        if len(rows) == 0:
            return rows
        leaf = torch.from_numpy(np.array(self.function(_raw(points.take(rows))), dtype=np.int64))
        if leaf.shape != rows.shape or leaf.min() < 0 or leaf.max() >= len(self.child):
            raise ValueError("the tree's route function must return a node of the tree for each point")
        child = self.child[leaf.to(self.child.device)]
        if (child < 0).any():
            raise ValueError("the tree's route function returned a node that is not a leaf")
        return child


@dataclass(frozen=True)
class FlatRule(Rule):
    """Sends points down another tree, whose leaves are the children here."""

    tree: "Tree"
    place: Tensor  # (leaves,): which child each leaf is

    def check(self, children: Tensor, d: int) -> None:
        require(len(children) == 1, "a FlatRule is for the root alone")
        require(self.place.dtype == torch.int64, "place must be int64")
        check_indices("place", self.place, int(children), self.tree.n_leaves)
        flat = [rule for rule in self.tree.rules or () if isinstance(rule, FlatRule | ScaledRule)]
        require(not flat, "the tree of a FlatRule must have plain rules")
        self.tree.check_rules(d)

    def choose(self, points: Points, rows: Tensor, which: Tensor) -> Tensor:
        return self.place[self.tree.route(points.take(rows))]

    def to(self, device: torch.device) -> "FlatRule":
        return replace(super().to(device), tree=self.tree.to(device))


def function_rules(tree: "Tree", route: Route, renumber: np.ndarray) -> tuple[Rule, ...]:
    """Rules for all levels of a tree; `renumber` gives the node of each number that `route` returns."""
    child = torch.full((tree.depth, tree.n_nodes), -1, dtype=torch.long, device="cpu")
    for leaf in tree.leaves.tolist():
        node = leaf
        for level in reversed(range(int(tree.level[leaf]))):
            parent = int(tree.parent[node])
            child[level, leaf] = node - int(tree.first_child[parent])
            node = parent
    return tuple(FunctionRule(route, row[torch.from_numpy(renumber)]) for row in child)


def _raw(points: Points) -> PointsLike:
    x = points.x
    return x.cpu().numpy() if isinstance(x, Tensor) else x
