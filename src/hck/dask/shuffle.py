"""Rows brought to their branches."""

from typing import Any

from distributed import Future

from hck.branches import Plan
from hck.dask import tasks
from hck.dask.cluster import lazy
from hck.dask.sampling import Training


def shuffle(plan: Plan, shared: Future, tree: int, data: Training, workers: int) -> list[Any]:
    """The rows of each branch of a tree, lazily.

    Branches next to each other travel in bundles, of which every worker gets two or three: as many tasks as
    blocks times bundles, where single branches would need far more.

    Parameters
    ----------
    plan, shared : Plan and Future
        The plan here, and where workers have it.
    data : Training
    workers : int
        How many there are.
    """
    number = plan.trunks[tree].n_branches
    size = max(1, number // 2 ** (2 * workers - 1).bit_length())
    both = zip(data.blocks, data.first, strict=True)
    parts = [lazy(tasks.split)(shared, tree, size, *each) for each in both]
    joined = []
    for k, start in enumerate(range(0, number, size)):
        bundle = lazy(tasks.join_bundles)([lazy(tasks.take)(each, k) for each in parts])
        joined += [lazy(tasks.take)(bundle, i) for i in range(min(size, number - start))]
    return joined
