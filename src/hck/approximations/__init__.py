"""Other kernels that stand in for a kernel, behind one protocol: what the hierarchical one competes with."""

from hck.approximations._base import Approximation, Factorization, Predictor
from hck.approximations.exact import Exact
from hck.approximations.features import FeatureMap, Fourier, Nystrom
from hck.approximations.trees import TreeKernel

__all__ = [
    "Approximation",
    "Exact",
    "Factorization",
    "FeatureMap",
    "Fourier",
    "Nystrom",
    "Predictor",
    "TreeKernel",
]
