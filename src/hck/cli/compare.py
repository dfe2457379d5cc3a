"""hck compare"""

import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from hck.cli import _options as option
from hck.cli._common import as_time, check_device, free, names_in, one_of, progress, say, show, write
from hck.cli.fit import make_model
from hck.cli.predict import predictions, scores

METHODS = ("hierarchical", "compositional", "independent", "nystrom", "fourier")


def compare(
    data: option.Data,
    target: option.Target = None,
    task: Annotated[
        option.Kind, typer.Option(help="What to learn; auto looks at the target.")
    ] = option.Kind.auto,
    methods: Annotated[str, typer.Option(help="Approximations, with commas between.")] = ",".join(METHODS),
    rank: Annotated[int, typer.Option(min=1, help="r, the same for all.")] = 128,
    fit_time: Annotated[str, typer.Option(help="fast, balanced, best, or seconds.")] = "fast",
    part: option.Part = None,
    device: option.Device = "cpu",
    seed: option.Seed = 0,
    out: Annotated[Path | None, typer.Option(help="A CSV file for the table.", show_default=False)] = None,
    force: option.Force = False,
    as_json: option.AsJson = False,
    quiet: option.Quiet = False,
) -> None:
    """Different kernels side by side, with the same rank: a fifth of the rows is held out.

    [bold]hck compare houses.csv --target price[/bold]
    """
    import pandas as pd

    from hck.cli._tables import for_training, rows

    chosen = names_in(methods)
    if not chosen:
        raise ValueError("--methods is empty")
    for name in chosen:
        one_of("--methods", name, option.APPROXIMATIONS)
    if out is not None:
        free(out, force)
    settings = {"rank": rank, "device": check_device(device), "random_state": seed}
    limit = as_time(fit_time)
    table, kind = for_training(data, target, part, task.value)
    y = np.asarray(table.y)
    train, test = _split(y, kind == "classification", seed)
    X = {"train": rows(table.X, train), "test": rows(table.X, test)}
    found = {}
    _compile(rank, device)
    for name in chosen:
        model = make_model(kind, limit, settings | {"approximation": name, "verbose": progress(quiet)})
        start = time.perf_counter()
        model.fit(X["train"], y[train])
        fitted = time.perf_counter()
        measured = scores(model, predictions(model, X["test"]), y[test])
        measured |= {"fit_seconds": fitted - start, "test_seconds": time.perf_counter() - fitted}
        found[name] = measured
    if out is not None:
        write(out, pd.DataFrame.from_dict(found, orient="index").rename_axis("kernel").to_csv())
    if as_json:
        show(found, True)
        return
    names = [name for name in next(iter(found.values())) if name != "points"]
    shown = Table(title=f"{kind}: {len(train)} rows to learn from, {len(test)} held out, r = {rank}")
    shown.add_column("kernel", no_wrap=True)
    for name in names:
        shown.add_column(name.replace("_", " "), justify="right")
    for method, measured in found.items():
        shown.add_row(method, *(_number(name, measured[name]) if name in measured else "" for name in names))
    say(shown)


def _number(name: str, value: float) -> str:
    return f"{value:.3g}" if name.endswith("_seconds") else f"{value:.5g}"


def _compile(rank: int, device: str) -> None:
    """Train on a few points: what is compiled when a rank is first used is no part of the times."""
    from hck import HCKRegressor

    x, few = np.random.default_rng(0).uniform(size=(2000, 2)), min(rank, 256)
    HCKRegressor("gaussian", lengthscale=1.0, alpha=0.1, rank=few, n_trees=1, device=device).fit(x, x[:, 0])


def _split(y: np.ndarray, classes: bool, seed: int) -> list[np.ndarray]:
    """Four fifths of the records and a fifth, each with its share of each class."""
    from sklearn.model_selection import train_test_split

    if len(y) < 5:
        raise ValueError(f"there are too few records to hold some out: {len(y)}; at least 5 are needed")
    counts = np.unique(y, return_counts=True)[1] if classes else np.ones(1)
    stratify: Any = y if classes and counts.min() > 1 and len(counts) <= len(y) // 5 else None
    parts = train_test_split(np.arange(len(y)), test_size=0.2, random_state=seed, stratify=stratify)
    return [np.sort(part) for part in parts]
