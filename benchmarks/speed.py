"""Speed, memory and growth of a fit and of predictions, on a CPU or a GPU.

    python benchmarks/speed.py [--device cuda] [--only fits,memory] [--out benchmarks/results]

Prints a table and writes it as JSON, and the growth with n as a plot. Every figure stands beside what it is
measured against in the same run, since machines differ and are noisy: on a CPU the rate of a float64 matrix
product, on both the same work done in another way. The first fit of every kind compiles and is not counted.

A fit with leaves of r points is counted as 13 n r² flops, one with leaves of n₀ > r points as
(n/n₀)(n₀³/3 + 3 n₀² r + 4 n₀ r² + 9 r³).
"""

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from hck import HCKRegressor
from hck.backend.reuse import reusing
from hck.branches.ridge import ridge
from hck.datasets import is_at_hand, load
from hck.hierarchy.blueprint import DEFAULT_JITTER, Blueprint
from hck.kernels import Gaussian, Kernel, Laplace
from hck.metrics import relative_error
from hck.settings import Settings

_ENOUGH = 3.0  # seconds for which a time is taken again and again


@dataclass
class Figure:
    """One line of the table."""

    what: str
    measured: float
    unit: str = ""
    asked: str = ""  # "≥ 0.1" or "≤ 2"
    beside: str = ""  # what it is measured against

    @property
    def holds(self) -> bool | None:
        if not self.asked:
            return None
        sign, bound = self.asked.split()
        return bool(self.measured >= float(bound) if sign == "≥" else self.measured <= float(bound))

    def record(self) -> dict[str, object]:
        return asdict(self) | {"measured": float(self.measured), "holds": self.holds}


