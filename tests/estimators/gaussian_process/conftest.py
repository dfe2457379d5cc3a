import pytest

from hck import HCKGaussianProcessRegressor
from process_problem import TREE, X, Y, fixed, learning, rational


@pytest.fixture(scope="session")
def learned():
    """A model with a deep tree that has learned everything. Not to be changed."""
    model = learning().fit(X, Y)
    assert model.tree_.depth > 2
    return model


@pytest.fixture(scope="session")
def fixed_tree():
    """A model with a deep tree and moderate parameters. Not to be changed."""
    return fixed(**TREE).fit(X, Y)


@pytest.fixture(scope="session")
def nothing():
    """A function as the kernel, and a fixed noise."""
    return HCKGaussianProcessRegressor(rational, noise=0.01, bounds={"noise": "fixed"}, **TREE).fit(X, Y)
