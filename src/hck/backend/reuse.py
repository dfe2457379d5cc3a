"""Memory that is used again: what one tree needed is what the next one needs.

Large pieces of memory come from the system page by page, and each page is cleared when it is first touched.
For the factors of a tree that takes up to a quarter of the time of its computation on a CPU, and as soon as
they are gone the system has the pages back. So where several trees are computed one after another the pieces
are kept in between. A GPU's memory is kept by torch.
"""

import math
import mmap
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import torch
from torch import Tensor

from hck.backend.kinds import kind_of

_LEAST_BYTES = 2**17  # below, malloc keeps pieces itself
_LARGE = 2**22  # from which on large pages, of 2 MiB, waste little
_SLACK = 1.25  # times what is asked for, that a piece may have


class _Shelf:
    """Pieces of memory that nobody needs at the moment.

    All pieces together, those that are in use among them, never take more than what was in use at some time.
    """

    def __init__(self) -> None:
        self.free: list[tuple[int, Tensor]] = []  # bytes and memory; the one that was used last comes last
        self.returned: deque[tuple[int, Tensor]] = deque()  # by finalizers, at any time: no lock
        self.used = self.unused = self.most_used = 0  # bytes
        self.lock = threading.Lock()

    def take(self, size: int) -> tuple[int, Tensor]:
        """A piece of at least that many bytes."""
        with self.lock:
            while self.returned:
                self.free.append(self.returned.popleft())
                self.used -= self.free[-1][0]
                self.unused += self.free[-1][0]
            suiting = [(bytes, i) for i, (bytes, _) in enumerate(self.free) if size <= bytes <= _SLACK * size]
            piece = self.free.pop(min(suiting)[1]) if suiting else None
            self.used += size if piece is None else piece[0]
            self.unused -= 0 if piece is None else piece[0]
            self.most_used = max(self.most_used, self.used)
            dropped = []  # and given back to the system when the lock is open again
            while self.used + self.unused > self.most_used:
                dropped.append(self.free.pop(0))
                self.unused -= dropped[-1][0]
        del dropped
        return piece or (size, _fresh(size))


def _fresh(size: int) -> Tensor:
    """Bytes from the system; where it can, in large pages, which come hundreds at a time."""
    if size >= _LARGE and hasattr(mmap, "MADV_HUGEPAGE"):
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with suppress(OSError):  # a system without large pages
            memory.madvise(mmap.MADV_HUGEPAGE)
        return torch.frombuffer(memory, dtype=torch.uint8)
    return torch.empty(size, dtype=torch.uint8, device="cpu")


_shelf: _Shelf | None = None


@contextmanager
def reusing() -> Iterator[None]:
    """Within, tensors from `room` are made of memory of earlier ones that are gone. It may be nested."""
    global _shelf
    if _shelf is not None:
        yield
        return
    _shelf = _Shelf()
    try:
        yield
    finally:
        _shelf = None


def room(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """A tensor with any content."""
    shelf, size = _shelf, math.prod(shape) * dtype.itemsize
    if shelf is None or not kind_of(device).is_host or size < _LEAST_BYTES:
        return torch.empty(shape, dtype=dtype, device=device)
    piece = shelf.take(size)
    array = piece[1][:size].numpy()  # which the tensor and all its views keep
    weakref.finalize(array, shelf.returned.append, piece).atexit = False
    return torch.from_numpy(array).view(dtype).view(shape)
