"""Training on data that do not fit into memory, on one machine.

X and y stay where they are: memory-mapped `.npy` files, HDF5 and zarr arrays, folders of parquet files. Their
rows are dealt out to the branches of a tree, files in a folder; the branches are worked on one after another,
up and then down. What has been finished is kept, so that a run that was stopped goes on from there.

The estimators `DiskHCKRegressor` and `DiskHCKClassifier` stand above (`hck.estimators.disk`), and are shown
here too.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from hck.outofcore.rows import ArrayRows, ParquetRows, Rows, as_rows

if TYPE_CHECKING:
    from hck.estimators.disk import DiskHCKClassifier, DiskHCKRegressor

__all__ = ["ArrayRows", "DiskHCKClassifier", "DiskHCKRegressor", "ParquetRows", "Rows", "as_rows"]


def __getattr__(name: str) -> object:
    """Estimators, imported at first use."""
    if name in __all__:
        return getattr(import_module("hck.estimators.disk"), name)
    raise AttributeError(f"module 'hck.outofcore' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
