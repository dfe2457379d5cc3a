"""How much memory may be used, and how much of the work to do at once."""

import math
import os
import re

import torch

from hck.backend.parallel import grain

_UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_FRACTION_OF_FREE = {"cpu": 0.5, "cuda": 0.8}
# Temporaries beyond this many bytes gain nothing: the batch is already wide, and caches are small.
_WIDEST_CHUNK = {"cpu": 2**24, "cuda": 2**31}
_LEAST_CHUNK = 2**28  # on a GPU


def resolve_budget(budget: int | float | str | None, device: torch.device) -> int:
    """The memory budget in bytes.

    Parameters
    ----------
    budget : int, float, str or None
        Bytes, text such as ``"4GiB"`` or ``"500 MB"``, or None for half of the memory that is free, and four
        fifths of a GPU's.
    """
    if budget is None:
        return int(_free_bytes(device) * _FRACTION_OF_FREE[device.type])
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
    room = min(budget // 8, _WIDEST_CHUNK[device.type])
    return max(1, int(room // max(1, bytes_per_item)))


def at_once(
    count: int, most_anywhere: int, bytes_per_item: int, flops: float, budget: int, device: torch.device
) -> int:
    """How many of `count` items to process together, given the temporary memory and the work of each.

    On a GPU an eighth of the most that there are at any level of the whole tree, so that temporaries are
    small beside what is stored, but not so few that the GPU waits for commands. On a CPU temporaries are
    small, or are not there at all, and what counts is that all cores have work.
    """
    most = max(1, budget // 8 // max(1, bytes_per_item))
    if device.type == "cpu":
        return min(most, grain(count, flops))
    return min(most, max(math.ceil(most_anywhere / 8), _LEAST_CHUNK // max(1, bytes_per_item)))


def _free_bytes(device: torch.device) -> int:
    if device.type == "cuda":  # what torch holds but does not use is free for us
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + unused
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
