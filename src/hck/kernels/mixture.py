"""The frequencies of a mixture of Gaussian kernels whose precisions have a gamma distribution.

The rational quadratic kernel (1 + s/2α)^−α is the mean of exp(−τs/2) over τ with the density of Gamma(α, α)
(Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, section 4.2). So ω is normal with the
variance τ, and its density is |ω|^ν K_ν(√(2α) |ω|) with ν = α − d/2, up to a constant.
"""

import numpy as np
from scipy.special import gammaincinv, gammaln, kve

_LARGE = 50.0  # orders of K from which on an expansion in 1/ν is precise
_LEAST = 1e-300


def precisions(alpha: float, uniform: np.ndarray) -> np.ndarray:
    """τ, from numbers that are uniform in [0, 1)."""
    return gammaincinv(alpha, uniform) / alpha


def log_density(alpha: float, size: np.ndarray, d: int) -> np.ndarray:
    """The logarithm of the density of frequencies of these lengths in d dimensions, up to a constant."""
    order = alpha - d / 2
    size = np.maximum(size, _LEAST)
    return order * np.log(size) + _log_k(abs(order), np.sqrt(2 * alpha) * size)


def _log_k(order: float, z: np.ndarray) -> np.ndarray:
    """log K_ν(z) for ν ≥ 0 and z > 0."""
    if order > _LARGE:  # Abramowitz and Stegun, 9.7.8
        x = z / order
        t = 1 / np.sqrt(1 + x * x)
        turned = np.sqrt(1 + x * x) + np.log(x / (1 + np.sqrt(1 + x * x)))
        first = (3 * t - 5 * t**3) / 24
        return np.log(np.pi / (2 * order)) / 2 + np.log(t) / 2 - order * turned + np.log1p(-first / order)
    with np.errstate(all="ignore"):
        value = np.log(kve(order, z)) - z
        near = gammaln(order) + (order - 1) * np.log(2) - order * np.log(z)
    return np.where(np.isfinite(value), value, near)
