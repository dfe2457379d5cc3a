"""The steps of training on disk: survey, deal, up, trunk, down."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch

from hck.branches import Message
from hck.estimators._branched import Piece, Plan, probes_of
from hck.outofcore.job import Job
from hck.outofcore.rows import Rows, check_numbers
from hck.outofcore.spool import Spool
from hck.outofcore.targets import Targets
from hck.progress import track


@dataclass
class Survey:
    """What one look at all rows has found."""

    x: np.ndarray  # a sample of the rows
    y: np.ndarray


def survey(rows: Rows, target: Rows, targets: Targets, size: int, seed: int, show: bool) -> Survey:
    """Check all rows, let `targets` see theirs, and draw a sample of some size."""
    chosen = np.sort(np.random.default_rng(seed).choice(rows.n, size, replace=False))
    step = rows.block_size(target.width)
    found: list[tuple[np.ndarray, np.ndarray]] = []
    for first, x, y in _blocks(rows, target, step, 0, "Look at all rows", show):
        x, y = check_numbers(x, first, rows.called), targets.see(y, first)
        begin, end = np.searchsorted(chosen, [first, first + len(x)])
        mine = chosen[begin:end] - first
        found.append((x[mine], y[mine]))
    return Survey(np.concatenate([x for x, _ in found]), np.concatenate([y for _, y in found]))


def deal(
    rows: Rows, target: Rows, code: Callable[[np.ndarray], np.ndarray], plan: Plan, spool: Spool, show: bool
) -> None:
    """Put every row into the files of its branches, one for each tree."""
    step = rows.block_size(target.width)
    for first, x, y in _blocks(rows, target, step, spool.blocks, "Deal rows to branches", show):
        parts = [plan.split(tree, x) for tree in range(len(plan.trunks))]
        spool.add(first, x, code(y), parts)


def train(job: Job, plan: Plan, spool: Spool, n: int, probe: bool, show: bool) -> None:
    """Up and down all branches of all trees, one after another."""
    trees, branches = range(len(plan.trunks)), range(plan.n_branches)
    every = list(product(trees, branches))
    with torch.no_grad():
        for tree, branch in track([p for p in every if not job.has(_message(*p))], "Branches: up", show):
            if not job.has(piece_name(tree, branch)):
                _, x, b = spool.read(tree, branch)
                job.keep(_message(tree, branch), plan.up(tree, branch, x, b))
        for tree in trees:
            todo = [branch for branch in branches if not job.has(piece_name(tree, branch))]
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


def tidy(job: Job, spool: Spool) -> None:
    """Remove what is not needed any more."""
    spool.remove()
    shutil.rmtree(job.folder / "messages", ignore_errors=True)


def left_out(job: Job, plan: Plan, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row numbers, observed and predicted right-hand sides of the rows that were left out, one at a time."""
    total: Any = 0.0
    for tree in range(len(plan.trunks)):
        rows, values, observed = [], [], []
        for branch in range(plan.n_branches):
            piece: Piece = job.load(piece_name(tree, branch))
            assert piece.rows is not None
            assert piece.left_out is not None
            assert piece.observed is not None
            numbers = piece.rows.numpy()
            rows.append(numbers[probes_of(numbers, n)])
            values.append(piece.left_out.numpy())
            observed.append(piece.observed.numpy())
        order = np.argsort(np.concatenate(rows))
        total = total + np.concatenate(values)[order]
    return np.concatenate(rows)[order], np.concatenate(observed)[order], total / len(plan.trunks)


def piece_name(tree: int, branch: int) -> str:
    return f"branches/{tree}-{branch}"


def _message(tree: int, branch: int) -> str:
    return f"messages/{tree}-{branch}"


def _blocks(rows: Rows, target: Rows, step: int, done: int, what: str, show: bool) -> Any:
    """The number of the first row, features and targets of each block but those that are done."""
    count = -(-rows.n // step)
    pairs = zip(rows.blocks(step, done * step), target.blocks(step, done * step), strict=True)
    for number in track(range(done, count), what, show):
        x, y = next(pairs)
        yield number * step, x, y
