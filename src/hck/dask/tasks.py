"""What workers do: plain functions, each of which can be done again elsewhere with the same result."""

from dataclasses import dataclass
from time import thread_time
from typing import Any

import numpy as np
import torch
from dask.sizeof import sizeof
from torch import Tensor

from hck.branches import Branch, Message, Reply
from hck.dask.blocks import Block
from hck.dask.devices import CPU, moved, on_cpu, one_core, ready
from hck.dask.targets import Targets, right_sides
from hck.estimators.branched import LeftOut, Plan, probes_of
from hck.hierarchy import Blueprint, Extension
from hck.hierarchy.blueprint import leaves_at_once
from hck.hierarchy.layout import Layout
from hck.hierarchy.uncertainty import Uncertainty

Member = tuple[int, int]  # a tree and one of its branches


@dataclass
class Rows:
    """Rows of a branch.

    Attributes
    ----------
    x : ndarray of shape (rows, d)
    y : ndarray of shape (rows,) or (rows, targets)
    number : ndarray of shape (rows,)
        Where they are among all rows.
    """

    x: np.ndarray
    y: np.ndarray
    number: np.ndarray

    @property
    def nbytes(self) -> int:
        return self.x.nbytes + self.y.nbytes + self.number.nbytes


@dataclass
class Entry:
    """New points that fall into a branch.

    Attributes
    ----------
    tree : int
    where : ndarray of shape (points,)
        Where they are in their block.
    x : ndarray of shape (points, d)
    """

    tree: int
    where: np.ndarray
    x: np.ndarray

    @property
    def nbytes(self) -> int:
        return self.where.nbytes + self.x.nbytes


@dataclass
class Found:
    """What a branch says of new points.

    Attributes
    ----------
    tree : int
    where : ndarray of shape (points,)
        Where they are in their block.
    values : ndarray of shape (points,) or (points, columns)
    """

    tree: int
    where: np.ndarray
    values: np.ndarray

    @property
    def nbytes(self) -> int:
        return self.where.nbytes + self.values.nbytes


@dataclass
class Sent:
    """A branch's message, and the seconds of a core that it took."""

    message: Message
    seconds: float


@dataclass
class Part:
    """A branch that predicts.

    Attributes
    ----------
    extension : Extension
    number : ndarray of shape (rows,)
        Where its rows are among all.
    seconds : float
        That a core took for it.
    left_out : LeftOut or None
    targets : ndarray of shape (rows, columns), or None
        The right-hand sides b, of a Gaussian process.
    above : Tensor of shape (r, r), or None
        What is not known of the node that it hangs from, of a Gaussian process.
    gram : ndarray of shape (columns, columns), or None
        bᵀ (K_h + noise)⁻¹ b, the branch's part, of a Gaussian process.
    """

    extension: Extension
    number: np.ndarray
    seconds: float = 0.0
    left_out: LeftOut | None = None
    targets: np.ndarray | None = None
    above: Tensor | None = None
    gram: np.ndarray | None = None

    @property
    def nbytes(self) -> int:
        own = self.extension
        every = (self.number, own.tree.order, own.landmarks.blocks.index, self.targets, self.above)
        return own.nbytes + own.points.nbytes + sum(each.nbytes for each in every if each is not None)


@sizeof.register((Block, Rows, Entry, Found, Part))
def _sizeof(held: Block | Rows | Entry | Found | Part) -> int:
    """How many bytes Dask may count on getting back when it moves something to disk."""
    return held.nbytes


# Shuffle ---------------------------------------------------------------------------------------------


def hold(value: Any) -> Any:
    """Something that other tasks need, which comes with the task and so is never lost."""
    return value


def split(plan: Plan, tree: int, size: int, block: Block, first: int) -> list[list[Rows]]:
    """The rows of a block for each branch, in bundles of so many branches; the first is number `first`."""
    own = _own(plan, tree, block.x)
    rows = [Rows(block.x[some], block.y[some], first + some) for some in own]
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def _own(plan: Plan, tree: int, x: np.ndarray) -> list[np.ndarray]:
    """Which rows fall into each branch of a tree."""
    if not len(x):
        return [np.zeros(0, np.int64) for _ in range(plan.trunks[tree].n_branches)]
    with one_core():
        return on_cpu(plan).split(tree, x)


def take(items: list[Any], which: int) -> Any:
    return items[which]


def join_bundles(bundles: list[list[Rows]]) -> list[Rows]:
    """All rows of some branches, from what blocks have of them."""
    return [
        _join([part for part in parts if len(part.x)] or [parts[0]]) for parts in zip(*bundles, strict=True)
    ]


def _join(parts: list[Rows]) -> Rows:
    x, y, number = zip(*((part.x, part.y, part.number) for part in parts), strict=True)
    return Rows(np.concatenate(x), np.concatenate(y), np.concatenate(number))


# Branches --------------------------------------------------------------------------------------------


