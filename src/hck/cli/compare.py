"""hck compare"""

import time
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from sklearn.model_selection import train_test_split

from hck.cli._common import AsJson, Data, Device, Quiet, Seed, Target, progress, show
from hck.cli.fit import as_time
from hck.cli.predict import scores

METHODS = ("hierarchical", "compositional", "independent", "nystrom", "fourier")


def compare(
    data: Data,
    target: Target = None,
    methods: Annotated[str, typer.Option(help="Approximations, with commas between.")] = ",".join(METHODS),
    rank: Annotated[int, typer.Option(help="r, the same for all.")] = 128,
    fit_time: Annotated[str, typer.Option(help="fast, balanced, best, or seconds.")] = "fast",
    device: Device = "cpu",
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Different kernels side by side, with the same rank: a fifth of the rows is held out.

    [bold]hck compare houses.csv --target price[/bold]
    """
    from hck import HCKClassifier, HCKRegressor
    from hck.cli._tables import labelled, task_of

    table = labelled(data, target)
    y = np.asarray(table.y)
    task = task_of(y)
    stratify = y if task == "classification" and np.unique(y, return_counts=True)[1].min() > 1 else None
    parts = train_test_split(np.arange(len(y)), test_size=0.2, random_state=seed, stratify=stratify)
    train, test = (np.sort(part) for part in parts)
    X = {"train": _rows(table.X, train), "test": _rows(table.X, test)}
    kind = HCKRegressor if task == "regression" else HCKClassifier
    found = {}
    for method in methods.split(","):
        model = kind(
            approximation=method.strip(),
            rank=rank,
            fit_time=as_time(fit_time),
            device=device,
            random_state=seed,
            verbose=progress(quiet),
        )
        start = time.perf_counter()
        model.fit(X["train"], y[train])
        fitted = time.perf_counter()
        measured = scores(model, X["test"], y[test])
        measured |= {"fit_seconds": fitted - start, "test_seconds": time.perf_counter() - fitted}
        found[method.strip()] = measured
    if as_json:
        show(found, True)
        return
    names = [name for name in next(iter(found.values())) if name != "points"]
    shown = Table(title=f"{task}: {len(train)} rows to learn from, {len(test)} held out, r = {rank}")
    for name in ("kernel", *names):
        shown.add_column(name.replace("_", " "), justify="left" if name == "kernel" else "right")
    for method, measured in found.items():
        shown.add_row(method, *(f"{measured[name]:.4g}" if name in measured else "" for name in names))
    Console().print(shown)


def _rows(X: Any, which: np.ndarray) -> Any:
    return X.iloc[which] if hasattr(X, "iloc") else X[which]
