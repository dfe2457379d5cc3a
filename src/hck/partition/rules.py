"""How new points find their leaf: rules that send the points of a level on to the children of its nodes."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from hck.points import Points, VectorPoints

if TYPE_CHECKING:
    from hck.partition.tree import Tree


class Rule(ABC):
    """Sends the points of the nodes of one level, those that have children, on to the children."""

    @abstractmethod
    def choose(self, points: Points, rows: Tensor, which: Tensor) -> Tensor:
        """The child number, from 0, for each i: points[rows[i]] lies in the level's inner node which[i]."""

    @abstractmethod
    def to(self, device: torch.device) -> "Rule":
        """The same rule with its arrays on `device`."""

    def after_scaling(self, factor: Tensor) -> "Rule":
        """The rule for points that are still to be multiplied by `factor`, feature by feature."""
        return ScaledRule(self, factor)


@dataclass(frozen=True)
class ScaledRule(Rule):
    """Another rule, applied to points whose features are multiplied by numbers."""

    rule: Rule
    factor: Tensor  # (d,)

    def choose(self, points: Points, rows: Tensor, which: Tensor) -> Tensor:
        some = points.take(rows)
        assert isinstance(some, VectorPoints)
        every = torch.arange(len(rows), device=rows.device)
        return self.rule.choose(some.scaled(self.factor), every, which)

    def to(self, device: torch.device) -> "ScaledRule":
        return ScaledRule(self.rule.to(device), self.factor.to(device))


@dataclass(frozen=True)
class FunctionRule(Rule):
    """Routes by a function given by the user, which names the leaf at once."""

    function: Callable[[Any], Any]
    child: (
        Tensor  # (nodes,): which child at this level leads to the leaf; -1 for nodes that are no leaf below
    )

    def choose(self, points: Points, rows: Tensor, which: Tensor) -> Tensor:
        if len(rows) == 0:
            return rows
        leaf = torch.as_tensor(np.asarray(self.function(_raw(points.take(rows)))), dtype=torch.long)
        if leaf.shape != rows.shape or leaf.min() < 0 or leaf.max() >= len(self.child):
            raise ValueError("the tree's route function must return a node of the tree for each point")
        child = self.child[leaf.to(self.child.device)]
        if (child < 0).any():
            raise ValueError("the tree's route function returned a node that is not a leaf")
        return child

    def to(self, device: torch.device) -> "FunctionRule":
        return FunctionRule(self.function, self.child.to(device))


@dataclass(frozen=True)
class FlatRule(Rule):
    """Sends points down another tree, whose leaves are the children here."""

    tree: "Tree"
    place: Tensor  # (leaves,): which child each leaf is

    def choose(self, points: Points, rows: Tensor, which: Tensor) -> Tensor:
        return self.place[self.tree.route(points.take(rows))]

    def to(self, device: torch.device) -> "FlatRule":
        return FlatRule(self.tree.to(device), self.place.to(device))


def function_rules(tree: "Tree", route: Callable[[Any], Any], renumber: np.ndarray) -> tuple[Rule, ...]:
    """Rules for all levels of a tree; `renumber` gives the node of each number that `route` returns."""
    child = torch.full((tree.depth, tree.n_nodes), -1)
    for leaf in tree.leaves.tolist():
        node = leaf
        for level in reversed(range(int(tree.level[leaf]))):
            parent = int(tree.parent[node])
            child[level, leaf] = node - int(tree.first_child[parent])
            node = parent
    return tuple(FunctionRule(route, row[torch.from_numpy(renumber)]) for row in child)


def _raw(points: Points) -> Any:
    x = points.x
    return x.cpu().numpy() if isinstance(x, Tensor) else x
