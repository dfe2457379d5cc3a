"""A table: features, and a target if there is one."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Features: TypeAlias = Any  # an ndarray, a CSR matrix or a pandas frame of shape (n, d)


@dataclass(frozen=True, eq=False)
class Table:
    """Features of records, and a target if there is one.

    Attributes
    ----------
    X : ndarray, CSR matrix or pandas.DataFrame of shape (n, d)
    y : ndarray of shape (n,) or None
    feature_names : list of str or None
    target_name : str or None

    Examples
    --------
    >>> import pandas as pd
    >>> from hck.datasets import Table
    >>> table = Table(pd.DataFrame({"rooms": [2, 3], "price": [1.0, 1.4]})).with_target("price")
    >>> table.feature_names, table.y
    (['rooms'], array([1. , 1.4]))
    """

    X: Features
    y: np.ndarray | None = None
    feature_names: list[str] | None = None
    target_name: str | None = None

    def with_target(self, target: str | int, source: str = "the table", needed: bool = True) -> "Table":
        """The same records, with one of the columns of a frame as the target.

        Parameters
        ----------
        target : str or int
            The column, by name or position.
        source : str
            What the table is called if it does not have this column, or if its values are missing.
        needed : bool
            Whether missing values are refused.
        """
        names = list(self.X.columns)
        if target in names:
            where = names.index(target)
        elif isinstance(target, int) and -len(names) <= target < len(names):
            where = target % len(names)
        else:
            raise ValueError(f"{source} has no column {target!r}; it has {listed(names)}")
        column, rest = self.X.iloc[:, where], self.X.drop(columns=names[where])
        if needed:
            refuse_missing(column.isna().to_numpy(), f"the target {column.name!r}", source)
        return Table(rest, np.asarray(column), [str(name) for name in rest.columns], str(column.name))


def listed(names: Iterable[object], most: int = 20) -> str:
    """Names of columns, as many as a line takes."""
    shown = [repr(name) for name in names]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more


def refuse_missing(missing: np.ndarray, target: str, source: str) -> None:
    """Nothing can be learned from records whose targets are `missing`, (n,); `source` is what has them."""
    refuse_records(missing, f"{target} is missing", source, "leave these records out")


def refuse_records(bad: np.ndarray, what: str, source: str, remedy: str) -> None:
    """Raise ValueError if some records are `bad`, (n,)."""
    if bad.any():
        raise ValueError(
            f"{source}: {what} in {bad.sum():,} of {len(bad):,} records, the first of them record "
            f"{np.argmax(bad) + 1:,}: {remedy}"
        )
