"""What the package needs to know of a kind of device, in one table: a new kind is an entry here and a folder.

Nothing outside `hck.backend` asks which device it has. torch is not imported here, so that the command line
starts quickly.
"""

from collections.abc import Callable
from dataclasses import dataclass
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
class Kind:
    """A kind of device: its code, how it works, and what suits it.

    Attributes
    ----------
    machine : callable
        Loads its code.
    is_host : bool
        Whether its memory is the CPU's. Then items are spread over the cores, and several are worked on at
        the same time; on another device one item after another, since one already fills it.
    is_queued : bool
        Whether commands are queued, so that to look at a result is to wait for it.
    free_share : float
        The part of its free memory that may be used.
    widest_chunk : int
        Bytes beyond which temporaries gain nothing: the batch is already wide, and caches are small.
    least_chunk : int
        Bytes of temporaries below which the device waits for commands.
    tile : int
        Rows and columns of kernel values that are computed together, where a matrix is not stored.
    distances : int
        Distances that are computed together.
    pairs : int
        Pairs of points up to which all distances are computed, rather than a search tree built.
    rate : float
        Operations per second that a fit gets done, roughly: of two CPU cores, and of a data-centre GPU.
    more_work : float
        How many times the CPU's work a fit is worth.
    single_leaf : float
        The part of a fit's work that one leaf may take, to be preferred to several trees: it is one large
        factorization, which suits a GPU.
    bundle_gain : float
        The part of the work that has to be saved for branches to be in twice as many bundles. A GPU works on
        one after another, each with as many commands.
    makes_dense : bool
        Whether sparse points of many features may be made dense to learn their lengthscales.
    exact_points : int
        The most points with the exact kernel, in experiments.
    """

    machine: "Callable[[], Machine]"
    is_host: bool
    is_queued: bool
    free_share: float
    widest_chunk: int
    least_chunk: int
    tile: int
    distances: int
    pairs: int
    rate: float
    more_work: float
    single_leaf: float
    bundle_gain: float
    makes_dense: bool
    exact_points: int


def _accelerator(machine: "Callable[[], Machine]", is_queued: bool) -> Kind:
    return Kind(
        machine=machine,
        is_host=False,
        is_queued=is_queued,
        free_share=0.8,
        widest_chunk=2**31,
        least_chunk=2**28,
        tile=8192,
        distances=2**28,
        pairs=2**36,
        rate=3e12,
        more_work=4.0,
        single_leaf=2.0,
        bundle_gain=0.2,
        makes_dense=True,
        exact_points=500_000,
    )


KINDS = {
    "cpu": Kind(
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
        single_leaf=0.25,
        bundle_gain=0.1,
        makes_dense=False,
        exact_points=10_000,
    ),
    "cuda": _accelerator(_cuda, is_queued=True),
}
OTHER = _accelerator(_other, is_queued=False)  # any other device that torch knows: torch alone


def kind_of(device: "torch.device | str") -> Kind:
    """The kind of a device."""
    name = device.partition(":")[0] if isinstance(device, str) else device.type
    return KINDS.get(name, OTHER)
