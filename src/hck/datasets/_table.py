"""A table: features, and a target if there is one."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Table:
    """Features of records, and a target if there is one.

    Attributes
    ----------
    X : ndarray, CSR matrix or pandas.DataFrame of shape (n, d)
    y : ndarray of shape (n,) or None
    feature_names : list of str or None
    target_name : str or None
    """

    X: Any
    y: np.ndarray | None = None
    feature_names: list[str] | None = None
    target_name: str | None = None


def refuse_missing(missing: np.ndarray, target: str, path: Path) -> None:
    """Nothing can be learned from a record whose target is missing.

    Parameters
    ----------
    missing : ndarray of bool
        Which targets are.
    """
    if missing.any():
        raise ValueError(
            f"{path.name}: {target} is missing in {missing.sum():,} of {len(missing):,} records, the first "
            f"of them record {np.argmax(missing) + 1:,}: leave these records out"
        )
