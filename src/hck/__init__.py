"""Kernel methods on millions of points, with hierarchically compositional kernels."""

from hck._version import __version__
from hck.errors import NotPositiveDefiniteError, NumericalWarning
from hck.estimators import HCKClassifier, HCKGaussianProcessRegressor, HCKKernelPCA, HCKRegressor
from hck.persistence import load

__all__ = [
    "HCKClassifier",
    "HCKGaussianProcessRegressor",
    "HCKKernelPCA",
    "HCKRegressor",
    "NotPositiveDefiniteError",
    "NumericalWarning",
    "__version__",
    "load",
]
