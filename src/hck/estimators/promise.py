"""Seconds that are promised: `fit_time` counts from where a fit begins, and who waits much longer is told."""

import math
import time
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeAlias

from hck.backend import compilation
from hck.errors import FitTimeWarning

Fit: TypeAlias = Callable[..., Any]

_LONGER, _SECONDS = 1.5, 0.5  # than promised, to be worth a word
_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)


def keeps_time(fit: Fit) -> Fit:
    """Run `fit` with a deadline, if the estimator's `fit_time` is in seconds."""

    @wraps(fit)
    def timed(self: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self.fit_time, str):
            return fit(self, *args, **kwargs)
        seconds, begin, compiled = float(self.fit_time), time.perf_counter(), compilation.seconds()
        token = _deadline.set(min(_deadline.get(), begin + seconds))
        try:
            result = fit(self, *args, **kwargs)
        finally:
            _deadline.reset(token)
        taken = time.perf_counter() - begin - (compilation.seconds() - compiled)
        if taken > _LONGER * seconds + _SECONDS:
            warnings.warn(
                f"fit took {taken:.1f} s, where fit_time={seconds:g} was asked for: the least that can be "
                "done with these data and parameters takes longer, unless other processes kept the machine "
                "busy",
                FitTimeWarning,
                stacklevel=4,
            )
        return result

    return timed


def deadline(fit_time: float | str) -> float:
    """When the fit at hand should be over, by `time.perf_counter`."""
    if isinstance(fit_time, str):
        return math.inf
    return min(_deadline.get(), time.perf_counter() + float(fit_time))
