"""How large things should be on a cluster."""

from dataclasses import dataclass
from typing import Any

import torch

from hck.backend.memory import resolve_budget
from hck.branches.trunk import POINTS_PER_BRANCH
from hck.dask.workers import Facts
from hck.estimators.branched import Extent, branches_within, sample_for, sizes_for
from hck.partition import leaf_size_for
from hck.settings import Settings

_MOST_BYTES = 2**30  # of a sample
_FEWEST = 200  # points of a sample in a branch


@dataclass
class Sizes:
    """How many branches, and how many points to settle everything by.

    Attributes
    ----------
    estimator : estimator
        With the memory budget of one branch.
    extent : Extent
    threads : int
        Of all workers.
    n_branches : int or None
        Of a tree, if that was given.
    """

    estimator: Any
    extent: Extent
    threads: int
    n_branches: int | None

    @property
    def sample(self) -> int:
        """How many rows to draw; where the number of branches was given, whatever memory there is."""
        n, number = self.extent.n, self.n_branches
        size = n
        if number is None:
            number, size = sizes_for(self.estimator, self.extent)
            size = max(size, POINTS_PER_BRANCH * number)
        most = max(_FEWEST * number, _MOST_BYTES // (8 * self.extent.d))
        return min(n, most, size, sample_for(number))

    def branches(self, n_trees: int, settings: Settings) -> int:
        """Of a tree: one stays within the budget, and every thread has two where there are rows enough."""
        if self.n_branches is not None:
            return self.n_branches
        n, number = self.extent.n, branches_within(self.estimator, self.extent, settings)
        leaf = settings.leaf_size or leaf_size_for(n, settings.rank)
        while number * n_trees < 2 * self.threads and n > 8 * number * leaf:
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
