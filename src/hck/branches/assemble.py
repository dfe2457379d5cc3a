"""Trunk and branches as the one tree that they are."""

from itertools import accumulate

import torch
from torch import Tensor

from hck.backend.blocks import Blocks
from hck.backend.memory import resolve_budget
from hck.branches.piece import Piece
from hck.branches.trunk import Trunk, compact
from hck.hierarchy.forest import share_points
from hck.hierarchy.predictor import TreePredictor
from hck.partition import Landmarks, Rule, Tree
from hck.partition.hyperplane import HyperplaneRule, hyperplane_rules
from hck.points import Points


def assemble(trunk: Trunk, pieces: list[Piece]) -> TreePredictor:
    """The function that the branches of a tree evaluate together, on one device and in one piece.

    Parameters
    ----------
    trunk : Trunk
    pieces : list of Piece
        One for each branch, in their order.

    Examples
    --------
    >>> import torch
    >>> from hck.branches import Branch, Piece, Trunk, assemble
    >>> from hck.points import as_points
    >>> from hck.settings import Settings
    >>> points = as_points(torch.linspace(0, 1, 200, dtype=torch.float64)[:, None])
    >>> settings = Settings(rank=8)
    >>> trunk = Trunk.of("gaussian", points, 2, settings, generator=0)
    >>> rows = [(trunk.route(points) == k).nonzero()[:, 0] for k in range(2)]
    >>> grown = [Branch.grow(trunk, k, points.take(rows[k]), settings, generator=k) for k in range(2)]
    >>> up = [grown[k].factor(0.1, points.x[rows[k]]) for k in range(2)]
    >>> replies, _ = trunk.solve([Branch.message(each) for each in up])
    >>> pieces = [Piece(grown[k].solve(up[k], replies[k]), rows[k]) for k in range(2)]
    >>> whole = assemble(trunk, pieces)
    >>> whole.tree.n_points, whole([[0.5]]).round(decimals=1)
    (200, tensor([[0.5000]], dtype=torch.float64))
    """
    parts = [piece.predictor for piece in pieces]
    tree = _join_trees(trunk, parts, [piece.rows for piece in pieces])
    columns = parts[0].weights.shape[1]
    points, landmarks = _join_points(trunk, parts, tree)
    # leaves are numbered level by level, and in a level branch by branch
    level = torch.cat([part.tree.level[part.tree.leaves] for part in parts])
    by_level = level.argsort(stable=True)
    rank = landmarks.rank
    heard = torch.cat([part.landmark_weights.expand(-1, rank, columns) for part in parts])[by_level]
    weights = torch.cat([part.weights for part in parts])
    own = points.take(torch.arange(tree.n_points, device=points.device))
    budget = resolve_budget(None, points.device)
    return TreePredictor(trunk.kernel, tree, own, compact(landmarks), weights, heard, budget)


def assemble_forest(trunks: list[Trunk], pieces: list[list[Piece]]) -> list[TreePredictor]:
    """The same for the pieces of several trees over the same points, which they then share.

    Parameters
    ----------
    trunks : list of Trunk
        One for each tree.
    pieces : list of list of Piece
        Those of the branches of each tree.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from hck.outofcore import DiskHCKRegressor
    >>> X = np.random.default_rng(0).uniform(size=(500, 2))
    >>> with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    ...     model = DiskHCKRegressor("gaussian", lengthscale=1.0, alpha=0.1, rank=8, n_trees=2, folder=folder)
    ...     local = model.fit(X, X[:, 0]).to_local()  # puts the branches of both trees together
    >>> [tree.n_points for tree in local.trees_]
    [500, 500]
    """
    points: Points | None = None
    found = []
    for trunk, mine in zip(trunks, pieces, strict=True):
        made = assemble(trunk, mine)
        points = made.points.take(made.tree.order.argsort()) if points is None else points
        found.append(share_points(made, points))
    return found


