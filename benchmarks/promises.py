"""Time that is promised, and time that is taken.

    python benchmarks/promises.py [--sizes 1000,10000] [--times 2,5,fast] [--device cuda]
    python benchmarks/promises.py --only first      # compiling and importing
    python benchmarks/promises.py --table           # tables of all results so far, in Markdown

times   Seconds of `fit` on made-up data, eight features and little noise, for each `fit_time` and number of
        points, in a process that has fitted a few points in the same time before. A `fit_time` in seconds
        is to be kept within a quarter; what is not is in bold. Names are for comparison. RMSE is over the
        standard deviation of y, on 10,000 other points.
first   In new processes, with an empty folder for compiled code and with what the first left there: seconds
        of the import of an estimator, of the first fit of 2,000 points in "fast", of the same again; and of
        novelties (another kernel, more points, float32), by how many the first fit is longer than the second.

Results are written after each fit, and added to those of earlier runs.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# What is done in a new process, and how long it should take the first time; see `first_here`
STEPS = {
    "import": 2,
    "first fit": 8,
    "the same again": None,
    "another kernel": 1,
    "more points": 1,
    "float32": 1,
}
_CACHES = ("NUMBA_CACHE_DIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
_MARGIN = 1.25  # of promises in seconds

Results = dict[str, dict[str, Any]]


def times(options: argparse.Namespace) -> Iterator[tuple[str, dict[str, float]]]:
    """Of each fit: its size and fit_time, and what it took."""
    from datasets import smooth
    from fitting import fit
    from hck import metrics

    X_test, y_test = smooth(10_000, 1)
    for limit in options.times:
        fit(smooth(2000, 0), limit, device=options.device)
        for n in options.sizes:
            parts = smooth(n, 0)
            start = time.perf_counter()
            model = fit(parts, limit, device=options.device)
            taken = time.perf_counter() - start
            error = metrics.rmse(y_test, model.predict(X_test)) / float(y_test.std())
            yield f"{n} {limit}", {"seconds": round(taken, 2), "rmse": float(f"{error:.4g}")}


def first(options: argparse.Namespace) -> Iterator[tuple[str, dict[str, float]]]:
    """Seconds of each step in two new processes, which share a folder for compiled code."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | dict.fromkeys(_CACHES, folder)
        command = [sys.executable, __file__, "--here", "--device", options.device]
        for called in ("empty", "kept"):
            output = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
            yield called, json.loads(output.stdout.splitlines()[-1])


def first_here(device: str) -> dict[str, float]:
    """The steps, in this process."""
    clock = [time.perf_counter()]
    from hck import HCKRegressor

    def lap() -> float:
        clock.append(time.perf_counter())
        return clock[-1] - clock[-2]

    found = {"import": lap()}
    from datasets import smooth

    X, y = smooth(8000, 0)

    def fit(n: int, **more: Any) -> float:
        model = HCKRegressor(fit_time="fast", random_state=0, device=device, **more)
        lap()
        model.fit(X[:n], y[:n])
        return lap()

    found |= {"first fit": fit(2000), "the same again": fit(2000)}
    novelties: dict[str, tuple[int, dict[str, Any]]] = {
        "another kernel": (2000, {"kernel": "matern52"}),
        "more points": (8000, {}),
        "float32": (2000, {"dtype": "float32"}),
    }
    for called, (n, more) in novelties.items():
        found[called] = fit(n, **more) - fit(n, **more)
    return {called: round(seconds, 2) for called, seconds in found.items()}


def tables(results: Results) -> str:
    """In Markdown."""
    parts = []
    if found := results.get("times"):
        pairs = [key.split() for key in found]
        sizes = sorted({int(n) for n, _ in pairs})
        limits = list(dict.fromkeys(limit for _, limit in pairs))
        parts.append(
            [f"| fit_time | {' | '.join(f'n = {n:,}' for n in sizes)} |", "|---" * (len(sizes) + 1) + "|"]
        )
        for limit in limits:
            cells = (cell(found.get(f"{n} {limit}"), limit) for n in sizes)
            parts[-1].append(f"| {limit} | {' | '.join(cells)} |")
    if found := results.get("first"):
        parts.append([f"| seconds | {' | '.join(found)} | asked for |", "|---" * (len(found) + 2) + "|"])
        for step, bar in STEPS.items():
            cells = (f"{column[step]:.1f}" for column in found.values())
            parts[-1].append(f"| {step} | {' | '.join(cells)} | {'' if bar is None else f'≤ {bar}'} |")
    return "\n\n".join("\n".join(lines) for lines in parts)


def cell(record: dict[str, float] | None, limit: str) -> str:
    """Seconds, bold if they are more than was promised, and the error."""
    if record is None:
        return ""
    promised = float("inf") if limit.isalpha() else _MARGIN * float(limit)
    seconds = f"{record['seconds']:.3g}"
    return f"{f'**{seconds}**' if record['seconds'] > promised else seconds} ({record['rmse']:.3g})"


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--only", default="times,first", help="parts (default: %(default)s)")
    add("--sizes", default="1000,10000,100000,1000000", help="numbers of points (default: %(default)s)")
    add("--times", default="2,5,10,30,fast,balanced,best", help="seconds or names (default: %(default)s)")
    add("--device", default="cpu", help="cpu or cuda")
    add("--table", action="store_true", help="only print tables of the results so far")
    add("--out", type=Path, help="file of the results (default: results/promises-DEVICE.json)")
    add("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.sizes = [int(text) for text in options.sizes.split(",")]
    options.times = options.times.split(",")
    options.out = options.out or Path(__file__).parent / "results" / f"promises-{options.device}.json"
    return options


def main() -> None:
    options = parse()
    if options.here:
        print(json.dumps(first_here(options.device)))
        return
    results: Results = json.loads(options.out.read_text()) if options.out.exists() else {}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for part in () if options.table else options.only.split(","):
        for called, record in {"times": times, "first": first}[part](options):
            results.setdefault(part, {})[called] = record
            options.out.write_text(json.dumps(results, indent=1) + "\n")
            print(part, called, record, flush=True)
    print(tables(results))


if __name__ == "__main__":
    main()
