"""Figure 7: more points, or a larger rank? With the exact kernel's curve."""

from dataclasses import replace
from typing import Any

import numpy as np

from hck.approximations import Iterative
from hck.backend.kinds import kind_of
from hck.experiments._models import at_hand, dataset, make, timed, trained
from hck.experiments._run import Drawn, Experiment, Frame, Options, Record, band, panels, repeated

DATA = ("covtype.binary", "flights3m")
SETTINGS = {"covtype.binary": (0.1, 0.01), "flights3m": (0.1, 1.0)}  # lengthscale and alpha
RANKS = (56, 113, 226, 453, 907)


def plan(options: Options) -> list[Record]:
    found = []
    for name in at_hand(DATA, options.data):
        n = len(dataset(name, options.quick).y_train)
        sizes = [n >> j for j in range(7) if n >> j >= (200 if options.quick else 1000)]
        ranks = RANKS[:2] if options.quick else RANKS
        found += [{"data": name, "rank": r, "n": size} for r in ranks for size in sizes if size > 4 * r]
        most = kind_of(options.device).largest_matrix
        found += [{"data": name, "rank": 0, "n": size} for size in sizes if size <= most]
    # The exact kernel has nothing random.
    return [point for point in repeated(found, options) if point["rank"] or point["seed"] == 0]


def measure(point: Record, options: Options) -> list[Record]:
    """The error with the first n training points; rank 0 stands for the exact kernel."""
    data = dataset(point["data"], options.quick)
    data = replace(data, X_train=data.X_train[: point["n"]], y_train=data.y_train[: point["n"]])
    scale, alpha = SETTINGS[point["data"]]
    given: dict[str, Any] = {"kernel": "gaussian", "lengthscale": scale, "alpha": alpha}
    given["random_state"] = point["seed"]
    run = timed if point["rank"] else trained  # the exact kernel takes minutes
    if point["rank"]:
        model = make(data, "hierarchical", point["rank"], **given)
    elif point["n"] <= 30_000:
        model = make(data, "exact", 64, **given)
    else:
        model = make(data, "hierarchical", 226, leaf_size=8 * 226, **given)
        model.set_params(approximation=Iterative())
    found = run(model, data, options.device)
    residuals = model.residuals_[0] if model.residuals_ else []
    return [found | {"measure": data.measure, "iterations": len(residuals)}]


def draw(table: Frame) -> Drawn:
    import matplotlib

    names = list(dict.fromkeys(table["data"]))
    figure, axes = panels(1, len(names), (5, 4))
    for ax, name in zip(axes[0], names, strict=True):
        here = table[table["data"] == name]
        ranks = sorted(set(here["rank"]) - {0})
        shades = matplotlib.colormaps["viridis"](np.linspace(0.85, 0.1, len(ranks)))
        for rank, shade in zip(ranks, shades, strict=True):
            band(ax, here[here["rank"] == rank], "error", "n", color=shade, label=f"r = {rank}")
        band(ax, here[here["rank"] == 0], "error", "n", color="black", mfc="none", ms=6, label="exact kernel")
        ax.set(xscale="log", xlabel="training points", ylabel=here["measure"].iloc[0], title=name)
        ax.legend(fontsize=7)
    return figure


EXPERIMENT = Experiment(
    "fig7",
    "error against the number of training points for several ranks, and with the exact kernel",
    plan,
    measure,
    draw,
    ("measure", "error", "seconds", "peak_bytes", "iterations"),
)
