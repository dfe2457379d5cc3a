"""hck beside what people use for tables: boosted trees, xRFM and RealMLP; the same splits, the same machine.

    HCK_DATA=FOLDER python benchmarks/tabular.py [--data kin8nm,adult] [--methods hck-fast,lightgbm]
    python benchmarks/tabular.py --table      # tables of all results so far, in Markdown

Features are as they came, with frames for data that have categories: methods that know categories get them,
the others columns of 0 and 1; missing categories are one of their own, missing numbers the mean where a
method takes none. Data are split 4:1 by the seed, unless they come split. `--max-rows` trains on fewer
records; such results have a star in tables that also have others.

Each method on each data set and seed runs in a process of its own, which is ended after `--limit` seconds.
Its record is appended to the file of results as one line of JSON, also that of a process that failed or was
ended; what is in the file is not run again, so that a run that was stopped goes on. Methods whose package is
not installed are left out. Seconds are those of training, where hck has compiled before; see
beside/methods.py for the settings of all methods. Ranks are means over the data sets on which all methods
shown were tried.
"""

import argparse
import json
import os
from importlib.util import find_spec
from pathlib import Path

from beside.methods import METHODS
from beside.problems import CLASSES, REGRESSION
from beside.runs import Record, append, in_a_process, key, measure, read
from beside.tables import tables
from hck.datasets import is_at_hand
from peers import choose

DATA = (*REGRESSION, *CLASSES)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", default=",".join(DATA), help="data sets (default: all)")
    add("--methods", default=",".join(METHODS), help="methods (default: %(default)s)")
    add("--seeds", default="0", help="of the splits and of the methods (default: %(default)s)")
    add("--max-rows", type=int, help="train on so many records at most")
    add("--limit", type=float, default=300, help="seconds for each process (default: %(default)s)")
    add("--threads", type=int, default=os.cpu_count(), help="of each method (default: %(default)s)")
    add("--device", default="cpu", help="cpu or cuda, of hck, XGBoost, xRFM and RealMLP")
    add("--table", action="store_true", help="only print tables of the results so far")
    add("--out", type=Path, default=Path(__file__).parent / "results" / "tabular.jsonl")
    add("--one", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.data = choose(parser, "--data", options.data, DATA)
    options.methods = choose(parser, "--methods", options.methods, METHODS)
    options.seeds = [int(seed) for seed in options.seeds.split(",")]
    return options


def jobs(options: argparse.Namespace) -> list[Record]:
    """All runs that are asked for and possible; says what is left out."""
    here = {name: is_at_hand(name) for name in options.data}
    there = {name: find_spec(METHODS[name].package) is not None for name in options.methods}
    for name in (name for name, found in (here | there).items() if not found):
        print(f"{name} is left out: it is not {'installed' if name in there else 'at hand'}")
    shared = {"max_rows": options.max_rows, "device": options.device, "threads": options.threads}
    return [
        {"data": name, "method": method, "seed": seed, **shared}
        for name in options.data
        for seed in options.seeds
        for method in options.methods
        if here[name] and there[method]
    ]


def main() -> None:
    options = parse()
    if options.one:
        options.out.write_text(json.dumps(measure(json.loads(options.one))))
        return
    if not options.table:
        done = {key(record) for record in read(options.out)}
        for job in jobs(options):
            if key(job) not in done:
                record = in_a_process(job, options.limit)
                append(options.out, record)
                figures = {name: value for name, value in record.items() if name not in job}
                print(job["data"], job["method"], job["seed"], figures, flush=True)
    print(tables(read(options.out), options.data, options.methods))


if __name__ == "__main__":
    main()
