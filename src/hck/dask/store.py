"""Branches on the workers of a cluster: rows to branches, messages up, trunks here, and down again."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import torch
from distributed import Future

from hck.backend.text import in_bytes
from hck.branches import Message, Plan, Probes, Reply, drive
from hck.dask import tasks
from hck.dask.cluster import Task, Work, lazy
from hck.dask.model import Model
from hck.dask.training import Training
from hck.dask.workers import Facts
from hck.hierarchy.extremes import warn_of_rounding
from hck.hierarchy.likelihood import Likelihood, evidence_from_gram

T = TypeVar("T")


@dataclass
class Trained:
    """What comes of a fit: also rows that were predicted from all others, or a likelihood for each tree."""

    model: Model
    probes: Probes | None = None
    likelihoods: list[Likelihood] = field(default_factory=list)


@dataclass
class OnWorkers:
    """The branches of all trees on workers, which have the plan as `shared`: a `hck.branches.Store`.

    Of each tree `shares` has the rows of each branch, and `pieces` the branches that predict.
    """

    work: Work
    plan: Plan
    shared: Future
    shares: list[list[Future]] = field(default_factory=list)
    pieces: list[list[Future]] = field(default_factory=list)
    log_determinants: list[float] = field(default_factory=list)

    def deal(self, data: Training, workers: int) -> None:
        """Bring the rows of all chunks to the branches of each tree, and let go of the chunks."""
        self.shares = self._start(self._dealt(tree, data, workers) for tree in range(len(self.plan.trunks)))
        self.work.wait(_flat(self.shares), "split")
        self.work.release(data.chunks)

    def _dealt(self, tree: int, data: Training, workers: int) -> list[Task]:
        """The rows of each branch of a tree, lazily.

        Branches next to each other travel in bundles, of which every worker gets two or three: as many tasks
        as chunks times bundles, where single branches would need far more.
        """
        number = self.plan.trunks[tree].n_branches
        size = max(1, number // 2 ** (2 * workers - 1).bit_length())
        both = zip(data.chunks, data.first, strict=True)
        parts = [lazy(tasks.split)(self.shared, tree, size, *each) for each in both]
        dealt = []
        for k, start in enumerate(range(0, number, size)):
            bundle = lazy(tasks.join_bundles)([each[k] for each in parts])
            dealt += [bundle[i] for i in range(min(size, number - start))]
        return dealt

    def up(self) -> Iterable[tuple[int, list[Message]]]:
        sent = self._start(
            [lazy(tasks.up)(self.shared, tree, k, share) for k, share in enumerate(shares)]
            for tree, shares in enumerate(self.shares)
        )
        self.work.wait(_flat(sent), "up")
        heard: list[list[tasks.Sent]] = [self.work.gather(each, "up") for each in sent]
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
        self.pieces += self._start([[lazy(tasks.down)(self.shared, tree, k, *each) for k, each in both]])

    def finish(self) -> None:
        self.work.wait(_flat(self.pieces), "down")
        self.work.release(_flat(self.shares))

    def trained(self, n: int) -> Trained:
        """With what the client has to know of the branches, of n rows in all, brought here."""
        asked = self._start([lazy(tasks.outcome)(self.shared, one) for one in tree] for tree in self.pieces)
        told: list[list[tasks.Outcome]] = [self.work.gather(tree, "outcome") for tree in asked]
        self.work.clock.add("down, core-seconds", sum(each.seconds for each in _flat(told)))
        warn_of_rounding([each.extremes for each in _flat(told) if each.extremes is not None])
        found = Trained(Model(self.work.client, self.plan, self.shared, self.pieces))
        if self.plan.every is not None:
            found.probes = Probes.in_order([each.probes for each in tree if each.probes] for tree in told)
        if self.plan.process:
            for tree, log_determinant in zip(told, self.log_determinants, strict=True):
                gram = torch.stack([each.gram for each in tree if each.gram is not None]).sum(0)
                moments = torch.stack([each.moments for each in tree if each.moments is not None]).sum(0)
                known = (gram + gram.T) / 2, log_determinant, n, 1, moments[1:, 1:]
                found.likelihoods.append(evidence_from_gram(*known))
        self.work.keep([self.shared, *_flat(self.pieces)])
        return found

    def _start(self, made: Iterable[list[Task]]) -> list[list[Future]]:
        """Start the tasks of several trees together."""
        trees = list(made)
        started = iter(self.work.compute(_flat(trees)))
        return [[next(started) for _ in tree] for tree in trees]


def train(work: Work, facts: Facts, plan: Plan, data: Training) -> Trained:
    """Up and down the branches of all trees; the chunks of the data are let go once rows are with them."""
    travelling = len(plan.trunks) * data.n * (data.bytes_per_row + 8)  # with the number of the row
    _check_room(facts, 2 * travelling)
    store = OnWorkers(work, plan, work.submit(tasks.hold, replace(plan, device=facts.device)))
    with work.clock.phase("split"):
        store.deal(data, facts.workers)
    if facts.workers > 1:
        work.traffic.rows += travelling
    drive(store, work.clock)
    return store.trained(data.n)


def _check_room(facts: Facts, needed: int) -> None:
    """Warn if the rows of all trees do not fit into the workers' memory while they travel."""
    if facts.room is not None and needed > facts.room:
        warnings.warn(
            f"the rows of all trees take about {in_bytes(needed)} while they travel, but the workers of "
            f"the Dask cluster have {in_bytes(facts.room)} left: Dask may be slow, or end workers; use "
            "more or larger workers, fewer trees, or X in float32",
            UserWarning,
            stacklevel=2,
        )


def _flat(nested: list[list[T]]) -> list[T]:
    return [each for tree in nested for each in tree]
