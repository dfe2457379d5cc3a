"""Dates as numbers: how long ago, and where in the year, the week and the day."""

from dataclasses import dataclass

import numpy as np

from hck.backend.checks import require
from hck.preparation.frames import Column, clock, zone_of

_DAY = 86_400e6  # microseconds
_PERIODS = {"year": 365.0, "week": 7.0, "day": 1.0}  # in days


@dataclass(frozen=True)
class Dates:
    """Days since 1970, and points on circles: parts of the year, days of the week, times of the day.

    A circle is there if the dates of training go round it, and a time of day if it is not always the same.
    Clocks are those of the time zone that training had, if it had one. NaN where a date is missing.
    """

    circles: list[str]
    zone: str | None

    def validate(self) -> None:
        require({*self.circles} <= {*_PERIODS}, f"circles must be of {', '.join(_PERIODS)}")
        require(len({*self.circles}) == len(self.circles), "circles must differ")
        require(self.zone != "", "zone must be a time zone, or None")

    @classmethod
    def of(cls, column: Column, name: object) -> "Dates":
        """What suits a column."""
        zone = zone_of(column)
        when = clock(column, name, zone)
        there = when[~np.isnat(when)]
        if not len(there):
            return cls([], zone)
        span = (there.max() - there.min()).astype(np.int64) / _DAY
        varies = len(np.unique(_part(there, "day"))) > 1
        kept = [each for each, days in _PERIODS.items() if span >= days and (each != "day" or varies)]
        return cls(kept, zone)

    @property
    def width(self) -> int:
        return 1 + 2 * len(self.circles)

    @property
    def sizes(self) -> list[int]:
        """Of groups of features that share a weight: each circle."""
        return [1, *(2 for _ in self.circles)]

    def __call__(self, column: Column, name: object) -> np.ndarray:
        """Shape (rows, width)."""
        when = clock(column, name, self.zone)
        missing, safe = np.isnat(when), np.where(np.isnat(when), np.datetime64(0, "us"), when)
        found = [safe.astype(np.int64) / _DAY]
        for each in self.circles:
            angle = 2 * np.pi * _part(safe, each)
            found += [np.sin(angle), np.cos(angle)]
        return np.where(missing[:, None], np.nan, np.stack(found, 1))

    def names(self, name: object) -> list[str]:
        """Of the features."""
        parts = [f"{name}: {part} of the {each}" for each in self.circles for part in ("sine", "cosine")]
        return [f"{name}: days", *parts]


def _part(when: np.ndarray, period: str) -> np.ndarray:
    """How much of a period has passed, from 0 to 1; of a week in whole days."""
    if period == "year":
        year = when.astype("datetime64[Y]")
        start, stop = year.astype("datetime64[us]"), (year + 1).astype("datetime64[us]")
        return (when - start).astype(np.int64) / (stop - start).astype(np.int64)
    if period == "week":
        return (when.astype("datetime64[D]").astype(np.int64) + 3) % 7 / 7  # from Monday on
    return (when.astype(np.int64) % int(_DAY)) / _DAY
