"""A fit: rows to branches, messages up, trunks here, and down again."""

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from distributed import Future

from hck.backend.memory import resolve_budget
from hck.branches import Message, Reply
from hck.branches.trunk import POINTS_PER_BRANCH
from hck.dask import tasks
from hck.dask.cluster import Facts, Work, lazy
from hck.dask.model import Model
from hck.dask.sampling import Training
from hck.dask.shuffle import shuffle
from hck.dask.targets import Targets
from hck.dask.traffic import Clock, Traffic
from hck.estimators.branched import LeftOut, Plan, branches_within, sample_for, sizes_for
from hck.partition import leaf_size_for

_MOST_BYTES = 2**30  # of a sample
_FEWEST = 200  # points of a sample in a branch


@dataclass
class Trained:
    """What comes of a fit.

    Attributes
    ----------
    model : Model
        On the workers.
    left_out : LeftOut or None
        The rows that were predicted from all others, if any.
    grams : list of ndarray
        For each tree, bᵀ (K_h + noise)⁻¹ b, of Gaussian processes.
    log_determinants : list of float
        For each tree.
    """

    model: Model
    left_out: LeftOut | None = None
    grams: list[np.ndarray] = field(default_factory=list)
    log_determinants: list[float] = field(default_factory=list)


@dataclass
class Sizes:
    """How large things should be.

    Attributes
    ----------
    estimator : estimator
        With the memory budget of one branch.
    facts : Facts
    data : Training
    columns : int
        Of right-hand sides.
    n_branches : int or None
        Of a tree, if that was given.
    """

    estimator: Any
    facts: Facts
    data: Training
    columns: int
    n_branches: int | None

    @property
    def sample(self) -> int:
        """How many rows to draw; where the number of branches was given, whatever memory there is."""
        n, d = self.data.n, self.data.features
        number, size = self.n_branches, n
        if number is None:
            number, size = sizes_for(self.estimator, n, d, self.columns)
            size = max(size, POINTS_PER_BRANCH * number)
        most = max(_FEWEST * number, _MOST_BYTES // (8 * d))
        return min(n, most, size, sample_for(number))

    def branches(self, n_trees: int, leaf_size: int | None, rank: int) -> int:
        """Of a tree: one stays within the budget, and every thread has two where there are rows enough."""
        if self.n_branches is not None:
            return self.n_branches
        n, d = self.data.n, self.data.features
        number = branches_within(self.estimator, n, d, self.columns, leaf_size, rank)
        leaf = leaf_size or leaf_size_for(n, rank)
        while number * n_trees < 2 * self.facts.threads and n > 8 * number * leaf:
            number *= 2
        while number > 2 and number > self.sample // 64:
            number //= 2
        return number


def budget_of(memory_budget: Any, facts: Facts) -> int | None:
    """Bytes for a branch: what was given, within what a thread of a worker may take."""
    if memory_budget is None:
        return facts.memory
    given = resolve_budget(memory_budget, torch.device("cpu"))
    return given if facts.memory is None else min(given, facts.memory)


@dataclass
class Fit:
    """The work on the branches of all trees.

    Attributes
    ----------
    work : Work
    plan : Plan
        With everything in the CPU's memory.
    data : Training
        Whose blocks are let go once rows are with their branches.
    targets : Targets
    facts : Facts
        About the workers.
    traffic, clock : Traffic and Clock
    left_out : bool
        Whether some rows are predicted from all others.
    process : bool
        Whether branches are to say what they do not know, as Gaussian processes do.
    """

    work: Work
    plan: Plan
    data: Training
    targets: Targets
    facts: Facts
    traffic: Traffic
    clock: Clock
    left_out: bool = False
    process: bool = False

    def run(self) -> Trained:
        """Rows to branches, messages up, trunks here, replies down."""
        self._check_room()
        self.shared = self.work.submit(tasks.hold, replace(self.plan, device=self.facts.device))
        self.goal = self.work.submit(tasks.hold, self.targets)
        rows = self._split()
        messages = self._up(rows)
        with self.clock.phase("trunk"):
            solved = [
                trunk.solve(each, covariance=self.left_out or self.process)
                for trunk, each in zip(self.plan.trunks, messages, strict=True)
            ]
        replies = [each for each, _ in solved]
        for said, answers in zip(messages, replies, strict=True):
            self.traffic.count(said, answers)
        parts = self._down(rows, replies)
        trained = Trained(Model(self.work.client, self.plan, self.shared, parts))
        trained.log_determinants = [each for _, each in solved]
        self._ask(trained)
        self.work.keep([self.shared, *_flat(parts)])
        return trained

    def _check_room(self) -> None:
        """Warn if the rows of all trees do not fit into the workers' memory while they travel."""
        needed, room = 2 * len(self.plan.trunks) * self.data.n * self.data.bytes_per_row, self.facts.room
        if room is not None and needed > room:
            warnings.warn(
                f"the rows of all trees take about {needed / 1e9:.1f} GB while they travel, but the workers "
                f"of the Dask cluster have {room / 1e9:.1f} GB left: Dask may be slow, or end workers; use "
                "more or larger workers, fewer trees, or X in float32",
                UserWarning,
                stacklevel=2,
            )

    def _split(self) -> list[list[Future]]:
        with self.clock.phase("split"):
            rows = self._start(
                [
                    shuffle(
                        *(self.plan, self.shared, tree),
                        *(self.data.blocks, self.data.first),
                        self.facts.workers,
                    )
                    for tree in range(len(self.plan.trunks))
                ]
            )
            self.work.wait(_flat(rows), "split")
            self.work.release(self.data.blocks)
        if self.facts.workers > 1:
            self.traffic.rows += len(rows) * self.data.n * self.data.bytes_per_row
        return rows

    def _up(self, rows: list[list[Future]]) -> list[list[Message]]:
        with self.clock.phase("up"):
            sent = self._start(
                [
                    [lazy(tasks.up)(self.shared, self.goal, tree, k, own) for k, own in enumerate(branches)]
                    for tree, branches in enumerate(rows)
                ]
            )
            self.work.wait(_flat(sent), "up")
            heard = [self.work.gather(each, "up") for each in sent]
            self.work.release(_flat(sent))
        self.clock.add("up, core-seconds", sum(each.seconds for each in _flat(heard)))
        return [[each.message for each in branches] for branches in heard]

    def _down(self, rows: list[list[Future]], replies: list[list[Reply]]) -> list[list[Future]]:
        last = lazy(tasks.condition if self.process else tasks.down)
        more = [] if self.process else [self.data.n if self.left_out else None]
        with self.clock.phase("down"):
            parts = self._start(
                [
                    [
                        last(self.shared, self.goal, tree, k, own, replies[tree][k], *more)
                        for k, own in enumerate(branches)
                    ]
                    for tree, branches in enumerate(rows)
                ]
            )
            self.work.wait(_flat(parts), "down")
            self.work.release(_flat(rows))
        return parts

    def _ask(self, trained: Trained) -> None:
        """Bring here what the client has to know of the branches."""
        asked = self._start([[lazy(tasks.report)(part) for part in tree] for tree in trained.model.parts])
        told = [self.work.gather(tree, "report") for tree in asked]
        self.clock.add("down, core-seconds", sum(seconds for seconds, _, _ in _flat(told)))
        if self.left_out:
            trained.left_out = LeftOut.in_order([[each for _, each, _ in tree] for tree in told])
        if self.process:
            trained.grams = [np.sum([gram for _, _, gram in tree], 0) for tree in told]

    def _start(self, made: list[list[Any]]) -> list[list[Future]]:
        """Start the tasks of all trees together."""
        started = iter(self.work.compute(_flat(made)))
        return [[next(started) for _ in tree] for tree in made]


def _flat(nested: list[list[Any]]) -> list[Any]:
    return [each for tree in nested for each in tree]
