"""What cannot be saved is named, and nothing is written."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKRegressor
from hck.kernels import CallableKernel, Gaussian
from hck.partition import RandomProjection, Tree
from hck.persistence import load, save

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(60, 2))
Y = X.sum(1)
RIDGE = {"lengthscale": 0.5, "alpha": 0.1, "rank": 8, "random_state": 0}


def product(a, b):
    return np.exp(a @ b.T)


def letters(a, b):
    return np.array([[len(set(s) & set(t)) for t in b] for s in a], dtype=float)


def route(x):
    return (x[:, 0] > 0.5).astype(int)


class Mine(Gaussian):
    pass


class Own(RandomProjection):
    pass


class Child(HCKRegressor):
    pass


def refused(model, tmp_path, *words):
    with pytest.raises(TypeError) as info:
        save(model, tmp_path / "model")
    assert all(word in str(info.value) for word in words), str(info.value)
    assert list(tmp_path.iterdir()) == []


def test_functions_as_kernels(tmp_path):
    options = {"alpha": 0.1, "rank": 8, "random_state": 0}
    for kernel, words in (
        (product, ("its kernel is the function 'product'",)),
        (CallableKernel(product), ("its kernel is a kernel given by a function",)),
        (2.0 * (Gaussian(1.0) + CallableKernel(product)), ("its kernel.kernel.right is a kernel given by",)),
    ):
        refused(HCKRegressor(kernel, **options).fit(X, Y), tmp_path, *words, "hold data, no code")


def test_objects_as_points(tmp_path):
    words = np.array(["tree", "leaf", "root", "branch"] * 5, dtype=object)
    model = HCKRegressor(letters, alpha=0.1, rank=4, partition="kernel").fit(words, np.arange(20.0))
    refused(model, tmp_path, "its kernel is the function 'letters'")
    model.kernel = "gaussian"
    refused(model, tmp_path, "a kernel given by a function")


def test_functions_as_trends(tmp_path):
    model = HCKGaussianProcessRegressor(optimizer=None, rank=8, trend=lambda x: x**2).fit(X, Y)
    refused(model, tmp_path, "its trend is the function '<lambda>'")


def test_trees_with_functions(tmp_path):
    tree = Tree.from_labels(route(X), route)
    model = HCKRegressor(**RIDGE, partition=tree).fit(X, Y)
    refused(model, tmp_path, "its partition.rules[0] is a rule given by a function")


def test_classes_of_others(tmp_path):
    refused(HCKRegressor(Mine(0.5), alpha=0.1, rank=8).fit(X, Y), tmp_path, "kernel is a Mine, which is none")
    refused(HCKRegressor(**RIDGE, partition=Own()).fit(X, Y), tmp_path, "partition is a Own")
    refused(Child(**RIDGE).fit(X, Y), tmp_path, "a Child cannot be saved; what can: HCKClassifier")
    refused(Ridge().fit(X, Y), tmp_path, "a Ridge cannot be saved")


def test_other_attributes(tmp_path):
    model = HCKRegressor(**RIDGE).fit(X, Y)
    model.notes_ = {"target": "price", "errors": [0.5, np.nan], "when": (2024, None), 3: np.float32(0.5)}
    save(model, tmp_path / "model")
    found = load(tmp_path / "model").notes_
    np.testing.assert_equal(found, model.notes_)
    model.notes_ = {"by": {"somebody"}}
    with pytest.raises(TypeError, match=r"its notes_\['by'\] is a set"):
        save(model, tmp_path / "other")
    model.notes_ = np.array([1j])
    with pytest.raises(TypeError, match="its notes_ is an array of complex128"):
        save(model, tmp_path / "other")


def test_not_fitted(tmp_path):
    with pytest.raises(NotFittedError):
        save(HCKClassifier(), tmp_path / "model")


def test_random_states(tmp_path):
    model = HCKRegressor(**{**RIDGE, "random_state": np.random.RandomState(0)}).fit(X, Y)
    with pytest.warns(UserWarning, match="random_state is a RandomState, which is not saved"):
        save(model, tmp_path / "model")
    found = load(tmp_path / "model")
    assert found.random_state is None
    np.testing.assert_array_equal(found.predict(X), model.predict(X))
