"""The upper part of a tree, or some of the points, where all are too much for a picture."""

from dataclasses import dataclass

import numpy as np

from hck.partition import Tree

MOST_POINTS = 20_000  # that are drawn one by one
MOST_SHAPES = 1000  # of which a file for vector graphics holds each


@dataclass(frozen=True)
class Cut:
    """A tree down to level `depth`: what is below is left out.

    `nodes` have nothing below them any more, in the order of their points; all else is of shape (nodes of the
    tree,).
    """

    depth: int
    nodes: np.ndarray
    parent: np.ndarray
    level: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    leaf: np.ndarray  # whether a node is a leaf of the tree

    @classmethod
    def at(cls, tree: Tree, depth: int) -> "Cut":
        host = tree.host
        parent, level, start, stop, leaf = (
            part.numpy() for part in (host.parent, host.level, host.start, host.stop, host.is_leaf)
        )
        last = np.flatnonzero((level == depth) | (leaf & (level < depth)))
        return cls(depth, last[np.argsort(start[last])], parent, level, start, stop, leaf)

    @classmethod
    def within(cls, tree: Tree, most: int, least: int = 0) -> "Cut":
        """As deep as it can be with at most so many `nodes`, but down to level `least` at least."""
        depth = tree.depth
        while depth > min(least, tree.depth) and len(cls.at(tree, depth).nodes) > most:
            depth -= 1
        return cls.at(tree, depth)

    @property
    def size(self) -> np.ndarray:
        """The number of points of each node of the tree."""
        return self.stop - self.start

    @property
    def whole(self) -> bool:
        """Whether nothing was left out."""
        return bool(self.leaf[self.nodes].all())

    def n_leaves(self, node: int) -> int:
        """How many leaves are below a node, or 1 for a leaf."""
        inside = (self.start >= self.start[node]) & (self.stop <= self.stop[node])
        return int((inside & self.leaf).sum())


def check_tree(tree: object) -> Tree:
    """A tree; that of an estimator is not meant, since it may have several."""
    if not isinstance(tree, Tree):
        raise TypeError(f"expected a hck.partition.Tree, such as model.tree_, got {type(tree).__name__}")
    return tree


def describe_leaves(tree: Tree) -> str:
    """How many leaves there are, and how large they are."""
    sizes = tree.host.size[tree.host.leaves]
    low, high = int(sizes.min()), int(sizes.max())
    span = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"{tree.n_leaves:,} {'leaf' if tree.n_leaves == 1 else 'leaves'} of {span} points"


def some_of(n: int, most: int) -> np.ndarray:
    """The numbers of at most so many of n things, drawn at random but always the same; ascending."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))
