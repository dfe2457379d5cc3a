"""How much memory may be used, and how much of the work to do at once."""

import os
import re

import torch

from hck.parallel import grain

_UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_FRACTION_OF_FREE = 0.5
# Temporaries beyond this many bytes gain nothing: the batch is already wide, and caches are small.
_WIDEST_CHUNK = {"cpu": 2**24, "cuda": 2**31}


def resolve_budget(budget: int | float | str | None, device: torch.device) -> int:
    """The memory budget in bytes.

    Parameters
    ----------
    budget : int, float, str or None
        Bytes, text such as ``"4GiB"`` or ``"500 MB"``, or None for half of what is free on `device`.
    """
    if budget is None:
        return int(_free_bytes(device) * _FRACTION_OF_FREE)
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


def at_once(count: int, bytes_per_item: int, flops: float, budget: int, device: torch.device) -> int:
    """How many of `count` items to process together, given the temporary memory and the work of each.

    On a GPU as many as memory allows. On a CPU temporaries are small, or are not there at all, and what
    counts is that all cores have work.
    """
    if device.type == "cpu":
        return min(max(1, budget // 8 // max(1, bytes_per_item)), grain(count, flops))
    return per_chunk(bytes_per_item, budget, device)


def _free_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
