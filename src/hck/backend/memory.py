"""How much memory may be used, and how much of the work to do at once."""

import gc
import math
import re
import sys
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import NamedTuple

import numpy as np
import torch

from hck.backend.kinds import kind_of
from hck.backend.parallel import grain
from hck.backend.text import in_bytes

_UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}

_NOT_HELD = type, ModuleType, FunctionType, BuiltinFunctionType  # which are there anyway
_SMALL = 2**28  # bytes that nobody asks for leave to use


def resolve_budget(budget: int | float | str | None, device: torch.device) -> int:
    """The memory budget in bytes, from a number, or from text such as ``"4GiB"`` or ``"500 MB"``.

    None means half of the memory that is free, and four fifths of a GPU's.
    """
    if budget is None:
        return int(free_bytes(device) * kind_of(device).free_share)
    if isinstance(budget, str):
        match = re.fullmatch(r"\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*([kmgt]?i?)b?\s*", budget.lower())
        if match is None or match[2] not in _UNITS:
            raise ValueError(f"memory_budget={budget!r} is not a size; write bytes or, for example, '4GiB'")
        budget = float(match[1]) * _UNITS[match[2]]
    if not 0 < budget < float("inf"):
        raise ValueError(f"memory_budget must be positive, got {budget!r}")
    return int(budget)


def per_chunk(bytes_per_item: int, budget: int, device: torch.device) -> int:
    """How many items to process at once when each needs `bytes_per_item` of temporary memory."""
    room = min(budget // 8, kind_of(device).widest_chunk)
    return max(1, int(room // max(1, bytes_per_item)))


class Cost(NamedTuple):
    """What an item of work takes: bytes of temporary memory, and operations."""

    bytes: int
    flops: float


def at_once(count: int, most_anywhere: int, each: Cost, budget: int, device: torch.device) -> int:
    """How many of `count` items to process together.

    On a GPU an eighth of the most that there are in any such step of the whole work, so that temporaries are
    small beside what is stored, but not so few that the GPU waits for commands. On a CPU temporaries are
    small, or are not there at all, and what counts is that all cores have work.
    """
    size, kind = max(1, each.bytes), kind_of(device)
    most = max(1, budget // 8 // size)
    if kind.is_host:
        return min(most, grain(count, each.flops))
    return min(most, max(math.ceil(most_anywhere / 8), kind.least_chunk // size))


def require_bytes(
    needed: float, device: torch.device, what: str, instead: str, allowed: float | None = None
) -> None:
    """Raise MemoryError before anything is allocated if more is needed than is allowed, or is free.

    `what` needs it, "the covariance of 9 points", and what to do `instead`, "use return_std".
    """
    if needed <= (_SMALL if allowed is None else allowed):
        return
    limit = free_bytes(device) if allowed is None else allowed
    if needed > limit:
        source = f"are free on {str(device)!r}" if allowed is None else "are allowed by memory_budget"
        raise MemoryError(f"{what} takes {in_bytes(needed)}, but {in_bytes(limit)} {source}: {instead}")


def free_bytes(device: torch.device) -> int:
    """Memory of a device that is free, in bytes."""
    return kind_of(device).machine().free_bytes(device)


def bytes_held(root: object) -> int:
    """Memory that something and all it is made of take, in bytes; what several parts share counts once."""
    waiting, seen, total = [root], set[int](), 0
    while waiting:
        found: list[object] = []
        for each in waiting:
            if isinstance(each, torch.Tensor):
                storage = each.untyped_storage()
                key, size = -storage.data_ptr(), storage.nbytes()
            else:
                key, size = id(each), sys.getsizeof(each)
            if key not in seen and not isinstance(each, _NOT_HELD):
                seen.add(key)
                total += size
                found.append(each)
        bases = [each.base for each in found if isinstance(each, np.ndarray) and each.base is not None]
        waiting = gc.get_referents(*found) + bases
    return total
