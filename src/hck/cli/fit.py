"""hck fit"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from hck.cli import _options as option
from hck.cli._common import Estimator, as_time, check_device, free_folder, one_of, progress, show

_KERNELS, _APPROXIMATIONS = ", ".join(option.KERNELS), ", ".join(option.APPROXIMATIONS)


@dataclass(frozen=True)
class Learning:
    """What is learned, and with which kernel."""

    target: option.Target = None
    task: Annotated[
        option.Task, typer.Option(help="What to learn; auto looks at the target. gp: a Gaussian process.")
    ] = option.Task.auto
    fit_time: Annotated[
        str | None, option.chosen("fast, balanced, best, or seconds.", option.TIMES, "balanced")
    ] = None
    kernel: Annotated[
        str | None,
        option.chosen(f"The base kernel: {_KERNELS}; chosen if it is not given.", option.KERNELS, False),
    ] = None
    approximation: Annotated[
        str, option.chosen(f"What stands in for the kernel: {_APPROXIMATIONS}.", option.APPROXIMATIONS)
    ] = "hierarchical"
    rank: Annotated[int | None, option.given("r; chosen if it is not given.", min=1)] = None
    n_trees: Annotated[int | None, option.given("Trees to average; chosen if not given.", min=1)] = None
    memory: Annotated[str | None, option.given("That training may take, such as 4GiB.")] = None
    sphere: Annotated[
        list[str] | None, option.given("Two columns that are degrees on the earth: lat,lon.")
    ] = None
    circle: Annotated[list[str] | None, option.given("A column that comes back: hour=24.")] = None

    def settings(self) -> dict[str, Any]:
        """Parameters of an estimator, those that were given."""
        one_of("--approximation", self.approximation, option.APPROXIMATIONS)
        given = {"kernel": self.kernel, "rank": self.rank, "n_trees": self.n_trees}
        chosen = {name: value for name, value in given.items() if value is not None}
        return {"approximation": self.approximation, "memory_budget": self.memory, **chosen}


def fit(
    data: option.Data,
    out: Annotated[Path, option.given("The folder for the model.")],
    learning: Learning,
    training: option.Training,
    output: option.Output,
) -> None:
    """Learn from a table and save the model.

    [bold]hck fit houses.csv --target price --out model/[/bold]
    """
    from hck.cli._places import notes_of
    from hck.cli._tables import for_training
    from hck.persistence import save

    free_folder(out, output.force)
    settings = learning.settings()
    settings |= {"device": check_device(training.device), "random_state": training.seed}
    limit = as_time(learning.fit_time or "balanced")
    places = notes_of(learning.sphere, learning.circle)
    table, task = for_training(data, learning.target, training.part, learning.task, places)
    model = make_model(task, limit, settings | {"verbose": progress(output.quiet)})
    start = time.perf_counter()
    model.fit(table.X, table.y)
    seconds = time.perf_counter() - start
    model.verbose = 0
    left_out = _left_out(model, task, np.asarray(table.y))
    model.notes_ = {"target": table.target_name, "task": task, "places": places, **left_out}
    save(model, out, force=output.force)
    result = {"model": str(out), "task": task, "points": table.X.shape[0], "fit_seconds": seconds}
    result |= {name: value for name, value in left_out.items() if name.startswith("left_out")}
    show(result, output.as_json, f"learned {table.target_name or 'y'}")


def make_model(task: str, fit_time: str | float, settings: dict[str, Any]) -> Estimator:
    """An estimator for a task."""
    from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKRegressor

    kinds = {"gp": HCKGaussianProcessRegressor, "regression": HCKRegressor, "classification": HCKClassifier}
    return kinds[task](fit_time=fit_time, **settings)


def _left_out(model: Estimator, task: str, y: np.ndarray) -> dict[str, Any]:
    """How well left-out training points are predicted, which needs no other data."""
    from hck import metrics
    from hck.estimators.inspection import has_left_out

    if len(y) < 2 or (task != "gp" and not has_left_out(model)):  # memory was short, or the kernel is exact
        return {}
    if task == "classification":
        score = model.loo_decision_function()
        code = (score > 0).astype(int) if score.ndim == 1 else score.argmax(1)
        return {"left_out_accuracy": metrics.accuracy(y, model.classes_[code])}
    return {"left_out_rmse": metrics.rmse(y, model.loo_predict())}
