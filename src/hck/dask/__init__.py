"""Data and models that are spread over the workers of a Dask cluster.

A tree is cut into branches (`hck.branches`). Rows of Dask arrays and dataframes are brought to the worker
that has their branch, and stay there; after that only small messages travel. The result is that of one
machine on the same tree. Needs ``pip install "hck[dask]"``; `docs/distributed.md` says how to start a
cluster.

The estimators stand above (`hck.estimators.distributed`), and are shown here too.
"""

from importlib import import_module
from typing import TYPE_CHECKING

try:
    import dask.array  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(f'hck.dask needs Dask: pip install "hck[dask]" ({error})') from error

from hck.dask.cluster import Traffic

if TYPE_CHECKING:
    from hck.estimators.distributed import (
        DaskHCKClassifier,
        DaskHCKGaussianProcessRegressor,
        DaskHCKRegressor,
    )

__all__ = ["DaskHCKClassifier", "DaskHCKGaussianProcessRegressor", "DaskHCKRegressor", "Traffic"]


def __getattr__(name: str) -> object:
    """Estimators, imported at first use."""
    if name in __all__:
        return getattr(import_module("hck.estimators.distributed"), name)
    raise AttributeError(f"module 'hck.dask' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
