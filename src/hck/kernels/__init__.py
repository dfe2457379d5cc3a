"""Base kernels k(x, x').

Each can be evaluated on dense, batched and sparse points, has one lengthscale, one per feature or a
matrix as its metric, and can be added, multiplied and scaled. Any function of two blocks of points is a
kernel too.
"""

from hck.kernels import families
from hck.kernels.base import Kernel, Product, Scaled, Sum
from hck.kernels.families import *  # noqa: F403
from hck.kernels.function import CallableKernel
from hck.kernels.precomputed import Precomputed
from hck.kernels.registry import kernel_classes, kernel_names, make_kernel, named

__all__ = [
    "CallableKernel",
    "Kernel",
    "Precomputed",
    "Product",
    "Scaled",
    "Sum",
    "kernel_classes",
    "kernel_names",
    "make_kernel",
    "named",
]
__all__ += families.__all__
