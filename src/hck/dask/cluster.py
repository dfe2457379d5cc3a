"""The cluster: who works in it, and how work is given to it and ends, well or not."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

import torch
from dask.delayed import delayed
from distributed import Client, Future, KilledWorker, wait

from hck.progress import track

_POLL = 0.5  # seconds between looks at what is done
_LOOK = 5.0  # seconds between looks at the workers
_PATIENCE = 60.0  # seconds that all workers may be without memory

NO_MEMORY = (
    "workers of the Dask cluster ran out of memory, or died for another reason, again and again ({what}): "
    "use more workers or workers with a larger memory limit, smaller chunks of X, more branches "
    "(n_branches), or a lower rank or leaf_size"
)


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
        "cuda" if every worker has a GPU, else "cpu".
    """

    workers: int
    threads: int
    memory: int | None
    device: str


def find_client(client: Client | None) -> Client:
    """The client that was given, or the one that is there."""
    if client is not None:
        return client
    try:
        return Client.current()
    except ValueError:
        raise ValueError(
            "there is no Dask client: start one, for example with `from distributed import Client; client = "
            "Client()` on this machine or `Client('scheduler-address:8786')`, or give it as client="
        ) from None


@dataclass
class Worker:
    """What a worker says of itself: threads, bytes that it may still take, and bytes free on its GPU.

    0 bytes: it has no limit, or no GPU.
    """

    threads: int
    memory: int
    gpu: int


def look_around(client: Client, device: Any) -> Facts:
    """Ask all workers what they have."""
    answers = client.run(_facts, on_error="return").values()
    found = [each for each in answers if isinstance(each, Worker)]  # one may be about to go
    if not found:
        raise ValueError("the Dask cluster has no workers yet: call client.wait_for_workers(1) before `fit`")
    asked = None if device is None else torch.device(device).type
    everywhere = all(worker.gpu for worker in found)
    if asked == "cuda" and not everywhere:
        raise ValueError("device='cuda' was asked for, but torch finds no CUDA device on some of the workers")
    chosen = "cuda" if everywhere and asked != "cpu" else "cpu"
    limits = [worker.memory / 2 / worker.threads for worker in found if worker.memory]
    if chosen == "cuda":
        limits += [0.8 * worker.gpu / worker.threads for worker in found]
    threads = sum(worker.threads for worker in found)
    return Facts(len(found), threads, int(min(limits)) if limits else None, chosen)


def _facts(dask_worker: Any) -> Worker:
    """On a worker."""
    limit = int(dask_worker.memory_manager.memory_limit or 0)
    free = max(limit // 4, limit - dask_worker.monitor.get_process_memory())
    gpu = torch.cuda.mem_get_info()[0] if torch.cuda.is_available() else 0
    return Worker(dask_worker.state.nthreads, free, gpu)


class Work:
    """Tasks of a fit. In the end, whatever happens, those that were not kept are let go.

    Parameters
    ----------
    client : Client
    verbose : bool
        Whether to show progress.
    """

    def __init__(self, client: Client, verbose: bool = False) -> None:
        self.client, self.verbose = client, verbose
        self.futures: list[Future] = []
        self.kept: set[Any] = set()

    def __enter__(self) -> "Work":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        for future in self.futures:
            if error is not None or future.key not in self.kept:
                future.release()

    def submit(self, function: Callable[..., Any], *args: Any) -> Future:
        with without_warnings():
            future = self.client.submit(function, *args, pure=False)
        self.futures.append(future)
        return future

    def compute(self, lazy: Sequence[Any]) -> list[Future]:
        """Start lazy values."""
        with without_warnings():
            futures = list(self.client.compute(list(lazy)))
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


class Watch:
    """Notices when no worker goes on because all are short of memory, which Dask would wait for forever."""

    def __init__(self, client: Client, what: str) -> None:
        self.client, self.what = client, what
        self.looked = self.fine = monotonic()

    def look(self) -> None:
        now = monotonic()
        if now - self.looked < _LOOK:
            return
        self.looked = now
        known = _status_of_workers(self.client)
        if not known or any(status != "paused" for status in known):
            self.fine = now
        elif now - self.fine > _PATIENCE:
            raise MemoryError(NO_MEMORY.format(what=f"{self.what}; all workers are paused"))


def _status_of_workers(client: Client) -> list[str]:
    try:
        info = client.scheduler_info(n_workers=-1)  # older versions always tell of all
    except TypeError:
        info = client.scheduler_info()
    return [worker.get("status", "") for worker in info["workers"].values()]


def lazy(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as one that makes a task of its own at each call."""
    made: Callable[..., Any] = delayed(function, pure=False)
    return made


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Say what to do where memory is short."""
    try:
        yield
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
