"""Which of two places for the same points suits a kernel: one lengthscale on some of them says it."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from hck.backend.interrupts import interruptible
from hck.backend.parallel import on_own_threads, parallel_map
from hck.points import Points
from hck.selection.candidate import Given, Shape
from hck.selection.contest import Contest
from hck.selection.isotropic import isotropic
from hck.selection.observations import Observations
from hck.selection.work import UNKNOWN, tree_work

_SHARE = 0.15  # of the work for choosing
_FEWEST, _MOST = 400, 1000  # observations, in one leaf: trees would differ
_TRIES = 12  # of a lengthscale and an alpha
_GAIN = 0.97  # of the loss: less is chance, and points as they are can be understood


@interruptible
@on_own_threads()
@torch.no_grad()
def is_better(given: Given, contest: Contest, other: Callable[[Tensor], Points]) -> bool:
    """Whether observations of a contest are predicted better at other places, which some rows are given."""
    n, d = len(contest.data), contest.data.points.values_per_point or UNKNOWN
    size = min(n, _MOST)
    while size >= _FEWEST and 2 * _TRIES * tree_work(size, d, size, 1) > _SHARE * contest.limits.work:
        size = int(size / 1.1)
    if size < _FEWEST:
        return False
    rows = np.sort(np.random.default_rng(0).permutation(n)[:size])
    name = given.kernel if isinstance(given.kernel, str) and given.kernel != "auto" else "matern32"
    here, loss = contest.data.take(rows), contest.loss.take(rows)
    there = replace(here, points=other(torch.from_numpy(rows).to(here.points.device)))

    def loss_of(some: Observations) -> float:
        small = replace(contest, data=some, loss=loss, rng=np.random.RandomState(0))
        comparison = small.compare_on(size, Shape(1, size, 1))
        return isotropic(comparison, [name], {"": None}, given.alpha, _TRIES)[0].loss

    before, after = parallel_map(loss_of, [here, there], here.points.device)
    return after < _GAIN * before
