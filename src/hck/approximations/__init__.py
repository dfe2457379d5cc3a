"""Other kernels that stand in for a kernel, behind one protocol: what the hierarchical one competes with."""

from hck.approximations.base import Approximation, Factorization
from hck.approximations.exact import Exact
from hck.approximations.features import FeatureMap, Fourier, Nystrom
from hck.approximations.hierarchical import TreeKernel
from hck.approximations.make import Iterative, make_approximation
from hck.approximations.tapered import Tapered
from hck.hierarchy.forest import Predictor

__all__ = [
    "Approximation",
    "Exact",
    "Factorization",
    "FeatureMap",
    "Fourier",
    "Iterative",
    "Nystrom",
    "Predictor",
    "Tapered",
    "TreeKernel",
    "make_approximation",
]
