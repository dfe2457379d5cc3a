"""Trees in which some leaves are replaced, or are gone: all on the way to the root is made anew."""

from collections.abc import Collection
from dataclasses import replace

import torch

from hck.online.node import Frame, Inner, Leaf, Node, Observed, Path, leaves_below, on_the_way
from hck.online.workshop import Workshop

_HEAVIEST = 0.75  # the share of a node's points that one of its children may have


def replaced(workshop: Workshop, root: Inner, fresh: dict[Path, Node | None], few: int = 0) -> Inner:
    """The tree with other nodes at the ends of some paths; None where a node is gone.

    A node that is left with one child gives its place to it, and one that is left with a few points becomes a
    leaf. Some node must stay.
    """
    if () in fresh:  # all of it
        return _checked(fresh[()])
    ways: dict[int, list[tuple[Path, Inner]]] = {}
    for path, node in on_the_way(root, fresh).items():
        ways.setdefault(len(path), []).append((path, node))
    fresh, moved = dict(fresh), set[Path]()  # those that have come from further down
    drafts: dict[Path, Inner] = {}
    for level in reversed(ways.values()):
        for path, node in level:
            places = [fresh.get((*path, i), child) for i, child in enumerate(node.children)]
            left = {i: child for i, child in enumerate(places) if child is not None}
            if not left:
                fresh[path] = None
            elif len(left) < len(places) and path:
                fresh[path] = next(iter(left.values()))
                moved.add(path)
            elif path and few and sum(child.size for child in left.values()) <= few:
                below = [leaf for child in left.values() for _, leaf in leaves_below(child)]
                fresh[path] = replace(below[0], data=Observed.join([leaf.data for leaf in below]).sort())
                moved.add(path)  # so that it is made by whoever becomes its parent
            else:
                for i in [i for i in left if (*path, i) in moved]:
                    left[i] = placed = _below(workshop, left[i], node.frame)
                    if isinstance(placed, Inner):
                        drafts[(*path, i)] = placed
                made = workshop.draft(_frame_for(node.frame, len(left)), tuple(left.values()))
                fresh[path] = drafts[path] = made
    workshop.fill(drafts)
    return _checked(fresh[()])


def _checked(root: Node | None) -> Inner:
    if not isinstance(root, Inner):
        raise ValueError("a tree must have points")
    return root


def _below(workshop: Workshop, node: Node, frame: Frame) -> Node:
    """A node as the child of another one than before; an inner one is still to be filled."""
    if isinstance(node, Leaf):
        return workshop.leaves([node.data], [frame], [node.key])[0]
    own = node.frame
    transfer = workshop.transfers([(own.landmarks, own.factor)], [frame])[0]
    return workshop.draft(replace(own, transfer=transfer), node.children)


def _frame_for(frame: Frame, children: int) -> Frame:
    """A root that is left with one child sends all points there."""
    if children == 2 or frame.direction is None:
        return frame
    return replace(frame, direction=None, threshold=torch.full_like(frame.threshold, torch.inf))


def unbalanced(root: Inner, paths: Collection[Path] | None) -> list[Path]:
    """The highest nodes that are out of balance, on some ways or, None, anywhere; none is below another.

    That is a node of whose points a child has more than three quarters, but for a root above a single leaf.
    """
    waiting: list[tuple[Path, Node]] = [((), root)]
    ways, found = None if paths is None else on_the_way(root, paths), list[Path]()
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, Leaf) or (ways is not None and path not in ways):
            continue
        alone = len(node.children) == 1 and isinstance(node.children[0], Leaf)
        if not alone and max(child.size for child in node.children) > _HEAVIEST * node.size:
            found.append(path)
        else:
            waiting += [((*path, i), child) for i, child in enumerate(node.children)]
    return found
