"""Memory that is used again: what one tree needed is what the next one needs.

Large pieces of memory come from the system page by page, and each page is cleared when it is first touched.
For the factors of a tree that takes up to a quarter of the time of its computation on a CPU, and as soon as
they are gone the system has the pages back. So where several trees are computed one after another the pieces
are kept in between. A GPU's memory is kept by torch.
"""

import math
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

_LEAST_BYTES = 2**17  # below, malloc keeps pieces itself
_SLACK = 1.25  # times what is asked for, that a piece may have


class _Shelf:
    """Pieces of memory that nobody needs at the moment.

    All pieces together, those that are in use among them, never take more than what was in use at some time.
    """

    def __init__(self) -> None:
        self.free: list[Tensor] = []  # the one that was used last comes last
        self.returned: deque[Tensor] = deque()  # from finalizers, which may run at any time: no lock there
        self.used = self.most_used = 0  # bytes
        self.lock = threading.Lock()

    def take(self, size: int) -> Tensor:
        """A piece of at least that many bytes."""
        with self.lock:
            while self.returned:
                self.free.append(self.returned.popleft())
                self.used -= len(self.free[-1])
            suiting = [i for i, piece in enumerate(self.free) if size <= len(piece) <= _SLACK * size]
            if suiting:
                piece = self.free.pop(min(suiting, key=lambda i: len(self.free[i])))
            else:
                piece = torch.empty(size, dtype=torch.uint8)
            self.used += len(piece)
            self.most_used = max(self.most_used, self.used)
            unused = sum(map(len, self.free))
            while self.used + unused > self.most_used:
                unused -= len(self.free.pop(0))
            return piece


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
    if shelf is None or device.type != "cpu" or size < _LEAST_BYTES:
        return torch.empty(shape, dtype=dtype, device=device)
    piece = shelf.take(size)
    array = piece[:size].numpy()  # which the tensor and all its views keep
    weakref.finalize(array, shelf.returned.append, piece).atexit = False
    return torch.from_numpy(array).view(dtype).view(shape)
