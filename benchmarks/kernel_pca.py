"""Kernel PCA: time and memory of many points, and how close embeddings are to those of the exact kernel.

    python benchmarks/kernel_pca.py --parts size [--n 500000] [--rank 128]
    HCK_DATA=FOLDER python benchmarks/kernel_pca.py --parts alignment [--points 8000] [--seeds 3]

*size*: three components of n points in 8 dimensions, half of them uniform and half in five clusters; fit,
`transform` of 100,000 new points, and the memory that fit adds at its peak to what the process holds.

*alignment*: the alignment difference ‖U − ŨM‖/‖U‖ of embeddings in three dimensions, Ũ by an approximate
kernel and U by the exact one, against the rank (the paper's section 5.6). The base kernel is Gaussian. Of its
σ the paper says only that it is about the best for prediction: here it is that of `forests.py`. Features are
those of `hck.datasets.load`: in [0, 1] for cadata, in [-1, 1], as they came, for ijcnn1.
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

from forests import SETTINGS
from hck import HCKKernelPCA
from hck.datasets import load
from hck.metrics import alignment_difference
from peers import choose, machine

COMPONENTS = 3
LENGTHSCALES = {name: lengthscale for name, (lengthscale, _) in SETTINGS.items()}
METHODS = {
    "hierarchical": {"approximation": "hierarchical"},
    "hierarchical, k-means": {"approximation": "hierarchical", "landmarks": "kmeans"},
    "compositional": {"approximation": "compositional"},
    "independent": {"approximation": "independent"},
    "nystrom": {"approximation": "nystrom"},
    "nystrom, k-means": {"approximation": "nystrom", "landmarks": "kmeans"},
    "fourier": {"approximation": "fourier"},
}
RANKS = (32, 64, 128, 256, 512)
NEW = 100_000


# Many points --------------------------------------------------------------------------------------------


def clusters(n: int, seed: int) -> np.ndarray:
    """Half of the points uniform in the unit cube of 8 dimensions, half in five clusters."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).uniform(size=(5, 8))
    spread = rng.uniform(size=(n - n // 2, 8))
    near = centres[rng.integers(5, size=n // 2)] + 0.05 * rng.normal(size=(n // 2, 8))
    return np.concatenate([spread, near])[rng.permutation(n)]


def measure_size(n: int, rank: int) -> dict:
    """In a process of its own, for the memory."""
    command = [sys.executable, __file__, "--size-here", f"{n},{rank}"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def size_here(n: int, rank: int) -> dict:
    HCKKernelPCA(COMPONENTS, lengthscale=0.3, rank=rank, random_state=0).fit_transform(clusters(5000, 1))
    x, new = clusters(n, 1), clusters(NEW, 2)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = status("VmRSS:")
    model = HCKKernelPCA(COMPONENTS, lengthscale=0.3, rank=rank, random_state=0)
    start = time.perf_counter()
    model.fit(x)
    fit, peak = time.perf_counter() - start, status("VmHWM:") - before
    start = time.perf_counter()
    model.transform(new)
    return {
        "n": n,
        "rank": rank,
        "components": COMPONENTS,
        "fit_seconds": fit,
        "transform_seconds": time.perf_counter() - start,
        "new_points": NEW,
        "peak_bytes": peak,
        "peak_per_n_rank": peak / (8 * n * rank),
        "explained_variance_ratio": model.explained_variance_ratio_.tolist(),
    }


def status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {field} in /proc/self/status")


# Alignment ----------------------------------------------------------------------------------------------


def measure_alignment(name: str, points: int, ranks: tuple[int, ...], seeds: int) -> list[dict]:
    x, found = np.asarray(load(name).X_train[:points], dtype=float), []
    settings = {"n_components": COMPONENTS, "lengthscale": LENGTHSCALES[name]}
    start = time.perf_counter()
    exact = HCKKernelPCA(**settings, approximation="exact", random_state=0).fit_transform(x)
    seconds = time.perf_counter() - start
    for method, given in METHODS.items():
        for rank in ranks:
            values, start = [], time.perf_counter()
            for seed in range(seeds):
                model = HCKKernelPCA(**settings, **given, rank=rank, random_state=seed)
                values.append(alignment_difference(exact, model.fit_transform(x)))
            record = {"data": name, "n": len(x), "method": method, "rank": rank}
            record |= {"lengthscale": LENGTHSCALES[name], "difference": values}
            record |= {"seconds": (time.perf_counter() - start) / seeds, "exact_seconds": seconds}
            found.append(record)
    return found


# Results ------------------------------------------------------------------------------------------------


def show(results: dict, console: Console) -> None:
    for r in results.get("size", {"found": []})["found"]:
        console.print(
            f"n = {r['n']:,}, r = {r['rank']}: fit {r['fit_seconds']:.1f} s, "
            f"transform of {r['new_points']:,} points {r['transform_seconds']:.1f} s, "
            f"peak {r['peak_bytes'] / 1e9:.2f} GB ({r['peak_per_n_rank']:.1f} n·r numbers)"
        )
    records = results.get("alignment", {"found": []})["found"]
    for name in dict.fromkeys(record["data"] for record in records):
        some = [record for record in records if record["data"] == name]
        ranks = list(dict.fromkeys(record["rank"] for record in some))
        table = Table(title=f"{name}, n = {some[0]['n']:,}: alignment difference, mean (seconds)")
        table.add_column("method")
        for rank in ranks:
            table.add_column(f"r = {rank}", justify="right")
        for method in dict.fromkeys(record["method"] for record in some):
            row = [record for record in some if record["method"] == method]
            table.add_row(method, *(f"{np.mean(r['difference']):.4f} ({r['seconds']:.1f})" for r in row))
        console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--parts", default="size,alignment", help="what to measure (default: %(default)s)")
    add("--n", type=int, default=500_000, help="points of size (default: %(default)s)")
    add("--rank", type=int, default=128, help="rank of size (default: %(default)s)")
    add("--data", default=",".join(LENGTHSCALES), help="data sets of alignment (default: %(default)s)")
    add("--points", type=int, default=8000, help="points of alignment (default: %(default)s)")
    add("--seeds", type=int, default=3, help="repetitions of alignment (default: %(default)s)")
    add("--quick", action="store_true", help="small problems: a trial of the script")
    add("--out", type=Path, default=Path(__file__).parent / "results", help="folder of the results")
    add("--size-here", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.size_here:
        print(json.dumps(size_here(*map(int, options.size_here.split(",")))))
        return
    options.device, options.threads = "cpu", torch.get_num_threads()
    if options.quick:
        options.n, options.points, options.seeds = 20_000, 1000, 1
    ranks = RANKS[:2] if options.quick else RANKS
    path = options.out / f"kernel_pca{'-quick' if options.quick else ''}.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    parts = choose(parser, "--parts", options.parts, ("size", "alignment"))
    if "size" in parts:
        found = [measure_size(options.n, options.rank)]
        results["size"] = {"machine": machine(options), "found": found}
    if "alignment" in parts:
        found = []
        for name in choose(parser, "--data", options.data, LENGTHSCALES):
            found += measure_alignment(name, options.points, ranks, options.seeds)
        results["alignment"] = {"machine": machine(options), "found": found}
    show(results, Console(width=110, highlight=False))
    options.out.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
