"""A trained forest whose branches are on workers."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from distributed import Client, Future

from hck.branches import Piece, Plan
from hck.dask import tasks
from hck.dask.answers import Answers, AtPoints
from hck.dask.cluster import GONE, Task, Work, bring, lazy
from hck.dask.tasks import Member


@dataclass
class Model:
    """Branches of trees on the workers of a cluster, which have the plan as `shared`.

    As long as this is there, Dask keeps them, and can compute them again from X and y if a worker is lost.
    """

    client: Client
    plan: Plan
    shared: Future
    pieces: list[list[Future]]

    @property
    def n_trees(self) -> int:
        return len(self.pieces)

    def groups(self, threads: int = 1) -> list[list[Member]]:
        """Branches that are on the same worker now, in so many groups for each worker.

        What is computed does not depend on it; but a task for a group needs no branch from elsewhere.
        """
        self._check()
        keys = {piece.key: (tree, k) for tree, mine in enumerate(self.pieces) for k, piece in enumerate(mine)}
        known = self.client.who_has(self._every())
        by_worker = defaultdict(list)
        for key, member in keys.items():
            by_worker[min(known.get(key) or [""])].append(member)
        every = [mine[i::threads] for _, mine in sorted(by_worker.items()) for i in range(threads)]
        return [group for group in every if group]

    def values(self, chunks: list[Task]) -> list[list[Task]]:
        """The branches' functions at new points, lazily: for each chunk `Answers`."""
        groups, found = self.groups(), []
        for chunk in chunks:
            route = lazy(tasks.route)(self.shared, groups, chunk)
            each = enumerate(groups)
            found.append([lazy(tasks.evaluate)(self.shared, self._of(group), route[i]) for i, group in each])
        return found

    def variances(self, chunks: list[Task]) -> list[list[Task]]:
        """The variances of latent functions, lazily, in the same form. Branches are factored once for all."""
        groups = self.groups(max(self.client.nthreads().values(), default=1))
        routes = [lazy(tasks.route)(self.shared, groups, chunk) for chunk in chunks]
        by_group = [
            lazy(tasks.variances)(self.shared, self._of(group), [route[i] for route in routes])
            for i, group in enumerate(groups)
        ]
        return [[made[k] for made in by_group] for k in range(len(chunks))]

    def now(self, x: np.ndarray, variances: bool = False) -> tuple[Answers, Answers]:
        """Values, and variances if wanted, at points that are here; asks only branches that have some."""
        own = [self.plan.split(tree, x) for tree in range(self.n_trees)]
        some = [[(t, k) for t, k in group if len(own[t][k])] for group in self.groups()]
        values, spreads = [], []
        for group in filter(None, some):
            entries = [AtPoints(t, own[t][k], x[own[t][k]]) for t, k in group]
            values.append(lazy(tasks.evaluate)(self.shared, self._of(group), entries))
            if variances:
                spreads.append(lazy(tasks.variances)(self.shared, self._of(group), [entries])[0])
        found = bring(self.client, [*values, *spreads], "predict")
        return found[: len(values)], found[len(values) :]

    def gather(self) -> list[list[Piece]]:
        """All branches, brought here."""
        self._check()
        work = Work(self.client)
        return [work.gather(mine, "to_local") for mine in self.pieces]

    def _check(self) -> None:
        """Raise an error if the branches are no longer there."""
        gone = any(piece.status == "cancelled" for piece in self._every())
        if gone or self.client.status != "running":
            raise RuntimeError(GONE)

    def _every(self) -> list[Future]:
        return [piece for mine in self.pieces for piece in mine]

    def _of(self, group: list[Member]) -> list[Future]:
        return [self.pieces[tree][k] for tree, k in group]
