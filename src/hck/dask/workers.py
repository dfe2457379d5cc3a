"""The cluster that a fit works on: its client, and what its workers have."""

from dataclasses import dataclass

import torch
from distributed import Client
from distributed import Worker as DaskWorker

from hck.backend.device import FASTEST, check_supported, is_here, parse_device
from hck.backend.kinds import kind_of
from hck.backend.memory import free_bytes


@dataclass
class Worker:
    """What a worker says of itself: threads, bytes that it may still take, and bytes free on the device.

    0 bytes: it has no limit, or not this device.
    """

    threads: int
    memory: int
    on_device: int


@dataclass
class Facts:
    """What there is to work with: workers and their threads in all, and the device that they use.

    A thread may take `memory` bytes, where it has least, and all workers together `room`; None: no limit.
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


def look_around(client: Client, device: str | torch.device | None) -> Facts:
    """Ask all workers what they have.

    Without a `device` that was asked for it is the fastest, if every worker has one, and else the CPU.
    """
    asked = None if device is None else check_supported(parse_device(device))  # it need not be here
    answers = client.run(_describe, asked or torch.device(FASTEST), on_error="return").values()
    found = [each for each in answers if isinstance(each, Worker)]  # one may be about to go
    if not found:
        raise ValueError("the Dask cluster has no workers yet: call client.wait_for_workers(1) before `fit`")
    everywhere = all(worker.on_device for worker in found)
    chosen = asked or torch.device(FASTEST if everywhere else "cpu")
    kind = kind_of(chosen)
    limits = [worker.memory / 2 / worker.threads for worker in found if worker.memory]
    if not kind.is_host:
        if not everywhere:
            name = str(chosen).partition(":")[0].upper()
            raise ValueError(
                f"device={str(chosen)!r} was asked for, but torch finds no {name} device on some of the "
                "workers"
            )
        limits += [kind.free_share * worker.on_device / worker.threads for worker in found]
    threads = sum(worker.threads for worker in found)
    room = sum(worker.memory for worker in found) if all(worker.memory for worker in found) else None
    return Facts(len(found), threads, int(min(limits)) if limits else None, str(chosen), room)


def _describe(device: torch.device, dask_worker: DaskWorker) -> Worker:
    """On a worker."""
    limit = int(dask_worker.memory_manager.memory_limit or 0)
    free = max(limit // 4, limit - dask_worker.monitor.get_process_memory())
    return Worker(dask_worker.state.nthreads, free, free_bytes(device) if is_here(device) else 0)
