"""Which observations there are, in the order in which they came, and in which leaf each is."""

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class Ledger:
    """A table (2, room) of numbers that ascend and of the keys of leaves, of which a part is used.

    What is not used may be written to by one who appends, so that most of what comes later costs nothing:
    `written` says how far the table is, for all who share it.
    """

    table: np.ndarray
    start: int
    stop: int
    written: list[int] = field(default_factory=lambda: [0])

    @classmethod
    def of(cls, numbers: np.ndarray, keys: np.ndarray) -> "Ledger":
        """With some room."""
        n = len(numbers)
        table = np.empty((2, n + n // 8 + 64), np.int64)
        table[:, :n] = numbers, keys
        return cls(table, 0, n, [n])

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def numbers(self) -> np.ndarray:
        """Ascending."""
        return self.table[0, self.start : self.stop]

    @property
    def keys(self) -> np.ndarray:
        return self.table[1, self.start : self.stop]

    def append(self, numbers: np.ndarray, keys: np.ndarray) -> "Ledger":
        """With more, whose numbers are larger."""
        stop = self.stop + len(numbers)
        if self.written[0] != self.stop or stop > self.table.shape[1]:  # others have written there
            both = np.append(self.numbers, numbers), np.append(self.keys, keys)
            return Ledger.of(*both)
        self.table[:, self.stop : stop] = numbers, keys
        self.written[0] = stop
        return Ledger(self.table, self.start, stop, self.written)

    def without(self, positions: np.ndarray) -> "Ledger":
        """Without those at some positions, ascending."""
        if len(positions) and positions[-1] == len(positions) - 1:  # the oldest
            return Ledger(self.table, self.start + len(positions), self.stop, self.written)
        return Ledger.of(np.delete(self.numbers, positions), np.delete(self.keys, positions))

    def move(self, moved: dict[int, np.ndarray]) -> "Ledger":
        """With the numbers that have moved to other leaves, by the leaves' keys."""
        made = Ledger.of(self.numbers, self.keys)
        for key, numbers in moved.items():
            made.keys[np.searchsorted(made.numbers, numbers)] = key
        return made
