"""Tables of data, as commands take them: read, and refused where nothing can be learned from them."""

import os
import warnings
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from hck.cli._common import Estimator
from hck.cli._dates import as_dates, with_dates
from hck.cli._places import Note, placed, placed_table
from hck.datasets import Table, read_table
from hck.datasets.npz import parts_of
from hck.datasets.read import format_of
from hck.datasets.table import Features, listed, refuse_records

if TYPE_CHECKING:
    import pandas as pd

MOST_CLASSES = 20  # of whole numbers, to be taken as classes
_NEARLY = 0.9  # of a column, so that the rest look like mistakes
_REMEDY = "fill them, or leave these records out"
_NUMBERS = ("regression", "gp")  # tasks whose targets are numbers


def for_training(
    path: Path, target: str | None, part: str | None, task: str, places: Sequence[Note] = ()
) -> tuple[Table, str]:
    """A table with a target, or an error that says how to name it; and what to learn, if task is "auto".

    Columns of text that are dates become dates; those that are `places` are replaced by coordinates.
    """
    table = read_table(path, _typed(target), part=_part(path, part, "train"))
    if table.y is None:
        known = f" (it has {listed(table.feature_names)})" if table.feature_names else ""
        raise ValueError(f"--target is needed: the column of {path.name} to predict{known}")
    if table.X.shape[1] == 0:
        raise ValueError(f"{path.name} has no columns beside the target")
    y, X = table.y, table.X
    if hasattr(X, "columns"):
        X = with_dates(_without_numbering(X, path.name))
    _check_features(X, path.name)
    table = placed_table(replace(table, X=X), list(places), path.name)
    _refuse_strays(y, f"the target {table.target_name!r}", path.name)
    task = task_of(y) if task == "auto" else task
    check_task(task, y, path)
    return table, task


def task_of(y: np.ndarray) -> str:
    """What a target asks for: classes if it has words, or a few whole numbers."""
    if y.dtype.kind not in "fiu":
        return "classification"
    return "classification" if _few_whole(np.unique(y)) else "regression"


def check_task(task: str, y: np.ndarray, path: Path) -> None:
    """Raise an error if a target is not of the kind that a task needs."""
    if task in _NUMBERS:
        if y.dtype.kind not in "fiu":
            raise ValueError(f"{path.name}: the target must be numbers, but there is {_first(y)}")
        if not np.isfinite(y).all():
            raise ValueError(f"{path.name}: the target is infinite in record {_where(~np.isfinite(y))}")
    elif len(np.unique(y.astype(str))) < 2:
        raise ValueError(f"{path.name}: the target is {_first(y)} in all records: nothing to tell apart")


def for_model(
    model: Estimator, path: Path, target: str | None = None, part: str | None = None, scored: bool = False
) -> tuple[Features, np.ndarray | None]:
    """The features that a model was trained with, and the target if the table has it.

    Unless predictions are to be `scored`, the target may be missing in some records, or in all.
    """
    # LIBSVM text leaves out last columns that are 0, but a model knows how many there are.
    width = model.n_features_in_ if format_of(path) == "libsvm" else None
    table = read_table(path, part=_part(path, part, "test"), n_features=width, target_needed=scored)
    if hasattr(table.X, "columns"):
        name = _typed(target) or getattr(model, "notes_", {}).get("target")
        if name is not None and (target is not None or name in table.X.columns):
            table = table.with_target(name, path.name, scored)
    elif target is not None:
        raise ValueError(f"{path.name} says what its target is: leave --target out")
    X = placed(table.X, getattr(model, "notes_", {}).get("places", []), path.name)
    return _arranged(model, X, path), table.y


def for_scoring(
    model: Estimator, path: Path, target: str | None, part: str | None
) -> tuple[Features, np.ndarray]:
    """The features, and the target, which must be there and of the kind that a model predicts."""
    X, y = for_model(model, path, target, part, scored=True)
    if y is None:
        raise ValueError(f"{path.name} does not have the target; name it with --target")
    if not hasattr(model, "classes_"):
        check_task("regression", y, path)
    elif not np.isin(y.astype(str), _texts(model.classes_, y)).any():
        raise ValueError(
            f"{path.name}: the target is never one of the model's classes ({listed(model.classes_, 5)}), but "
            f"for example {_first(y)}"
        )
    return X, y


def rows(X: Features, which: np.ndarray | slice) -> Features:
    """Some records of a frame, an array or a sparse matrix."""
    return X.iloc[which] if hasattr(X, "iloc") else X[which]


def _without_numbering(X: "pd.DataFrame", source: str) -> "pd.DataFrame":
    """A frame without a first column that has no name and numbers the records, as many programs write it.

    There new records lie beyond all old ones. Files with that column and without have the same predictions.
    """
    import pandas as pd

    first = X.iloc[:, 0]
    if (
        X.shape[1] < 2
        or not str(first.name).startswith("Unnamed: ")
        or not pd.api.types.is_integer_dtype(first)
    ):
        return X
    if not np.array_equal(first - first.iloc[0], np.arange(len(X))) or first.iloc[0] not in (0, 1):
        return X
    warnings.warn(
        f"{source}: the first column has no name and numbers the records; it is left out",
        UserWarning,
        stacklevel=2,
    )
    return X.iloc[:, 1:]


