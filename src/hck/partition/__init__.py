"""Partitions of the domain: trees, what cuts them, and the landmarks of their nodes."""

from dataclasses import replace

from hck.backend.random import RandomLike, as_random
from hck.kernels import Kernel
from hck.partition.centres import KMeans, centre_rules
from hck.partition.cutter import Cutter, Frontier, grow, leaf_size_for
from hck.partition.hyperplane import KD, PCA, HyperplaneCutter, RandomProjection
from hck.partition.kernel_cut import KernelCut
from hck.partition.landmarks import Landmarks, choose_landmarks, known_landmarks
from hck.partition.rules import Rule
from hck.partition.tree import Tree
from hck.points import Points, VectorPoints
from hck.settings import PartitionLike

__all__ = [
    "KD",
    "PCA",
    "Cutter",
    "KMeans",
    "KernelCut",
    "Landmarks",
    "RandomProjection",
    "Rule",
    "Tree",
    "choose_landmarks",
    "cutter_classes",
    "known_landmarks",
    "known_partitions",
    "leaf_size_for",
    "make_tree",
]

_BY_NAME: dict[str, type[Cutter]] = {
    "random_projection": RandomProjection,
    "pca": PCA,
    "kd": KD,
    "kmeans": KMeans,
    "kernel": KernelCut,
}


def cutter_classes() -> tuple[type[Cutter], ...]:
    """Those that have a name.

    Examples
    --------
    >>> from hck.partition import KD, cutter_classes
    >>> KD in cutter_classes()
    True
    """
    return tuple(_BY_NAME.values())


def known_partitions(by_hyperplanes: bool = False) -> tuple[str, ...]:
    """The names of ways to cut, or of those that halve by hyperplanes.

    Parameters
    ----------
    by_hyperplanes : bool, default=False

    Examples
    --------
    >>> from hck.partition import known_partitions
    >>> known_partitions()
    ('random_projection', 'pca', 'kd', 'kmeans', 'kernel')
    >>> known_partitions(by_hyperplanes=True)
    ('random_projection', 'pca', 'kd')
    """
    kind = HyperplaneCutter if by_hyperplanes else Cutter
    return tuple(name for name, cutter in _BY_NAME.items() if issubclass(cutter, kind))


def make_tree(
    partition: PartitionLike,
    points: Points,
    kernel: Kernel,
    rank: int,
    leaf_size: int | None = None,
    generator: RandomLike = None,
) -> Tree:
    """A tree over the points.

    Parameters
    ----------
    partition : {"random_projection", "pca", "kd", "kmeans", "kernel"}, Cutter or Tree
        How to cut. A Tree is taken as it is; it must be a tree over as many points.
    points : Points
    kernel : Kernel
        By whose metric, or values, points are cut.
    rank : int
        r, for the leaf size.
    leaf_size : int or None, default=None
        Nodes of more points are cut. None: ⌈n/2^⌊log₂(n/rank)⌋⌉, so that leaves hold `rank` to
        2·`rank` points.
    generator : torch.Generator, int or None, default=None

    Examples
    --------
    >>> import torch
    >>> from hck.kernels import Gaussian
    >>> from hck.partition import make_tree
    >>> from hck.points import as_points
    >>> points = as_points(torch.linspace(0, 1, 100, dtype=torch.float64)[:, None])
    >>> make_tree("kd", points, Gaussian(1.0), rank=10, leaf_size=30)
    Tree(100 points, 7 nodes, 4 leaves of 25 to 25 points, depth 2)
    """
    if isinstance(partition, Tree):
        if partition.n_points != len(points):
            raise ValueError(f"the tree is over {partition.n_points} points, but there are {len(points)}")
        tree = partition.to(points.device)
        if tree.rules is None and isinstance(points, VectorPoints):
            tree = replace(tree, rules=centre_rules(tree, points))
        return tree
    if isinstance(partition, str):
        if partition not in _BY_NAME:
            raise ValueError(f"unknown partition {partition!r}; known partitions: {', '.join(_BY_NAME)}")
        partition = _BY_NAME[partition]()
    if not isinstance(partition, Cutter):
        raise TypeError(f"partition must be a name, a Cutter or a Tree, got {partition!r}")
    size = leaf_size_for(len(points), rank) if leaf_size is None else min(leaf_size, len(points))
    return grow(Frontier.root(points, kernel, as_random(generator)), partition, size)
