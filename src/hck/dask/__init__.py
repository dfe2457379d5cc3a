"""Estimators whose data and model are spread over the workers of a Dask cluster.

A tree is cut into branches (`hck.branches`). Rows of Dask arrays and dataframes are brought to the worker
that has their branch, and stay there; after that only small messages travel. The result is that of one
machine on the same tree. Needs ``pip install "hck[dask]"``; `docs/distributed.md` says how to start a
cluster.
"""

try:
    import dask.array  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(f'hck.dask needs Dask: pip install "hck[dask]" ({error})') from error

from hck.dask.gaussian_process import DaskHCKGaussianProcessRegressor
from hck.dask.ridge import DaskHCKClassifier, DaskHCKRegressor
from hck.dask.traffic import Traffic

__all__ = ["DaskHCKClassifier", "DaskHCKGaussianProcessRegressor", "DaskHCKRegressor", "Traffic"]