# Reading ---------------------------------------------------------------------------------------------


def _typed(name: str | None) -> str | None:
    """A name from the command line, which the C locale hands over byte by byte."""
    if name is None or not any("\udc80" <= letter <= "\udcff" for letter in name):
        return name
    return os.fsencode(name).decode("utf-8", "surrogateescape")


def _part(path: Path, part: str | None, usual: str) -> str | None:
    """Of an npz file with a part to train and one to test: the usual one, unless another was asked for."""
    if part is None and path.suffix == ".npz" and path.is_file() and usual in parts_of(path):
        return usual
    return part


def _arranged(model: Estimator, X: Features, path: Path) -> Features:
    """Columns as the model knows them: by name, if both have names."""
    from hck.estimators.inspection import columns_of

    names = getattr(model, "feature_names_in_", None)
    if names is not None and hasattr(X, "columns"):
        missing = [name for name in names if name not in X.columns]
        if missing:
            raise ValueError(f"{path.name} has no column {missing[0]!r}, which the model was trained with")
        X = X[list(names)]
    elif X.shape[1] != (known := model.n_features_in_):
        raise ValueError(f"{path.name} has {X.shape[1]} columns, but the model was trained with {known}")
    known = columns_of(model)
    if known is not None and hasattr(X, "columns"):
        X = as_dates(X, known.dates, path.name)
    _check_features(X, path.name, () if known is None else known.positions)
    if names is None and hasattr(X, "columns"):
        return X.to_numpy(dtype=float)
    if names is not None and not hasattr(X, "columns"):
        import pandas as pd

        return X if sp.issparse(X) else pd.DataFrame(X, columns=names)
    return X


# Checking --------------------------------------------------------------------------------------------


def _check_features(X: Features, source: str, categories: Collection[int] | None = None) -> None:
    """Numbers that are there must be finite. Words are categories, unless most of a column are numbers.

    `categories` are positions of the columns that may have words; None: any.
    """
    if not hasattr(X, "columns"):
        return _check_array(X, source)
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    for i, name in enumerate(X.columns):
        column, called = X.iloc[:, i], f"column {name!r}"
        if categories is not None and i in categories:
            continue
        if is_numeric_dtype(column.dtype) or is_bool_dtype(column.dtype):
            values = column.to_numpy(dtype=float, na_value=np.nan)
            refuse_records(np.isinf(values), f"{called} is infinite", source, _REMEDY)
        elif categories is None:
            _refuse_strays(column, called, source)
        else:
            word = ~_numbers_in(column) & ~np.asarray(column.isna())
            if word.any():
                raise ValueError(
                    f"{source}: {called} must be numbers, as the model was trained with, but record "
                    f"{_where(word)} has {column.iloc[int(np.argmax(word))]!r}"
                )


def _check_array(X: Features, source: str) -> None:
    values = X.data if sp.issparse(X) else np.asarray(X)
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{source}: X must be numbers, but its dtype is {values.dtype}")
    bad = ~np.isfinite(values) if sp.issparse(X) else np.isinf(values)
    if not bad.any():
        return
    first, what = int(np.argmax(bad.ravel())), "missing or infinite" if sp.issparse(X) else "infinite"
    record = np.searchsorted(X.indptr, first, side="right") - 1 if sp.issparse(X) else first // X.shape[1]
    feature = X.indices[first] if sp.issparse(X) else first % X.shape[1]
    raise ValueError(
        f"{source}: column {feature + 1} is {what} in record {record + 1:,} ({bad.sum():,} such "
        f"values in all): {_REMEDY}"
    )


def _refuse_strays(column: "pd.Series | np.ndarray", called: str, source: str) -> None:
    """A few words in a column of numbers are mistakes, not categories."""
    import pandas as pd

    values = np.asarray(column)
    if values.dtype.kind in "fiubM" or getattr(column.dtype, "kind", "") == "M":
        return
    number, there = _numbers_in(column), ~np.asarray(pd.isna(column))
    word = there & ~number
    if not word.any() or number.sum() < _NEARLY * there.sum():
        return
    if not _few_whole(np.unique(values[number].astype(float))):
        raise ValueError(
            f"{source}: {called} has numbers in {number.sum():,} of {len(values):,} records, but record "
            f"{_where(word)} has {values[int(np.argmax(word))]!r}: mend it, or leave the record out"
        )


def _numbers_in(column: "pd.Series | np.ndarray") -> np.ndarray:
    """Which values are numbers, or words for numbers."""
    import pandas as pd

    parsed = pd.to_numeric(pd.Series(np.asarray(column, dtype=object)), errors="coerce")
    return parsed.notna().to_numpy()


def _few_whole(different: np.ndarray) -> bool:
    return len(different) <= MOST_CLASSES and bool((different == different.round()).all())


def _texts(classes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Classes as text, written as y's values are: 1 and 1.0 are the same."""
    numbers = classes.dtype.kind in "fiu" and y.dtype.kind in "fiu"
    return (classes.astype(y.dtype) if numbers else classes).astype(str)


def _first(values: np.ndarray) -> str:
    return repr(values[0].item() if hasattr(values[0], "item") else values[0])


def _where(which: np.ndarray) -> str:
    """The first record that is meant, as people count."""
    return f"{int(np.argmax(which)) + 1:,}"
