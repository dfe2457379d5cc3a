"""Kernels, alone and made of each other, and the names of their parameters."""

import numpy as np
import pytest

from hck.kernels import CallableKernel, Gaussian, InverseMultiquadric, Laplace, Matern, kernel_names

SCALES = {"one": 0.7, "ard": [0.5, 1.0, 2.5]}
every_kernel = pytest.mark.parametrize("name", kernel_names())
every_scale = pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)


def dot(a, b):
    """A kernel with nothing to learn."""
    return 1 + a @ b.T


# Each kernel made of others, and the names of its parameters.
COMPOSED = {
    "scaled": (2.0 * Gaussian(0.5), ["lengthscale", "scale"]),
    "sum": (
        Gaussian(0.5) + Laplace([1.0, 2.0, 3.0]),
        ["left.lengthscale", "right.lengthscale"],
    ),
    "product": (Matern(0.5) * Laplace(3.0), ["left.lengthscale", "right.lengthscale"]),
    "scaled_sum": (
        2.0 * (3.0 * Gaussian(0.5) + Matern(2.0, nu=2.5)),
        ["left.lengthscale", "left.scale", "right.lengthscale", "scale"],
    ),
    "deep": (
        0.5 * (2.0 * Gaussian(0.5) + Laplace(1.5) * (3.0 * InverseMultiquadric([1.0, 2.0, 0.5]))),
        [
            "left.lengthscale",
            "left.scale",
            "right.left.lengthscale",
            "right.right.lengthscale",
            "right.right.scale",
            "scale",
        ],
    ),
    "scaled_twice": (2.0 * (3.0 * Gaussian(0.5)), ["lengthscale", "inner.scale", "scale"]),
    "scaled_product_of_scaled": (
        2.0 * ((3.0 * Gaussian(0.5)) * (4.0 * Laplace(1.5))),
        ["left.lengthscale", "left.scale", "right.lengthscale", "right.scale", "scale"],
    ),
    "function": (2.0 * CallableKernel(dot) + Gaussian(1.0), ["left.scale", "right.lengthscale"]),
}
every_composed = pytest.mark.parametrize(("kernel", "names"), COMPOSED.values(), ids=COMPOSED)


def plain(kernel):
    """Parameters as lists and floats."""
    return {name: np.asarray(value).tolist() for name, value in kernel.parameters().items()}
