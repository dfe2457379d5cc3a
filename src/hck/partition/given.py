"""Trees given by the user: by the parent of each node, or by labels of the points."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from hck.points import PointsLike

Route: TypeAlias = Callable[[PointsLike], ArrayLike]  # new points ↦ their nodes, or their labels


def nodes_of_labels(labels: ArrayLike) -> tuple[np.ndarray, list[int], np.ndarray]:
    """Labels as a table (n, levels), the parents of their nodes, and the node (a leaf) of each point."""
    table = np.asarray(labels)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or table.size == 0:
        raise ValueError(f"labels must have shape (n,) or (n, levels), got {np.shape(labels)}")
    parents, node = [-1], np.zeros(len(table), dtype=np.int64)
    for column in table.T:
        _, codes = np.unique(column, return_inverse=True)
        groups, member = np.unique(np.stack([node, codes]), axis=1, return_inverse=True)
        divided = np.bincount(groups[0], minlength=len(parents)) > 1
        fresh = np.where(divided[groups[0]], len(parents) + np.cumsum(divided[groups[0]]) - 1, groups[0])
        parents.extend(groups[0][divided[groups[0]]])
        node = fresh[member.reshape(-1)]
    return table, parents, node


def finder(route: Route, table: np.ndarray, node: np.ndarray) -> Route:
    """A function from new points to nodes, where `route` gives their labels, of which the table has all."""
    known = {tuple(row): leaf for row, leaf in zip(table.tolist(), node.tolist(), strict=True)}

    def find(x: PointsLike) -> list[int]:
        rows = np.asarray(route(x))
        rows = rows[:, None] if rows.ndim == 1 else rows
        missing = {tuple(row) for row in rows.tolist()} - known.keys()
        if missing:
            raise ValueError(f"no training point has the labels {sorted(missing, key=str)[0]}")
        return [known[tuple(row)] for row in rows.tolist()]

    return find


def lay_out(parent: np.ndarray, leaf: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Check a tree, and number its nodes by level: new numbers, sizes by new number, order of points."""
    nodes = len(parent)
    roots = np.flatnonzero(parent < 0)
    if parent.ndim != 1 or len(roots) != 1 or parent.max() >= nodes:
        raise ValueError("`parent` must name a node for each node but one, the root, which has -1")
    if leaf.ndim != 1 or len(leaf) == 0 or leaf.min() < 0 or leaf.max() >= nodes:
        raise ValueError("`leaf` must name a node of the tree for each point")
    children: list[list[int]] = [[] for _ in range(nodes)]
    for i, p in enumerate(parent.tolist()):
        if p >= 0:
            children[p].append(i)
    walk = [int(roots[0])]
    for i in walk:  # grows while we walk: breadth first
        walk.extend(children[i])
    if len(walk) != nodes:
        raise ValueError("`parent` contains a cycle: some nodes are not below the root")
    if any(len(c) == 1 for c in children):
        raise ValueError(
            "every node must have no child or at least two; merge a single child with its parent"
        )
    if any(children[i] for i in np.unique(leaf)):
        raise ValueError("points must lie in leaves, but `leaf` names a node that has children")
    size = np.bincount(leaf, minlength=nodes)
    for i in reversed(walk):
        if not children[i] and size[i] == 0:
            raise ValueError(f"leaf {i} has no points; every leaf needs at least one")
        size[i] += sum(size[c] for c in children[i])
    renumber = np.empty(nodes, dtype=np.int64)
    renumber[walk] = np.arange(nodes)
    position, place, stack = 0, np.zeros(nodes, dtype=np.int64), [int(roots[0])]
    while stack:  # depth first: leaves in the order in which their points are listed
        i = stack.pop()
        place[i], position = position, position + 1
        stack.extend(reversed(children[i]))
    return renumber, size[walk], np.argsort(place[leaf], kind="stable")
