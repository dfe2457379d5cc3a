"""Figure 8: how close kernel PCA with an approximate kernel is to that with the exact one."""

from typing import Any

import numpy as np

from hck import HCKKernelPCA
from hck.experiments._models import METHODS, at_hand, dataset
from hck.experiments._run import (
    Drawn,
    Experiment,
    Frame,
    Options,
    Record,
    band,
    few_ticks,
    look,
    panels,
    seeds,
)
from hck.metrics import alignment_difference

DATA = ("cadata", "ijcnn1")
SETTINGS = {"cadata": 0.2, "ijcnn1": 0.5}  # lengthscales
RANKS = (32, 64, 128, 256, 512)

_exact: dict[tuple[str, bool], np.ndarray] = {}


def plan(options: Options) -> list[Record]:
    ranks = (32, 128) if options.quick else RANKS
    return [
        {"data": name, "method": method, "rank": rank, "seed": seed}
        for name in at_hand(DATA, options.data)
        for method in METHODS
        for rank in ranks
        for seed in seeds(options)
    ]


def measure(point: Record, options: Options) -> list[Record]:
    name = point["data"]
    X = dataset(name, options.quick).X_train
    given: dict[str, Any] = {"n_components": 3, "lengthscale": SETTINGS[name], "device": options.device}
    if (name, options.quick) not in _exact:
        model = HCKKernelPCA(approximation="exact", rank=64, random_state=0, **given)
        _exact[name, options.quick] = model.fit_transform(X)
    model = HCKKernelPCA(
        approximation=point["method"], rank=point["rank"], random_state=point["seed"], **given
    )  # fmt: skip
    return [{"difference": alignment_difference(_exact[name, options.quick], model.fit_transform(X))}]


def draw(table: Frame) -> Drawn:
    names = list(dict.fromkeys(table["data"]))
    figure, axes = panels(1, len(names), (5, 4))
    for ax, name in zip(axes[0], names, strict=True):
        for method in METHODS:
            some = table[(table["data"] == name) & (table["method"] == method)]
            band(ax, some, "difference", "rank", **look(method))
        ax.set(xscale="log", yscale="log", xlabel="r", ylabel="alignment difference", title=name)
        few_ticks(ax.xaxis)
        ax.legend(fontsize=7)
    return figure


EXPERIMENT = Experiment(
    "fig8",
    "kernel PCA: alignment difference between approximate and exact embeddings in three dimensions",
    plan,
    measure,
    draw,
    ("difference",),
)
