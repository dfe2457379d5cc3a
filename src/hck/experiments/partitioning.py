"""Figure 4 and Table 2: cuts by random projections against cuts across principal axes."""

from functools import partial
from typing import Any

import numpy as np

from hck.experiments._models import at_hand, dataset, duration, halvings, make, timed
from hck.experiments._run import Drawn, Experiment, Frame, Options, Record, panels, repeated
from hck.experiments.randomness import bands, curve, sweep
from hck.kernels import Gaussian
from hck.partition import make_tree
from hck.plotting.style import BLUE, RED
from hck.points import Points, as_points

WAYS = {"random_projection": ("random projections", RED), "pca": ("principal axes", BLUE)}
DATA = ("cadata", "ijcnn1", "covtype.binary", "mnist", "YearPredictionMSD", "SUSY", "acoustic")


def measure(point: Record, options: Options) -> list[Record]:
    return curve(options, point["rank"], point["seed"], "hierarchical", partition=point["partition"])


FIGURE = Experiment(
    "fig4",
    "cadata: error against lengthscale, with cuts by random projections and across principal axes",
    sweep(tuple(WAYS), "partition"),
    measure,
    lambda table: bands(table, "partition", WAYS),
    ("lengthscale", "error"),
)


def plan_overhead(options: Options) -> list[Record]:
    found = []
    for name in at_hand(DATA, options.data):
        n = len(dataset(name, options.quick).y_train)
        ranks = halvings(n, 30, 1100)[-5:]
        found += [{"data": name, "rank": rank} for rank in (ranks[:2] if options.quick else ranks)]
    return repeated(found, options)


def measure_overhead(point: Record, options: Options) -> list[Record]:
    """The time of both partitions, and of training with the first."""
    data, rank = dataset(point["data"], options.quick), point["rank"]
    points = as_points(data.X_train, device=options.device)
    cuts = {way: min(_cut(way, points, point) for _ in range(3)) for way in WAYS}
    given: dict[str, Any] = {"lengthscale": 1.0, "alpha": 0.1, "random_state": point["seed"]}
    model = make(data, "hierarchical", rank, kernel="gaussian", **given)
    training = timed(model, data, options.device)["seconds"]
    more = cuts["pca"] - cuts["random_projection"]
    shares = {"of_partition": more / cuts["random_projection"], "of_training": more / training}
    seconds = {f"{way.split('_')[0]}_seconds": cuts[way] for way in WAYS}
    return [seconds | {"training_seconds": training} | shares]


def _cut(way: str, points: Points, point: Record) -> float:
    work = partial(make_tree, way, points, Gaussian(1.0), point["rank"], generator=point["seed"])
    return duration(work, point["device"])


def draw_overhead(table: Frame) -> Drawn:
    """The table as bars: a row for each device, a panel for each share; means over seeds, and ranges."""
    devices, names = list(dict.fromkeys(table["device"])), list(dict.fromkeys(table["data"]))
    figure, axes = panels(len(devices), 2, (5, 3.6))
    for row, device in zip(axes, devices, strict=True):
        for ax, of in zip(row, ("partition", "training"), strict=True):
            for i, name in enumerate(names):
                some = table[(table["data"] == name) & (table["device"] == device)]
                found = 100 * some.groupby("rank")[f"of_{of}"].agg(["mean", "min", "max"]).clip(lower=0)
                width = 0.8 / max(1, len(found))
                x = i - 0.4 + (np.arange(len(found)) + 0.5) * width
                ax.bar(x, found["mean"], width * 0.9, color=BLUE)
                ax.vlines(x, found["min"], found["max"], color="black", lw=1)
                for each, rank, height in zip(x, found.index, found["max"], strict=True):
                    ax.text(each, height, f" {rank}", ha="center", va="bottom", fontsize=6, rotation=90)
            ax.set_xticks(range(len(names)), names, rotation=20)
            ax.set(ylabel=f"% of {of}", title=f"principal axes: overhead against {of}, {device}")
            ax.grid(visible=False, axis="x")
            ax.margins(y=0.1)
    return figure


TABLE = Experiment(
    "table2",
    "the overhead of principal axes, against the partition and against training",
    plan_overhead,
    measure_overhead,
    draw_overhead,
    ("random_seconds", "pca_seconds", "training_seconds", "of_partition", "of_training"),
)
