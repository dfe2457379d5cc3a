"""Base kernels k(x, x').

Each can be evaluated on dense, batched and sparse points, has one lengthscale or one per feature, and can
be added, multiplied and scaled. Any function of two blocks of points is a kernel too.
"""

from collections.abc import Callable
from typing import Any

from hck.kernels.algebra import Product, Scaled, Sum
from hck.kernels.base import Kernel
from hck.kernels.function import CallableKernel
from hck.kernels.stationary import Gaussian, InverseMultiquadric, Laplace, Matern

__all__ = [
    "CallableKernel",
    "Gaussian",
    "InverseMultiquadric",
    "Kernel",
    "Laplace",
    "Matern",
    "Product",
    "Scaled",
    "Sum",
    "make_kernel",
]

_BY_NAME: dict[str, Callable[[Any], Kernel]] = {
    "gaussian": Gaussian,
    "laplace": Laplace,
    "inverse_multiquadric": InverseMultiquadric,
    "matern12": lambda lengthscale: Matern(lengthscale, nu=0.5),
    "matern32": lambda lengthscale: Matern(lengthscale, nu=1.5),
    "matern52": lambda lengthscale: Matern(lengthscale, nu=2.5),
}


def make_kernel(kernel: Any, lengthscale: Any = None) -> Kernel:
    """A Kernel from a name and a lengthscale, from a function, or from a Kernel.

    Parameters
    ----------
    kernel : str, Kernel or callable
        A name: ``"gaussian"``, ``"laplace"``, ``"inverse_multiquadric"``, ``"matern12"``, ``"matern32"``
        or ``"matern52"``; a kernel; or a function k(A, B) (see `CallableKernel`).
    lengthscale : float, array-like of shape (n_features,) or None
        For named kernels; None means 1. Other kernels carry their own.
    """
    if isinstance(kernel, str):
        if kernel not in _BY_NAME:
            raise ValueError(f"unknown kernel {kernel!r}; known kernels: {', '.join(_BY_NAME)}")
        return _BY_NAME[kernel](1.0 if lengthscale is None else lengthscale)
    if not (isinstance(kernel, Kernel) or callable(kernel)):
        raise TypeError(f"kernel must be a name, a Kernel or a function k(A, B), got {kernel!r}")
    if lengthscale is not None:
        raise ValueError(
            "lengthscale is for kernels given by name; a Kernel or a function carries its own, "
            "so leave lengthscale=None"
        )
    return kernel if isinstance(kernel, Kernel) else CallableKernel(kernel)
