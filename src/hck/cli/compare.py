"""hck compare"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from hck.backend.files import is_stdout
from hck.cli import _options as option
from hck.cli._common import as_time, check_device, free, names_in, one_of, progress, show, tabulate, write
from hck.cli.fit import make_model
from hck.cli.predict import predictions, scores

METHODS = ("hierarchical", "compositional", "independent", "nystrom", "fourier")


@dataclass(frozen=True)
class Contest:
    """What is learned, and with what."""

    target: option.Target = None
    task: Annotated[option.Task, typer.Option(help="What to learn; auto looks at the target.")] = (
        option.Task.auto
    )
    methods: Annotated[str, typer.Option(help="Approximations, with commas between.")] = ",".join(METHODS)
    rank: Annotated[int, typer.Option(min=1, help="r, the same for all.")] = 128
    fit_time: Annotated[str, typer.Option(help="fast, balanced, best, or seconds.")] = "fast"

    def names(self) -> list[str]:
        """Of the methods."""
        chosen = names_in(self.methods)
        if not chosen:
            raise ValueError("--methods is empty")
        return [one_of("--methods", name, option.APPROXIMATIONS) for name in chosen]


def compare(
    data: option.Data,
    contest: Contest,
    training: option.Training,
    *,
    out: Annotated[Path | None, option.given("A CSV file for the table.")] = None,
    output: option.Output,
) -> None:
    """Different kernels side by side, with the same rank: a fifth of the rows is held out.

    [bold]hck compare houses.csv --target price[/bold]
    """
    import pandas as pd

    from hck.cli._tables import for_training, rows

    chosen, limit = contest.names(), as_time(contest.fit_time)
    if out is not None:
        free(out, output.force)
    settings = {"rank": contest.rank, "device": check_device(training.device), "random_state": training.seed}
    table, task = for_training(data, contest.target, training.part, contest.task)
    y = np.asarray(table.y)
    train, test = _split(y, task == "classification", training.seed)
    X_train, X_test = rows(table.X, train), rows(table.X, test)
    found = {}
    _compile(contest.rank, training.device)
    for name in chosen:
        given = settings | {"approximation": name, "verbose": progress(output.quiet)}
        model = make_model(task, limit, given)
        start = time.perf_counter()
        model.fit(X_train, y[train])
        fitted = time.perf_counter()
        found[name] = scores(model, predictions(model, X_test), y[test])
        found[name] |= {"fit_seconds": fitted - start, "test_seconds": time.perf_counter() - fitted}
    if out is not None:
        write(out, pd.DataFrame.from_dict(found, orient="index").rename_axis("kernel").to_csv())
    if out is not None and is_stdout(out):
        return
    if output.as_json:
        show(found, True)
        return
    names = [name for name in next(iter(found.values())) if name != "points"]
    lines = [[method, *(_number(name, each.get(name)) for name in names)] for method, each in found.items()]
    title = f"{task}: {len(train)} rows to learn from, {len(test)} held out, r = {contest.rank}"
    tabulate(["kernel", *(name.replace("_", " ") for name in names)], lines, title)


def _number(name: str, value: float | None) -> str:
    if value is None:
        return ""
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
    stratify = y if classes and counts.min() > 1 and len(counts) <= len(y) // 5 else None
    parts = train_test_split(np.arange(len(y)), test_size=0.2, random_state=seed, stratify=stratify)
    return [np.sort(part) for part in parts]
