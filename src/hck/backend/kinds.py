"""What the package needs to know of a kind of device, in one table: a new kind is an entry here and a folder.

Nothing outside `hck.backend` asks which device it has. torch is not imported here, so that the command line
starts quickly.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from hck.backend.machine import Machine


@cache
def _cpu() -> "Machine":
    from hck.backend.cpu.machine import CPU

    return CPU()


@cache
def _cuda() -> "Machine":
    from hck.backend.cuda.machine import CUDA

    return CUDA()


@cache
def _other() -> "Machine":
    from hck.backend.machine import Machine

    return Machine()


@dataclass(frozen=True, eq=False)
class DeviceKind:
    """A kind of device: its code, how it works, and what suits it."""

    machine: "Callable[[], Machine]"  # loads its code
    # Whether its memory is the CPU's. Then items are spread over the cores, and several are worked on at the
    # same time; on another device one item after another, since one already fills it.
    is_host: bool
    is_queued: bool  # whether commands are queued, so that to look at a result is to wait for it
    free_share: float  # the part of its free memory that may be used
    # Bytes beyond which temporaries gain nothing (the batch is already wide, and caches are small), and below
    # which the device waits for commands.
    widest_chunk: int
    least_chunk: int
    tile: int  # rows and columns of kernel values that are computed together, where a matrix is not stored
    distances: int  # that are computed together
    pairs: int  # of points up to which all distances are computed, rather than a search tree built
    rate: float  # operations per second that a fit gets done, roughly: two CPU cores, a data-centre GPU
    more_work: float  # how many times the CPU's work a fit is worth
    # The part of the work that one large factorization may take, to be preferred to many small ones.
    single_matrix: float
    # How many times as fast one large matrix is worked on as many small ones.
    dense_gain: float
    # The part of the work that has to be saved for it to be split into twice as many batches: a GPU works on
    # one after another, each with as many commands.
    split_gain: float
    makes_dense: bool  # whether sparse points of many features may be made dense to learn lengthscales
    largest_matrix: int  # rows of the largest matrix that is worth computing with as a whole


# Any device that torch knows: torch alone.
OTHER = DeviceKind(
    machine=_other,
    is_host=False,
    is_queued=False,
    free_share=0.8,
    widest_chunk=2**31,
    least_chunk=2**28,
    tile=8192,
    distances=2**28,
    pairs=2**36,
    rate=3e12,
    more_work=4.0,
    single_matrix=2.0,
    dense_gain=10.0,
    split_gain=0.2,
    makes_dense=True,
    largest_matrix=500_000,
)
KINDS = {
    "cpu": DeviceKind(
        machine=_cpu,
        is_host=True,
        is_queued=False,
        free_share=0.5,
        widest_chunk=2**24,
        least_chunk=0,
        tile=1024,
        distances=2**22,
        pairs=0,
        rate=7e10,
        more_work=1.0,
        single_matrix=0.25,
        dense_gain=1.0,
        split_gain=0.1,
        makes_dense=False,
        largest_matrix=10_000,
    ),
    "cuda": replace(OTHER, machine=_cuda, is_queued=True),
}
DEVICE_NAMES = " or ".join(KINDS)  # for people to read


def kind_of(device: "torch.device | str") -> DeviceKind:
    """The kind of a device."""
    name = device.partition(":")[0] if isinstance(device, str) else device.type
    return KINDS.get(name, OTHER)
