"""What workers do: plain functions, each of which can be done again elsewhere with the same result."""

from dataclasses import replace
from time import thread_time
from typing import NamedTuple, TypeVar

import numpy as np
from dask.sizeof import sizeof
from torch import Tensor

from hck.backend.moments import moments_of
from hck.branches import Message, Piece, Plan, Probes, Reply, Share
from hck.dask.answers import AtPoints
from hck.dask.pieces import moved, one_core, uncertainty
from hck.preparation.survey import Chunk

T = TypeVar("T")
Member = tuple[int, int]  # a tree and one of its branches


class Sent(NamedTuple):
    """A branch's message, and the seconds of a core that it took."""

    message: Message
    seconds: float


class Outcome(NamedTuple):
    """What the client has to know of a branch that predicts.

    `probes` are rows that were predicted from all others, of ridge regression; `gram` is the branch's part of
    bᵀ (K_h + noise)⁻¹ b, of shape (columns, columns), of a Gaussian process, and `moments` that of bᵀ b;
    `extremes` are those of `Piece`.
    """

    seconds: float
    probes: Probes | None
    gram: Tensor | None
    moments: Tensor | None
    extremes: Tensor | None


@sizeof.register((Chunk, Share, AtPoints, Piece))
def _sizeof(held: Chunk | Share | AtPoints | Piece) -> int:
    """How many bytes Dask may count on getting back when it moves something to disk."""
    return held.nbytes


# Shuffle ---------------------------------------------------------------------------------------------


def hold(value: T) -> T:
    """Something that other tasks need, which comes with the task and so is never lost."""
    return value


def split(plan: Plan, tree: int, size: int, chunk: Chunk, first: int) -> list[list[Share]]:
    """The rows of a chunk for each branch, in bundles of so many branches; the first is number `first`."""
    rows = [Share(chunk.x[own], chunk.y[own], first + own) for own in _split(plan, tree, chunk.x)]
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def _split(plan: Plan, tree: int, x: np.ndarray) -> list[np.ndarray]:
    """Which rows fall into each branch of a tree; that needs no GPU."""
    if not len(x):
        return [np.zeros(0, np.int64) for _ in plan.branches[tree]]
    with one_core():
        return replace(plan, device="cpu").split(tree, x)


def join_bundles(bundles: list[list[Share]]) -> list[Share]:
    """All rows of some branches, from what chunks have of them."""
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
        message = plan.up(tree, branch, share)
    return Sent(message, thread_time() - start)


def down(plan: Plan, tree: int, branch: int, share: Share, reply: Reply) -> Piece:
    """A branch that has heard from the trunk."""
    start = thread_time()
    with one_core():
        piece = plan.down(tree, branch, share, reply)
        piece.predictor = moved(plan, piece.predictor, "cpu")
    piece.seconds = thread_time() - start
    return piece


def outcome(plan: Plan, piece: Piece) -> Outcome:
    """What the client has to know of a branch."""
    probes = None if plan.every is None else piece.probes(plan.every)
    moments = None if piece.targets is None else moments_of(piece.targets)
    return Outcome(piece.seconds, probes, piece.gram, moments, piece.extremes)


# Predictions -----------------------------------------------------------------------------------------


def route(plan: Plan, groups: list[list[Member]], x: np.ndarray) -> list[list[AtPoints]]:
    """New points for the branches of some groups."""
    own = {tree: _split(plan, tree, x) for tree in {tree for group in groups for tree, _ in group}}
    return [[AtPoints(tree, own[tree][k], x[own[tree][k]]) for tree, k in group] for group in groups]


def evaluate(plan: Plan, pieces: list[Piece], entries: list[AtPoints]) -> list[AtPoints]:
    """The functions of branches at new points."""
    found = []
    for piece, entry in zip(pieces, entries, strict=True):
        if len(entry.values):
            with one_core():
                function = moved(plan, piece.predictor, plan.device)
                values = function(plan.points(entry.values)).cpu().numpy()
            found.append(AtPoints(entry.tree, entry.where, values))
    return found


def variances(plan: Plan, pieces: list[Piece], chunks: list[list[AtPoints]]) -> list[list[AtPoints]]:
    """The variances of branches' latent functions at new points of several chunks.

    A branch is factored once, and then forgotten.
    """
    found: list[list[AtPoints]] = [[] for _ in chunks]
    for piece, *entries in zip(pieces, *chunks, strict=True):
        x = np.concatenate([entry.values for entry in entries])
        if len(x):
            with one_core():
                known = uncertainty(plan, entries[0].tree, piece)
                values = known.variance(plan.points(x)).cpu().numpy()
            stops = np.cumsum([len(entry.values) for entry in entries])[:-1]
            for mine, entry, own in zip(found, entries, np.split(values, stops), strict=True):
                mine.append(AtPoints(entry.tree, entry.where, own))
    return found
