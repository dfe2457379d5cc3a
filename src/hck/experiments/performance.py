"""Figures 5 and 6, and the same with other base kernels: error against rank, training time and memory."""

from typing import Any

from hck.experiments._models import (
    COLOURS,
    LABELS,
    METHODS,
    at_hand,
    dataset,
    halvings,
    holdout,
    make,
    median_distance,
    trained,
)
from hck.experiments._run import Experiment, Options, Record

DATA = ("cadata", "YearPredictionMSD", "ijcnn1", "covtype.binary", "SUSY", "mnist", "acoustic", "covtype")
FACTORS = tuple(2.0**k for k in range(-5, 3))  # lengthscales, times the median distance
ALPHAS = (1e-3, 1e-2, 1e-1, 1.0)
FOREST = {"n_trees": 8}  # as many small trees instead of one large one


def experiment(name: str, kernel: str, methods: tuple[str, ...], title: str) -> Experiment:
    """The comparison with one base kernel."""

    def plan(options: Options) -> list[Record]:
        found = []
        for data in at_hand(DATA, options.data):
            n = len(dataset(data, options.quick).y_train)
            ranks = halvings(n, 30, 1100)[-5:]
            ranks = ranks[:2] if options.quick else ranks
            found += [{"data": data, "method": m, "rank": r} for m in methods for r in ranks]
        return found

    def measure(point: Record, options: Options) -> list[Record]:
        """Choose σ, then λ, on held-out training points; then train on all."""
        data = dataset(point["data"], options.quick)
        part, unit = holdout(data), median_distance(data.X_train)
        factors = FACTORS[::3] if options.quick else FACTORS
        start = (min(factors), ALPHAS[1])

        def error(factor: float, alpha: float) -> float:
            return trained(model(part, point, kernel, factor * unit, alpha), part, options.device)["error"]

        factor = min(factors, key=lambda factor: error(factor, start[1]))
        alpha = min(ALPHAS, key=lambda alpha: error(factor, alpha))
        found = trained(model(data, point, kernel, factor * unit, alpha), data, options.device)
        each = 4 if point["method"] in ("hierarchical", "forest") else 1  # as the paper counts
        record = {"lengthscale": factor * unit, "alpha": alpha, "numbers_per_point": each * point["rank"]}
        return [record | {"measure": data.measure} | found]

    columns = ("lengthscale", "alpha", "measure", "error", "seconds", "numbers_per_point", "peak_bytes")
    return Experiment(name, title, plan, measure, draw, columns)


def model(data: Any, point: Record, kernel: str, lengthscale: float, alpha: float) -> Any:
    given: dict[str, Any] = {"kernel": kernel, "lengthscale": lengthscale, "alpha": alpha}
    if point["method"] != "forest":
        return make(data, point["method"], point["rank"], **given)
    # leaves of the same size, with a rank of an eighth
    return make(data, "hierarchical", max(4, point["rank"] // 8), leaf_size=point["rank"], **given, **FOREST)


def draw(table: Any, options: Options) -> Any:
    """A row for each data set: the error against rank, training time and memory."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator

    names = list(dict.fromkeys(table["data"]))
    figure, axes = plt.subplots(
        len(names), 3, figsize=(10.5, 2.6 * len(names)), sharey="row", squeeze=False, layout="constrained"
    )
    axis = {"rank": "r", "seconds": "training time (s)", "numbers_per_point": "numbers per point"}
    for row, name in zip(axes, names, strict=True):
        here = table[table["data"] == name]
        for ax, (column, label) in zip(row, axis.items(), strict=True):
            for method in dict.fromkeys(here["method"]):
                some = here[here["method"] == method].sort_values("rank")
                ax.plot(some[column], some["error"], "o-", ms=3, color=COLOURS[method], label=LABELS[method])
            ax.set(xscale="log", xlabel=label)
            ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=6))
            ax.xaxis.set_major_formatter("{x:g}")
            ax.xaxis.set_minor_formatter("")
            ax.grid(alpha=0.3)
        row[0].set_ylabel(f"{name}\n{here['measure'].iloc[0]}")
    axes[0, 0].legend(fontsize=7)
    return figure


GAUSSIAN = experiment("fig5", "gaussian", METHODS, "error against rank, time and memory, Gaussian kernel")
LAPLACE = experiment("laplace", "laplace", METHODS, "the same with the Laplace kernel")
WITHOUT_FOURIER = tuple(method for method in METHODS if method != "fourier")  # its density is not known
MULTIQUADRIC = experiment(
    "imq", "inverse_multiquadric", WITHOUT_FOURIER, "the same with the inverse multiquadric kernel"
)
FORESTS = experiment(
    "forests", "gaussian", ("hierarchical", "forest"), "beyond the paper: forests of eight trees"
)
