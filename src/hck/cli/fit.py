"""hck fit"""

import math
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from hck.cli import _options as option
from hck.cli._common import as_time, check_device, free_folder, one_of, progress, show

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)  # of intervals that predictions can have


def fit(
    data: option.Data,
    out: Annotated[Path, typer.Option(help="The folder for the model.", show_default=False)],
    target: option.Target = None,
    task: option.Task = option.Kind.auto,
    fit_time: option.FitTime = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            help=f"The base kernel: {', '.join(option.KERNELS)}; chosen if it is not given.",
            autocompletion=option.known(option.KERNELS),
            show_default=False,
        ),
    ] = None,
    approximation: option.Approximation = "hierarchical",
    rank: Annotated[
        int | None, typer.Option(min=1, help="r; chosen if it is not given.", show_default=False)
    ] = None,
    n_trees: Annotated[
        int | None, typer.Option(min=1, help="Trees to average; chosen if not given.", show_default=False)
    ] = None,
    memory: Annotated[
        str | None, typer.Option(help="That training may take, such as 4GiB.", show_default=False)
    ] = None,
    part: option.Part = None,
    device: option.Device = "cpu",
    seed: option.Seed = 0,
    force: option.Force = False,
    as_json: option.AsJson = False,
    quiet: option.Quiet = False,
) -> None:
    """Learn from a table and save the model.

    [bold]hck fit houses.csv --target price --out model/[/bold]
    """
    from hck.cli._tables import for_training
    from hck.persistence import save

    free_folder(out, force)
    one_of("--approximation", approximation, option.APPROXIMATIONS)
    if task is option.Kind.gp and fit_time is not None:
        raise ValueError("--fit-time is not for --task gp, whose time follows from --rank")
    settings: dict[str, Any] = {"approximation": approximation, "memory_budget": memory}
    settings |= {"device": check_device(device), "random_state": seed, "verbose": progress(quiet)}
    given = {"kernel": kernel, "rank": rank, "n_trees": n_trees}
    settings |= {name: value for name, value in given.items() if value is not None}
    seconds_or_name = as_time(fit_time or "balanced")
    table, chosen = for_training(data, target, part, task.value)
    model = make_model(chosen, seconds_or_name, settings)
    start = time.perf_counter()
    model.fit(table.X, table.y)
    seconds = time.perf_counter() - start
    model.verbose = 0
    model.notes_ = {"target": table.target_name, "task": chosen, **_left_out(model, chosen, table.y)}
    save(model, out, force=force)
    result = {"model": str(out), "task": chosen, "points": table.X.shape[0], "fit_seconds": seconds}
    result |= {name: value for name, value in model.notes_.items() if name.startswith("left_out")}
    show(result, as_json, f"learned {table.target_name or 'y'}")


def make_model(task: str, fit_time: str | float, settings: dict[str, Any]) -> Any:
    """An estimator for a task; `fit_time` is not for processes."""
    from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKRegressor

    if task == "gp":
        return HCKGaussianProcessRegressor(**settings)
    kind = HCKRegressor if task == "regression" else HCKClassifier
    return kind(fit_time=fit_time, **settings)


def _left_out(model: Any, task: str, y: Any) -> dict[str, Any]:
    """How well left-out training points are predicted, which needs no other data."""
    if len(y) < 2 or (task != "gp" and model._left_out is None):  # memory was short, or the kernel is exact
        return {}
    if task == "classification":
        score = model.loo_decision_function()
        code = (score > 0).astype(int) if score.ndim == 1 else score.argmax(1)
        return {"left_out_accuracy": float(np.mean(model.classes_[code] == np.asarray(y)))}
    rest = np.abs(np.asarray(y, dtype=float) - model.loo_predict())
    found: dict[str, Any] = {"left_out_rmse": float(np.sqrt(np.mean(rest**2)))}
    return found if task == "gp" else found | {"intervals": intervals_of(rest)}


def intervals_of(rest: np.ndarray) -> list[list[float]]:
    """Levels and half widths of intervals, from the errors at left-out points.

    The k-th smallest of n errors is exceeded by a new one in (n + 1 - k) of n + 1 cases, so that with few
    points there are no intervals of a high level.
    """
    ordered, n = np.sort(rest), len(rest)
    places = [(level, math.ceil((n + 1) * level)) for level in LEVELS]
    return [[level, float(ordered[k - 1])] for level, k in places if k <= n]
