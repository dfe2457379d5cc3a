"""The nodes of a tree whose points come and go.

Nodes are never changed: an update makes new ones for the leaves that it touches and for all that lie on their
way to the root, which share the rest with the tree before. So whoever holds a root holds one version of all,
and memory is given back with the last who holds it.

Tensors have a leading dimension of 1, so that several nodes are stacked without a copy of one. r is the rank,
n a leaf's size, k the number of right-hand sides. What is computed of a node is in its `Record`.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from hck.backend.kinds import kind_of
from hck.backend.records import Record
from hck.points import DensePoints, VectorPoints

_SMALL = 2048  # bytes: what a copy costs whatever its size

Path: TypeAlias = tuple[int, ...]  # which child to take at each level, from the root


@dataclass(frozen=True, eq=False, slots=True)
class Observed:
    """Points and what was observed there, each with a number that it keeps as long as it stays."""

    points: VectorPoints
    number: np.ndarray  # (n,)
    b: Tensor  # (n, k)
    noise: Tensor  # (n,): variances

    def __len__(self) -> int:
        return len(self.number)

    def take(self, rows: Tensor) -> "Observed":
        """Those at `rows`, in that order."""
        points, index = self.points.take(rows), rows.cpu().numpy()
        return Observed(points, self.number[index], self.b[rows], self.noise[rows])  # type: ignore[arg-type]

    def sort(self) -> "Observed":
        """In the order of their numbers, so that what is made of them does not depend on how they came."""
        ascending = bool((np.diff(self.number) > 0).all())
        return self if ascending else self.take(torch.from_numpy(np.argsort(self.number)).to(self.b.device))

    def split(self, counts: list[int]) -> "list[Observed]":
        """The first ones, the next ones, and so on."""
        if len(counts) == 1:
            return [self]
        ends = np.cumsum(counts)
        if isinstance(self.points, DensePoints):
            points: list[VectorPoints] = [DensePoints(part) for part in self.points.x.split(counts)]
        else:
            every = torch.arange(len(self), device=self.b.device).split(counts)
            points = [self.points.take(rows) for rows in every]  # type: ignore[misc]
        parts = points, np.split(self.number, ends[:-1]), self.b.split(counts), self.noise.split(counts)
        return [Observed(*each) for each in zip(*parts, strict=True)]

    @staticmethod
    def join(parts: "list[Observed]") -> "Observed":
        """Those of several, one after another."""
        if len(parts) == 1:
            return parts[0]
        return Observed(
            parts[0].points.join([part.points for part in parts[1:]]),  # type: ignore[arg-type]
            np.concatenate([part.number for part in parts]),
            torch.cat([part.b for part in parts]),
            torch.cat([part.noise for part in parts]),
        )


@dataclass(frozen=True, eq=False, slots=True)
class Frame:
    """What is the same in an inner node whatever is observed below.

    A root above a single leaf has no landmarks, and its direction is None.
    """

    landmarks: VectorPoints  # at most r
    factor: Tensor  # C (1, r, r)
    transfer: Tensor  # W (1, r, r); 0 for the root
    direction: Tensor | None  # (1, d): points beyond the threshold go to the second child
    threshold: Tensor  # (1,)


@dataclass(frozen=True, eq=False, slots=True)
class Leaf:
    """A leaf."""

    key: int  # by which it is known as long as its points stay together
    data: Observed
    record: Record

    @property
    def size(self) -> int:
        return len(self.data)


@dataclass(frozen=True, eq=False, slots=True)
class Inner:
    """An inner node with one child or two."""

    frame: Frame
    children: "tuple[Node, ...]"
    record: Record
    size: int


Node: TypeAlias = Leaf | Inner


def at(root: Inner, path: Path) -> Node:
    """The node at the end of a path."""
    node: Node = root
    for child in path:
        node = node.children[child]  # type: ignore[union-attr]
    return node


def on_the_way(root: Inner, paths: "Collection[Path]") -> dict[Path, Inner]:
    """The inner nodes above the ends of paths, the root first."""
    found: dict[Path, Inner] = {}
    for path in paths:
        node: Node = root
        for depth, child in enumerate(path):
            found[path[:depth]] = node  # type: ignore[assignment]
            node = node.children[child]  # type: ignore[union-attr]
    return found if len(paths) == 1 else dict(sorted(found.items(), key=lambda item: len(item[0])))


def leaves_below(node: Node, path: Path = ()) -> Iterator[tuple[Path, Leaf]]:
    """All leaves from a node on, each with its path."""
    waiting = [(path, node)]
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, Leaf):
            yield path, node
        else:
            waiting += [((*path, i), child) for i, child in reversed(list(enumerate(node.children)))]


def route(root: Inner, x: VectorPoints) -> dict[Path, Tensor]:
    """The leaves into which points fall, by their paths, and which points these are."""
    if len(x) == 1 and isinstance(x, DensePoints) and kind_of(x.device).is_host:
        return {_one_way(root, x.x[0].numpy()): torch.zeros(1, dtype=torch.long, device=x.device)}
    found: dict[Path, Tensor] = {}
    level: list[tuple[Path, Node, Tensor]] = [((), root, torch.arange(len(x), device=x.device))]
    while level:
        cut: list[tuple[Path, Inner, Tensor]] = []
        below: list[tuple[Path, Node, Tensor]] = []
        for path, node, rows in level:
            if isinstance(node, Leaf):
                found[path] = rows
            elif len(node.children) == 1:
                below.append(((*path, 0), node.children[0], rows))
            else:
                cut.append((path, node, rows))
        level = below + (_one_level(cut, x) if cut else [])
    return found


def _one_way(root: Inner, x: np.ndarray) -> Path:
    """The way of one point (d,), without the overhead of many."""
    path, node = [], root
    while isinstance(node, Inner):
        frame, child = node.frame, 0
        if len(node.children) == 2 and frame.direction is not None:
            child = int(float(frame.direction.numpy()[0] @ x) > frame.threshold.item())
        path.append(child)
        node = node.children[child]  # type: ignore[assignment]
    return tuple(path)


def _one_level(cut: list[tuple[Path, Inner, Tensor]], x: VectorPoints) -> list[tuple[Path, Node, Tensor]]:
    """Send points on to the children of nodes that have two."""
    frames = [node.frame for _, node, _ in cut]
    directions = stack([frame.direction for frame in frames])  # type: ignore[misc]
    threshold = stack([frame.threshold for frame in frames])
    count = torch.tensor([len(rows) for _, _, rows in cut], dtype=torch.long, device=x.device)
    which = torch.arange(len(cut), device=x.device).repeat_interleave(count)
    rows = stack([rows for _, _, rows in cut])
    child = 2 * which + (x.project(rows, directions, which) > threshold[which])
    sizes = child.bincount(minlength=2 * len(cut)).tolist()
    below = [((*path, i), node.children[i]) for path, node, _ in cut for i in (0, 1)]
    parts = zip(below, rows[child.argsort(stable=True)].split(sizes), sizes, strict=True)
    return [(path, node, here) for (path, node), here, size in parts if size]


def stack(parts: list[Tensor]) -> Tensor:
    """Several tensors in one, along the first dimension; one by itself is not copied."""
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def apart(tensor: Tensor) -> list[Tensor]:
    """The members of a stack, each with memory of its own, which is given back when it is gone.

    Small ones stay together: little is lost if the memory of all goes with the last.
    """
    if len(tensor) == 1:
        return [tensor]
    parts = tensor.unsqueeze(1).unbind()
    small = parts[0].numel() * tensor.element_size() < _SMALL
    return [*parts] if small else [part.clone() for part in parts]
