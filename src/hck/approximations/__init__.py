"""Other kernels that stand in for a kernel, behind one protocol: what the hierarchical one competes with."""

from hck.approximations.base import Approximation
from hck.approximations.exact import Exact
from hck.approximations.factorization import Factorization, Solution
from hck.approximations.features import FeatureMap
from hck.approximations.fourier import Fourier
from hck.approximations.hierarchical import TreeKernel
from hck.approximations.make import make_approximation
from hck.approximations.nystrom import Nystrom
from hck.approximations.preconditioners import Iterative
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
    "Solution",
    "Tapered",
    "TreeKernel",
    "make_approximation",
]
