"""Real data, beside GPyTorch."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from hck import metrics
from hck.datasets import records
from peers import timed
from processes.common import FEW, Options, Record, add_columns, make_process, setting, warm_up
from processes.splits import Hierarchical, Split, measure
from processes.with_gpytorch import Exact, Sparse

UCI = ("elevators", "pol", "cadata")


@dataclass(frozen=True)
class Method:
    """One way to learn.

    Parameters
    ----------
    label : its name in tables and plots
    make : the model for the options and a learning rate
    prepare : what it does to a split before it trains
    rates : learning rates to choose from, if there is a choice
    package : what must be installed
    """

    label: str
    make: Callable[[Options, float], Any]
    prepare: Callable[[Split, Options], Split] = lambda split, _: split
    rates: tuple[float, ...] = (0.1,)
    package: str = "hck"


def fit_for_exact(split: Split, options: Options) -> Split:
    """As many points as the exact process can take."""
    whole = options.full or options.device == "cuda"
    return split if whole and not options.quick else split.shrink(FEW)


def hierarchical(options: Options, _: float) -> Hierarchical:
    return Hierarchical(make_process(options, "uci"))


METHODS = {
    "hck": Method("hck", hierarchical),
    "hck69": Method("hck, trained on 6/9", hierarchical, lambda split, _: split.without_validation()),
    "svgp": Method("GPyTorch SVGP", Sparse, rates=(0.01, 0.03), package="gpytorch"),
    "exact": Method("GPyTorch exact", Exact, fit_for_exact, package="gpytorch"),
}


def uci(options: Options, console: Console, earlier: Record) -> Iterator[Record]:
    record: Record = earlier | {"data": earlier.get("data", {})}
    methods = [name for name in options.methods if find_spec(METHODS[name].package)]
    for name in sorted(set(options.methods) - set(methods)):
        console.print(f"uci: {METHODS[name].label} is left out: {METHODS[name].package} is not installed")
    for name in options.data:
        table = records(name)
        X, y = table.X, table.y
        n = 1800 if options.quick else len(y)
        splits = [
            Split.of(X[:n], y[:n], seed) for seed in range(options.splits or (2 if options.quick else 5))
        ]
        entry = record["data"].setdefault(name, {"methods": {}})
        entry |= {"points": n, "features": X.shape[1]}
        for key in methods:
            entry["methods"][key] = compare(METHODS[key], splits, options)
            if key.startswith("hck"):
                entry["methods"][key]["setting"] = setting(options, "uci")
            console.print(f"{name}, {METHODS[key].label}: {in_words(entry['methods'][key])}")
            yield record


def compare(method: Method, splits: list[Split], options: Options) -> Record:
    """A method on all splits, each with its scores and times."""
    splits = [method.prepare(split, options) for split in splits]
    if method.package == "hck":
        warm_up(make_process(options, "uci", max_iter=1), *splits[0].train)
    else:
        first_steps(method.make(options, method.rates[0]), splits[0])
    record: Record = {"train_points": len(splits[0].train[1]), "rate": method.rates[0]}
    if len(method.rates) > 1:
        record["rate"], record["search_seconds"] = timed(
            lambda: choose_rate(method, splits[0], options), options.device
        )
    runs = [measure(method.make(options, record["rate"]), split, options.device) for split in splits]
    histories = [run.pop("history") for run in runs]
    return record | {"runs": runs, "history": histories[0]}


def first_steps(model: Any, split: Split) -> None:
    """Let GPyTorch load what it needs."""
    model.rounds = 1
    model.fit(*split.train).predict(split.test[0][:100])


def choose_rate(method: Method, split: Split, options: Options) -> float:
    """The learning rate with the best density on the validation part."""
    X, y = split.validation

    def density(rate: float) -> float:
        return metrics.nlpd(y, *method.make(options, rate).fit(*split.train).predict(X))

    return min(method.rates, key=density)


def over_splits(found: Record, key: str) -> tuple[float, float]:
    """Mean and standard deviation."""
    values = [run[key] for run in found["runs"]]
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def spread(found: Record, key: str, digits: int) -> str:
    mean, deviation = over_splits(found, key)
    return f"{mean:.{digits}f} ± {deviation:.{digits}f}"


def in_words(found: Record) -> str:
    figures = (spread(found, key, digits) for key, digits in (("rmse", 4), ("nlpd", 3), ("fit_seconds", 1)))
    return "RMSE {}, NLPD {}, fit {} s".format(*figures)


def show_uci(record: Record, console: Console) -> None:
    for name, entry in in_order(record):
        title = (
            f"{name}: {entry['points']:,} records, {entry['features']} features; standardised y, times in s"
        )
        table = Table(title=title, title_justify="left")
        add_columns(table, "method", "trained on", "RMSE", "NLPD", "coverage", "fit", "predict")
        for key, found in methods_of(entry):
            cells = [spread(found, "rmse", 4), spread(found, "nlpd", 3)]
            cells += [f"{100 * over_splits(found, 'coverage')[0]:.1f} %"]
            cells += [spread(found, "fit_seconds", 1), spread(found, "predict_seconds", 2)]
            table.add_row(METHODS[key].label, f"{found['train_points']:,}", *cells)
        console.print(table)


def in_order(record: Record) -> list[tuple[str, Record]]:
    return [(name, record["data"][name]) for name in UCI if name in record["data"]]


def methods_of(entry: Record) -> list[tuple[str, Record]]:
    return [(key, entry["methods"][key]) for key in METHODS if key in entry["methods"]]
