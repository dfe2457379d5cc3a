"""Default processes beside default regressors, and how many observations are inside their intervals."""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from datasets import load
from hck import HCKGaussianProcessRegressor, HCKRegressor, metrics
from processes.common import Options, Record, add_columns, observe, score
from processes.published import SHARES
from processes.splits import Split

LEVELS = (0.5, 0.9, 0.95)
SETS = (
    *("kin8nm", "cadata", "pol", "elevators", "bank32nh", "puma32H", "ailerons", "house8L", "cpu_act"),
    *("mv", "fried"),
)
_MOST = 5000  # test points


def defaults(options: Options, console: Console, earlier: Record) -> Iterator[Record]:
    record: Record = earlier | {"data": earlier.get("data", {})}
    for name in options.sets:
        data = load(name, prepare=False)
        X, y = np.concatenate([data.X_train, data.X_test]), np.concatenate([data.y_train, data.y_test])
        n = 1500 if options.quick else len(y)
        split = Split.of(X[:n], y[:n], 0, SHARES)
        found = record["data"].setdefault(name, {})
        for fit_time in options.fit_times:
            given = {"fit_time": fit_time, "device": options.device, "random_state": 0}
            regressor, seconds = _fitted(HCKRegressor(**given), split)
            rmse = metrics.rmse(split.test[1][:_MOST], regressor.predict(split.test[0][:_MOST]))
            found[fit_time] = {"regressor": {"rmse": rmse, "fit_cpu_seconds": seconds}}
            for trees in options.trees:
                process = HCKGaussianProcessRegressor(**given, n_trees=trees)
                found[fit_time][str(trees)] = _measure(process, split, rmse)
                console.print(name, fit_time, trees, found[fit_time][str(trees)])
                yield record


def _fitted(model: Any, split: Split) -> tuple[Any, float]:
    start = time.process_time()
    model.fit(*split.train)
    return model, time.process_time() - start


def _measure(process: HCKGaussianProcessRegressor, split: Split, rmse: float) -> Record:
    x, y = (part[:_MOST] for part in split.test)
    model, seconds = _fitted(process, split)
    found = score(y, *observe(model, x))
    for level in LEVELS:
        _, lower, upper = model.predict(x, interval=level)
        found[f"inside {level:.0%}"] = float(np.mean((lower <= y) & (y <= upper)))
    found |= {"of_regressor": found["rmse"] / rmse, "fit_cpu_seconds": seconds}
    return {key: round(value, 4) for key, value in found.items()}


def show_defaults(record: Record, console: Console) -> None:
    table = Table(title="64 % to train, 20 % to test (at most 5,000); standardised y")
    headings = ("RMSE / regressor's", "NLPD", "95 %", "50 % by std", "in 50 %", "in 90 %", "in 95 %", "fit")
    add_columns(table, "data", "fit_time", "trees", *headings)
    for name, times in record["data"].items():
        for fit_time, every in times.items():
            for trees, found in every.items():
                if trees == "regressor":
                    continue
                cells = [f"{found['of_regressor']:.3f}", f"{found['nlpd']:.3f}"]
                shares = ("coverage", "half", *(f"inside {level:.0%}" for level in LEVELS))
                cells += [f"{100 * found[each]:.1f}" for each in shares]
                table.add_row(name, fit_time, trees, *cells, f"{found['fit_cpu_seconds']:.1f} s")
    console.print(table)
