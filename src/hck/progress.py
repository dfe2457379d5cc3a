"""Progress of long work, shown only when asked for."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def track(items: Sequence[T], what: str, show: bool) -> Iterable[T]:
    """The items, with a progress bar on the terminal while they are consumed if `show`."""
    if not show:
        return items
    from rich.progress import track as rich_track  # not needed, and not imported, when nothing is shown

    return rich_track(items, description=f"{what:<28}", total=len(items))
