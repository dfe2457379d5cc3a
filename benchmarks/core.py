"""The core's first figures: speed against the machine's own matrix products, growth, prediction, memory.

    python benchmarks/core.py [--json results.json]

Everything is measured in one run and given as a ratio, since machines differ and are noisy. A fit is counted
as 13 n r² flops (docs/mathematics.md).
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from hck import HCKRegressor

RANK, FEATURES = 195, 8


def matmul_rate(seconds: float = 1.0) -> float:
    """Flops per second of a float64 matrix product."""
    a = torch.randn(2000, 2000, dtype=torch.float64)
    a @ a
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        a @ a
        count += 1
    return count * 2 * 2000**3 / (time.perf_counter() - start)


def make_data(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(n, FEATURES))
    return x, np.sin(5 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.1 * rng.standard_normal(n)


def model() -> HCKRegressor:
    return HCKRegressor(lengthscale=0.5, alpha=0.01, rank=RANK, random_state=0)


def best_of(repeats: int, work) -> float:
    """The shortest of several times: the least disturbed."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def fit_time(n: int, repeats: int = 3) -> float:
    x, y = make_data(n)
    return best_of(repeats, lambda: model().fit(x, y))


def predict_time(n: int, new: int) -> float:
    x, y = make_data(n)
    fitted, x_new = model().fit(x, y), make_data(new)[0]
    return best_of(3, lambda: fitted.predict(x_new))


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {field} in /proc/self/status")


def peak_memory(n: int) -> int:
    """Bytes that a fit adds at its peak to what the process and the data hold. Runs in a fresh process."""
    x, y = make_data(n)
    small = make_data(2000)
    model().fit(*small)  # load what is loaded lazily
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = _status("VmRSS:")
    model().fit(x, y)
    return _status("VmHWM:") - before


def peak_memory_elsewhere(n: int) -> int:
    command = [sys.executable, __file__, "--peak-memory", str(n)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--peak-memory", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak_memory:
        print(peak_memory(options.peak_memory))
        return
    n = 50_000
    rate = matmul_rate()
    fit = fit_time(n)
    rate = max(rate, matmul_rate())
    four = fit_time(4 * n)
    predict = predict_time(n, 10_000)
    memory = peak_memory_elsewhere(4 * n)
    flops = 13 * n * RANK**2
    allowed = 8 * (8 * 4 * n * RANK) + 8 * 4 * n * FEATURES
    figures = [
        ("matrix product (Gflop/s)", rate / 1e9, None),
        (f"fit, n={n:,}, d={FEATURES}, r={RANK} (s)", fit, None),
        ("  share of the matrix product's rate", flops / fit / rate, "≥ 0.08"),
        (f"fit, n={4 * n:,} (s)", four, None),
        ("  four times the points, times the time", four / fit, "≤ 4.5"),
        ("predict 10,000 points (s)", predict, None),
        ("  share of the fit", predict / fit, "≤ 0.1"),
        (f"peak memory of a fit, n={4 * n:,} (GB)", memory / 1e9, None),
        ("  in numbers per n·r, data apart", (memory - 8 * 4 * n * FEATURES) / (8 * 4 * n * RANK), "≤ 8"),
        ("  share of 8 n r numbers and the data", memory / allowed, "≤ 1"),
    ]
    table = Table("figure", "measured", "asked for")
    for name, value, bound in figures:
        table.add_row(name, f"{value:.3g}", bound or "")
    Console().print(table)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps({name.strip(): value for name, value, _ in figures}, indent=1))


if __name__ == "__main__":
    main()
