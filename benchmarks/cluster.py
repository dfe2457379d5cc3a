"""Strong and weak scaling of fits on a Dask cluster of worker processes of one thread, on one machine.

    python benchmarks/cluster.py [--workers 1,2,4] [--points 1000000] [--each 500000] [--rank 128]
    python benchmarks/cluster.py --quick     # some thousand points: a trial of the script, no measurement

Strong scaling: the same points and the same tree for any number of workers. Weak scaling: as many points for
each worker. Points are uniform in [0, 1]⁸ and in the workers' memory before a fit begins; a small fit comes
first, which compiles. Reported are the seconds of a fit by phase, the core-seconds of the tasks that work on
branches (which should not grow with the workers), and the bytes that travel. More workers than cores share
them: efficiency is then per core, at best min(workers, cores) / workers.
"""

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait
from rich.console import Console
from rich.table import Table

from hck import HCKRegressor
from hck.dask import DaskHCKRegressor

FEATURES, NOISE, BLOCKS_PER_WORKER = 8, 0.05, 4
GIVEN: dict[str, Any] = {"kernel": "gaussian", "lengthscale": 0.5, "alpha": 0.01, "random_state": 0}
PHASES = ("read", "sample", "plan", "split", "up", "trunk", "down")


def points(n: int, blocks: int) -> tuple[da.Array, da.Array]:
    """In the workers' memory."""
    rng, size = da.random.default_rng(0), -(-n // blocks)
    X = rng.uniform(size=(n, FEATURES), chunks=(size, FEATURES))
    y = da.sin(4 * X[:, 0] * X[:, 1]) + X[:, 2] ** 2 * da.cos(3 * X[:, 3])
    y = y + NOISE * rng.standard_normal(n, chunks=size)
    X, y = X.persist(), y.persist()
    wait([X, y])
    return X, y


def measure(kind: str, workers: int, n: int, branches: int, rank: int, repeats: int) -> dict[str, Any]:
    """One line of the table: the fastest of some fits."""
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        given = {**GIVEN, "rank": rank, "n_branches": branches, "leave_one_out": False}
        DaskHCKRegressor(**given).fit(*points(20 * branches * rank // 8, workers))
        X, y = points(n, BLOCKS_PER_WORKER * workers)
        best: dict[str, Any] = {}
        for _ in range(repeats):
            start = time.perf_counter()
            model = DaskHCKRegressor(**given).fit(X, y)
            seconds = time.perf_counter() - start
            if not best or seconds < best["seconds"]:
                best = {"seconds": seconds, "phases": model.seconds_, "bytes": vars(model.bytes_)}
        start = time.perf_counter()
        predicted = model.predict(X)
        error = float(((predicted - y) ** 2).mean().compute() ** 0.5)
        best["predict"] = time.perf_counter() - start
    core = best["phases"]["up, core-seconds"] + best["phases"]["down, core-seconds"]
    return (
        {"kind": kind, "workers": workers, "n": n, "branches": branches, "rank": rank}
        | best
        | {
            "core_seconds": core,
            "rmse": error,
        }
    )


def alone(n: int, rank: int, repeats: int) -> float:
    """Seconds of a fit of one process and one thread, to compare with."""
    import torch

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(n, FEATURES))
    y = np.sin(4 * x[:, 0] * x[:, 1]) + NOISE * rng.standard_normal(n)
    model = HCKRegressor(**GIVEN, rank=rank, leave_one_out=False).fit(x[:5000], y[:5000])
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        model.fit(x, y)
        times.append(time.perf_counter() - start)
    return min(times)


def show(records: list[dict[str, Any]], single: float, n: int) -> None:
    console = Console(width=160)
    console.print(f"{os.cpu_count()} cores; one process and one thread without Dask, n={n:,}: {single:.2f} s")
    for kind in ("strong", "weak"):
        mine = [record for record in records if record["kind"] == kind]
        table = Table(
            "workers", "n", "seconds", "efficiency", *PHASES, "core-s", "MB moved", "kB said", title=kind
        )
        for record in mine:
            first = mine[0]
            ratio = first["seconds"] / record["seconds"] * (first["workers"] if kind == "strong" else 1)
            ratio /= record["workers"] if kind == "strong" else 1
            moved, said = record["bytes"]["rows"], record["bytes"]["messages"] + record["bytes"]["replies"]
            table.add_row(
                *(str(record["workers"]), f"{record['n']:,}", f"{record['seconds']:.2f}", f"{ratio:.0%}"),
                *(f"{record['phases'].get(phase, 0):.2f}" for phase in PHASES),
                *(f"{record['core_seconds']:.2f}", f"{moved / 1e6:.1f}", f"{said / 1e3:.0f}"),
            )
        console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", default="1,2,4", help="numbers of worker processes, with commas")
    parser.add_argument("--points", type=int, default=1_000_000, help="for strong scaling")
    parser.add_argument("--each", type=int, default=500_000, help="points for each worker, for weak scaling")
    parser.add_argument("--rank", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    workers = [int(number) for number in options.workers.split(",")]
    if options.quick:
        workers, options.points, options.each, options.rank = workers[:2], 8000, 4000, 16
    single = alone(options.points, options.rank, options.repeats)
    records = []
    for number in workers:
        sizes = (
            ("strong", options.points, 16),
            ("weak", options.each * number, 2 ** (4 * number - 1).bit_length()),
        )
        for kind, n, branches in sizes:
            records.append(measure(kind, number, n, branches, options.rank, options.repeats))
    show(records, single, options.points)
    if not options.quick:
        options.out.mkdir(parents=True, exist_ok=True)
        made = {"cores": os.cpu_count(), "alone": {"n": options.points, "seconds": single}, "fits": records}
        (options.out / "cluster.json").write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
