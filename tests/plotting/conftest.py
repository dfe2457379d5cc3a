from collections.abc import Iterator

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from hck.kernels import Gaussian
from hck.partition import Tree, make_tree
from hck.points import as_points


@pytest.fixture(autouse=True)
def _quiet(one_thread: None) -> Iterator[None]:
    """No windows, and no figures left open."""
    matplotlib.use("Agg")
    yield
    plt.close("all")


@pytest.fixture
def grown():
    """A tree over points drawn at random, and the points."""

    def grow(n: int, leaf: int, d: int = 2, partition: str = "random_projection") -> tuple[Tree, np.ndarray]:
        X = np.random.default_rng(0).normal(size=(n, d))
        generator = torch.Generator().manual_seed(0)
        return make_tree(partition, as_points(X), Gaussian(1.0), leaf, leaf, generator), X

    return grow
