"""Training on more data than memory holds: time, memory, and a run that is killed and goes on.

    python benchmarks/out_of_core.py [--points 50000000] [--memory-budget 2GiB] [--folder FOLDER]
    python benchmarks/out_of_core.py --quick     # 200,000 points: a trial of the script, no measurement

Points are made on disk, block by block: uniform in [0, 1]⁸, y = sin(4x₀x₁) + x₂²cos(3x₃) + x₄x₅/2 −
sin(5x₆)x₇ with noise 0.05. A process of its own trains; it is killed (SIGKILL) once while branches go up and
once while they come down, and started again each time. The largest resident memory of all of them, their
seconds, and the error at 100,000 new points are reported, and beside them the error of `HCKRegressor` on as
many of the points as are trained on in memory.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from hck import HCKRegressor
from hck.outofcore import DiskHCKRegressor

FEATURES, NOISE, BLOCK = 8, 0.05, 2**20
GIVEN: dict[str, Any] = {"kernel": "gaussian", "lengthscale": 0.5, "alpha": 0.01, "random_state": 0}


def function(x: np.ndarray) -> np.ndarray:
    y = np.sin(4 * x[:, 0] * x[:, 1]) + x[:, 2] ** 2 * np.cos(3 * x[:, 3])
    return y + x[:, 4] * x[:, 5] / 2 - np.sin(5 * x[:, 6]) * x[:, 7]


def make(folder: Path, n: int) -> None:
    """X.npy and y.npy, unless they are there."""
    done = folder / f"{n}-points-are-done"
    if done.exists():
        return
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float64, (n, FEATURES))
    y = np.lib.format.open_memmap(folder / "y.npy", "w+", np.float64, (n,))
    for i in range(0, n, BLOCK):
        block = rng.uniform(size=(min(BLOCK, n - i), FEATURES))
        X[i : i + len(block)] = block
        y[i : i + len(block)] = function(block) + NOISE * rng.standard_normal(len(block))
    X.flush()
    y.flush()
    done.touch()


def train(options: argparse.Namespace, name: str = "model") -> DiskHCKRegressor:
    """What the process that may be killed does."""
    model = DiskHCKRegressor(
        **GIVEN,
        rank=options.rank,
        memory_budget=options.memory_budget,
        leave_one_out=False,
        folder=options.folder / name,
        verbose=1,
    )
    return model.fit(options.folder / "X.npy", options.folder / "y.npy")


def watched(options: argparse.Namespace, stop_at: str | None) -> tuple[float, int, bool]:
    """Seconds and peak bytes of a process that trains, which is killed when a path appears; if it was."""
    command = [sys.executable, __file__, "--train", "--rank", str(options.rank)]
    command += ["--memory-budget", options.memory_budget, "--folder", str(options.folder)]
    start, killed = time.perf_counter(), False
    process = subprocess.Popen(command)
    peak = [0]
    thread = threading.Thread(target=_watch, args=(process, peak))
    thread.start()
    while process.poll() is None:
        if stop_at and len(list((options.folder / "model").glob(stop_at))) > 5:
            os.kill(process.pid, signal.SIGKILL)
            killed = True
            break
        time.sleep(0.5)
    process.wait()
    thread.join()
    if process.returncode and not killed:
        raise SystemExit(f"training failed with code {process.returncode}")
    if stop_at and not killed:
        raise SystemExit(f"training was over before it could be killed at {stop_at}: remove {options.folder}")
    return time.perf_counter() - start, peak[0], killed


def _watch(process: subprocess.Popen, peak: list[int]) -> None:
    """The largest resident memory of a process while it runs, as the kernel counts it."""
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        try:
            lines = status.read_text().splitlines()
        except OSError:
            return
        for line in lines:
            if line.startswith("VmHWM:"):
                peak[0] = max(peak[0], int(line.split()[1]) * 1024)
        time.sleep(0.2)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--points", type=int, default=50_000_000, help="n (default: %(default)s)")
    add("--rank", type=int, default=32, help="r (default: %(default)s)")
    add("--memory-budget", default="2GiB", help="(default: %(default)s)")
    add("--in-memory", type=int, default=1_000_000, help="points of HCKRegressor (default: %(default)s)")
    add("--folder", type=Path, help="for data and model; by default a temporary one, which is removed")
    add("--check", action="store_true", help="compare with a run that is not killed")
    add("--quick", action="store_true", help="few points")
    add("--out", type=Path, default=Path(__file__).parent / "results", help="folder of the results")
    add("--train", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.quick:
        options.points, options.in_memory, options.memory_budget = 200_000, 50_000, "30MB"
    return options


def main() -> None:
    options = parse()
    if options.train:
        train(options)
        return
    console, own = Console(width=110, highlight=False), options.folder is None
    options.folder = Path(tempfile.mkdtemp()) if own else options.folder
    options.folder.mkdir(parents=True, exist_ok=True)
    try:
        results = measure(options, console)
    finally:
        if own:
            shutil.rmtree(options.folder)
    name = f"out_of_core{'-quick' if options.quick else ''}.json"
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / name).write_text(json.dumps(results, indent=1) + "\n")


def measure(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    start = time.perf_counter()
    make(options.folder, options.points)
    console.print(f"data made in {time.perf_counter() - start:.0f} s")
    runs = []
    for stop_at in ("messages/*", "branches/*", None):
        seconds, peak, killed = watched(options, stop_at)
        runs.append({"seconds": seconds, "peak_bytes": peak, "killed": killed})
        console.print(
            f"{'killed' if killed else 'finished'} after {seconds:.0f} s, {peak / 2**30:.2f} GiB at most"
        )
    model = DiskHCKRegressor.open(options.folder / "model", options.memory_budget)
    new = np.random.default_rng(1).uniform(size=(100_000, FEATURES))
    start = time.perf_counter()
    predicted = model.predict(new)
    predict = time.perf_counter() - start
    error = float(np.sqrt(np.mean((predicted - function(new)) ** 2)))
    differs = None
    if options.check or options.quick:
        differs = float(np.abs(train(options, "undisturbed").predict(new) - predicted).max())
        console.print(f"a run that is not killed differs by {differs:.1e} at most")
    X = np.load(options.folder / "X.npy", mmap_mode="r")[: options.in_memory]
    y = np.load(options.folder / "y.npy", mmap_mode="r")[: options.in_memory]
    start = time.perf_counter()
    small = HCKRegressor(**GIVEN, rank=options.rank, leave_one_out=False).fit(X, y)
    beside = time.perf_counter() - start
    other = float(np.sqrt(np.mean((small.predict(new) - function(new)) ** 2)))
    table = Table("", "points", "seconds", "peak memory, GiB", "RMSE at new points")
    total, most = sum(run["seconds"] for run in runs), max(run["peak_bytes"] for run in runs)
    table.add_row("on disk", f"{options.points:,}", f"{total:.0f}", f"{most / 2**30:.2f}", f"{error:.5f}")
    table.add_row("in memory", f"{options.in_memory:,}", f"{beside:.0f}", "", f"{other:.5f}")
    console.print(table)
    size = sum(file.stat().st_size for file in (options.folder / "model").rglob("*") if file.is_file())
    return {
        "points": options.points,
        "rank": options.rank,
        "branches": len(model._known["plan"].branches[0]),
        "memory_budget": options.memory_budget,
        "runs": runs,
        "error": error,
        "predict_seconds": predict,
        "differs": differs,
        "model_bytes": size,
        "in_memory": {"points": options.in_memory, "seconds": beside, "error": other},
    }


if __name__ == "__main__":
    main()
