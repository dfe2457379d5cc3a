"""A small problem for models that are saved."""

import numpy as np

from hck.approximations import Iterative

RNG = np.random.default_rng(0)
X, NEW = RNG.uniform(size=(200, 3)), RNG.uniform(size=(40, 3))


def function(x):
    return np.sin(4 * x[:, 0]) + x[:, 1] * x[:, 2]


Y = function(X) + 0.05 * RNG.normal(size=200)
NAMES = ["hierarchical", "compositional", "independent", "exact", "nystrom", "fourier", "tapered"]
EVERY = [*NAMES, Iterative(tolerance=1e-8, n_trees=2), Iterative("nystrom", 1), Iterative(None)]
GIVEN = {"kernel": "gaussian", "lengthscale": 0.5, "rank": 20, "random_state": 0}
RIDGE = {**GIVEN, "alpha": 0.02}
same = np.testing.assert_array_equal
