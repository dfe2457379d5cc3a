"""Python's search for cycles of objects: a sixth of the time that imports and compilation take."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_paused = 0  # how many have asked for it
_enabled = True  # before the first of them


@contextmanager
def collector_paused() -> Iterator[None]:
    """While many objects are made of which almost all stay, let nobody look for those that do not."""
    global _paused, _enabled
    with _lock:
        if not _paused:
            _enabled = gc.isenabled()
            gc.disable()
        _paused += 1
    try:
        yield
    finally:
        with _lock:
            _paused -= 1
            if not _paused and _enabled:
                gc.enable()
