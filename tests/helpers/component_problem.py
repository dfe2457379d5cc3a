"""A small problem for kernel PCA."""

import numpy as np

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(130, 3)), RNG.normal(size=(17, 3))


def shared_letters(a, b):
    """Of words, relative to their lengths: an inner product."""
    return np.array(
        [[len(set(s) & set(t)) / np.sqrt(len(set(s)) * len(set(t))) for t in b] for s in a], dtype=float
    )
