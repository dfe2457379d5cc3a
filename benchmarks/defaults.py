"""Defaults: one call of fit on the raw table, beside gradient boosting.

    HCK_DATA=FOLDER python benchmarks/defaults.py [--data cadata,pol] [--methods hck,lightgbm] [--device cuda]
    python benchmarks/defaults.py --quick     # small parts of the data: a trial of the script, no measurement

hck is `HCKRegressor(random_state=0)` or `HCKClassifier(random_state=0)`, with `--fit-time` and `--device`. Of
LightGBM three settings are tried: its defaults; 1,000 trees at a rate of 0.05 with 63 leaves; 1,000 at 0.1
with 255. scikit-learn's HistGradientBoosting has its defaults. On a smooth function, where a global kernel of
low rank does well, scikit-learn's Nystroem with 1,000 components joins them.
Features are as they came. Data without a test part are split 4:1. For classes the log-loss and the
calibration error of probabilities (the mean distance of confidence and accuracy over fifteen bins) stand
beside the accuracy. Everything is warmed up on a small part of the data before it is timed. Results are
written after each run, and added to those of earlier ones.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from datasets import load, smooth
from hck import HCKClassifier, HCKRegressor, metrics
from peers import choose, machine

# What is asked for: on two CPU cores (and in how many seconds), and on an H200 with fit_time="best".
BARS = {
    "cadata": ("relative error", 0.188, 90, 0.181),
    "elevators": ("RMSE / std", 0.365, 60, 0.352),
    "pol": ("RMSE / std", 0.095, 60, 0.080),
    "ijcnn1": ("accuracy", 0.9770, 120, 0.9800),
    "covtype.binary": ("accuracy", 0.9765, 300, 0.9835),
    "mnist": ("accuracy", 0.9700, 300, 0.9840),
    "a9a": ("accuracy", 0.8472, None, 0.8522),
    "reuters": ("accuracy", None, None, None),
    "smooth": ("relative error", 0.0696, None, None),  # what Nystroem reaches
}
METHODS = ("hck", "lightgbm", "histgradientboosting", "nystroem")


def models(method: str, is_regression: bool, options: argparse.Namespace) -> dict[str, Callable[[], Any]]:
    """The settings of a method, by name."""
    if method == "hck":
        kind = HCKRegressor if is_regression else HCKClassifier
        settings = {"fit_time": options.fit_time, "device": options.device, "random_state": 0}
        return {f"hck, {options.fit_time}": lambda: kind(**settings)}
    if method == "nystroem":
        return {f"Nystroem, gamma {gamma}": lambda gamma=gamma: nystroem(gamma) for gamma in (0.03, 0.1, 0.3)}
    if method == "histgradientboosting":
        kind = HistGradientBoostingRegressor if is_regression else HistGradientBoostingClassifier
        return {"HistGradientBoosting": lambda: kind(random_state=0)}
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMRegressor if is_regression else LGBMClassifier
    shared = {"n_jobs": options.threads, "random_state": 0, "verbosity": -1}
    slow = {"n_estimators": 1000, "learning_rate": 0.05, "num_leaves": 63}
    deep = {"n_estimators": 1000, "learning_rate": 0.1, "num_leaves": 255}
    return {
        "LightGBM": lambda: kind(**shared),
        "LightGBM, 1,000 × 63": lambda: kind(**slow, **shared),
        "LightGBM, 1,000 × 255": lambda: kind(**deep, **shared),
    }


def nystroem(gamma: float) -> Any:
    """Ridge regression with a global kernel of low rank, for features in [0, 1]."""
    features = Nystroem(gamma=gamma, n_components=1000, random_state=0)
    return make_pipeline(features, Ridge(alpha=1e-4))


def in_parts(name: str, quick: bool) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """X and y to train on and to test on."""
    if name == "smooth":
        parts = *smooth(50_000, 0), *smooth(10_000, 1)
    else:
        data = load(name, prepare=False)
        parts = data.X_train, data.y_train, data.X_test, data.y_test
    if quick:
        some = np.random.default_rng(0).permutation(parts[0].shape[0])[:2000]
        parts = parts[0][some], parts[1][some], parts[2][:1000], parts[3][:1000]
    return parts


def measure(make: Callable[[], Any], parts: Any, measured: str) -> dict[str, float]:
    """Train and predict; the error or the accuracy, and how good probabilities are."""
    X_train, y_train, X_test, y_test = parts
    start = time.perf_counter()
    model = make().fit(X_train, y_train)
    fitted = time.perf_counter()
    predicted = model.predict(X_test)
    found = {"fit_seconds": fitted - start, "predict_seconds": time.perf_counter() - fitted}
    if measured == "accuracy":
        p = model.predict_proba(X_test)
        found["score"] = metrics.accuracy(y_test, predicted)
        found["log_loss"] = metrics.log_loss(y_test, p, model.classes_)
        found["calibration_error"] = metrics.calibration_error(predicted == y_test, p.max(1), bins=15)
    elif measured == "relative error":
        found["score"] = metrics.relative_error(y_test, predicted)
    else:
        found["score"] = metrics.rmse(y_test, predicted) / float(y_train.std())
    if hasattr(model, "selection_"):
        found["selection"] = str(model.selection_)
    return found


def show(name: str, entry: dict[str, Any], options: argparse.Namespace, console: Console) -> None:
    measured, cpu, seconds, gpu = BARS[name]
    table = Table(title=f"{name}: {measured} (times in s)")
    for heading in ("method", measured, "fit", "predict", "log-loss", "calibration error"):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    for method, found in entry.items():
        rest = [f"{found[key]:.4f}" if key in found else "" for key in ("log_loss", "calibration_error")]
        times = [f"{found[key]:.2f}" for key in ("fit_seconds", "predict_seconds")]
        table.add_row(method, f"{found['score']:.4f}", *times, *rest)
    bar = gpu if options.device == "cuda" else cpu
    limit = f" within {seconds} s" if seconds and options.device == "cpu" else ""
    table.caption = f"asked for: {bar}{limit}" if bar else None
    console.print(table)
    if "selection" in entry.get(f"hck, {options.fit_time}", {}):
        console.print(entry[f"hck, {options.fit_time}"]["selection"])


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", default=",".join(BARS), help="data sets (default: %(default)s)")
    add("--methods", default=",".join(METHODS), help="methods (default: %(default)s)")
    add("--device", choices=("cpu", "cuda"), default="cpu", help="of hck")
    add("--fit-time", default="balanced", help="of hck: fast, balanced, best or seconds")
    add("--threads", type=int, default=os.cpu_count(), help="of each method (default: %(default)s)")
    add("--quick", action="store_true", help="small parts of the data")
    add("--out", type=Path, default=Path(__file__).parent / "results", help="folder of the results")
    options = parser.parse_args()
    options.data = choose(parser, "--data", options.data, BARS)
    options.methods = choose(parser, "--methods", options.methods, METHODS)
    if options.fit_time not in ("fast", "balanced", "best"):
        options.fit_time = float(options.fit_time)
    return options


def main() -> None:
    options, console = parse(), Console(width=130, highlight=False)
    path = options.out / f"defaults-{options.device}{'-quick' if options.quick else ''}.json"
    results = json.loads(path.read_text()) if path.exists() else {"data": {}}
    results["machine"] = machine(options)
    torch.set_num_threads(options.threads)
    with threadpool_limits(options.threads):
        for name in options.data:
            try:
                parts = in_parts(name, options.quick)
            except FileNotFoundError as error:
                console.print(f"{name} is left out: {error}")
                continue
            entry = results["data"].setdefault(name, {})
            for method in options.methods:
                if method == "nystroem" and name != "smooth":
                    continue
                if method == "lightgbm" and find_spec("lightgbm") is None:
                    console.print("lightgbm is left out: it is not installed")
                    continue
                run(name, method, parts, entry, options)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
            show(name, entry, options, console)


def run(
    name: str, method: str, parts: Any, entry: dict[str, Any], options: argparse.Namespace
) -> None:  # fmt: skip
    """All settings of a method on a data set."""
    measured = BARS[name][0]
    for called, make in models(method, measured != "accuracy", options).items():
        some = parts
        if method == "histgradientboosting" and sp.issparse(parts[0]):
            some = (parts[0].toarray(), parts[1], parts[2].toarray(), parts[3])  # it takes no sparse data
        make().fit(some[0][:1000], some[1][:1000]).predict(some[2][:100])
        entry[called] = measure(make, some, measured)


if __name__ == "__main__":
    main()
