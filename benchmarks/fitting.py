"""A fit by hck as a user has it, for benchmarks of its time."""

from typing import Any

import numpy as np

from datasets import load
from hck import HCKClassifier, HCKRegressor
from hck.datasets import is_at_hand, synthetic


def training_data(name: str, rows: int | None = None) -> tuple[Any, np.ndarray]:
    """Features and targets of a data set, unscaled; made up if it is not at hand."""
    data = load(name, prepare=False) if is_at_hand(name) else synthetic(name)
    return data.X_train[:rows], data.y_train[:rows]


def fit(parts: tuple[Any, np.ndarray], fit_time: str, seed: int = 0, **options: Any) -> Any:
    """A model with defaults but for these; numbers are regression, integers and words are classes."""
    kind = HCKRegressor if parts[1].dtype.kind == "f" else HCKClassifier
    return kind(fit_time=as_fit_time(fit_time), random_state=seed, **options).fit(*parts)


def as_fit_time(text: str) -> str | float:
    """A name, or seconds."""
    return text if text in ("fast", "balanced", "best") else float(text)
