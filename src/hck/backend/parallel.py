"""Work on many chunks at once on the CPU's cores.

torch runs batched factorizations and triangular solves one member after another on one core. Here each core
takes whole chunks instead, with torch on a single thread inside: torch releases the interpreter lock while it
computes. On a GPU chunks run one after another, since one chunk already fills it.
"""

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import torch

from hck.backend.interrupts import Errand, Ticket, Workers, check_wanted, forget_threads, result_of
from hck.backend.kinds import kind_of
from hck.backend.progress import track

Item = TypeVar("Item")
Result = TypeVar("Result")

_LEAST_FLOPS = 5e7

_pools: dict[int, Workers] = {}
_local = threading.local()
_making = threading.Lock()


def _after_fork() -> None:
    """Threads do not survive a fork: not ours, nor those of OpenMP, for which torch would wait forever."""
    global _making
    _making = threading.Lock()
    _pools.clear()
    forget_threads()
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


def parallel_map(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    device: torch.device,
    what: str = "",
    show: bool = False,
) -> Iterator[Result]:
    """The results of `work` on each item, in the order of the items; on a CPU, spread over its cores.

    `what` is a name for the work, and `show` whether to show its progress.
    """
    threads = at_a_time(device)
    if threads == 1 or len(items) < 2:
        for item in track(items, what, show):
            check_wanted()
            yield work(item)
        return
    grad, inference, ticket = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), Ticket()

    def task(item: Item) -> Result:
        with torch.inference_mode(inference), torch.set_grad_enabled(grad):
            return ticket.run(partial(work, item))

    pool = _pool(threads)
    waiting: deque[Errand[Result]] = deque()
    try:
        for item in track(items, what, show):
            waiting.append(pool.submit(partial(task, item)))
            if len(waiting) > 2 * threads:  # no further ahead, so that results do not pile up
                yield result_of(waiting.popleft())
        while waiting:
            yield result_of(waiting.popleft())
    finally:
        ticket.wanted = False
        for errand in waiting:
            errand.cancel()


def evenly(
    work: Callable[[Item], Result], items: Sequence[Item], device: torch.device, width: int
) -> Iterator[Result]:  # fmt: skip
    """Like `parallel_map`, for few long items, of which each can keep `width` cores busy if it is alone.

    Those at the end that would leave cores idle are worked on one by one, with all cores inside.
    """
    threads = at_a_time(device)
    rest = len(items) % threads
    last = len(items) - (rest if 2 * rest <= min(threads, width) else 0)
    yield from parallel_map(work, items[:last], device)
    yield from map(work, items[last:])


def at_a_time(device: torch.device) -> int:
    """How many items are worked on at the same time."""
    if not kind_of(device).is_host or getattr(_local, "inside", False):
        return 1
    return getattr(_local, "width", 0) or torch.get_num_threads()


@contextmanager
def on_own_threads() -> Iterator[None]:
    """Work of many small steps, for which torch has one thread, and `parallel_map` as many as torch had.

    Threads of torch's that wait for each other in small steps keep cores busy, and stand still when others
    have these.
    """
    before = torch.get_num_threads()
    width, _local.width = getattr(_local, "width", 0), at_a_time(torch.device("cpu"))
    torch.set_num_threads(1)
    try:
        yield
    finally:
        _local.width = width
        torch.set_num_threads(before)


def for_each(
    work: Callable[[Item], None],
    items: Sequence[Item],
    device: torch.device,
    what: str = "",
    show: bool = False,
) -> None:
    """Like `parallel_map`, for work that stores its results itself."""
    for _ in parallel_map(work, items, device, what, show):
        pass


def chunks(first: int, stop: int, step: int) -> list[slice]:
    """The range from `first` to `stop` in slices of at most `step`."""
    return [slice(start, min(start + step, stop)) for start in range(first, stop, step)]


def grain(count: int, flops: float) -> int:
    """How many of `count` items of `flops` each to give to a core at once.

    A few parts for each core, so that none waits long for another at the end; but no tiny ones, since whoever
    wants the interpreter while another thread has it waits for a tenth of a millisecond.
    """
    fewest = math.ceil(_LEAST_FLOPS / max(1.0, flops))
    return max(1, min(count, max(fewest, math.ceil(count / (4 * torch.get_num_threads())))))


def _pool(threads: int) -> Workers:
    with _making:
        if threads not in _pools:
            pool = Workers(threads, "hck", _enter_pool)
            try:
                pool.fill()
                _pools[threads] = pool
            finally:
                # The workers' setting must not become that of threads started later by others.
                torch.set_num_threads(1 if getattr(_local, "width", 0) else threads)
        return _pools[threads]


def _enter_pool() -> None:
    _local.inside = True
    torch.get_num_threads()  # or torch sets the number anew when this thread first computes
    torch.set_num_threads(1)  # of this thread
