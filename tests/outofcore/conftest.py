import numpy as np
import pytest


@pytest.fixture(scope="session")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(6000, 3))
    y = np.sin(6 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(6000)
    return X, y, rng.uniform(size=(500, 3))
