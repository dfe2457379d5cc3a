"""A fit that does not have the machine to itself.

    HCK_DATA=FOLDER python benchmarks/contention.py [--data cadata] [--rows 10000] [--fit-time fast]

alone          one fit on two cores
busy           the same beside two processes that never rest: at most 2.5 times as long
two at once    two fits in two processes, against one after the other: no longer
joblib         two fits by joblib with n_jobs=2, against n_jobs=1: no longer
one core       the same fit on one core: at least 1.6 times as long as on two, or two would not be used

All of it stays on the first `--cores` cores of the machine, in processes that have fitted before, so that
nothing compiles. Figures are medians of `--repeats`. Data that are not at hand are made up. Needs Linux,
where processes can be kept to some cores.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

BARS = {"busy": ("≤", 2.5), "two at once": ("≤", 1.0), "joblib": ("≤", 1.0), "one core": ("≥", 1.6)}
# A process that never rests, until this one is gone
_BUSY = "import os; parent = os.getppid()\nwhile os.getppid() == parent: pass"


class Fitter:
    """A process that fits when it is told to; see `serve`."""

    def __init__(self, options: argparse.Namespace) -> None:
        given = [
            f"--{name.replace('_', '-')}={getattr(options, name)}" for name in ("data", "fit_time", "rows")
        ]
        command = [
            sys.executable,
            __file__,
            "--serve",
            *(text for text in given if not text.endswith("=None")),
        ]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.wait()

    def start(self, order: str = "fit") -> None:
        print(order, file=self.process.stdin, flush=True)

    def wait(self) -> dict[str, Any]:
        """What it answers."""
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"a process that fits ended with exit status {self.process.wait()}")
        return json.loads(answer)

    def seconds(self, order: str = "fit") -> float:
        start = time.perf_counter()
        self.start(order)
        self.wait()
        return time.perf_counter() - start

    def __enter__(self) -> "Fitter":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stdin.close()
        self.process.wait()


@contextmanager
def on_cores(count: int) -> Iterator[None]:
    """Processes that are started in here stay on so many cores."""
    before = os.sched_getaffinity(0)
    if count > len(before):
        raise SystemExit(f"there are {len(before)} cores, not {count}")
    os.sched_setaffinity(0, sorted(before)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def busy(processes: int) -> Iterator[None]:
    started = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def measure(options: argparse.Namespace) -> dict[str, float]:
    """Seconds of each situation."""
    again = range(options.repeats)
    with ExitStack() as stack, on_cores(options.cores):
        first, second = (stack.enter_context(Fitter(options)) for _ in range(2))
        found = {"alone": median(first.seconds() for _ in again)}
        with busy(2):
            found["busy"] = median(first.seconds() for _ in again)
        found["one after the other"] = median(first.seconds() + second.seconds() for _ in again)
        found["two at once"] = median(together(first, second) for _ in again)
        for jobs in (1, 2):
            first.seconds(f"joblib {jobs}")  # starts its workers, which load what is compiled
            found[f"joblib, n_jobs={jobs}"] = median(first.seconds(f"joblib {jobs}") for _ in again)
    with on_cores(1), Fitter(options) as alone:
        found["one core"] = median(alone.seconds() for _ in again)
    return found


def together(*fitters: Fitter) -> float:
    """Seconds until all have ended a fit that they began at once."""
    start = time.perf_counter()
    for fitter in fitters:
        fitter.start()
    for fitter in fitters:
        fitter.wait()
    return time.perf_counter() - start


def ratios(seconds: dict[str, float]) -> dict[str, float]:
    """What the bars are for."""
    return {
        "busy": seconds["busy"] / seconds["alone"],
        "two at once": seconds["two at once"] / seconds["one after the other"],
        "joblib": seconds["joblib, n_jobs=2"] / seconds["joblib, n_jobs=1"],
        "one core": seconds["one core"] / seconds["alone"],
    }


def table(record: dict[str, Any]) -> str:
    """In Markdown."""
    seconds, found = record["seconds"], record["ratios"]
    lines = [f"| {record['what']} | seconds | ratio | bar | |", "|---|---|---|---|---|"]
    lines.append(f"| alone | {seconds['alone']:.2f} | | | |")
    pairs = {"two at once": "one after the other", "joblib": "joblib, n_jobs=1"}
    for name, (sign, bar) in BARS.items():
        taken = seconds["joblib, n_jobs=2"] if name == "joblib" else seconds[name]
        other = f" (against {seconds[pairs[name]]:.2f})" if name in pairs else ""
        met = found[name] <= bar if sign == "≤" else found[name] >= bar
        verdict = "met" if met else "**missed**"
        lines.append(f"| {name} | {taken:.2f}{other} | {found[name]:.2f} | {sign} {bar} | {verdict} |")
    return "\n".join(lines)


def serve(options: argparse.Namespace) -> None:
    """Fit once, then whenever a line comes in: "fit", or "joblib 2" for two fits by so many workers.

    An answer is a line with an object of JSON. What makes threads is imported here, in a process that has
    been kept to its cores already.
    """
    from joblib import Parallel, delayed

    from fitting import fit, training_data

    answers, sys.stdout = sys.stdout, sys.stderr
    parts = training_data(options.data, options.rows)
    fit(parts, options.fit_time, 0)
    print("{}", file=answers, flush=True)
    for line in sys.stdin:
        order, _, jobs = line.strip().partition(" ")
        if order == "fit":
            fit(parts, options.fit_time, 0)
        else:
            calls = (delayed(fit)(parts, options.fit_time, seed) for seed in (0, 0))
            Parallel(n_jobs=int(jobs))(calls)
        print("{}", file=answers, flush=True)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", default="cadata", help="a data set of hck.datasets (default: %(default)s)")
    add("--rows", type=int, help="train on so many records at most")
    add("--fit-time", default="fast", help="fast, balanced, best or seconds (default: %(default)s)")
    add("--cores", type=int, default=2, help="of the machine (default: %(default)s)")
    add("--repeats", type=int, default=3, help="of each fit (default: %(default)s)")
    add("--out", type=Path, default=Path(__file__).parent / "results" / "contention.json")
    add("--serve", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main() -> None:
    options = parse()
    if options.serve:
        serve(options)
        return
    seconds = measure(options)
    rows = "" if options.rows is None else f", {options.rows:,} rows"
    what = f"{options.data}{rows}, {options.fit_time}, {options.cores} cores"
    record = {"what": what, "seconds": seconds, "ratios": ratios(seconds)}
    earlier = json.loads(options.out.read_text()) if options.out.exists() else {}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(earlier | {what: record}, indent=1, ensure_ascii=False) + "\n")
    print(table(record))


if __name__ == "__main__":
    main()
