"""The landmarks of each node, through which the kernel sees what lies beyond the node's children."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hck.backend.blocks import Blocks, batches, consecutive, send
from hck.backend.checks import check_indices, require
from hck.backend.random import Random, RandomLike, as_random
from hck.kernels import Kernel
from hck.partition.centres import kmeans_centres
from hck.partition.rules import as_vectors
from hck.partition.tree import Tree
from hck.points import (
    ObjectPoints,
    Points,
    PointsLike,
    VectorPoints,
    as_points_like,
    check_same_kind,
    cross,
    self_values,
)
from hck.settings import LandmarksLike

# Landmarks other than uniform samples are chosen among this many random candidates per landmark.
_CANDIDATES = 8
_VALUES_AT_ONCE = 2**23


@dataclass(frozen=True)
class Landmarks:
    """Landmark sets of the inner nodes of a tree; a tree that is a single leaf has one empty set.

    They are made of the training points in the tree's order, or of points of their own.

    Examples
    --------
    >>> import torch
    >>> from hck.hierarchy import HierarchicalKernel
    >>> x = torch.linspace(0, 1, 100, dtype=torch.float64)[:, None]
    >>> landmarks = HierarchicalKernel.build("gaussian", x, rank=10, generator=0).landmarks
    >>> landmarks.rank, len(landmarks.blocks)  # so many for each of the inner nodes
    (10, 7)
    >>> len(landmarks.of_slot(0))
    10
    """

    points: Points
    blocks: Blocks  # (inner nodes, rank): positions in `points`

    def validate(self) -> None:
        """Raise ValueError unless the blocks are positions of the points."""
        check_indices("blocks", self.blocks.index, len(self.points), None, None, low=-1)
        require(self.rank > 0, "blocks must have room for a landmark")

    @property
    def rank(self) -> int:
        """The size of the largest set."""
        return self.blocks.index.shape[1]

    def of_slot(self, slot: int) -> Points:
        """The landmarks of one inner node."""
        index = self.blocks.index[slot]
        return self.points.take(index[index >= 0])


def choose_landmarks(
    how: LandmarksLike, points: Points, tree: Tree, rank: int, kernel: Kernel, generator: RandomLike
) -> Landmarks:
    """Choose landmarks for every inner node.

    Parameters
    ----------
    how : {"uniform", "kmeans", "farthest", "same", "none"}, array-like, list of array-like, or Landmarks
        - ``"uniform"``: a random sample of the node's points;
        - ``"kmeans"``: centres of a k-means clustering of the node's points;
        - ``"farthest"``: points of the node picked one after another, each the farthest from those before
          in the kernel's feature space (any kind of points);
        - ``"same"``: one random sample of all points, the same for every node. The kernel is then the
          compositional kernel of the paper's Section 2.1, whatever the tree;
        - ``"none"``: no landmarks, so that nothing is shared across leaves: points of different leaves are
          independent;
        - an array of points, used for every node; a list of arrays, one for each inner node;
        - the Landmarks of another kernel on the same tree.
    points : Points
        The training points in the tree's order.
    tree : Tree
    rank : int
        How many landmarks a node has. A node with fewer points has as many as it has points.
    kernel : Kernel
        By which points are far from each other.
    generator : torch.Generator, int or None

    Examples
    --------
    >>> import torch
    >>> from hck.kernels import Gaussian
    >>> from hck.partition import choose_landmarks, make_tree
    >>> from hck.points import as_points
    >>> points = as_points(torch.linspace(0, 1, 100, dtype=torch.float64)[:, None])
    >>> tree = make_tree("kd", points, Gaussian(0.1), rank=10)
    >>> chosen = choose_landmarks("farthest", points.take(tree.order), tree, 3, Gaussian(0.1), generator=0)
    >>> len(chosen.blocks) == len(tree.inner), chosen.rank
    (True, 3)
    """
    if isinstance(how, str) and how not in _CHOOSERS:
        raise ValueError(f"unknown landmarks {how!r}; known: {', '.join(_CHOOSERS)}")
    if tree.depth == 0:
        if not isinstance(how, str | Landmarks):
            _sets(how, points)  # which nobody needs, but a mistake is a mistake
        return Landmarks(points, Blocks(torch.full((1, 1), -1, device=points.device), full=False))
    if isinstance(how, Landmarks):
        if len(how.blocks) != len(tree.inner):
            raise ValueError(f"landmarks of {len(how.blocks)} nodes, but the tree has {len(tree.inner)}")
        check_same_kind(how.points, points)
        return how
    if isinstance(how, str):
        return _CHOOSERS[how](points, tree, rank, kernel, as_random(generator))
    return _given(how, points, tree)


def _uniform(points: Points, tree: Tree, rank: int, kernel: Kernel, random: Random) -> Landmarks:
    size = tree.host.size[tree.host.inner]
    sample, start = sample_without_replacement(size, rank, random, points.device), tree.start[tree.inner]
    return Landmarks(points, Blocks((start[:, None] + sample.index).where(sample.mask, -1), sample.full))


def _same(points: Points, tree: Tree, rank: int, kernel: Kernel, random: Random) -> Landmarks:
    sample = random.permutation(len(points), points.device)[:rank]
    return Landmarks(points, Blocks(sample.expand(len(tree.inner), -1), full=True))


def _none(points: Points, tree: Tree, rank: int, kernel: Kernel, random: Random) -> Landmarks:
    return Landmarks(points, Blocks(torch.full((len(tree.inner), 1), -1, device=points.device), full=False))


def _farthest(points: Points, tree: Tree, rank: int, kernel: Kernel, random: Random) -> Landmarks:
    candidates = _uniform(points, tree, _CANDIDATES * rank, kernel, random).blocks
    width = candidates.index.shape[1]
    chosen = torch.full((len(tree.inner), min(rank, width)), -1, device=points.device)
    at_once = max(1, _VALUES_AT_ONCE // (width * (2 + points.values_per_point)))
    for nodes in torch.arange(len(candidates), device=points.device).split(at_once):
        chosen[nodes] = _farthest_in_block(points, candidates[nodes], chosen.shape[1], kernel)
    return Landmarks(points, Blocks(chosen, bool((chosen >= 0).all())))


def _farthest_in_block(points: Points, block: Blocks, count: int, kernel: Kernel) -> Tensor:
    """Greedy picks in each row of a block of candidates: positions, -1 where a row has no more."""
    nodes = len(block)
    row = torch.arange(nodes, device=points.device)
    own = self_values(kernel, points, block)
    # squared distance to the picks so far
    gap = torch.full_like(own, torch.inf).masked_fill_(~block.mask, -torch.inf)
    picks = []
    latest = torch.zeros(nodes, dtype=torch.long, device=points.device)  # candidates are in random order
    for _ in range(count):
        real = gap[row, latest] > -torch.inf
        position = block.index[row, latest].where(real, -1)
        picks.append(position)
        to_latest = cross(kernel, points, block, points, Blocks(position[:, None], full=False))[..., 0]
        distance = own - 2 * to_latest + own[row, latest][:, None]
        gap = torch.minimum(gap, distance)
        gap[row, latest] = -torch.inf
        latest = gap.argmax(1)
    return torch.stack(picks, 1)


def _kmeans(points: Points, tree: Tree, rank: int, kernel: Kernel, random: Random) -> Landmarks:
    vectors, factor = as_vectors(points), kernel.stretch()
    factor = None if factor is None else factor.to(points.device, points.dtype)
    placed = vectors if factor is None else vectors.scaled(factor)
    back = torch.linalg.pinv(factor) if factor is not None and factor.ndim == 2 else None
    sample = _uniform(points, tree, _CANDIDATES * rank, kernel, random).blocks.index
    seed = random.child(1).seed()
    sets = []
    for row in sample:
        rows = row[row >= 0]
        centres = kmeans_centres(placed, rows, rank, max_iter=10, seed=seed)
        if back is not None:  # near the mean, where several points have the same place
            every = torch.zeros_like(rows)
            middle, placed_middle = vectors.mean(rows, every, 1), placed.mean(rows, every, 1)
            centres = middle + (centres - placed_middle) @ back
        elif factor is not None:
            centres = centres / factor
        sets.append(centres.cpu().numpy())
    return _given(sets, points, tree)


_CHOOSERS: dict[str, Callable[..., Landmarks]] = {
    "uniform": _uniform,
    "kmeans": _kmeans,
    "farthest": _farthest,
    "same": _same,
    "none": _none,
}


def known_landmarks() -> tuple[str, ...]:
    """The names of ways to choose them.

    Examples
    --------
    >>> from hck.partition import known_landmarks
    >>> known_landmarks()
    ('uniform', 'kmeans', 'farthest', 'same', 'none')
    """
    return tuple(_CHOOSERS)


def _given(how: LandmarksLike, points: Points, tree: Tree) -> Landmarks:
    """Landmarks from one array for all nodes, or from a list of arrays, one for each."""
    nodes, sets = len(tree.inner), _sets(how, points)
    if isinstance(sets, Points):
        every = torch.arange(len(sets), device=points.device).expand(nodes, -1)
        return Landmarks(sets, Blocks(every, full=True))
    if len(sets) != nodes:
        raise ValueError(
            f"the list of landmarks has {len(sets)} sets but the tree has {nodes} inner nodes; "
            "give one set for each, in the order of tree.inner, or one array for all"
        )
    count = torch.tensor([len(one) for one in sets], dtype=torch.long, device=points.device)
    joined = sets[0].join(sets[1:])
    full = bool((count == count[0]).all())
    return Landmarks(joined, consecutive(count.cumsum(0) - count, count, int(count.max()), full))


def _sets(how: LandmarksLike, points: Points) -> Points | list[Points]:
    """What is given: one set of landmarks for all nodes, or one for each."""
    one = isinstance(points, ObjectPoints) and not isinstance(how[0], list | np.ndarray)
    return _like(how, points) if one or not isinstance(how, list) else [_like(each, points) for each in how]


def _like(x: PointsLike, points: Points) -> Points:
    try:
        made = as_points_like(x, points)
    except ValueError as error:
        raise ValueError(f"landmarks: {error}") from None
    if len(made) == 0:
        raise ValueError("a set of landmarks is empty")
    if isinstance(made, VectorPoints) and not math.isfinite(made.reach):
        raise ValueError("landmarks must not be NaN or infinite")
    return made


def sample_without_replacement(size: Tensor, count: int, random: Random, device: torch.device) -> Blocks:
    """`count` different random numbers below size[i] for each i; all numbers where there are fewer.

    `size` is in the CPU's memory; the numbers are on the device. Those of i do not depend on the others'.
    """
    width = min(count, int(size.max()))
    index = torch.full((len(size), width), -1, device=device)
    small = size <= 8 * width
    zero = torch.zeros_like(size)
    for batch in batches(zero, size.where(small, 0), lambda w, _: max(1, _VALUES_AT_ONCE // w), device):
        key = random.orders(batch.groups, batch.index.shape[1])
        if not batch.full:
            key = key.masked_fill(~batch.mask, torch.iinfo(key.dtype).max)
        picked = key.argsort(dim=1, stable=True)[:, :width]
        index[batch.groups, : picked.shape[1]] = batch.index.gather(1, picked)
    big = (~small).nonzero().squeeze(1)
    if len(big):
        index[send(big, device)] = _sample_by_rejection(
            send(big, device), send(size[big], device), width, random
        )
    return Blocks(index, bool((size >= width).all()))


def _sample_by_rejection(which: Tensor, size: Tensor, count: int, random: Random) -> Tensor:
    """Draw with repetition, and draw repeated numbers anew until there are none."""
    shape = (len(size), count)
    bound = size[:, None].to(torch.float64)

    def draw(attempt: int) -> Tensor:
        return (random.child(attempt).rows(which, count) * bound).long().clamp_max(size[:, None] - 1)

    index, attempt = draw(1).sort(1).values, 1
    while True:
        repeated = torch.zeros(shape, dtype=torch.bool, device=size.device)
        repeated[:, 1:] = index[:, 1:] == index[:, :-1]
        if not repeated.any():
            # sorted so far; a random order, so that the first few are a sample too
            return index.gather(1, random.child(0).orders(which, count).argsort(dim=1, stable=True))
        attempt += 1
        index = draw(attempt).where(repeated, index).sort(1).values
