"""The steps of training on disk: survey, deal, up, trunk, down."""

import warnings
from typing import Any

import numpy as np
import torch

from hck.backend.progress import track
from hck.branches import Message
from hck.estimators.branched import LeftOut, Plan, draw_rows, probes_of
from hck.outofcore.job import Job
from hck.outofcore.rows import Rows, check_numbers
from hck.outofcore.spool import Spool
from hck.outofcore.targets import Targets
from hck.preparation.coding import Coding
from hck.preparation.moments import Moments

_UNEVEN = 1.5  # times the mean, from which a branch is too large


def survey(
    rows: Rows, target: Rows, targets: Targets, size: int, seed: int, show: bool
) -> tuple[np.ndarray, np.ndarray, Moments]:
    """Check all rows, let `targets` see theirs, and draw some of them.

    Returns
    -------
    x, y : ndarray of shape (size, …)
        Features and targets of those that were drawn.
    moments : Moments
        Of the features of all.
    """
    chosen = draw_rows(rows.n, size, np.random.default_rng(seed))
    step = rows.block_size(target.width)
    found: list[tuple[np.ndarray, np.ndarray]] = []
    moments = Moments.none(rows.width)
    for first, x, y in _blocks(rows, target, step, 0, "Look at all rows", show):
        x, y = check_numbers(x, first, rows.called), targets.check(y, first)
        targets.see(y)
        moments += Moments.of(x)
        begin, end = np.searchsorted(chosen, [first, first + len(x)])
        mine = chosen[begin:end] - first
        found.append((x[mine], y[mine]))
    return np.concatenate([x for x, _ in found]), np.concatenate([y for _, y in found]), moments


def deal(
    rows: Rows, target: Rows, targets: Targets, coding: Coding, plan: Plan, spool: Spool, show: bool
) -> None:
    """Put every row into the files of its branches, one for each tree."""
    step = rows.block_size(target.width + len(coding.intercept))
    for first, x, y in _blocks(rows, target, step, spool.done, "Deal rows to branches", show):
        x = check_numbers(x, first, rows.called)
        b = coding(targets.check(y, first))
        spool.add(x, b, [plan.split(tree, x) for tree in range(len(plan.trunks))])
    if any(sum(counts) != rows.n for counts in spool.counts):
        raise OSError(f"{spool.folder} is not as it was written: remove {spool.folder.parent}")
    uneven = max(max(counts) * len(counts) / rows.n for counts in spool.counts)
    if uneven > _UNEVEN:
        warnings.warn(
            f"so many rows are alike that a branch has {uneven:.1f} times as many as others: it will take "
            "more memory than memory_budget",
            UserWarning,
            stacklevel=2,
        )


def train(job: Job, plan: Plan, spool: Spool, n: int, probe: bool, show: bool) -> None:
    """Up and down all branches of all trees, one after another."""
    every = [(tree, branch) for tree, branches in enumerate(plan.branches) for branch in branches]
    every = [pair for pair in every if not job.has(piece_name(*pair))]
    with torch.no_grad():
        for tree, branch in track([p for p in every if not job.has(_message(*p))], "Branches: up", show):
            _, x, b = spool.read(tree, branch)
            job.keep(_message(tree, branch), plan.up(tree, branch, x, b))
        for tree, branches in enumerate(plan.branches):
            todo = [branch for which, branch in every if which == tree]
            if not todo:
                continue
            messages: list[Message] = [job.load(_message(tree, branch)) for branch in branches]
            replies, _ = plan.trunks[tree].solve(messages, covariance=probe)
            for branch in track(todo, f"Branches of tree {tree + 1}: down", show):
                numbers, x, b = spool.read(tree, branch)
                probes = probes_of(numbers, n) if probe else None
                piece = plan.down(tree, branch, x, b, replies[branch], probes)
                piece.rows = torch.from_numpy(numbers)
                job.keep(piece_name(tree, branch), piece)


def left_out(job: Job, plan: Plan, n: int) -> LeftOut:
    """The rows that were left out, one at a time."""
    return LeftOut.in_order(
        [job.load(piece_name(tree, branch)).probed(n) for branch in branches]
        for tree, branches in enumerate(plan.branches)
    )


def piece_name(tree: int, branch: int) -> str:
    return f"branches/{tree}-{branch}"


def _message(tree: int, branch: int) -> str:
    return f"messages/{tree}-{branch}"


def _blocks(rows: Rows, target: Rows, step: int, done: int, what: str, show: bool) -> Any:
    """The number of the first row, features and targets of each block, from a row on."""
    every, other = rows.blocks(step, done), target.blocks(step, done)
    for first in track(range(done, rows.n, step), what, show):
        yield first, next(every), next(other)
