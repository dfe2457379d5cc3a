"""Branches in files of a folder, worked on one after another, each step of which is done once."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from hck.backend.progress import track
from hck.branches import Message, Piece, Plan, Probes, Reply, drive
from hck.hierarchy.extremes import warn_of_rounding
from hck.outofcore.job import BRANCHES, MESSAGES, Job
from hck.outofcore.spool import Spool


class OnDisk:
    """The branches of all trees as files: a `hck.branches.Store`.

    The spool has the rows of each branch. Messages and pieces are kept as they are finished, so that a run
    that was stopped goes on from there.
    """

    def __init__(self, job: Job, plan: Plan, spool: Spool, show: bool = False) -> None:
        self.job, self.plan, self.spool, self.show = job, plan, spool, show
        self.extremes: dict[str, Tensor | None] = {}  # of branches that predict, by their names

    def _todo(self, tree: int) -> list[int]:
        """The branches of a tree that do not predict yet."""
        return [k for k in self.plan.branches[tree] if not self.job.has(piece_name(tree, k))]

    def up(self) -> Iterator[tuple[int, list[Message]]]:
        todo = {tree: self._todo(tree) for tree in range(len(self.plan.trunks))}
        every = [(tree, k) for tree, mine in todo.items() if mine for k in self.plan.branches[tree]]
        for tree, k in track([p for p in every if not self.job.has(_message(*p))], "Branches: up", self.show):
            self.job.keep(_message(tree, k), self.plan.up(tree, k, self.spool.read(tree, k)))
        return (
            (tree, [self.job.load(_message(tree, k), Message) for k in self.plan.branches[tree]])
            for tree, mine in todo.items()
            if mine
        )

    def solve(self, tree: int, messages: Iterable[Message]) -> list[Reply]:
        return self.plan.solve(tree, list(messages))[0]

    def down(self, tree: int, replies: list[Reply]) -> None:
        for k in track(self._todo(tree), f"Branches of tree {tree + 1}: down", self.show):
            piece, name = self.plan.down(tree, k, self.spool.read(tree, k), replies[k]), piece_name(tree, k)
            self.job.keep(name, piece)
            self.extremes[name] = piece.extremes

    def finish(self) -> None:
        """Nothing is left to wait for; look at what was solved, also before the run was stopped."""
        names = [piece_name(tree, k) for tree, branches in enumerate(self.plan.branches) for k in branches]
        for name in [name for name in names if name not in self.extremes]:
            self.extremes[name] = self.job.load(name, Piece).extremes
        warn_of_rounding([each for each in self.extremes.values() if each is not None])


@torch.no_grad()
def train(job: Job, plan: Plan, spool: Spool, show: bool = False) -> Probes | None:
    """Up and down all branches of all trees; returns the rows that were predicted from all others, if any."""
    drive(OnDisk(job, plan, spool, show))
    if plan.every is None:
        return None
    return Probes.in_order(
        [job.load(piece_name(tree, k), Piece).probes(plan.every) for k in branches]
        for tree, branches in enumerate(plan.branches)
    )


class Pieces:
    """Branches that predict, of which those that were read last stay, as many as `budget` bytes allow."""

    def __init__(self, job: Job, budget: int) -> None:
        self.job, self.budget, self.used = job, budget, 0
        self.kept: OrderedDict[tuple[int, int], Piece] = OrderedDict()

    def get(self, tree: int, branch: int) -> Piece:
        key = tree, branch
        if key in self.kept:
            self.kept.move_to_end(key)
            return self.kept[key]
        piece: Piece = self.job.load(piece_name(tree, branch), Piece)
        self.used += piece.nbytes
        while self.used > self.budget and self.kept:
            self.used -= self.kept.popitem(last=False)[1].nbytes
        self.kept[key] = piece
        return piece


def piece_name(tree: int, branch: int) -> str:
    return f"{BRANCHES}/{tree}-{branch}"


def _message(tree: int, branch: int) -> str:
    return f"{MESSAGES}/{tree}-{branch}"