def up(plan: Plan, targets: Targets, tree: int, branch: int, rows: Rows) -> Sent:
    """What a branch sends to the trunk."""
    start = thread_time()
    with one_core():
        message = ready(plan).up(tree, branch, rows.x, right_sides(targets, rows.x, rows.y))
    return Sent(message, thread_time() - start)


def down(
    plan: Plan, targets: Targets, tree: int, branch: int, rows: Rows, reply: Reply, n: int | None
) -> Part:
    """A branch that has heard from the trunk, of n rows in all; None: nothing is left out."""
    start, b = thread_time(), right_sides(targets, rows.x, rows.y)
    probes = None if n is None else probes_of(rows.number, n)
    with one_core():
        piece = ready(plan).down(tree, branch, rows.x, b, reply, probes)
        part = Part(moved(plan, piece.extension, CPU), rows.number)
    if n is not None:
        piece.rows = torch.from_numpy(rows.number)
        part.left_out = piece.probed(n)
    part.seconds = thread_time() - start
    return part


def condition(plan: Plan, targets: Targets, tree: int, branch: int, rows: Rows, reply: Reply) -> Part:
    """A branch of a Gaussian process that has heard from the trunk."""
    start, b = thread_time(), right_sides(targets, rows.x, rows.y)
    with one_core():
        grown = ready(plan).grow(tree, branch, rows.x)
        solved = grown.solve(grown.factor(plan.noise, torch.as_tensor(b)), reply)
        weights = grown.blueprint.layout.unsort(solved.weights).double().cpu().numpy()
        solved = moved(plan, solved, CPU)
        part = Part(solved, rows.number, targets=b, above=reply.covariance, gram=b.T @ weights)
    part.seconds = thread_time() - start
    return part


def report(part: Part) -> tuple[float, LeftOut | None, np.ndarray | None]:
    """What the client wants to know of a branch: seconds, left-out predictions, and the Gram matrix."""
    return part.seconds, part.left_out, part.gram


# Predictions -----------------------------------------------------------------------------------------


def count(x: np.ndarray) -> int:
    """How many new points a block has."""
    return len(x)


def route(plan: Plan, groups: list[list[Member]], x: np.ndarray) -> list[list[Entry]]:
    """New points for the branches of some groups."""
    own = {tree: _own(plan, tree, x) for tree in {tree for group in groups for tree, _ in group}}
    return [[Entry(tree, own[tree][k], x[own[tree][k]]) for tree, k in group] for group in groups]


def evaluate(plan: Plan, parts: list[Part], entries: list[Entry]) -> list[Found]:
    """The functions of branches at new points."""
    found, plan = [], ready(plan)
    for part, entry in zip(parts, entries, strict=True):
        if len(entry.x):
            with one_core():
                made = moved(plan, part.extension, torch.device(plan.device))
                values = made(plan.points(entry.x)).cpu().numpy()
            found.append(Found(entry.tree, entry.where, values))
    return found


def variances(plan: Plan, parts: list[Part], blocks: list[list[Entry]]) -> list[list[Found]]:
    """The variances of branches' latent functions at new points of several blocks.

    A branch is factored once, and then forgotten.
    """
    found: list[list[Found]] = [[] for _ in blocks]
    plan = ready(plan)
    for part, *entries in zip(parts, *blocks, strict=True):
        x = np.concatenate([entry.x for entry in entries])
        if len(x):
            with one_core():
                made = _uncertainty(plan, part, plan.trunks[entries[0].tree].jitter)
                values = made.variance(plan.points(x)).cpu().numpy()
            stops = np.cumsum([len(entry.x) for entry in entries])[:-1]
            for mine, entry, own in zip(found, entries, np.split(values, stops), strict=True):
                mine.append(Found(entry.tree, entry.where, own))
    return found


def _uncertainty(plan: Plan, part: Part, jitter: float) -> Uncertainty:
    assert part.above is not None
    assert part.targets is not None
    own = moved(plan, part.extension, torch.device(plan.device))
    at_once = leaves_at_once(own.points, own.tree.n_leaves, own.landmarks.rank, own.budget)
    layout = Layout.of(own.tree, at_once).cut(1).bundle(0)
    source = Blueprint(own.kernel, own.points, own.landmarks, jitter, layout, own.budget)
    factor = Branch(source).factor(plan.noise, torch.as_tensor(part.targets))
    return Uncertainty(source, factor, part.above.to(own.weights.device)[None])


def together(found: list[list[Found]], tree: int, n: int) -> np.ndarray:
    """What the branches of a tree said of n points, in their order."""
    mine = [each for group in found for each in group if each.tree == tree]
    out = np.zeros((n, *mine[0].values.shape[1:]), mine[0].values.dtype)
    for each in mine:
        out[each.where] = each.values
    return out


def average(found: list[list[Found]], n_trees: int, n: int, intercept: np.ndarray, dtype: str) -> np.ndarray:
    """The mean over trees at n points, and the intercept: shape (n, columns)."""
    total = np.zeros((n, len(intercept)), dtype)
    for tree in range(n_trees if n else 0):
        total += together(found, tree, n)
    return (total / n_trees + intercept).astype(dtype)
