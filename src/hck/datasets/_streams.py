"""Compressed files, and a progress bar for bytes that are read."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

OPEN: dict[str, Callable[..., Any]] = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}


def with_bar(stream: Any, size: int | None, what: str, show: bool) -> AbstractContextManager[Any]:
    """A stream of bytes, with a progress bar on the terminal while it is read if `show`.

    Parameters
    ----------
    size : int or None
        How many bytes there are. Without it nothing is shown.
    """
    if not show or not size:
        return nullcontext(stream)
    from rich.progress import wrap_file  # not needed, and not imported, when nothing is shown

    return wrap_file(stream, size, description=f"{what:<28}")
