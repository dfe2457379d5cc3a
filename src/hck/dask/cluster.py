"""How work is given to a cluster, and ends, well or not."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any, TypeAlias

import torch
from dask.delayed import delayed
from distributed import Client, Future, KilledWorker, wait

from hck.backend.progress import track
from hck.branches import Clock, Message, Reply

Task: TypeAlias = Any  # a Delayed: a value that is not computed yet, and can be indexed

_POLL = 0.5  # seconds between looks at what is done
_LOOK = 5.0  # seconds between looks at the workers
_PATIENCE = 60.0  # seconds that all workers may be without memory, or that there may be none
_LOSSES = 3  # times that as many workers as there are may be lost

NO_MEMORY = (
    "workers of the Dask cluster ran out of memory, or died for another reason, again and again ({what}): "
    "use more workers or workers with a larger memory limit, smaller chunks of X, more branches "
    "(n_branches), or a lower rank or leaf_size"
)
NO_WORKERS = "the Dask cluster has no workers any more, or they die at once ({what}): start others"
GONE = "the branches are gone, since the Dask client was closed or restarted: fit again"


@dataclass
class Traffic:
    """Bytes that travelled during a fit.

    Attributes
    ----------
    sample : int
        Of the rows that were drawn to settle partition and parameters.
    rows : int
        Of the rows that were brought to their branches; at most, since some are on the right worker already.
    messages : int
        From branches to trunks.
    replies : int
        From trunks to branches.

    Examples
    --------
    >>> from hck.dask import Traffic
    >>> Traffic(sample=800, rows=16_000)
    Traffic(sample=800, rows=16000, messages=0, replies=0)
    """

    sample: int = 0
    rows: int = 0
    messages: int = 0
    replies: int = 0

    def count(self, messages: list[Message], replies: list[Reply]) -> None:
        """Add what a tree's branches and its trunk said to each other."""
        self.messages += sum(each.nbytes for each in messages)
        self.replies += sum(each.nbytes for each in replies)


class Work:
    """Tasks of a fit, what travels for them, and how long phases take.

    In the end, whatever happens, tasks that were not kept are let go.
    """

    def __init__(self, client: Client, verbose: bool = False) -> None:
        self.client, self.verbose = client, verbose
        self.traffic, self.clock = Traffic(), Clock()
        self.futures: list[Future] = []
        self.kept: set[object] = set()

    def __enter__(self) -> "Work":
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        for future in self.futures:
            if error is not None or future.key not in self.kept:
                future.release()

    def submit(self, function: Callable[..., object], *args: object) -> Future:
        with _without_warnings():
            future = self.client.submit(function, *args, pure=False)
        self.futures.append(future)
        return future

    def compute(self, made: Sequence[Task]) -> list[Future]:
        """Start lazy values."""
        with _without_warnings():
            futures = list(self.client.compute(list(made)))
        self.futures += futures
        return futures

    def keep(self, futures: Sequence[Future]) -> None:
        """These stay when the work is done, as long as somebody has them."""
        self.kept.update(future.key for future in futures)

    def release(self, futures: Sequence[Future]) -> None:
        """These are needed only to compute others again, which Dask can do: their memory is free."""
        for future in futures:
            future.release()

    def wait(self, futures: Sequence[Future], what: str = "") -> None:
        """Until all are done; raises the error of the first that failed."""
        pending, watch = list(futures), Watch(self.client, what)
        show = self.verbose and any(future.status == "pending" for future in pending)
        steps = iter(track(range(len(pending)), f"Dask: {what}", show))
        while pending:
            try:
                with self.client.as_current():  # it need not be the one that was started last
                    wait(pending, timeout=_POLL)
            except TimeoutError:
                watch.look()
            rest = [future for future in pending if future.status == "pending"]
            for future in pending:
                if future.status in ("error", "cancelled"):
                    with explained(what):
                        future.result()
            for _ in range(len(pending) - len(rest)):
                next(steps, None)
            pending = rest
        next(steps, None)

    def gather(self, futures: Sequence[Future], what: str = "") -> list[Any]:
        """The results of small tasks, brought here."""
        self.wait(futures, what)
        with explained(what):
            return list(self.client.gather(list(futures)))


def lazy(function: Callable[..., object]) -> Callable[..., Task]:
    """The function as one that makes a task of its own at each call."""
    made: Callable[..., Task] = delayed(function, pure=False)
    return made


def bring(client: Client, made: Sequence[Task], what: str) -> list[Any]:
    """Small lazy values, computed on the workers and brought here."""
    with Work(client) as work:
        return work.gather(work.compute(made), what)


class Watch:
    """Notices what Dask would wait for, or try again, forever.

    All workers are short of memory; or there are none; or they are lost again and again, and others, or the
    same ones started anew, take their places.
    """

    def __init__(self, client: Client, what: str) -> None:
        self.client, self.what = client, what
        self.looked = self.fine = monotonic()
        self.seen: set[str] = set()
        self.most = 0  # workers at a time

    def look(self) -> None:
        now = monotonic()
        if now - self.looked < _LOOK:
            return
        self.looked = now
        known = _status_of_workers(self.client)
        self.seen |= set(known)
        self.most = max(self.most, len(known))
        lost = len(self.seen) - len(known)
        if lost > _LOSSES * self.most:
            raise MemoryError(NO_MEMORY.format(what=f"{self.what}; {lost} workers were lost"))
        if any(status != "paused" for status in known.values()):
            self.fine = now
        elif now - self.fine > _PATIENCE:
            if not known:
                raise RuntimeError(NO_WORKERS.format(what=self.what))
            raise MemoryError(NO_MEMORY.format(what=f"{self.what}; all workers are paused"))


def _status_of_workers(client: Client) -> dict[str, str]:
    """By their addresses, which are others when they are started again."""
    try:
        info = client.scheduler_info(n_workers=-1)  # older versions always tell of all
    except TypeError:
        info = client.scheduler_info()
    return {address: worker.get("status", "") for address, worker in info["workers"].items()}


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Say what to do where memory is short, or everything is gone."""
    try:
        yield
    except CancelledError as error:
        raise RuntimeError(GONE) from error
    except (KilledWorker, MemoryError) as error:
        raise MemoryError(NO_MEMORY.format(what=what)) from error
    except RuntimeError as error:
        if "allocate memory" in str(error) or isinstance(error, torch.cuda.OutOfMemoryError):
            raise MemoryError(NO_MEMORY.format(what=what)) from error
        raise


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Dask warns of arguments above some megabytes; ours are so large for good reason: see `tasks.hold`."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")
        yield
