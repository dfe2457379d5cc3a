"""Flights: dates and times as numbers, airports as places."""

from pathlib import Path

import numpy as np

from hck.datasets._registry import REGISTRY
from hck.datasets.npz import opened
from hck.datasets.table import Table

_DAYS_BEFORE = np.cumsum([0, 31, 28, 31, 30, 31])  # each month from January to June
_MINUTES = 24 * 60


def with_coordinates(path: Path) -> Table:
    """Features of flights, ordered by time, and their delays in minutes.

    The features: the day of the year, the minute of the day as a point on a circle, the distance, and the
    latitudes and longitudes of origin and destination.
    """
    with opened(path) as arrays:
        if not {"X", "y", "airport_latlon"} <= set(arrays):
            raise ValueError(
                f"{path.name} must hold {REGISTRY['flights3m'].arrays}; it has {', '.join(arrays)}"
            )
        flights, places, delay = arrays["X"], arrays["airport_latlon"].astype(float), arrays["y"]
    month, day, minute, distance, origin, destination = flights.T.astype(int)
    angle = 2 * np.pi * minute / _MINUTES
    columns = [_DAYS_BEFORE[month - 1] + day, np.sin(angle), np.cos(angle), distance]
    return Table(np.column_stack([*columns, places[origin], places[destination]]), delay.astype(float))
