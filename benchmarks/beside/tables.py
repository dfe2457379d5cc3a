"""Tables of results in Markdown: errors, mean ranks, seconds."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from beside.methods import METHODS
from beside.problems import CLASSES, REGRESSION
from beside.runs import Record

Cell = list[Record]  # the runs of a method on a data set, one for each seed


def tables(records: Iterable[Record], data: Sequence[str], methods: Sequence[str]) -> str:
    """All tables for the data sets and methods that there are results of."""
    cells = by_cell(r for r in records if r["data"] in data and r["method"] in methods)
    shown = [m for m in METHODS if any(method == m for _, method in cells)]
    parts = []
    for title, names, column, best in (
        ("Regression: RMSE", REGRESSION, "rmse", np.nanmin),
        ("Classification: accuracy", CLASSES, "accuracy", np.nanmax),
        ("Classification: log-loss", CLASSES, "log_loss", np.nanmin),
    ):
        rows = [name for name in names if any((name, method) in cells for method in shown)]
        if rows:
            parts.append(scores(title, rows, shown, cells, column, best))
    rows = [name for name in (*REGRESSION, *CLASSES) if any((name, method) in cells for method in shown)]
    seconds = {name: [mean(cells, name, method, "fit_seconds") for method in shown] for name in rows}
    texts = {name: [f"{s:.3g}" if np.isfinite(s) else "" for s in line] for name, line in seconds.items()}
    parts.append(markdown("Seconds of training", shown, texts))
    return "\n".join(parts)


def by_cell(records: Iterable[Record]) -> dict[tuple[str, str], Cell]:
    """The runs of each method on each data set: those with the most records to train on that succeeded."""
    found: dict[tuple[str, str], Cell] = defaultdict(list)
    for record in records:
        found[record["data"], record["method"]].append(record)
    for where, cell in found.items():
        most = max((record["state"] == "ok", limit(record)) for record in cell)[1]
        found[where] = [record for record in cell if limit(record) == most]
    return dict(found)


def limit(record: Record) -> float:
    return record["max_rows"] or np.inf


def scores(
    title: str,
    rows: list[str],
    shown: list[str],
    cells: dict[tuple[str, str], Cell],
    column: str,
    best: Callable[[np.ndarray], float],
) -> str:  # fmt: skip
    """A table of errors and, below it, of mean ranks."""
    lines, ranks = {}, []
    for name in rows:
        values = np.array([mean(cells, name, method, column) for method in shown])
        tried = [(name, method) in cells for method in shown]
        most = max(record.get("rows", 0) for m in shown for record in cells.get((name, m), []))
        lines[name] = []
        for value, method in zip(values, shown, strict=True):
            cell = cells.get((name, method), [])
            failed = [record["state"] for record in cell if record["state"] != "ok"]
            text = figure(value) if np.isfinite(value) else "".join(failed[:1])
            text = f"**{text}**" if np.isfinite(value) and value == best(values) else text
            fewer = np.isfinite(value) and cell[0]["rows"] < most
            lines[name].append(text + ("\\*" if fewer else ""))
        if all(tried):
            ranks.append(ranked(values if best is np.nanmin else -values))
    if ranks:
        lines[f"mean rank on {len(ranks)}"] = [f"{rank:.2f}" for rank in np.mean(ranks, axis=0)]
    return markdown(title, shown, lines)


def figure(value: float) -> str:
    """Four digits, or all before the point."""
    return f"{value:,.0f}" if value >= 10_000 else f"{value:.4g}"


def mean(cells: dict[tuple[str, str], Cell], name: str, method: str, column: str) -> float:
    """Over the seeds; NaN if one of them failed."""
    cell = cells.get((name, method), [])
    return float(np.mean([record.get(column, np.nan) for record in cell])) if cell else np.nan


def ranked(values: np.ndarray) -> np.ndarray:
    """Ranks from 1; ties share the mean of theirs, and what failed, NaN, is last."""
    values = np.where(np.isnan(values), np.inf, values)
    return np.array([1 + (values < v).sum() + ((values == v).sum() - 1) / 2 for v in values])


def markdown(title: str, heads: list[str], rows: dict[str, list[str]]) -> str:
    lines = [f"| {title} | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    lines += [f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items()]
    return "\n".join(lines) + "\n"
