"""Progress of long work, shown only when asked for."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")
_WIDTH = 28  # of a description
_asking: set[object] = set()  # one for each piece of work, in any thread, whose progress is shown


def track(items: Sequence[T], what: str, show: bool) -> Iterable[T]:
    """The items, with a progress bar on the terminal while they are consumed if `show`."""
    if not show or not len(items):
        return items
    from rich.markup import escape
    from rich.progress import track as rich_track  # not needed, and not imported, when nothing is shown

    return rich_track(items, description=escape(f"{what:<{_WIDTH}}"), total=len(items))


class Counter:
    """A progress bar for steps whose number is not known beforehand, with the latest value of something."""

    def __init__(self, what: str, most: int, show: bool) -> None:
        self.what, self.most, self.show = what, most, show
        self.bar: Any = None

    def __enter__(self) -> "Counter":
        if self.show:
            from rich.progress import Progress

            self.bar = Progress()
            self.task = self.bar.add_task(f"{self.what:<{_WIDTH}}", total=self.most)
            self.bar.start()
        return self

    def step(self, value: float) -> None:
        if self.bar is not None:
            self.bar.update(self.task, advance=1, description=f"{f'{self.what}: {value:.6g}':<{_WIDTH}}")

    def jump(self, done: int) -> None:
        """Some steps were not needed."""
        if self.bar is not None:
            self.bar.update(self.task, completed=done)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()


@contextmanager
def asked(show: bool) -> Iterator[None]:
    """Work of which somebody wants to see the progress, if `show`, wherever in it something takes long."""
    me = object()
    if show:
        _asking.add(me)
    try:
        yield
    finally:
        _asking.discard(me)


def say(line: str) -> None:
    """Say what takes long: to those who have asked for progress, or else in the log `hck`, as information."""
    if not _asking:
        logging.getLogger("hck").info(line)
        return
    from rich import get_console  # which knows of bars that are shown

    get_console().print(line, markup=False, highlight=False, soft_wrap=True)
