"""Kernel methods on millions of points, with hierarchically compositional kernels."""

from hck._version import __version__
from hck.errors import NotPositiveDefiniteError, NumericalWarning
from hck.estimators import HCKClassifier, HCKGaussianProcessRegressor, HCKKernelPCA, HCKRegressor

__all__ = [
    "HCKClassifier",
    "HCKGaussianProcessRegressor",
    "HCKKernelPCA",
    "HCKRegressor",
    "NotPositiveDefiniteError",
    "NumericalWarning",
    "__version__",
]
