"""Kernel methods on millions of points, with hierarchically compositional kernels."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hck._version import __version__
from hck.backend.collector import collector_paused
from hck.errors import NotPositiveDefiniteError, NumericalWarning

if TYPE_CHECKING:
    from hck.estimators import (
        HCKClassifier,
        HCKGaussianProcessClassifier,
        HCKGaussianProcessRegressor,
        HCKKernelPCA,
        HCKRegressor,
    )

__all__ = [
    "HCKClassifier",
    "HCKGaussianProcessClassifier",
    "HCKGaussianProcessRegressor",
    "HCKKernelPCA",
    "HCKRegressor",
    "NotPositiveDefiniteError",
    "NumericalWarning",
    "__version__",
    "load",
]

_MODULES = (
    "approximations",
    "datasets",
    "estimators",
    "hierarchy",
    "kernels",
    "losses",
    "metrics",
    "partition",
    "persistence",
    "plotting",
)


def load(path: Any, device: Any = None) -> Any:
    """Load an estimator that was saved; see `hck.persistence.load`."""
    from hck.persistence import load  # and safetensors, only where it is needed

    return load(path, device)


def __getattr__(name: str) -> Any:
    """Estimators and modules, imported at first use: torch takes seconds, and ``hck --help`` needs none."""
    with collector_paused():
        if name in _MODULES:
            return import_module(f"hck.{name}")
        if name in __all__:
            return getattr(import_module("hck.estimators"), name)
    raise AttributeError(f"module 'hck' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
