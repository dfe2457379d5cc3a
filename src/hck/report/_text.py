"""Numbers and tables as the page shows them."""

import math
from dataclasses import dataclass, field
from typing import SupportsFloat


@dataclass(frozen=True)
class PageTable:
    """A table of the page; the first cell of a row names it, and a folded table is shown when asked for."""

    caption: str
    head: list[str]
    rows: list[list[str]]
    folded: bool = False


@dataclass(frozen=True)
class Section:
    """Sentences and tables under a heading."""

    heading: str
    sentences: list[str] = field(default_factory=list)
    tables: list[PageTable] = field(default_factory=list)


def number(value: SupportsFloat) -> str:
    """A number with four digits, or all of them if it is a whole one.

    Examples
    --------
    >>> number(20640), number(0.0123456), number(-1234.5), number(1.5e-9), number(float("nan"))
    ('20,640', '0.01235', '-1,234', '1.500e-09', '–')
    """
    if isinstance(value, int):
        return f"{value:,}"
    value = float(value)
    if not math.isfinite(value):
        return "–" if math.isnan(value) else str(value)
    size = math.floor(math.log10(abs(value))) if value else 0
    return f"{value:,.{max(0, 3 - size)}f}" if -5 < size < 7 else f"{value:.3e}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """A number and what it is of.

    Examples
    --------
    >>> plural(1, "tree"), plural(2000, "tree"), plural(2, "leaf", "leaves")
    ('1 tree', '2,000 trees', '2 leaves')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"
