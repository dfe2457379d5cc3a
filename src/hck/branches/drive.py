"""The one loop over the branches of trees: up, through the trunks, and down."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Protocol, TypeVar

Said = TypeVar("Said")  # what a branch sends to the trunk
Heard = TypeVar("Heard")  # what the branches of a tree hear


class Store(Protocol[Said, Heard]):
    """Where the branches of some trees are, and how work is done on them.

    In memory (`hck.branches.memory`), in files (`hck.outofcore.store`), or on the workers of a cluster
    (`hck.dask.store`).

    Examples
    --------
    >>> from hck.branches import Store
    >>> [name for name in vars(Store) if not name.startswith("_")]
    ['up', 'solve', 'down', 'finish']
    """

    def up(self) -> Iterable[tuple[int, Iterable[Said]]]:
        """Work on all branches. For each tree, its number, and what its branches send to the trunk, in order.

        Both may be lazy, so that no more messages are in memory than have to be.
        """

    def solve(self, tree: int, messages: Iterable[Said]) -> Heard:
        """Solve the trunk of a tree; returns what the branches hear."""

    def down(self, tree: int, replies: Heard) -> None:
        """Work on the branches of a tree again, or begin to, and keep what predictions need."""

    def finish(self) -> None:
        """Wait for everything that was begun."""


@dataclass
class Clock:
    """Seconds of phases of work.

    Examples
    --------
    >>> from hck.branches import Clock
    >>> clock = Clock()
    >>> clock.add("up", 1.5)
    >>> clock.add("up", 0.5)
    >>> clock.seconds
    {'up': 2.0}
    """

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the seconds that what is inside takes."""
        start = perf_counter()
        yield
        self.add(name, perf_counter() - start)

    def add(self, name: str, seconds: float) -> None:
        """Add seconds to a phase."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds


def drive(store: Store[Said, Heard], clock: Clock | None = None) -> None:
    """Up all branches of all trees; then, tree by tree, through the trunk and down its branches.

    It is the sweep up and down one tree (`hck.hierarchy`) in pieces: a branch needs nothing of another but
    what comes through the trunk.

    Parameters
    ----------
    store : Store
        Where the branches are.
    clock : Clock, optional
        Seconds of the phases are added to it.

    Examples
    --------
    >>> from hck.branches import Clock, drive
    >>> class Sums:
    ...     numbers = [[1, 2], [3, 4]]
    ...     def up(self):
    ...         return [(0, map(sum, self.numbers))]
    ...     def solve(self, tree, messages):
    ...         return sum(messages)
    ...     def down(self, tree, replies):
    ...         self.total = replies
    ...     def finish(self):
    ...         pass
    >>> store, clock = Sums(), Clock()
    >>> drive(store, clock)
    >>> store.total, list(clock.seconds)
    (10, ['up', 'trunk', 'down'])
    """
    clock = Clock() if clock is None else clock
    with clock.phase("up"):
        trees = store.up()
    for tree, messages in trees:
        with clock.phase("trunk"):
            replies = store.solve(tree, messages)
        with clock.phase("down"):
            store.down(tree, replies)
    with clock.phase("down"):
        store.finish()
