"""From a tree and its landmarks to nodes, and back."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from hck.backend.blocks import consecutive
from hck.backend.random import as_random
from hck.hierarchy.blueprint import Blueprint, lay_out
from hck.online.node import Frame, Inner, Node, Observed, Path, leaves_below, stack
from hck.online.workshop import Workshop
from hck.partition import Landmarks, Tree, choose_landmarks, make_tree
from hck.partition.hyperplane import HyperplaneRule, hyperplane_rules
from hck.points import VectorPoints
from hck.settings import LandmarksLike, PartitionLike


@dataclass(frozen=True)
class Habit:
    """How a tree grows where it has to: as it did when it was fitted.

    Examples
    --------
    >>> from hck.online import Habit
    >>> Habit("random_projection", "uniform", leaf_size=16).most  # points in a leaf before it is cut
    32
    """

    partition: PartitionLike
    landmarks: LandmarksLike
    leaf_size: int

    @property
    def most(self) -> int:
        """The most points that a leaf may have."""
        return 2 * self.leaf_size

    @property
    def few(self) -> int:
        """So many points are no more than a leaf, whatever was below."""
        return self.leaf_size // 2

    @property
    def new_leaf_size(self) -> int:
        """So that a leaf that has grown beyond the most becomes two, each with room for more."""
        return max(1, 3 * self.leaf_size // 2)


def plant(
    workshop: Workshop, data: Observed, tree: Tree, landmarks: Landmarks, above: Frame | None, first_key: int
) -> Node:
    """The nodes of a tree over points as they came, whose landmarks are given, perhaps below another node.

    What has nothing above is an inner node: a single leaf gets a root without landmarks. Leaves have the
    keys from `first_key` on.
    """
    host, bare = tree.host, not tree.depth
    slots = range(1 if bare else len(host.inner))
    sets: list[VectorPoints] = [landmarks.of_slot(slot) for slot in slots]  # type: ignore[misc]
    frames = [above] if bare and above is not None else _frames(workshop, tree, sets, above)
    start, stop = (ends[host.leaves].tolist() for ends in (host.start, host.stop))
    observed = [data.take(tree.order[i:j]) for i, j in zip(start, stop, strict=True)]
    parents = [frames[slot] for slot in host.leaf_parent.tolist()]
    keys = range(first_key, first_key + len(observed))
    leaves = workshop.leaves(observed, parents, keys)
    made: dict[int, Node] = dict(zip(host.leaves.tolist(), leaves, strict=True))
    if bare:
        return made[0] if above is not None else workshop.nodes([(frames[0], (made[0],))])[0]
    first, count, inner = host.first_child.tolist(), host.n_children.tolist(), host.inner.tolist()
    for begin, end in reversed(tree.inner_levels):
        drafts = []
        for slot in range(begin, end):
            node = inner[slot]
            children = tuple(made.pop(first[node] + i) for i in range(count[node]))
            drafts.append((frames[slot], children))
        made.update(zip(inner[begin:end], workshop.nodes(drafts), strict=True))
    return made[0]


def regrow(workshop: Workshop, habit: Habit, data: Observed, above: Frame | None, first_key: int) -> Node:
    """A balanced tree over some points, in place of whatever there was."""
    data, random = data.sort(), as_random(len(data))
    kernel, points, rank = workshop.kernel, data.points, workshop.rank
    tree = make_tree(habit.partition, points, kernel, rank, habit.new_leaf_size, random.child(0))
    sorted_points = points.take(tree.order)
    landmarks = choose_landmarks(habit.landmarks, sorted_points, tree, rank, kernel, random.child(1))
    return plant(workshop, data, tree, landmarks, above, first_key)


def _frames(workshop: Workshop, tree: Tree, sets: list[VectorPoints], above: Frame | None) -> list[Frame]:
    """The frames of all inner nodes, of their sets of landmarks."""
    factors, host = workshop.landmark_factors(sets), tree.host
    nothing = torch.full((1,), torch.inf, dtype=factors[0].dtype, device=workshop.device)
    frames = [Frame(z, c, torch.zeros_like(c), None, nothing) for z, c in zip(sets, factors, strict=True)]
    if not tree.depth:
        return frames
    for (begin, end), rule in zip(tree.inner_levels, hyperplane_rules(tree), strict=True):
        directions = rule.directions[rule.pick]
        for slot in range(begin, end):
            i = slot - begin
            way = directions[i : i + 1].clone(), rule.threshold[i : i + 1].clone()
            frames[slot] = replace(frames[slot], direction=way[0], threshold=way[1])
    parent = host.slot[host.parent[host.inner].clamp_min(0)].tolist()
    first = 0 if above is not None else 1  # a root has nothing to transfer
    higher = [frames[slot] for slot in parent]
    if above is not None:
        higher[0] = above
    own = [(frame.landmarks, frame.factor) for frame in frames]
    found = workshop.transfers(own[first:], higher[first:])
    return frames[:first] + [replace(f, transfer=w) for f, w in zip(frames[first:], found, strict=True)]


# And back ------------------------------------------------------------------------------------------------


def harvest(workshop: Workshop, root: Inner, numbers: np.ndarray, budget: int) -> tuple[Blueprint, Observed]:
    """The blueprint of a tree, over points in the order of their numbers, and these with their observations.

    `numbers` are those of all points, ascending.
    """
    parts = [leaf.data for _, leaf in leaves_below(root)]
    every = Observed.join(parts)
    order = torch.from_numpy(np.searchsorted(numbers, every.number)).to(workshop.device)
    tree, frames = _tree_of(root, order)
    device = workshop.device
    if tree.depth:
        sets = [frame.landmarks for frame in frames]
        count = torch.tensor([len(each) for each in sets], dtype=torch.long, device=device)
        full = bool((count == workshop.rank).all())
        blocks = consecutive(count.cumsum(0) - count, count, max(1, int(count.max())), full)
        joined = sets[0].join(list(sets[1:]))
        landmarks = Landmarks(joined if len(joined) else every.points, blocks)
    else:
        landmarks = choose_landmarks("uniform", every.points, tree, 1, workshop.kernel, 0)
    layout = lay_out(tree, every.points, landmarks.rank, budget)
    blueprint = Blueprint(workshop.kernel, every.points, landmarks, workshop.jitter, layout, budget)
    return blueprint, every.take(order.argsort())


def _tree_of(root: Inner, order: Tensor) -> tuple[Tree, list[Frame]]:
    """The tree of nodes over points in the order of leaves, and the frames of its inner nodes."""
    parent, start, size, frames, rules = [-1], [0], [root.size], [], []
    bare = root.frame.direction is None and len(root.children) == 1 and not len(root.frame.landmarks)
    level: list[tuple[int, Node]] = [] if bare else [(0, root)]
    while level:
        below: list[tuple[int, Node]] = []
        inner = [node for _, node in level if isinstance(node, Inner)]
        for number, node in level:
            begin = start[number]
            for child in node.children if isinstance(node, Inner) else ():
                below.append((len(parent), child))
                parent.append(number)
                start.append(begin)
                size.append(child.size)
                begin += child.size
        if inner:
            frames += [node.frame for node in inner]
            rules.append(_rule(inner))
        level = below
    shape = torch.tensor([start, size, parent], dtype=torch.long, device=order.device)
    first, length, above = shape.unbind()
    return Tree(above, first, first + length, order, tuple(rules)), frames


def _rule(inner: list[Inner]) -> HyperplaneRule:
    """How points find their way from the inner nodes of a level; those with one child do not cut."""
    frames = [node.frame for node in inner]
    width = inner[0].frame.landmarks.n_features
    some = frames[0].factor
    nowhere = some.new_zeros(1, width)
    directions = stack([nowhere if frame.direction is None else frame.direction.to(some) for frame in frames])
    ends = [
        frame.threshold.to(some) if len(node.children) == 2 else some.new_full((1,), torch.inf)
        for node, frame in zip(inner, frames, strict=True)
    ]
    return HyperplaneRule(directions, torch.arange(len(inner), device=some.device), stack(ends))


def every_path(root: Inner) -> dict[int, Path]:
    """The path of each leaf, by its key."""
    return {leaf.key: path for path, leaf in leaves_below(root)}
