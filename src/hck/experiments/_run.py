"""How experiments run: point by point, into a CSV file, from which a figure is drawn; and its look."""

import csv
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from hck.backend.files import replacing
from hck.backend.progress import track
from hck.plotting.style import PALETTE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

Record = dict[str, Any]
Frame: TypeAlias = "pd.DataFrame"
Drawn: TypeAlias = "Figure"


@dataclass(frozen=True)
class Options:
    """What an experiment is run with.

    Attributes
    ----------
    folder : Path
        Where the CSV file and the figure go.
    device : str
        Where to compute, as estimators take it. What another measured stays in the CSV file.
    quick : bool
        Whether a small part is enough, to see that everything works: about a minute on two cores.
    data : tuple of str
        The data sets, where an experiment is for several; none for all that are at hand.

    Examples
    --------
    >>> from pathlib import Path
    >>> from hck.experiments import Options
    >>> Options(Path("results"), quick=True).device
    'cpu'
    """

    folder: Path
    device: str = "cpu"
    quick: bool = False
    data: tuple[str, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """One of the paper's figures or tables, or one beyond it.

    Its files have its name. `plan` tells the points to measure, each as settings; `measure` makes records of
    a point, to which the settings are added; all values are text or numbers. `draw` makes a figure of all
    records.

    Examples
    --------
    >>> from pathlib import Path
    >>> from hck.experiments import EXPERIMENTS, Options
    >>> EXPERIMENTS["fig3"].path(Options(Path("results"), quick=True)).name
    'fig3-quick.csv'
    """

    name: str
    title: str
    plan: Callable[[Options], list[Record]]
    measure: Callable[[Record, Options], list[Record]]
    draw: Callable[[Frame], Drawn]
    columns: tuple[str, ...] = ()  # of the records, beside those of the settings

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
        heading = [*known, *self.columns]
        _check_heading(path, heading)
        done = {_key(row, known) for row in self.rows(options)}
        todo = [point for point in points if _key(point, known) not in done]
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _append(path, [heading])
        for point in track(todo, f"{self.name}, {len(todo)} of {len(points)}", show):
            found = self.measure(point, options)
            _append(path, [[(point | record)[name] for name in heading] for record in found])
        return self.picture(options)

    def rows(self, options: Options) -> list[dict[str, str]]:
        """What has been measured, as it stands in the CSV file: text by the names of columns."""
        path = self.path(options)
        if not path.exists():
            return []
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def picture(self, options: Options) -> Path:
        """Draw the figure from what has been measured."""
        import matplotlib
        import pandas as pd

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        path = self.path(options)
        figure = self.draw(pd.read_csv(path))
        target = path.with_suffix(".png")
        with replacing(target) as draft:
            figure.savefig(draft, format="png", dpi=130, bbox_inches="tight")
        plt.close(figure)
        return target


def seeds(options: Options) -> range:
    """With which each point is measured: what is random is a partition, landmarks, or features."""
    return range(2 if options.quick else 5)


def repeated(points: Iterable[Record], options: Options) -> list[Record]:
    """Each point of a plan with each seed, on the device at hand: its times stand beside those of others."""
    return [point | {"seed": seed, "device": options.device} for point in points for seed in seeds(options)]


def _key(point: Record, names: Sequence[str]) -> str:
    return json.dumps([str(point[name]) for name in names])


def _check_heading(path: Path, expected: Sequence[str]) -> None:
    """Refuse a file with other columns, as one of an earlier version: lines cannot be added to it."""
    if not path.exists():
        return
    with path.open(newline="", encoding="utf-8") as file:
        found = next(csv.reader(file), [])
    if found != expected:
        raise ValueError(
            f"{path} has the columns {','.join(found)}, but this version writes {','.join(expected)}; "
            "move it away, or give it these columns"
        )


def _append(path: Path, rows: Iterable[Sequence[object]]) -> None:
    """Add the records of a point: all of them or, if it is interrupted, none."""
    with replacing(path) as draft:
        draft.write_text(path.read_text(encoding="utf-8") if path.exists() else "", encoding="utf-8")
        with draft.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


# Figures ---------------------------------------------------------------------------------------------

# Of each method: what it is called, and its colour.
LOOKS = {
    "nystrom": ("Nyström", PALETTE[0]),
    "fourier": ("Fourier", PALETTE[4]),
    "independent": ("independent", PALETTE[2]),
    "hierarchical": ("hierarchical", PALETTE[1]),
    "exact": ("exact", "black"),
    "forest": ("forest of 8", PALETTE[3]),
    "forest, learned": ("forest of 8, learned lengthscales", PALETTE[5]),
}


def look(method: str) -> dict[str, str]:
    """Label and colour, as matplotlib takes them."""
    label, colour = LOOKS[method]
    return {"label": label, "color": colour}


def band(ax: "Axes", table: Frame, y: str, by: str, x: str = "", **style: Any) -> None:
    """A line through means over all runs, with what lies between the least and the greatest.

    There is a point for each value of the column `by`, at the mean of the column `x` (without one, at that
    value).
    """
    place = table.groupby(by)[x or by].mean()
    found = table.groupby(by)[y].agg(["mean", "min", "max"])
    (line,) = ax.plot(place, found["mean"], "o-", **{"ms": 3} | style)
    if x:  # not always in order
        ax.vlines(place, found["min"], found["max"], color=line.get_color(), lw=1)
    else:
        ax.fill_between(place, found["min"], found["max"], color=line.get_color(), alpha=0.25, lw=0)


def panels(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Drawn, np.ndarray]:
    """A figure, and its axes (rows, columns), each of a size in inches and with a grid."""
    import matplotlib.pyplot as plt

    options |= {"figsize": (columns * size[0], rows * size[1]), "layout": "constrained"}
    figure, axes = plt.subplots(rows, columns, squeeze=False, **options)
    for ax in axes.flat:
        ax.grid(alpha=0.3)
    return figure, axes


def few_ticks(axis: "Axis") -> None:
    """1, 2 and 5 times powers of ten on a logarithmic axis, as plain numbers."""
    from matplotlib.ticker import LogLocator

    axis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=6))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("")
