"""How experiments run: point by point, into a CSV file, from which a figure is drawn."""

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hck.backend.files import replacing
from hck.backend.progress import track

Record = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """What an experiment is run with.

    Attributes
    ----------
    folder : Path
        Where the CSV file and the figure go.
    device : str
        Where to compute, as estimators take it.
    quick : bool
        Whether a small part is enough, to see that everything works: about a minute on two cores.
    data : tuple of str
        The data sets, where an experiment is for several; none for all that are at hand.
    """

    folder: Path
    device: str = "cpu"
    quick: bool = False
    data: tuple[str, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """One of the paper's figures or tables, or one beyond it.

    Attributes
    ----------
    name : str
        By which it is called, and the name of its files.
    title : str
        What it shows.
    plan : callable
        Options ↦ the points to measure: settings by name, all of them text or numbers.
    measure : callable
        (settings, options) ↦ records, whose values are text or numbers; the settings are added to each.
    draw : callable
        (a pandas frame of all records, options) ↦ a matplotlib figure.
    columns : tuple of str
        Of the records, beside those of the settings.
    """

    name: str
    title: str
    plan: Callable[[Options], list[Record]]
    measure: Callable[[Record, Options], list[Record]]
    draw: Callable[[Any, Options], Any]
    columns: tuple[str, ...] = field(default=())

    def path(self, options: Options) -> Path:
        """The CSV file."""
        return options.folder / f"{self.name}{'-quick' if options.quick else ''}.csv"

    def run(self, options: Options, show: bool = True) -> Path:
        """Measure what has not been measured yet, and draw the figure.

        Each point is written when it is done, so that a run that was stopped goes on from there.

        Returns
        -------
        Path
            Of the figure.
        """
        points = self.plan(options)
        if not points:
            raise ValueError(f"{self.name}: none of its data sets is at hand")
        path, known = self.path(options), [*points[0]]
        done = _finished(path, known)
        todo = [point for point in points if _key(point, known) not in done]
        path.parent.mkdir(parents=True, exist_ok=True)
        heading = [*known, *self.columns]
        if not path.exists():
            _append(path, [heading])
        for point in track(todo, f"{self.name}, {len(todo)} of {len(points)}", show):
            found = self.measure(point, options)
            _append(path, [[(point | record)[name] for name in heading] for record in found])
        return self.picture(options)

    def picture(self, options: Options) -> Path:
        """Draw the figure from what has been measured."""
        import matplotlib
        import pandas as pd

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        path = self.path(options)
        figure = self.draw(pd.read_csv(path), options)
        target = path.with_suffix(".png")
        with replacing(target) as draft:
            figure.savefig(draft, format="png", dpi=130, bbox_inches="tight")
        plt.close(figure)
        return target


def _key(point: Record, names: Sequence[str]) -> str:
    return json.dumps([str(point[name]) for name in names])


def _finished(path: Path, names: Sequence[str]) -> set[str]:
    """The points of a CSV file."""
    if not path.exists():
        return set()
    with path.open(newline="") as file:
        return {_key(row, names) for row in csv.DictReader(file)}


def _append(path: Path, rows: list[list[Any]]) -> None:
    """Add the records of a point: all of them or, if it is interrupted, none."""
    with replacing(path) as draft:
        draft.write_text(path.read_text() if path.exists() else "")
        with draft.open("a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
