"""Columns that are places or come back, as options of `hck fit` name them and as models remember them."""

import math
from typing import Any

from hck.cli._common import names_in
from hck.datasets import Table
from hck.datasets.table import Features

SPHERE, CIRCLE = "sphere", "circle"
Note = list[Any]  # ["sphere", latitude, longitude] or ["circle", column, period], as JSON has them


def notes_of(spheres: list[str] | None, circles: list[str] | None) -> list[Note]:
    """From texts such as "lat,lon" and "hour=24"."""
    found: list[Note] = []
    for text in spheres or []:
        names = names_in(text)
        if len(names) != 2:
            raise ValueError(f"--sphere {text!r} must name two columns, latitude and longitude: lat,lon")
        found.append([SPHERE, *names])
    for text in circles or []:
        name, _, period = text.rpartition("=")
        try:
            length = float(period)
        except ValueError:
            length = math.nan
        if not name or not 0 < length < math.inf:
            raise ValueError(f"--circle {text!r} must name a column and its period: hour=24")
        found.append([CIRCLE, name, length])
    return found


def placed(X: Features, notes: list[Note], source: str) -> Features:
    """The table with coordinates in the place of columns; columns of arrays go by their numbers, from 0."""
    if not notes:
        return X
    from hck.kernels.features import Circle, Sphere

    named = hasattr(X, "columns")
    for kind, *given in notes:
        columns = [_column(each, named) for each in (given if kind == SPHERE else given[:1])]
        made = Sphere(*columns) if kind == SPHERE else Circle(*columns, period=given[1])
        try:
            X = made.fit_transform(X)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{source}: --{kind}: {error}") from None
    return X


def placed_table(table: Table, notes: list[Note], source: str) -> Table:
    """The same for the features of a table."""
    if not notes:
        return table
    X = placed(table.X, notes, source)
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    return Table(X, table.y, names, table.target_name)


def _column(name: str, named: bool) -> str | int:
    return int(name) if not named and name.isdecimal() else name
