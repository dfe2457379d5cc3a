"""Estimators whose data and model are spread over the workers of a Dask cluster; see `hck.dask`."""

from hck.estimators.distributed.gaussian_process import DaskHCKGaussianProcessRegressor
from hck.estimators.distributed.ridge import DaskHCKClassifier, DaskHCKRegressor

__all__ = ["DaskHCKClassifier", "DaskHCKGaussianProcessRegressor", "DaskHCKRegressor"]
