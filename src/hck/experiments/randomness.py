"""Figure 3: how the error depends on the lengthscale, and how much of it is chance."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hck.experiments._models import METHODS, dataset, make, trained
from hck.experiments._run import LOOKS, Drawn, Experiment, Frame, Options, Record, panels

RANKS, SEEDS, ALPHA = (32, 129, 516), 30, 0.01
LENGTHSCALES = np.logspace(-2, 2, 17).round(5).tolist()


def sweep(names: tuple[str, ...], key: str) -> Callable[[Options], list[Record]]:
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
    models = {scale: make(data, method, rank, lengthscale=scale, **given) for scale in scales}
    return [
        {"lengthscale": scale, "error": trained(model, data, options.device)["error"]}
        for scale, model in models.items()
    ]


def measure(point: Record, options: Options) -> list[Record]:
    return curve(options, point["rank"], point["seed"], point["method"])


def bands(table: Frame, key: str, looks: dict[str, tuple[str, str]]) -> Drawn:
    """A panel for each name and rank: the mean over seeds, and three standard deviations.

    `key` is the column of names; `looks` has for each name, in their order, what it is called and its colour.
    """
    ranks = sorted(table["rank"].unique())
    figure, axes = panels(len(looks), len(ranks), (3.4, 2.5), sharex=True, sharey=True)
    for row, (name, (label, colour)) in zip(axes, looks.items(), strict=True):
        for ax, rank in zip(row, ranks, strict=True):
            some = table[(table[key] == name) & (table["rank"] == rank)].groupby("lengthscale")["error"]
            mean, spread = some.mean(), 3 * some.std().fillna(0)
            ax.fill_between(mean.index, mean - spread, mean + spread, color=colour, alpha=0.3, lw=0)
            ax.plot(mean.index, mean, color=colour)
            ax.set(xscale="log", ylim=(0.2, 0.6))
            ax.set_title(f"{label}, r = {rank}", fontsize=9)
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
    lambda table: bands(table, "method", {method: LOOKS[method] for method in METHODS}),
    ("lengthscale", "error"),
)
