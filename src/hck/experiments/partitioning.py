"""Figure 4 and Table 2: cuts by random projections against cuts across principal axes."""

import time

from hck.backend.kinds import kind_of
from hck.experiments._models import at_hand, dataset, halvings, make, timed
from hck.experiments._run import Drawn, Experiment, Frame, Options, Record, panels
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
    return found


def measure_overhead(point: Record, options: Options) -> list[Record]:
    """The time of both partitions, and of training with the first."""
    data, rank = dataset(point["data"], options.quick), point["rank"]
    points = as_points(data.X_train, device=options.device)
    cuts = {way: min(_cut(way, points, rank) for _ in range(3)) for way in WAYS}
    model = make(data, "hierarchical", rank, kernel="gaussian", lengthscale=1.0, alpha=0.1)
    training = timed(model, data, options.device)["seconds"]
    more = cuts["pca"] - cuts["random_projection"]
    shares = {"of_partition": more / cuts["random_projection"], "of_training": more / training}
    seconds = {f"{way.split('_')[0]}_seconds": cuts[way] for way in WAYS}
    return [seconds | {"training_seconds": training} | shares]


def _cut(way: str, points: Points, rank: int) -> float:
    start = time.perf_counter()
    make_tree(way, points, Gaussian(1.0), rank)
    kind_of(points.device).machine().synchronize()
    return time.perf_counter() - start


def draw_overhead(table: Frame) -> Drawn:
    """The table as bars: one panel for each share."""
    figure, axes = panels(1, 2, (5, 3.6))
    names = list(dict.fromkeys(table["data"]))
    for ax, of in zip(axes[0], ("partition", "training"), strict=True):
        for i, name in enumerate(names):
            some = table[table["data"] == name].sort_values("rank")
            width = 0.8 / len(some)
            for j, (_, row) in enumerate(some.iterrows()):
                x, height = i - 0.4 + (j + 0.5) * width, 100 * max(row[f"of_{of}"], 0.0)
                ax.bar(x, height, width * 0.9, color=BLUE)
                ax.text(x, height, f"{row['rank']:.0f}", ha="center", va="bottom", fontsize=6)
        ax.set_xticks(range(len(names)), names, rotation=20)
        ax.set(ylabel=f"% of {of}", title=f"principal axes: overhead against {of}")
        ax.grid(visible=False, axis="x")
    return figure


TABLE = Experiment(
    "table2",
    "the overhead of principal axes, against the partition and against training",
    plan_overhead,
    measure_overhead,
    draw_overhead,
    ("random_seconds", "pca_seconds", "training_seconds", "of_partition", "of_training"),
)
