"""Branches on the workers of a cluster: rows to branches, messages up, trunks here, and down again."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from distributed import Future
from torch import Tensor

from hck.branches import Message, Plan, Probes, Reply, drive
from hck.dask import tasks
from hck.dask.cluster import Facts, Work, lazy
from hck.dask.model import Model
from hck.dask.sampling import Training
from hck.dask.shuffle import shuffle


@dataclass
class Trained:
    """What comes of a fit.

    Attributes
    ----------
    model : Model
        On the workers.
    probes : Probes or None
        The rows that were predicted from all others, if any.
    grams : list of Tensor
        For each tree, bᵀ (K_h + noise)⁻¹ b, of Gaussian processes.
    log_determinants : list of float
        For each tree.
    """

    model: Model
    probes: Probes | None = None
    grams: list[Tensor] = field(default_factory=list)
    log_determinants: list[float] = field(default_factory=list)


@dataclass
class OnWorkers:
    """The branches of all trees on workers: a `hck.branches.Store`.

    Attributes
    ----------
    work : Work
    plan : Plan
        Here, in the CPU's memory.
    shared : Future
        The plan on workers.
    shares : list of list of Future
        The rows of each branch of each tree.
    pieces : list of list of Future
        The branches that predict.
    log_determinants : list of float
        For each tree.
    """

    work: Work
    plan: Plan
    shared: Future
    shares: list[list[Future]]
    pieces: list[list[Future]] = field(default_factory=list)
    log_determinants: list[float] = field(default_factory=list)

    def up(self) -> Iterable[tuple[int, list[Message]]]:
        sent = self.start(
            [lazy(tasks.up)(self.shared, tree, k, share) for k, share in enumerate(shares)]
            for tree, shares in enumerate(self.shares)
        )
        self.work.wait(_flat(sent), "up")
        heard = [self.work.gather(each, "up") for each in sent]
        self.work.release(_flat(sent))
        self.work.clock.add("up, core-seconds", sum(each.seconds for each in _flat(heard)))
        return enumerate([each.message for each in branches] for branches in heard)

    def solve(self, tree: int, messages: Iterable[Message]) -> list[Reply]:
        said = list(messages)
        replies, log_determinant = self.plan.solve(tree, said)
        self.log_determinants.append(log_determinant)
        self.work.traffic.count(said, replies)
        return replies

    def down(self, tree: int, replies: list[Reply]) -> None:
        """Begin; `finish` waits."""
        both = enumerate(zip(self.shares[tree], replies, strict=True))
        self.pieces += self.start([[lazy(tasks.down)(self.shared, tree, k, *each) for k, each in both]])

    def finish(self) -> None:
        self.work.wait(_flat(self.pieces), "down")
        self.work.release(_flat(self.shares))

    def trained(self) -> Trained:
        """With what the client has to know of the branches, brought here."""
        asked = self.start([lazy(tasks.outcome)(self.shared, one) for one in tree] for tree in self.pieces)
        told = [self.work.gather(tree, "outcome") for tree in asked]
        self.work.clock.add("down, core-seconds", sum(each.seconds for each in _flat(told)))
        model = Model(self.work.client, self.plan, self.shared, self.pieces)
        found = Trained(model, log_determinants=self.log_determinants)
        if self.plan.every is not None:
            found.probes = Probes.in_order([each.probes for each in tree] for tree in told)
        if self.plan.process:
            found.grams = [sum(each.gram for each in tree) for tree in told]
        self.work.keep([self.shared, *_flat(self.pieces)])
        return found

    def start(self, made: Iterable[list[Any]]) -> list[list[Future]]:
        """Start the tasks of several trees together."""
        trees = list(made)
        started = iter(self.work.compute(_flat(trees)))
        return [[next(started) for _ in tree] for tree in trees]


def train(work: Work, facts: Facts, plan: Plan, data: Training) -> Trained:
    """Up and down the branches of all trees; the blocks of the data are let go once rows are with them."""
    _check_room(facts, plan, data)
    shared = work.submit(tasks.hold, replace(plan, device=facts.device))
    store = OnWorkers(work, plan, shared, [])
    with work.clock.phase("split"):
        trees = range(len(plan.trunks))
        store.shares = store.start(shuffle(plan, shared, tree, data, facts.workers) for tree in trees)
        work.wait(_flat(store.shares), "split")
        work.release(data.blocks)
    if facts.workers > 1:
        work.traffic.rows += len(trees) * data.n * data.bytes_per_row
    drive(store, work.clock)
    return store.trained()


def _check_room(facts: Facts, plan: Plan, data: Training) -> None:
    """Warn if the rows of all trees do not fit into the workers' memory while they travel."""
    needed, room = 2 * len(plan.trunks) * data.n * data.bytes_per_row, facts.room
    if room is not None and needed > room:
        warnings.warn(
            f"the rows of all trees take about {needed / 1e9:.1f} GB while they travel, but the workers of "
            f"the Dask cluster have {room / 1e9:.1f} GB left: Dask may be slow, or end workers; use more or "
            "larger workers, fewer trees, or X in float32",
            UserWarning,
            stacklevel=2,
        )


def _flat(nested: list[list[Any]]) -> list[Any]:
    return [each for tree in nested for each in tree]
