"""What workers do: plain functions, each of which can be done again elsewhere with the same result."""

from dataclasses import dataclass
from time import thread_time
from typing import Any

import numpy as np
import torch
from dask.sizeof import sizeof
from torch import Tensor

from hck.branches import Branch, Message, Piece, Plan, Probes, Reply, Share
from hck.dask.blocks import Block
from hck.dask.devices import CPU, moved, on_cpu, one_core, ready
from hck.hierarchy import Blueprint
from hck.hierarchy.blueprint import lay_out
from hck.hierarchy.uncertainty import Uncertainty

Member = tuple[int, int]  # a tree and one of its branches


@dataclass
class AtPoints:
    """Numbers of new points that fall into a branch: their features, or what the branch says of them.

    Attributes
    ----------
    tree : int
    where : ndarray of shape (points,)
        Where the points are in their block.
    values : ndarray of shape (points,) or (points, columns)
    """

    tree: int
    where: np.ndarray
    values: np.ndarray

    @property
    def nbytes(self) -> int:
        return self.where.nbytes + self.values.nbytes


Values = list[list[AtPoints]]  # of several groups of branches


@dataclass
class Sent:
    """A branch's message, and the seconds of a core that it took."""

    message: Message
    seconds: float


@dataclass
class Outcome:
    """What the client has to know of a branch that predicts.

    Attributes
    ----------
    seconds : float
        That a core took for it.
    probes : Probes or None
        Rows that were predicted from all others, of ridge regression.
    gram : Tensor of shape (columns, columns), or None
        bᵀ (K_h + noise)⁻¹ b, the branch's part, of a Gaussian process.
    """

    seconds: float
    probes: Probes | None
    gram: Tensor | None


@sizeof.register((Block, Share, AtPoints, Piece))
def _sizeof(held: Block | Share | AtPoints | Piece) -> int:
    """How many bytes Dask may count on getting back when it moves something to disk."""
    return held.nbytes


# Shuffle ---------------------------------------------------------------------------------------------


def hold(value: Any) -> Any:
    """Something that other tasks need, which comes with the task and so is never lost."""
    return value


def split(plan: Plan, tree: int, size: int, block: Block, first: int) -> list[list[Share]]:
    """The rows of a block for each branch, in bundles of so many branches; the first is number `first`."""
    own = _own(plan, tree, block.x)
    rows = [Share(block.x[some], block.y[some], first + some) for some in own]
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def _own(plan: Plan, tree: int, x: np.ndarray) -> list[np.ndarray]:
    """Which rows fall into each branch of a tree."""
    if not len(x):
        return [np.zeros(0, np.int64) for _ in range(plan.trunks[tree].n_branches)]
    with one_core():
        return on_cpu(plan).split(tree, x)


def take(items: list[Any], which: int) -> Any:
    return items[which]


def join_bundles(bundles: list[list[Share]]) -> list[Share]:
    """All rows of some branches, from what blocks have of them."""
    return [
        _join([part for part in parts if len(part.x)] or [parts[0]]) for parts in zip(*bundles, strict=True)
    ]


def _join(parts: list[Share]) -> Share:
    x, y, number = zip(*((part.x, part.y, part.number) for part in parts), strict=True)
    return Share(np.concatenate(x), np.concatenate(y), np.concatenate(number))


# Branches --------------------------------------------------------------------------------------------


def up(plan: Plan, tree: int, branch: int, share: Share) -> Sent:
    """What a branch sends to the trunk."""
    start = thread_time()
    with one_core():
        message = ready(plan).up(tree, branch, share)
    return Sent(message, thread_time() - start)


def down(plan: Plan, tree: int, branch: int, share: Share, reply: Reply) -> Piece:
    """A branch that has heard from the trunk."""
    start = thread_time()
    with one_core():
        piece = ready(plan).down(tree, branch, share, reply)
        piece.extension = moved(plan, piece.extension, CPU)
    piece.seconds = thread_time() - start
    return piece


def outcome(plan: Plan, piece: Piece) -> Outcome:
    """What the client has to know of a branch."""
    return Outcome(piece.seconds, None if plan.every is None else piece.probes(plan.every), piece.gram)


# Predictions -----------------------------------------------------------------------------------------


def count(x: np.ndarray) -> int:
    """How many new points a block has."""
    return len(x)


def route(plan: Plan, groups: list[list[Member]], x: np.ndarray) -> list[list[AtPoints]]:
    """New points for the branches of some groups."""
    own = {tree: _own(plan, tree, x) for tree in {tree for group in groups for tree, _ in group}}
    return [[AtPoints(tree, own[tree][k], x[own[tree][k]]) for tree, k in group] for group in groups]


def evaluate(plan: Plan, pieces: list[Piece], entries: list[AtPoints]) -> list[AtPoints]:
    """The functions of branches at new points."""
    found, plan = [], ready(plan)
    for piece, entry in zip(pieces, entries, strict=True):
        if len(entry.values):
            with one_core():
                made = moved(plan, piece.extension, torch.device(plan.device))
                values = made(plan.points(entry.values)).cpu().numpy()
            found.append(AtPoints(entry.tree, entry.where, values))
    return found


def variances(plan: Plan, pieces: list[Piece], blocks: list[list[AtPoints]]) -> list[list[AtPoints]]:
    """The variances of branches' latent functions at new points of several blocks.

    A branch is factored once, and then forgotten.
    """
    found: list[list[AtPoints]] = [[] for _ in blocks]
    plan = ready(plan)
    for piece, *entries in zip(pieces, *blocks, strict=True):
        x = np.concatenate([entry.values for entry in entries])
        if len(x):
            with one_core():
                made = _uncertainty(plan, piece, plan.trunks[entries[0].tree].jitter)
                values = made.variance(plan.points(x)).cpu().numpy()
            stops = np.cumsum([len(entry.values) for entry in entries])[:-1]
            for mine, entry, own in zip(found, entries, np.split(values, stops), strict=True):
                mine.append(AtPoints(entry.tree, entry.where, own))
    return found


def _uncertainty(plan: Plan, piece: Piece, jitter: float) -> Uncertainty:
    assert piece.above is not None
    assert piece.targets is not None
    own = moved(plan, piece.extension, torch.device(plan.device))
    layout = lay_out(own.tree, own.points, own.landmarks.rank, own.budget).cut(1).bundle(0)
    source = Blueprint(own.kernel, own.points, own.landmarks, jitter, layout, own.budget)
    factor = Branch(source).factor(plan.noise, piece.targets)
    return Uncertainty(source, factor, piece.above.to(own.weights.device)[None])


def together(found: Values, tree: int, n: int) -> np.ndarray:
    """What the branches of a tree said of n points, in their order."""
    mine = [each for group in found for each in group if each.tree == tree]
    out = np.zeros((n, *mine[0].values.shape[1:]), mine[0].values.dtype)
    for each in mine:
        out[each.where] = each.values
    return out


def average(found: Values, n_trees: int, n: int, intercept: np.ndarray, dtype: str) -> np.ndarray:
    """The mean over trees at n points, and the intercept: shape (n, columns)."""
    total = np.zeros((n, len(intercept)), dtype)
    for tree in range(n_trees if n else 0):
        total += together(found, tree, n)
    return (total / n_trees + intercept).astype(dtype)
