"""A small problem for Gaussian processes, and models of it that learn nothing or everything."""

import numpy as np

from hck import HCKGaussianProcessRegressor
from hck.kernels import Matern

RNG = np.random.default_rng(0)
N = 90
X = RNG.uniform(size=(N, 2))
Y = np.sin(5 * X[:, 0]) + X[:, 1] + 0.1 * RNG.standard_normal(N)
NEW = RNG.uniform(size=(15, 2))
NOISE = 0.02
TREE = {"rank": 8, "random_state": 0}  # three levels or four


def fixed(kernel=None, **settings):
    """A model that learns nothing."""
    kernel = 1.7 * Matern([0.4, 0.9]) if kernel is None else kernel
    return HCKGaussianProcessRegressor(kernel, **{"noise": NOISE, "optimizer": None, **settings})


def learning(**settings):
    return HCKGaussianProcessRegressor(**{**TREE, "optimizer": "lbfgs", **settings})


def rational(a, b):
    return 1 / (1 + ((a[:, None] - b[None]) ** 2).sum(-1))


def changed(array, value):
    bad = array.copy()
    bad.flat[3] = value
    return bad