def _join_trees(trunk: Trunk, parts: list[TreePredictor], rows: list[Tensor]) -> Tree:
    """Level by level, and in a level branch by branch; the first node of a branch's tree is the trunk's."""
    top, own = trunk.tree, [part.tree for part in parts]
    device = top.device
    sizes = torch.tensor([tree.n_points for tree in own], dtype=torch.long, device=device)
    before = sizes.cumsum(0) - sizes
    count = top.n_nodes - top.n_leaves  # nodes so far
    ends = _ends(top, before, before + sizes)
    parents, starts, stops = [top.parent[:count]], [ends[0][:count]], [ends[1][:count]]
    rules: list[Rule] = list(top.rules or ())
    numbers = [torch.zeros_like(tree.parent) for tree in own]  # in the whole tree
    for k, number in enumerate(numbers):
        number[0] = top.parent[top.leaves[k]]
    depth = max(tree.depth for tree in own)
    for level in range(1, depth + 1):
        for k, tree in enumerate(own):
            here = (tree.level == level).nonzero().squeeze(1)
            numbers[k][here] = torch.arange(count, count + len(here), device=device)
            count += len(here)
            parents.append(numbers[k][tree.parent[here]])
            starts.append(tree.start[here] + before[k])
            stops.append(tree.stop[here] + before[k])
        known = [hyperplane_rules(tree)[level] for tree in own if level < tree.depth]
        if known:
            rules.append(_join_rules(known))
    order = torch.cat([rows[k].to(device)[tree.order] for k, tree in enumerate(own)])
    return Tree(torch.cat(parents), torch.cat(starts), torch.cat(stops), order, tuple(rules))


def _ends(top: Tree, start: Tensor, stop: Tensor) -> tuple[Tensor, Tensor]:
    """Where the points of the trunk's nodes begin and end, given those of its leaves."""
    first, last = torch.zeros_like(top.parent), torch.zeros_like(top.parent)
    first[top.leaves], last[top.leaves] = start, stop
    for node in reversed(range(top.n_nodes)):
        if not top.is_leaf[node]:
            child = (top.parent == node).nonzero().squeeze(1)
            first[node], last[node] = first[child].min(), last[child].max()
    return first, last


def _join_rules(rules: list[HyperplaneRule]) -> HyperplaneRule:
    """One rule for the inner nodes of a level, branch after branch."""
    offset = list(accumulate((len(rule.directions) for rule in rules), initial=0))
    return HyperplaneRule(
        torch.cat([rule.directions for rule in rules]),
        torch.cat([rule.pick + more for rule, more in zip(rules, offset[:-1], strict=True)]),
        torch.cat([rule.threshold for rule in rules]),
    )


def _join_points(trunk: Trunk, parts: list[TreePredictor], tree: Tree) -> tuple[Points, Landmarks]:
    """All points in the tree's order, followed by landmarks that are none of them."""
    sizes = [part.tree.n_points for part in parts]
    every = [torch.arange(len(part.points), device=part.points.device) for part in parts]
    own = [part.points.take(e[:n]) for part, e, n in zip(parts, every, sizes, strict=True)]
    rest = [part.points.take(e[n:]) for part, e, n in zip(parts, every, sizes, strict=True)]
    points = own[0].join([*own[1:], trunk.landmarks.points, *rest])
    before, n, rank = 0, sum(sizes), trunk.rank
    after = n + len(trunk.landmarks.points)
    top = trunk.landmarks.blocks.index
    found, level = [torch.where(top >= 0, top + n, -1)], [torch.full_like(top[:, 0], -1)]
    for part, size in zip(parts, sizes, strict=True):
        index = part.landmarks.blocks.index[1:]
        moved = torch.where(index < size, index + before, index - size + after)
        found.append(torch.where(index >= 0, moved, -1))
        level.append(part.tree.level[part.tree.inner][1:])
        before += size
        after += len(part.points) - size
    by_level = torch.cat(level).argsort(stable=True)
    index = torch.cat([torch.nn.functional.pad(each, (0, rank - each.shape[1]), value=-1) for each in found])
    return points, Landmarks(points, Blocks(index[by_level], bool((index >= 0).all())))
