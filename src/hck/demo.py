"""The main job on an embedded default: ``python -m hck.demo``.

Learns a bumpy function of four variables from 100,000 noisy points with the hierarchical kernel, beside the
exact kernel on as many points as it can take in reasonable time. Prints a table and saves a plot.
"""

import argparse
import sys
import time
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.kernel_ridge import KernelRidge

from hck import HCKRegressor
from hck.metrics import relative_error

N_TRAIN, N_TEST, N_FEATURES = 100_000, 10_000, 4
NOISE, LENGTHSCALE, ALPHA = 0.1, 0.15, 0.01


@dataclass
class Result:
    name: str
    n: int
    error: float
    fit_seconds: float
    predict_seconds: float


def function(x: np.ndarray) -> np.ndarray:
    """Smooth, but with more bumps than a few thousand points can show."""
    return np.sin(14 * x[:, 0] * x[:, 1]) + np.cos(16 * x[:, 2]) * np.sin(12 * x[:, 1]) + x[:, 3] ** 2


def make_data(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Uniform points in the unit cube and their values (without noise)."""
    x = np.random.default_rng(seed).uniform(size=(n, N_FEATURES))
    return x, function(x)


def measure(name: str, model: HCKRegressor | KernelRidge, n: int) -> Result:
    """Train on the first n points and compare predictions with the truth on fresh points."""
    x, truth = make_data(N_TRAIN, seed=0)
    y = truth + NOISE * np.random.default_rng(1).standard_normal(N_TRAIN)
    x_test, y_test = make_data(N_TEST, seed=2)
    start = time.perf_counter()
    model.fit(x[:n], y[:n])
    fitted = time.perf_counter()
    predicted = model.predict(x_test)
    done = time.perf_counter()
    return Result(name, n, relative_error(y_test, predicted), fitted - start, done - fitted)


def show(console: Console, results: list[Result]) -> None:
    """Print the table."""
    table = Table(title=f"{N_FEATURES} features, noise {NOISE}, {N_TEST:,} test points")
    table.add_column("kernel")
    for heading in ("points", "relative error", "fit (s)", "predict (s)"):
        table.add_column(heading, justify="right")
    for r in results:
        table.add_row(
            r.name, f"{r.n:,}", f"{r.error:.4f}", f"{r.fit_seconds:.2f}", f"{r.predict_seconds:.2f}"
        )
    console.print(table)


def plot(results: list[Result], path: str) -> None:
    """Error against training time."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for name, marker in (("exact", "s"), ("hierarchical", "o")):
        mine = [r for r in results if r.name.startswith(name)]
        axes.plot([r.fit_seconds for r in mine], [r.error for r in mine], marker=marker, label=name)
        for r in mine:
            label = f"{r.n:,} points" if name == "exact" else r.name.split(", ")[1]
            axes.annotate(
                label, (r.fit_seconds, r.error), textcoords="offset points", xytext=(6, 6), fontsize=8
            )
    axes.set(xscale="log", yscale="log", xlabel="training time (s)", ylabel="relative test error")
    axes.margins(x=0.25, y=0.15)
    axes.set_title("The exact kernel on a subset, the hierarchical kernel on all points")
    axes.legend()
    axes.grid(alpha=0.3, which="both")
    figure.savefig(path, dpi=130)


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m hck.demo", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--plot", default="hck-demo.png", help="where to save the plot (default: %(default)s)"
    )
    parser.add_argument("--device", default=None, help="cpu or cuda (default: cpu)")
    options = parser.parse_args(arguments)
    console = Console()
    exact = {"kernel": "rbf", "gamma": 1 / (2 * LENGTHSCALE**2), "alpha": ALPHA}
    ours = {"lengthscale": LENGTHSCALE, "alpha": ALPHA, "random_state": 0, "device": options.device}
    results = []
    for n in (1_000, 2_000, 4_000, 8_000):
        console.print(f"[bold]Exact kernel[/] on {n:,} of {N_TRAIN:,} points")
        results.append(measure("exact", KernelRidge(**exact), n))
    for rank in (24, 48, 97, 195):
        console.print(f"[bold]Hierarchical kernel[/], rank {rank}, on all {N_TRAIN:,} points")
        model = HCKRegressor(rank=rank, verbose=1, **ours)
        results.append(measure(f"hierarchical, rank {rank}", model, N_TRAIN))
    show(console, results)
    plot(results, options.plot)
    console.print(f"Plot saved to {options.plot}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