@dataclass
class Problem:
    """A smooth function of uniform points, with noise."""

    n: int
    d: int
    rank: int
    leaf_size: int | None = None
    columns: int = 1
    kernel: Kernel | None = None
    dtype: torch.dtype = torch.float64
    memory_budget: int | None = None
    trees: int = 1  # one after another; times are of one

    def points(self, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator(device).manual_seed(0)
        x = torch.rand(self.n, self.d, generator=generator, device=device, dtype=self.dtype)
        noise = torch.randn(self.n, self.columns, generator=generator, device=device, dtype=self.dtype)
        return x, torch.sin(5 * x[:, :1]) + 0.1 * noise

    def fit(self, x: torch.Tensor, y: torch.Tensor, depth: int | None = None) -> None:
        kernel = self.kernel or Gaussian(0.5 * math.sqrt(self.d / 8))
        generator = torch.Generator(x.device).manual_seed(0)
        sizes, budget = (self.rank, self.leaf_size), self.memory_budget
        with reusing():
            for _ in range(self.trees):
                blueprint = Blueprint.of(kernel, x, Settings(*sizes, memory_budget=budget), generator)
                ridge(blueprint, 0.01, y, depth)

    @property
    def flops(self) -> float:
        n, r, leaf = self.n, self.rank, self.leaf_size
        if leaf is None:
            return 13.0 * n * r * r
        return n / leaf * (leaf**3 / 3 + 3 * leaf**2 * r + 4 * leaf * r**2 + 9 * r**3)

    def time(self, device: torch.device, repeats: int = 3, depth: int | None = None) -> float:
        """The shortest of several times, in seconds: the least disturbed."""
        x, y = self.points(device)
        if device.type == "cuda":
            self.fit(x, y, depth)  # kernels are compiled for a rank
        return shortest(lambda: self.fit(x, y, depth), repeats, device) / self.trees


def shortest(work: Callable[[], object], repeats: int, device: torch.device) -> float:
    """Of at least so many times, and of as many as a few seconds take: machines are often disturbed."""
    times: list[float] = []
    while len(times) < repeats or (sum(times) < _ENOUGH and len(times) < 20):
        wait(device)
        start = time.perf_counter()
        work()
        wait(device)
        times.append(time.perf_counter() - start)
    return min(times)


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def product_rate(device: torch.device) -> float:
    """Flops per second of a float64 matrix product."""
    size = 2000 if device.type == "cpu" else 8000
    a = torch.rand(size, size, dtype=torch.float64, device=device)
    return 2 * size**3 / shortest(lambda: a @ a, 8, device)


# Figures --------------------------------------------------------------------------------------------


def fits_on_cpu(device: torch.device) -> list[Figure]:
    asked = {64: 0.1, 128: 0.2, 256: 0.35, 512: 0.45}
    problems = [(Problem(n, d, r), asked[r]) for n in (65_536, 262_144) for d in (8, 54) for r in asked]
    problems = [(p, share) for p, share in problems if p.n * p.rank**2 < 2e10]
    large = [(Problem(65_536, 8, 64, 512), 0.4), (Problem(65_536, 8, 256, 2048), 0.5)]
    problems += [*large, *((replace(p, trees=4), share) for p, share in large)]
    for d in (8, 54):
        Problem(5000, d, 32).time(device, 1)  # compile
    figures = []
    for problem, share in problems:
        rate = product_rate(device)
        seconds = problem.time(device)
        rate = max(rate, product_rate(device))
        leaves = f", leaves of {problem.leaf_size}" if problem.leaf_size else ""
        leaves += f", one of {problem.trees} trees" if problem.trees > 1 else ""
        figures.append(
            Figure(
                f"fit n={problem.n:,} d={problem.d} r={problem.rank}{leaves}: share of the product rate",
                problem.flops / seconds / rate,
                "",
                f"≥ {share}",
                f"{seconds:.3f} s; {rate / 1e9:.0f} Gflop/s",
            )
        )
    return figures


def fits_on_gpu(device: torch.device) -> list[Figure]:
    figures = []
    for r, bound in ((61, 0.12), (244, 0.40), (488, 1.3), (976, 6)):
        problem = Problem(4_000_000, 18, r)
        seconds = problem.time(device, 2 if r > 900 else 5)
        share = problem.flops / seconds / product_rate(device)
        beside = f"{100 * share:.0f} % of the product rate"
        figures.append(Figure(f"fit n=4,000,000 d=18 r={r}", seconds, "s", f"≤ {bound}", beside))
    one, ten = (Problem(4_000_000, 18, 244, columns=k).time(device) for k in (1, 10))
    figures.append(Figure("ten right-hand sides, r=244: times one", ten / one, "", "≤ 1.3", f"{one:.3f} s"))
    return figures


def kinds(device: torch.device) -> list[Figure]:
    """Another kernel, another type of number."""
    figures = []
    for r in (64, 256):
        seconds = {kernel: Problem(65_536, 54, r, kernel=kernel).time(device) for kernel in _KERNELS}
        gaussian, laplace = seconds.values()
        what = f"Laplace kernel d=54 r={r}: times the Gaussian"
        figures.append(Figure(what, laplace / gaussian, "", "≤ 5", f"{gaussian:.3f} s"))
    for r in (64, 128, 256, 512):
        problems = [Problem(65_536, 8, r, dtype=dtype) for dtype in (torch.float64, torch.float32)]
        Problem(5000, 8, 32, dtype=torch.float32).time(device, 1)
        double, single = (problem.time(device) for problem in problems)
        what = f"float32 r={r}: times as fast as float64"
        figures.append(Figure(what, double / single, "", "≥ 1.6", f"{double:.3f} s"))
    if is_at_hand("cadata"):
        figures.append(_float32_on_cadata(device))
    return figures


_KERNELS = (Gaussian(1.3), Laplace(5.0))
_PLAIN = {"kernel": "gaussian", "n_trees": 1, "scale": None}  # nothing is chosen


def _float32_on_cadata(device: torch.device) -> Figure:
    data = load("cadata")
    # the same jitter, which is part of the kernel: by default float32 has a larger one
    shared = {**_PLAIN, "lengthscale": 0.5, "alpha": 0.01, "rank": 129, "jitter": 1e-4, "device": device.type}
    double = HCKRegressor(random_state=0, **shared).fit(data.X_train, data.y_train)
    landmarks = double.forest_.members[0].landmarks
    sets = [landmarks.of_slot(slot).x for slot in range(len(landmarks.blocks))]
    single = HCKRegressor(dtype="float32", partition=double.tree_, landmarks=sets, **shared)
    single.fit(data.X_train, data.y_train)
    error = relative_error(double.predict(data.X_train), single.predict(data.X_train))
    return Figure("float32 on cadata, alpha=0.01: fitted values off by", error, "", "≤ 1e-3", "relative")


def prediction(device: torch.device) -> list[Figure]:
    """Many points at once beside a walk up the tree for each."""
    if not is_at_hand("covtype.binary"):
        return []
    data = load("covtype.binary")
    settings = {**_PLAIN, "lengthscale": 0.15, "alpha": 0.01, "rank": 226, "leave_one_out": False}
    model = HCKRegressor(**settings, random_state=0, device=device.type)
    model.fit(data.X_train, data.y_train.astype(float))
    x = np.concatenate([data.X_test] * 9)[:1_000_000]
    model.predict(x[:100_000])
    together = shortest(lambda: model.predict(x), 2, device)
    few = x[:300]
    walk = Walk(model)
    one_by_one = shortest(lambda: walk(few), 1, device)
    difference = np.abs(walk(few) - model.predict(few)).max()
    if difference > 1e-6:
        raise RuntimeError(f"the walk and the model differ by {difference}")
    ratio = (one_by_one / len(few)) / (together / len(x))
    beside = f"{together:.2f} s for all; {1e3 * one_by_one / len(few):.2f} ms for one by walking"
    return [Figure("predict 1,000,000 of covtype r=226: times the rate of walks", ratio, "", "≥ 50", beside)]


class Walk:
    """Algorithm 3 point by point: from the leaf up, at each node what it hears from the siblings below."""

    def __init__(self, model: HCKRegressor) -> None:
        extension = model.forest_.members[0]
        self.model, self.tree, self.kernel = model, extension.tree.to("cpu"), extension.kernel
        self.points, self.weights = extension.points.x.cpu()[self.tree.order], extension.weights.cpu()
        blocks, places = extension.landmarks.blocks.index.cpu(), extension.landmarks.points.x.cpu()
        self.landmarks = [places[row[row >= 0]] for row in blocks]
        tree, evaluate = self.tree, self.kernel.evaluate
        jitter = DEFAULT_JITTER[self.points.dtype]  # times k(x, x), which is 1
        self.factor = [
            torch.linalg.cholesky(evaluate(z, z) + jitter * torch.eye(len(z), dtype=z.dtype))
            for z in self.landmarks
        ]
        slots = range(len(self.landmarks))
        above = tree.slot[tree.parent[tree.inner].clamp_min(0)].tolist()
        self.above = [-1, *above[1:]]
        self.transfer = [None] + [self._whiten(self.above[i], self.landmarks[i]) for i in slots if i > 0]
        self.transfer[1:] = [
            torch.linalg.solve_triangular(self.factor[i], w, upper=False)
            for i, w in list(enumerate(self.transfer))[1:]
        ]
        # messages: of the leaves, then of the inner nodes from below
        starts, stops = tree.start[tree.leaves].tolist(), tree.stop[tree.leaves].tolist()
        self.leaf = list(zip(starts, stops, tree.leaf_parent.tolist(), strict=True))
        self.from_leaf = [
            self._whiten(parent, self.points[a:b]).mT @ self.weights[a:b] for a, b, parent in self.leaf
        ]
        self.total = [torch.zeros(len(z), 1, dtype=z.dtype) for z in self.landmarks]
        for message, (_, _, parent) in zip(self.from_leaf, self.leaf, strict=True):
            self.total[parent] += message
        self.from_node: list[torch.Tensor] = [torch.empty(0)] * len(self.landmarks)
        for i in reversed(slots):
            if i > 0:
                self.from_node[i] = self.transfer[i].mT @ self.total[i]
                self.total[self.above[i]] += self.from_node[i]

    def _whiten(self, slot: int, x: torch.Tensor) -> torch.Tensor:
        """K(x, Z) C⁻ᵀ."""
        values = self.kernel.evaluate(self.landmarks[slot], x)
        return torch.linalg.solve_triangular(self.factor[slot], values, upper=False).mT

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return np.array([self._one(torch.from_numpy(row)[None]) for row in x])

    def _one(self, x: torch.Tensor) -> float:
        leaf = int(self.tree.route(x)[0])
        start, stop, slot = self.leaf[leaf]
        value = self.kernel.evaluate(x, self.points[start:stop]) @ self.weights[start:stop]
        phi, own = self._whiten(slot, x), self.from_leaf[leaf]
        while True:
            value = value + phi @ (self.total[slot] - own)
            if self.above[slot] < 0:
                return float(value) + float(self.model.intercept_[0])
            phi, own, slot = phi @ self.transfer[slot], self.from_node[slot], self.above[slot]


def memory(device: torch.device) -> list[Figure]:
    figures = []
    n, d, ranks = (4_000_000, 18, (61, 244, 488)) if device.type == "cuda" else (262_144, 8, (64, 128, 256))
    for r in ranks:
        problem = Problem(n, d, r)
        peak = peak_numbers(problem, device, 0)
        figures.append(Figure(f"peak of a fit n={n:,} r={r}, all stored, per n·r", peak, "", "≤ 4.5"))
    r = ranks[1]
    stored = Problem(n, d, r).time(device)
    for share in (3, 1.5, 1):
        problem = Problem(n, d, r, memory_budget=int(share * n * r * 8))
        peak, seconds = peak_numbers(problem, device, None), problem.time(device)
        what = f"peak with a budget of {share} n·r, r={r}: share of it"
        figures.append(Figure(what, peak / share, "", "≤ 1.15"))
        figures.append(Figure("  times the time", seconds / stored, "", "≤ 2", f"{stored:.3f} s"))
    return figures


def peak_numbers(problem: Problem, device: torch.device, depth: int | None) -> float:
    """Numbers that a fit holds at its peak, beside the points (given, and in the tree's order), per n·r."""
    size = problem.n * problem.rank * 8
    data = problem.n * problem.d * 8
    if device.type == "cuda":
        x, y = problem.points(device)
        problem.fit(x, y, depth)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        problem.fit(x, y, depth)
        return (torch.cuda.max_memory_allocated() - before - data) / size
    fields = [problem.n, problem.d, problem.rank, problem.memory_budget or 0, -1 if depth is None else depth]
    command = [sys.executable, __file__, "--peak", ",".join(map(str, fields))]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return (int(found) - data) / size


def peak_here(fields: list[int]) -> int:
    """Bytes that a fit adds at its peak to what this process holds."""
    n, d, rank, budget, depth = fields
    problem = Problem(n, d, rank, memory_budget=budget or None)
    device, cut = torch.device("cpu"), None if depth < 0 else depth
    Problem(5000, d, 32).time(device, 1)
    x, y = problem.points(device)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = _status("VmRSS:")
    problem.fit(x, y, cut)
    return _status("VmHWM:") - before


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {field} in /proc/self/status")


def growth(device: torch.device, out: Path) -> list[Figure]:
    """Time against n at fixed ranks, on logarithmic axes."""
    sizes, d, ranks = ([31_250 * 2**i for i in range(6)], 8, (64, 256))
    if device.type == "cuda":
        sizes, d, ranks = ([125_000 * 2**i for i in range(7)], 18, (125, 488))
    repeats = [max(2, min(20, sizes[-1] // n)) for n in sizes]
    figures, curves = [], {}
    for r in ranks:
        seconds = [Problem(n, d, r).time(device, k) for n, k in zip(sizes, repeats, strict=True)]
        slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        beside = ", ".join(f"{n / 1e3:,.0f}k {t:.3f} s" for n, t in zip(sizes, seconds, strict=True))
        figures.append(Figure(f"growth with n, r={r}: slope, at most", slope, "", "≤ 1.08", beside))
        figures.append(Figure(f"growth with n, r={r}: slope, at least", slope, "", "≥ 0.95", ""))
        curves[f"r = {r}: slope {slope:.2f}"] = seconds
    _draw(sizes, curves, f"d = {d}, {device.type}", out / f"growth-{device.type}.png")
    return figures


def _draw(sizes: list[int], curves: dict[str, list[float]], title: str, to: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 3.6), layout="constrained")
    for number, (label, seconds) in enumerate(curves.items()):
        axes.loglog(sizes, seconds, "o-", label=label)
        line = seconds[-1] * np.array(sizes) / sizes[-1]
        axes.loglog(sizes, line, "--", color="grey", label="_" if number else "proportional to n")
    axes.set(xlabel="training points n", ylabel="seconds", title=title)
    axes.set_xticks(sizes, [f"{n / 1e3:,.0f}k" for n in sizes])
    axes.minorticks_off()
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(to, dpi=150)
    plt.close(figure)


# Report ---------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--only", default="fits,kinds,prediction,memory,growth", help="sections, with commas")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        print(peak_here([int(field) for field in options.peak.split(",")]))
        return
    device = torch.device(options.device)
    options.out.mkdir(parents=True, exist_ok=True)
    sections: dict[str, Callable[[], list[Figure]]] = {
        "fits": lambda: (fits_on_cpu if device.type == "cpu" else fits_on_gpu)(device),
        "kinds": lambda: kinds(device) if device.type == "cpu" else [],
        "prediction": lambda: prediction(device),
        "memory": lambda: memory(device),
        "growth": lambda: growth(device, options.out),
    }
    target = options.out / f"speed-{device.type}.json"
    kept = json.loads(target.read_text()) if target.exists() else {}
    console = Console(width=150)
    for name in options.only.split(","):
        if name not in sections:
            parser.error(f"unknown section {name!r}; known: {', '.join(sections)}")
        figures = sections[name]()
        kept[name] = [figure.record() for figure in figures]
        target.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
        table = Table("figure", "measured", "asked for", "", "beside", title=name, title_justify="left")
        for figure in figures:
            mark = {None: "", True: "✓", False: "✗"}[figure.holds]
            table.add_row(
                figure.what, f"{figure.measured:.3g} {figure.unit}", figure.asked, mark, figure.beside
            )
        console.print(table)


if __name__ == "__main__":
    main()
