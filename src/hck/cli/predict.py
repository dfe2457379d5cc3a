"""hck predict, hck evaluate"""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from hck.cli._common import AsJson, Data, Force, Model, Target, free, show, write

Level = Annotated[float, typer.Option(help="Of intervals: 0.5, 0.8, 0.9, 0.95 or 0.99; any for gp.")]
OnDevice = Annotated[str | None, typer.Option(help="cpu or cuda; by default where it was trained.")]


def predict(
    model: Model,
    data: Data,
    out: Annotated[Path, typer.Option(help="The CSV file for predictions.", show_default=False)],
    level: Level = 0.95,
    device: OnDevice = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Predict with a saved model: values with intervals, or classes with probabilities.

    [bold]hck predict model/ new.csv --out predicted.csv[/bold]
    """
    import pandas as pd

    from hck.cli._tables import features_for
    from hck.persistence import load

    free(out, force)
    loaded = load(model, device)
    X, _ = features_for(loaded, data, None)
    columns = predictions(loaded, X, level)
    write(out, pd.DataFrame(columns).to_csv(index=False), force)
    rows = len(next(iter(columns.values())))
    show({"predictions": str(out), "rows": rows, "columns": ", ".join(columns)}, as_json)


def predictions(model: Any, X: Any, level: float = 0.95) -> dict[str, np.ndarray]:
    """Columns of predictions: with lower and upper ends, or with probabilities, where they are known."""
    if hasattr(model, "classes_"):
        found = {"prediction": model.predict(X)}
        if getattr(model, "calibration_", None) is not None:
            proba = model.predict_proba(X)
            found |= {f"p_{name}": proba[:, k] for k, name in enumerate(model.classes_)}
        return found
    if hasattr(model, "posterior_"):
        from scipy.special import ndtri

        if not 0 < level < 1:
            raise ValueError(f"--level must be between 0 and 1, got {level}")
        mean, std = model.predict(X, return_std=True, observed=not np.ndim(model.noise_))
        half = ndtri((1 + level) / 2) * std
        return {"prediction": mean, "std": std, "lower": mean - half, "upper": mean + half}
    value = model.predict(X)
    known = getattr(model, "notes_", {}).get("intervals", {})
    if value.ndim > 1:
        return {f"prediction_{k}": column for k, column in enumerate(value.T)}
    if not known:
        return {"prediction": value}
    if str(level) not in known:
        raise ValueError(f"--level {level} is not known for this model; use one of {', '.join(known)}")
    half = known[str(level)]
    return {"prediction": value, "lower": value - half, "upper": value + half}


def evaluate(
    model: Model,
    data: Data,
    target: Target = None,
    device: OnDevice = None,
    as_json: AsJson = False,
) -> None:
    """How good a saved model is on data whose target is known.

    [bold]hck evaluate model/ test.csv[/bold]
    """
    from hck.cli._tables import features_for
    from hck.persistence import load

    loaded = load(model, device)
    X, y = features_for(loaded, data, target)
    if y is None:
        raise ValueError(f"{data.name} does not have the target; name it with --target")
    show(scores(loaded, X, y), as_json, f"{model} on {data.name}")


def scores(model: Any, X: Any, y: Any) -> dict[str, Any]:
    """Metrics of a model on data."""
    from hck import metrics

    found: dict[str, Any] = {"points": len(y)}
    if hasattr(model, "classes_"):
        found["accuracy"] = metrics.accuracy(y, model.predict(X))
        if getattr(model, "calibration_", None) is not None and set(np.unique(y)) <= set(model.classes_):
            found["log_loss"] = metrics.log_loss(y, model.predict_proba(X), model.classes_)
        return found
    y = np.asarray(y, dtype=float)
    columns = predictions(model, X)
    mean = columns["prediction"]
    found["rmse"] = metrics.rmse(y, mean)
    found["mae"] = metrics.mae(y, mean)
    found["relative_error"] = metrics.relative_error(y, mean)
    if np.ptp(y) > 0:
        found["r2"] = metrics.r2(y, mean)
    if "std" in columns:
        found["nlpd"] = metrics.nlpd(y, mean, columns["std"])
        found["crps"] = metrics.crps(y, mean, columns["std"])
    if "lower" in columns:
        inside = (columns["lower"] <= y) & (y <= columns["upper"])
        found["inside_95%_intervals"] = float(np.mean(inside))
    return found
