"""Error against rank, time or memory."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from hck.metrics import as_numbers
from hck.plotting.style import MARKERS, PALETTE, Axes, panel, plain, suit_scale

if TYPE_CHECKING:
    import pandas as pd

    Runs: TypeAlias = pd.DataFrame | Mapping[str, Sequence[object]] | Sequence[Mapping[str, object]]

_LABELS = {"rank": "rank r", "seconds": "time (s)", "bytes": "memory", "error": "error"}


def plot_tradeoff(
    table: "Runs",
    x: str = "rank",
    y: str = "error",
    by: str | None = "method",
    *,
    runs: str = "rank",
    ax: "Axes | None" = None,
) -> Axes:
    """Draw what an error costs: a line for each method.

    Parameters
    ----------
    table : pandas.DataFrame, dict of columns or list of dicts
        A row for each run. Rows without a number in `x` or `y` are left out.
    x : str, default="rank"
        A column of numbers, such as "rank", "seconds" or "bytes".
    y : str, default="error"
        Another.
    by : str or None, default="method"
        The column that names the lines; None for one line.
    runs : str, default="rank"
        A column: runs of one line that share a value in it are one point of the line, at their medians. Where
        the table has no such column, those that share `x`.
    ax : Axes, default=None

    Returns
    -------
    Axes

    Examples
    --------
    >>> runs = {"rank": [8, 16, 8], "error": [0.2, 0.1, 0.3], "method": ["tree", "tree", "nystrom"]}
    >>> ax = plot_tradeoff(runs)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['tree', 'nystrom']
    """
    across, up, groups, point = _columns(table, x, y, by, runs)
    names = list(dict.fromkeys(groups.tolist()))
    with panel(ax) as ax:
        for k, name in enumerate(names):
            mine = groups == name
            line = _medians(across[mine], up[mine], point[mine])
            looks: dict[str, Any] = {"color": PALETTE[k % len(PALETTE)], "marker": MARKERS[k % len(MARKERS)]}
            ax.plot(*line, linestyle="-" if k < len(PALETTE) else "--", label=plain(name), **looks)
            if mine.sum() > len(line[0]):
                ax.scatter(across[mine], up[mine], s=12, alpha=0.5, linewidths=0, **looks)
        _scale(ax, x, across, "x")
        _scale(ax, y, up, "y")
        ax.set(xlabel=_LABELS.get(x, plain(x)), ylabel=_LABELS.get(y, plain(y)))
        if by is not None:
            beside = len(names) > 6
            where: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)} if beside else {}
            ax.legend(title=plain(by), **where)
    return ax


def _columns(table: "Runs", x: str, y: str, by: str | None, runs: str) -> tuple[np.ndarray, ...]:
    """Two columns of numbers, the lines and their points, without rows where a number is missing."""
    if isinstance(table, Sequence):
        table = {name: [row.get(name) for row in table] for name in {n for row in table for n in row}}
    known = list(table.keys())
    for name in (x, y, by):
        if name is not None and name not in known:
            raise ValueError(f"the table has no column {name!r}; it has: {', '.join(map(str, known))}")
    try:
        across, up = (as_numbers(name, list(table[name])) for name in (x, y))
    except (TypeError, ValueError):
        raise ValueError(f"the columns {x!r} and {y!r} must be numbers") from None
    groups = np.array([""] * len(across) if by is None else [str(each) for each in table[by]], dtype=object)
    point = np.array([str(each) for each in table[runs if runs in known else x]], dtype=object)
    kept = np.isfinite(across) & np.isfinite(up)
    if not kept.any():
        raise ValueError(f"no row of the table has a number in {x!r} and {y!r}")
    return across[kept], up[kept], groups[kept], point[kept]


def _medians(x: np.ndarray, y: np.ndarray, point: np.ndarray) -> np.ndarray:
    """x and y of each point of a line, from left to right: shape (2, points)."""
    found = [(np.median(x[point == each]), np.median(y[point == each])) for each in set(point.tolist())]
    return np.array(sorted(found)).T


def _scale(ax: Axes, column: str, values: np.ndarray, name: str) -> None:
    """Logarithmic where numbers are of several sizes; with the ranks themselves beside it."""
    from matplotlib.ticker import EngFormatter, FixedLocator, NullLocator

    axis = ax.xaxis if name == "x" else ax.yaxis
    suit_scale(ax, name, values)
    if column == "bytes":
        axis.set_major_formatter(EngFormatter("B"))
    elif column == "rank" and len(np.unique(values)) <= 10:
        axis.set_major_locator(FixedLocator(np.unique(values).tolist()))
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_locator(NullLocator())
