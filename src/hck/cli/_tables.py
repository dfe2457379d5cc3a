"""Tables of data, as commands take them."""

from pathlib import Path
from typing import Any

import numpy as np

from hck.datasets import Table, read_table

MOST_CLASSES = 20  # of whole numbers, to be taken as classes


def labelled(path: Path, target: str | None) -> Table:
    """A table with a target, or an error that says how to name it."""
    table = read_table(path, target)
    if table.y is None:
        known = ", ".join(map(str, (table.feature_names or [])[:8]))
        raise ValueError(f"--target is needed: the column of {path.name} to predict (it has {known}, …)")
    return table


def task_of(y: Any) -> str:
    """What a target asks for: classes if it has words, two values, or a few whole numbers."""
    values = np.asarray(y)
    if values.dtype.kind not in "fiu":
        return "classification"
    different = np.unique(values[~np.isnan(values.astype(float))])
    if len(different) == 2:
        return "classification"
    whole = bool((different == different.round()).all())
    return "classification" if whole and len(different) <= MOST_CLASSES else "regression"


def features_for(model: Any, path: Path, target: str | None) -> tuple[Any, Any]:
    """The features that a model was trained with, and the target if the table has it."""
    name = target or getattr(model, "notes_", {}).get("target")
    table = read_table(path, None)
    columns = getattr(table.X, "columns", None)
    if columns is None or name is None:
        return (table.X, table.y) if columns is None else (arranged(model, table.X, path), None)
    y = None
    if name in columns:
        y = np.asarray(table.X[name])
    elif target is not None:
        known = ", ".join(map(str, columns[:8]))
        raise ValueError(f"{path.name} has no column {target!r}; it has {known}, …")
    return arranged(model, table.X, path), y


def arranged(model: Any, X: Any, path: Path) -> Any:
    """Columns as the model knows them, by name."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return X
    missing = [name for name in names if name not in X.columns]
    if missing:
        raise ValueError(f"{path.name} has no column {missing[0]!r}, which the model was trained with")
    return X[list(names)]
