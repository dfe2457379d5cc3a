"""How long code was compiled for, which happens once on a machine and is nobody's choice."""

import time
from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
Result = TypeVar("Result")

_lock = Lock()
_seconds = 0.0


def seconds() -> float:
    """Seconds so far, of all threads together."""
    return _seconds


def counted(compiles: Callable[P, Result]) -> Callable[P, Result]:
    """The same function, whose time counts."""

    @wraps(compiles)
    def timed(*args: P.args, **kwargs: P.kwargs) -> Result:
        global _seconds
        begin = time.perf_counter()
        try:
            return compiles(*args, **kwargs)
        finally:
            with _lock:
                _seconds += time.perf_counter() - begin

    return timed
