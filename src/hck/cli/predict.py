"""hck predict, hck evaluate"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from hck.backend.kinds import DEVICE_NAMES
from hck.backend.progress import track
from hck.cli import _options as option
from hck.cli._common import Estimator, check_device, free, progress, show, show_written, write

if TYPE_CHECKING:
    from hck.datasets.table import Features

_BLOCK = 50_000  # points whose predictions are one step of the progress
_USUAL = 0.95


@dataclass(frozen=True)
class Asked:
    """What is predicted, and where."""

    level: Annotated[
        float,
        typer.Option(
            help="Of intervals: the share of new observations that they should hold. They are as wide as "
            "left-out training points ask for."
        ),
    ] = _USUAL
    part: option.Part = None
    device: Annotated[str | None, option.given(f"{DEVICE_NAMES}; by default where it was trained.")] = None

    def load(self, model: Path) -> Estimator:
        """A saved model, on the device, if it knows intervals of the level."""
        from hck.persistence import load

        loaded = load(model, None if self.device is None else check_device(self.device))
        if not hasattr(loaded, "predict"):
            raise ValueError(
                f"{model} is a {type(loaded).__name__}, which predicts nothing: use its transform"
            )
        has_intervals(loaded, self.level)  # or an error, before anything is read
        return loaded


def predict(
    model: option.Model,
    data: option.Data,
    out: Annotated[Path, option.given("The CSV file for predictions.")],
    asked: Asked,
    output: option.Output,
) -> None:
    """Predict with a saved model: values with intervals, or classes with probabilities.

    [bold]hck predict model/ new.csv --out predicted.csv[/bold]
    """
    import pandas as pd

    from hck.cli._tables import for_model

    free(out, output.force)
    loaded = asked.load(model)
    X, _ = for_model(loaded, data, part=asked.part)
    columns = predictions(loaded, X, asked.level, bool(progress(output.quiet)))
    write(out, pd.DataFrame(columns).to_csv(index=False))
    rows = len(next(iter(columns.values())))
    told = {"predictions": str(out), "rows": rows, "columns": ", ".join(columns)}
    show_written(out, told, output.as_json)


def evaluate(
    model: option.Model,
    data: option.Data,
    *,
    target: option.Target = None,
    asked: Asked,
    shown: option.Shown,
) -> None:
    """How good a saved model is on data whose target is known.

    [bold]hck evaluate model/ test.csv[/bold]
    """
    from hck.cli._tables import for_scoring

    loaded = asked.load(model)
    X, y = for_scoring(loaded, data, target, asked.part)
    columns = predictions(loaded, X, asked.level, bool(progress(shown.quiet)))
    show(scores(loaded, columns, y, asked.level), shown.as_json, f"{model} on {data.name}")


# Predictions -----------------------------------------------------------------------------------------


def predictions(
    model: Estimator, X: "Features", level: float = _USUAL, verbose: bool = False
) -> dict[str, np.ndarray]:
    """Columns of predictions: with lower and upper ends, or with probabilities, where they are known."""
    from hck.cli._tables import rows

    starts = range(0, X.shape[0], _BLOCK)
    blocks = track(starts, "Predict", verbose and len(starts) > 1)
    found = [_predictions(model, rows(X, slice(start, start + _BLOCK)), level) for start in blocks]
    return {name: np.concatenate([each[name] for each in found]) for name in found[0]}


def _predictions(model: Estimator, X: "Features", level: float) -> dict[str, np.ndarray]:
    if hasattr(model, "classes_"):
        found = {"prediction": model.predict(X)}
        if getattr(model, "calibration_", None) is not None or hasattr(model, "posteriors_"):
            proba = model.predict_proba(X)
            found |= {f"p_{name}": proba[:, k] for k, name in enumerate(model.classes_)}
        return found
    if hasattr(model, "posterior_"):
        from hck.estimators.inspection import reach_of

        mean, std = model.predict(X, return_std=True, observed=not np.ndim(model.noise_))
        half = reach_of(model, level) * std
        return _by_target({"prediction": mean, "std": std, "lower": mean - half, "upper": mean + half})
    names = ("prediction", "lower", "upper")
    values = model.predict(X, interval=level) if has_intervals(model, level) else (model.predict(X),)
    return _by_target(dict(zip(names, values, strict=False)))


def _by_target(found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Columns of each target, where there are several."""
    if found["prediction"].ndim == 1:
        return found
    targets = range(found["prediction"].shape[1])
    return {f"{name}_{k}": value[:, k] for k in targets for name, value in found.items()}


def has_intervals(model: Estimator, level: float) -> bool:
    """Whether predictions have intervals; an error if a level that was asked for is not possible."""
    from hck.estimators import inspection

    if not 0 < level < 1:
        raise ValueError(f"--level must be between 0 and 1, got {level}")
    if hasattr(model, "posterior_") or hasattr(model, "classes_"):
        return hasattr(model, "posterior_")
    if inspection.has_intervals(model, level):
        return True
    if level != _USUAL:
        raise ValueError(
            f"--level {level:g} is not known for this model: it has no intervals, since no training points "
            "were left out in `fit`, too few for this level, or by an earlier version of hck"
        )
    return False


# Scores ----------------------------------------------------------------------------------------------


def scores(
    model: Estimator, columns: dict[str, np.ndarray], y: np.ndarray, level: float = _USUAL
) -> dict[str, float]:
    """Metrics of a model's predictions of data."""
    from hck import metrics

    found: dict[str, float] = {"points": len(y)}
    if "prediction" not in columns:
        raise ValueError(
            "the model predicts several targets or quantiles at once, but a table has one target: use "
            "`score` in Python"
        )
    mean = columns["prediction"]
    if hasattr(model, "classes_"):
        known = np.isin(y, model.classes_)
        found["accuracy"] = metrics.accuracy(y, mean)
        if not known.all():
            found["of_unknown_class"] = int((~known).sum())
        elif len(columns) > 1:
            proba = np.stack([columns[f"p_{name}"] for name in model.classes_], axis=1)
            found["log_loss"] = metrics.log_loss(y, proba, model.classes_)
        return found
    y = np.asarray(y, dtype=float)
    found |= metrics.scores(y, mean, columns.get("std"))
    found.pop("coverage", None)  # that of the level, below
    if np.isnan(found["r2"]):
        del found["r2"]
    if "lower" in columns:
        inside = (columns["lower"] <= y) & (y <= columns["upper"])
        found[f"inside_{100 * level:g}%_intervals"] = float(np.mean(inside))
    return found
