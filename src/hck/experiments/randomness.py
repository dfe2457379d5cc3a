"""Figure 3: how the error depends on the lengthscale, and how much of it is chance."""

from typing import Any

import numpy as np

from hck.experiments._models import COLOURS, LABELS, METHODS, dataset, make, trained
from hck.experiments._run import Experiment, Options, Record

RANKS, SEEDS, ALPHA = (32, 129, 516), 30, 0.01
LENGTHSCALES = np.logspace(-2, 2, 17).round(5).tolist()


def sweep(names: tuple[str, ...], key: str) -> Any:
    """The points of a figure with a curve against σ for each of some names: of each, every rank and seed."""

    def plan(options: Options) -> list[Record]:
        ranks, seeds = ((32, 129), 3) if options.quick else (RANKS, SEEDS)
        return [{key: name, "rank": r, "seed": s} for name in names for r in ranks for s in range(seeds)]

    return plan


def curve(options: Options, rank: int, seed: int, method: str, **more: Any) -> list[Record]:
    """The relative error for each lengthscale, with the same seed."""
    data = dataset("cadata", options.quick)
    scales = LENGTHSCALES[::4] if options.quick else LENGTHSCALES
    given = {"kernel": "gaussian", "alpha": ALPHA, "random_state": seed, **more}
    return [
        {
            "lengthscale": s,
            "error": trained(make(data, method, rank, lengthscale=s, **given), data, options.device)["error"],
        }
        for s in scales
    ]


def measure(point: Record, options: Options) -> list[Record]:
    return curve(options, point["rank"], point["seed"], point["method"])


def draw(table: Any, options: Options) -> Any:
    return bands(table, "method", METHODS, LABELS, COLOURS)


def bands(
    table: Any, key: str, names: tuple[str, ...], labels: dict[str, str], colours: dict[str, str]
) -> Any:
    """A panel for each name and rank: the mean over seeds, and three standard deviations."""
    import matplotlib.pyplot as plt

    ranks = sorted(table["rank"].unique())
    size = (3.4 * len(ranks), 2.5 * len(names))
    figure, axes = plt.subplots(
        len(names), len(ranks), figsize=size, sharex=True, sharey=True, squeeze=False, layout="constrained"
    )
    for i, name in enumerate(names):
        for j, rank in enumerate(ranks):
            some = table[(table[key] == name) & (table["rank"] == rank)].groupby("lengthscale")["error"]
            mean, spread, ax = some.mean(), 3 * some.std().fillna(0), axes[i, j]
            ax.fill_between(mean.index, mean - spread, mean + spread, color=colours[name], alpha=0.3, lw=0)
            ax.plot(mean.index, mean, color=colours[name])
            ax.set(xscale="log", ylim=(0.2, 0.6))
            ax.grid(alpha=0.3)
            ax.set_title(f"{labels[name]}, r = {rank}", fontsize=9)
    for ax in axes[-1]:
        ax.set_xlabel("lengthscale σ")
    for ax in axes[:, 0]:
        ax.set_ylabel("relative error")
    return figure


EXPERIMENT = Experiment(
    "fig3",
    "cadata: error against lengthscale, mean and three standard deviations over seeds",
    sweep(METHODS, "method"),
    measure,
    draw,
    ("lengthscale", "error"),
)
