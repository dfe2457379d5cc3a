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
    """Load an estimator that was saved; see `hck.persistence.load`.

    Parameters
    ----------
    path : str or path-like
        The folder.
    device : str, torch.device or None, default=None
        Where the estimator is to compute.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import hck
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> model = hck.HCKRegressor(lengthscale=0.3, alpha=0.01, rank=16).fit(X, X[:, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model")
    ...     same = hck.load(f"{folder}/model")
    >>> bool(np.all(same.predict(X) == model.predict(X)))
    True
    """
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
