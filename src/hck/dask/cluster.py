"""The cluster: who works in it, and how work is given to it and ends, well or not."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import Any, TypeAlias

import torch
from dask.delayed import delayed
from distributed import Client, Future, KilledWorker, wait
from distributed import Worker as DaskWorker

from hck.backend.device import FASTEST, check_supported, is_here, parse_device
from hck.backend.kinds import kind_of
from hck.backend.memory import free_bytes
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
class Facts:
    """What there is to work with.

    Attributes
    ----------
    workers, threads : int
        In all.
    memory : int or None
        Bytes that a thread may take, where it has least; None where workers have no limit.
    device : str
        The one that was asked for; else the fastest if every worker has one, and "cpu" if not.
    room : int or None
        Bytes that all workers may still take together; None where one has no limit.
    """

    workers: int
    threads: int
    memory: int | None
    device: str
    room: int | None = None


def find_client(client: Client | None) -> Client:
    """The client that was given, or the one that is there."""
    if client is None:
        try:
            client = Client.current()
        except ValueError:
            raise ValueError(
                "there is no Dask client: start one, for example with `from distributed import Client; "
                "client = Client()` on this machine or `Client('scheduler-address:8786')`, or give it as "
                "client="
            ) from None
    if not isinstance(client, Client):
        raise TypeError(
            f"client must be a distributed.Client, got {type(client).__name__}: make one of it, Client(...)"
        )
    if client.asynchronous:
        raise ValueError("the Dask client is asynchronous: make one with asynchronous=False")
    if client.status != "running":
        raise ValueError(f"the Dask client is {client.status}: start another")
    return client


@dataclass
class Worker:
    """What a worker says of itself: threads, bytes that it may still take, and bytes free on the device.

    0 bytes: it has no limit, or not this device.
    """

    threads: int
    memory: int
    on_device: int


def look_around(client: Client, device: str | torch.device | None) -> Facts:
    """Ask all workers what they have, also of the device that was asked for, or of the fastest."""
    asked = None if device is None else check_supported(parse_device(device))  # it need not be here
    answers = client.run(_describe, asked or torch.device(FASTEST), on_error="return").values()
    found = [each for each in answers if isinstance(each, Worker)]  # one may be about to go
    if not found:
        raise ValueError("the Dask cluster has no workers yet: call client.wait_for_workers(1) before `fit`")
    everywhere = all(worker.on_device for worker in found)
    chosen = asked or torch.device(FASTEST if everywhere else "cpu")
    kind = kind_of(chosen)
    if not (kind.is_host or everywhere):
        name = str(chosen).partition(":")[0].upper()
        raise ValueError(
            f"device={str(chosen)!r} was asked for, but torch finds no {name} device on some of the workers"
        )
    limits = [worker.memory / 2 / worker.threads for worker in found if worker.memory]
    if not kind.is_host:
        limits += [kind.free_share * worker.on_device / worker.threads for worker in found]
    threads = sum(worker.threads for worker in found)
    room = sum(worker.memory for worker in found) if all(worker.memory for worker in found) else None
    return Facts(len(found), threads, int(min(limits)) if limits else None, str(chosen), room)


def _describe(device: torch.device, dask_worker: DaskWorker) -> Worker:
    """On a worker."""
    limit = int(dask_worker.memory_manager.memory_limit or 0)
    free = max(limit // 4, limit - dask_worker.monitor.get_process_memory())
    return Worker(dask_worker.state.nthreads, free, free_bytes(device) if is_here(device) else 0)


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
    """Tasks of a fit. In the end, whatever happens, those that were not kept are let go.

    Parameters
    ----------
    client : Client
    verbose : bool
        Whether to show progress.

    Attributes
    ----------
    traffic, clock : Traffic and Clock
        What travelled, and how long phases took.
    """

    def __init__(self, client: Client, verbose: bool = False) -> None:
        self.client, self.verbose = client, verbose
        self.traffic, self.clock = Traffic(), Clock()
        self.futures: list[Future] = []
        self.kept: set[object] = set()

    def __enter__(self) -> "Work":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for future in self.futures:
            if error is not None or future.key not in self.kept:
                future.release()

    def submit(self, function: Callable[..., object], *args: object) -> Future:
        with without_warnings():
            future = self.client.submit(function, *args, pure=False)
        self.futures.append(future)
        return future

    def compute(self, made: Sequence[Task]) -> list[Future]:
        """Start lazy values."""
        with without_warnings():
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
        wait_for(self.client, futures, what, self.verbose)

    def gather(self, futures: Sequence[Future], what: str = "") -> list[Any]:
        """The results of small tasks, brought here."""
        self.wait(futures, what)
        with explained(what):
            return list(self.client.gather(list(futures)))


def wait_for(client: Client, futures: Sequence[Future], what: str, verbose: bool = False) -> None:
    """Until all are done; raises the error of the first that failed."""
    pending, watch = list(futures), Watch(client, what)
    show = verbose and any(future.status == "pending" for future in pending)
    steps = iter(track(range(len(pending)), f"Dask: {what}", show))
    while pending:
        try:
            with client.as_current():  # it need not be the one that was started last
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


def bring(client: Client, made: Sequence[Task], what: str) -> list[Any]:
    """Small lazy values, computed on the workers and brought here."""
    with without_warnings():
        futures = list(client.compute(list(made)))
    wait_for(client, futures, what)
    with explained(what):
        return list(client.gather(futures))


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


def lazy(function: Callable[..., object]) -> Callable[..., Task]:
    """The function as one that makes a task of its own at each call."""
    made: Callable[..., Task] = delayed(function, pure=False)
    return made


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
def without_warnings() -> Iterator[None]:
    """Dask warns of arguments above some megabytes; ours are so large for good reason: see `tasks.hold`."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")
        yield
