"""Other kernels that stand in for a kernel, behind one protocol: what the hierarchical one competes with."""

from hck.approximations._base import Approximation, Factorization
from hck.approximations.features import FeatureMap, Fourier, Nystrom

__all__ = ["Approximation", "Factorization", "FeatureMap", "Fourier", "Nystrom"]
