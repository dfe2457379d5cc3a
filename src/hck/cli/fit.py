"""hck fit"""

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from hck.cli._common import AsJson, Data, Device, Force, Quiet, Seed, Target, free, progress, show

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)  # of intervals that predictions can have


class Kind(StrEnum):
    auto = "auto"
    regression = "regression"
    classification = "classification"
    gp = "gp"


def fit(
    data: Data,
    out: Annotated[Path, typer.Option(help="The folder for the model.", show_default=False)],
    target: Target = None,
    task: Annotated[
        Kind, typer.Option(help="What to learn; auto looks at the target. gp: a Gaussian process.")
    ] = Kind.auto,
    fit_time: Annotated[str, typer.Option(help="fast, balanced, best, or seconds.")] = "balanced",
    kernel: Annotated[str | None, typer.Option(help="The base kernel; chosen if it is not given.")] = None,
    approximation: Annotated[str, typer.Option(help="What stands in for the kernel.")] = "hierarchical",
    rank: Annotated[int | None, typer.Option(help="r; chosen if it is not given.")] = None,
    n_trees: Annotated[int | None, typer.Option(help="Trees to average; chosen if not given.")] = None,
    memory: Annotated[str | None, typer.Option(help="That training may take, such as 4GiB.")] = None,
    device: Device = "cpu",
    seed: Seed = 0,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Learn from a table and save the model.

    [bold]hck fit houses.csv --target price --out model/[/bold]
    """
    from hck.cli._tables import labelled, task_of
    from hck.persistence import save

    free(out, force)
    table = labelled(data, target)
    chosen = task_of(table.y) if task is Kind.auto else task.value
    given = {"kernel": kernel, "rank": rank, "n_trees": n_trees}
    settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    settings |= {"approximation": approximation, "memory_budget": memory}
    settings |= {"device": device, "random_state": seed}
    model = _model(chosen, fit_time, settings | {"verbose": progress(quiet)})
    start = time.perf_counter()
    model.fit(table.X, table.y)
    seconds = time.perf_counter() - start
    model.verbose = 0
    model.notes_ = {"target": table.target_name, "task": chosen, **_left_out(model, chosen, table.y)}
    save(model, out, force=force)
    result = {"model": str(out), "task": chosen, "points": table.X.shape[0], "fit_seconds": seconds}
    result |= {name: value for name, value in model.notes_.items() if name.startswith("left_out")}
    show(result, as_json, f"learned {table.target_name or 'y'}")


def _model(task: str, fit_time: str, settings: dict[str, Any]) -> Any:
    from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKRegressor

    if task == "gp":
        return HCKGaussianProcessRegressor(**settings)
    kind = HCKRegressor if task == "regression" else HCKClassifier
    return kind(fit_time=as_time(fit_time), **settings)


def as_time(text: str) -> str | float:
    """Of `fit_time`: a name or seconds."""
    if text in ("fast", "balanced", "best"):
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--fit-time {text} is not known: use fast, balanced, best or seconds") from None


def _left_out(model: Any, task: str, y: Any) -> dict[str, Any]:
    """How well left-out training points are predicted, which needs no other data."""
    try:
        if task == "classification":
            score = model.loo_decision_function()
            code = (score > 0).astype(int) if score.ndim == 1 else score.argmax(1)
            return {"left_out_accuracy": float(np.mean(model.classes_[code] == np.asarray(y)))}
        rest = np.abs(np.asarray(y, dtype=float) - model.loo_predict())
    except ValueError:
        return {}  # nothing was left out: memory was short, or solutions were found by iteration
    found = {"left_out_rmse": float(np.sqrt(np.mean(rest**2)))}
    return found if task == "gp" else found | {
        "intervals": {str(level): float(np.quantile(rest, level)) for level in LEVELS}
    }  # fmt: skip
