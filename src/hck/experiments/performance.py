"""Figures 5 and 6, and the same with other base kernels: error against rank, training time and memory."""

from typing import Any

import numpy as np

from hck.datasets import Dataset
from hck.experiments import _models
from hck.experiments._models import METHODS, Model, at_hand, dataset, halvings, make, timed, trained
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
    repeated,
)
from hck.selection.anisotropic import MOST_LENGTHSCALES

DATA = ("cadata", "YearPredictionMSD", "ijcnn1", "covtype.binary", "SUSY", "mnist", "acoustic", "covtype")
FACTORS = tuple(2.0**k for k in range(-5, 3))  # lengthscales, times the median distance
ALPHAS = (1e-3, 1e-2, 1e-1, 1.0)


def experiment(name: str, kernel: str, methods: tuple[str, ...], title: str) -> Experiment:
    """The comparison with one base kernel."""

    def plan(options: Options) -> list[Record]:
        found = []
        for name in at_hand(DATA, options.data):
            X = dataset(name, options.quick).X_train
            ranks = halvings(X.shape[0], 30, 1100)[-5:]
            ranks = ranks[:2] if options.quick else ranks
            for method in methods:
                is_learned = method == "forest, learned"
                if not is_learned or X.shape[1] <= MOST_LENGTHSCALES:
                    some = ranks[::2] if is_learned else ranks
                    found += [{"data": name, "method": method, "rank": rank} for rank in some]
        return repeated(found, options)

    def measure(point: Record, options: Options) -> list[Record]:
        data = dataset(point["data"], options.quick)
        if point["method"] == "forest, learned":
            final = learned(data, point, kernel)
            found = trained(final, data, options.device)  # most of it is the choice
        else:
            choice = known(made.rows(options), point) or chosen(data, point, kernel, options)
            final = model(data, point, kernel, *choice)
            found = timed(final, data, options.device)
        scale = np.asarray(final.selection_.kernel.parameters()["lengthscale"], dtype=float)
        record = {"lengthscale": float(np.median(scale)), "alpha": final.selection_.alpha}
        return [record | {"measure": data.measure, "numbers_per_point": numbers(point)} | found]

    columns = ("lengthscale", "alpha", "measure", "error", "seconds", "numbers_per_point", "peak_bytes")
    made = Experiment(name, title, plan, measure, draw, columns)
    return made


def known(rows: list[dict[str, str]], point: Record) -> tuple[float, float] | None:
    """σ and λ as chosen for the same data, method and rank, with another seed or on another device."""
    for row in rows:
        if all(row[name] == str(point[name]) for name in ("data", "method", "rank")):
            return float(row["lengthscale"]), float(row["alpha"])
    return None


def chosen(data: Dataset, point: Record, kernel: str, options: Options) -> tuple[float, float]:
    """σ, then λ, by the error at held-out training points."""
    part, unit = _models.holdout(data), _models.median_distance(data.X_train)
    factors = FACTORS[::3] if options.quick else FACTORS

    def error(factor: float, alpha: float) -> float:
        return trained(model(part, point, kernel, factor * unit, alpha), part, options.device)["error"]

    factor = min(factors, key=lambda factor: error(factor, ALPHAS[1]))
    return factor * unit, min(ALPHAS, key=lambda alpha: error(factor, alpha))


def model(data: Dataset, point: Record, kernel: str, lengthscale: float, alpha: float) -> Model:
    given: dict[str, Any] = {"lengthscale": lengthscale, "alpha": alpha, "random_state": point["seed"]}
    return make(data, **shape(point), kernel=kernel, **given)


def learned(data: Dataset, point: Record, kernel: str) -> Model:
    """All chosen by `fit`, a lengthscale for each feature, by likelihood and leave-one-out loss."""
    given: dict[str, Any] = {"lengthscale": "auto", "alpha": "auto", "scale": "auto", "fit_time": "fast"}
    return make(data, **shape(point), kernel=kernel, random_state=point["seed"], **given)


def shape(point: Record) -> dict[str, Any]:
    """What is trained: of a forest, leaves as large as those of one tree, and a rank of an eighth."""
    method, rank = point["method"], point["rank"]
    if not method.startswith("forest"):
        return {"method": method, "rank": rank}
    return {"method": "hierarchical", "rank": max(4, rank // 8), "leaf_size": rank, "n_trees": 8}


def numbers(point: Record) -> float:
    """That training stores for each point, as the paper counts; trees are trained one after another."""
    given = shape(point)
    if given["method"] != "hierarchical":
        return float(given["rank"])
    rank, leaf = given["rank"], given.get("leaf_size", given["rank"])
    return float(leaf + rank + 2 * rank**2 / leaf)


def draw(table: Frame) -> Drawn:
    """A row for each data set: the error against rank, training time on each device, and memory."""
    names, devices = list(dict.fromkeys(table["data"])), list(dict.fromkeys(table["device"]))
    columns = [("r", "", devices)]
    columns += [(f"training time (s), {device}", "seconds", [device]) for device in devices]
    columns += [("numbers per point", "numbers_per_point", devices)]
    figure, axes = panels(len(names), len(columns), (3.5, 2.6), sharey="row")
    for row, name in zip(axes, names, strict=True):
        here = table[table["data"] == name]
        for ax, (label, x, of) in zip(row, columns, strict=True):
            there = here[here["device"].isin(of)]
            for method in dict.fromkeys(there["method"]):
                band(ax, there[there["method"] == method], "error", "rank", x, **look(method))
            ax.set(xscale="log", xlabel=label)
            few_ticks(ax.xaxis)
            ax.set_visible(len(there) > 0)
        row[0].set_ylabel(f"{name}\n{here['measure'].iloc[0]}")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure


GAUSSIAN = experiment("fig5", "gaussian", METHODS, "error against rank, time and memory, Gaussian kernel")
LAPLACE = experiment("laplace", "laplace", METHODS, "the same with the Laplace kernel")
WITHOUT_FOURIER = tuple(method for method in METHODS if method != "fourier")  # its density is not known
MULTIQUADRIC = experiment(
    "imq", "inverse_multiquadric", WITHOUT_FOURIER, "the same with the inverse multiquadric kernel"
)
FORESTS = experiment(
    "forests",
    "gaussian",
    ("hierarchical", "forest", "forest, learned"),
    "beyond the paper: forests of eight trees, and learned lengthscales",
)
