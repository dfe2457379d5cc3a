"""The main job on an embedded default: ``hck demo``.

Learns a bumpy function of four variables from 100,000 noisy points with the hierarchical kernel, beside the
exact kernel on as many points as it can take in reasonable time.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.kernel_ridge import KernelRidge

from hck import HCKRegressor
from hck.backend.files import replacing
from hck.metrics import relative_error

N_TRAIN, N_TEST, N_FEATURES = 100_000, 10_000, 4
SUBSETS = (1_000, 2_000, 4_000, 8_000)  # for the exact kernel
RANKS = (24, 48, 97, 195)
NOISE, LENGTHSCALE, ALPHA = 0.1, 0.15, 0.01


@dataclass(frozen=True)
class Result:
    kernel: str  # "exact" or "hierarchical"
    rank: int | None
    points: int
    relative_error: float
    fit_seconds: float
    predict_seconds: float

    @property
    def name(self) -> str:
        return self.kernel if self.rank is None else f"{self.kernel}, rank {self.rank}"

    @property
    def row(self) -> list[str]:
        """Of a table."""
        times = f"{self.fit_seconds:.2f}", f"{self.predict_seconds:.2f}"
        return [self.name, f"{self.points:,}", f"{self.relative_error:.4f}", *times]


def function(x: np.ndarray) -> np.ndarray:
    """Smooth, but with more bumps than a few thousand points can show."""
    return np.sin(14 * x[:, 0] * x[:, 1]) + np.cos(16 * x[:, 2]) * np.sin(12 * x[:, 1]) + x[:, 3] ** 2


def make_data(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Uniform points in the unit cube and their values (without noise)."""
    x = np.random.default_rng(seed).uniform(size=(n, N_FEATURES))
    return x, function(x)


def run(device: str = "cpu", verbose: int = 0) -> Iterator[Result]:
    """Train one model after another."""
    for n in SUBSETS:
        yield measure("exact", None, KernelRidge(kernel="rbf", gamma=0.5 / LENGTHSCALE**2, alpha=ALPHA), n)
    for rank in RANKS:
        model = HCKRegressor(
            lengthscale=LENGTHSCALE, alpha=ALPHA, rank=rank, device=device, random_state=0, verbose=verbose
        )
        x, y = make_data(N_TRAIN // 5, seed=0)
        model.fit(x, y).predict(x)  # so that what is compiled at first use is not timed
        yield measure("hierarchical", rank, model, N_TRAIN)


def measure(kernel: str, rank: int | None, model: HCKRegressor | KernelRidge, n: int) -> Result:
    """Train on the first n points and compare predictions with the truth on fresh points."""
    x, truth = make_data(N_TRAIN, seed=0)
    y = truth + NOISE * np.random.default_rng(1).standard_normal(N_TRAIN)
    x_test, y_test = make_data(N_TEST, seed=2)
    start = time.perf_counter()
    model.fit(x[:n], y[:n])
    fitted = time.perf_counter()
    predicted = model.predict(x_test)
    done = time.perf_counter()
    return Result(kernel, rank, n, relative_error(y_test, predicted), fitted - start, done - fitted)


def plot(results: list[Result], path: Path) -> None:
    """Error against training time."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for kernel, marker in (("exact", "s"), ("hierarchical", "o")):
        mine = [r for r in results if r.kernel == kernel]
        seconds, errors = [r.fit_seconds for r in mine], [r.relative_error for r in mine]
        axes.plot(seconds, errors, marker=marker, label=kernel)
        for r in mine:
            label = f"{r.points:,} points" if r.rank is None else f"rank {r.rank}"
            place = r.fit_seconds, r.relative_error
            axes.annotate(label, place, textcoords="offset points", xytext=(6, 6), fontsize=8)
    axes.set(xscale="log", yscale="log", xlabel="training time (s)", ylabel="relative test error")
    for axis in (axes.xaxis, axes.yaxis):  # 0.05, 0.1, 0.2 and so on
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
    axes.margins(x=0.25, y=0.15)
    axes.set_title(f"Exact kernel on some, hierarchical kernel on all of {N_TRAIN:,} points", fontsize=11)
    axes.legend()
    axes.grid(alpha=0.3, which="both")
    with replacing(path) as draft:
        figure.savefig(draft, format="png", dpi=130)
    plt.close(figure)
