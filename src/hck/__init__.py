"""Kernel methods on millions of points, with hierarchically compositional kernels."""

from typing import Any

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
    "load",
]


def load(path: Any, device: Any = None) -> Any:
    """Load an estimator that was saved; see `hck.persistence.load`."""
    from hck.persistence import load  # and safetensors, only where it is needed

    return load(path, device)
