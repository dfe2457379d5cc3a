"""Prepared files are loaded as they are."""

import numpy as np
import pytest
import scipy.sparse as sp

from hck.datasets import load, records
from made_downloads import RNG, save


def test_prepared_and_whole(cache):
    X = RNG.normal(size=(100, 8)) * 100
    X[:30] = X[0]
    y = RNG.normal(size=100)
    y[:30] = 5.0
    save(cache, "cadata", X.astype(np.float32), y)
    data = load("cadata")
    assert (data.y_train == 5).sum() <= 1
    assert len(data.X_test) == 20
    np.testing.assert_allclose(data.X_train.min(0), 0, atol=1e-12)
    np.testing.assert_allclose(data.X_train.max(0), 1)
    assert data.X_train.dtype == data.X_test.dtype == float
    assert data.feature_names[0] == "median income"
    assert not np.array_equal(data.y_test, load("cadata", split=1).y_test)
    np.testing.assert_array_equal(data.y_test, load("cadata").y_test)


def test_prepared_and_split(cache):
    """The order changes, the split does not; what is in [-1, 1] stays."""
    cache.mkdir(parents=True)
    X, y = RNG.uniform(-1, 1, size=(30, 22)), RNG.choice([-1, 1], 30)
    X[1:4], y[1:4] = X[0], y[0]  # repeated
    X[5], y[5] = X[4], -y[4]  # contradicted
    np.savez(cache / "ijcnn1.npz", X_train=X, y_train=y, X_test=3 * X, y_test=y, X_val=X, y_val=y)
    data, other = load("ijcnn1"), load("ijcnn1", split=1)
    kept = [0, *range(6, 30)]
    for found in (data, other):
        order = np.lexsort(found.X_train.T)
        np.testing.assert_array_equal(found.X_train[order], X[kept][np.lexsort(X[kept].T)])
        np.testing.assert_array_equal(found.X_test, 3 * X)
        np.testing.assert_array_equal(found.y_test, y)
    assert not np.array_equal(data.X_train, other.X_train)
    np.testing.assert_array_equal(load("ijcnn1", prepare=False).X_train, X)
    with pytest.raises(ValueError, match="ijcnn1 comes split into records to train and to test on: use load"):
        records("ijcnn1")


def test_mnist_has_units(cache):
    cache.mkdir(parents=True)
    X = RNG.integers(0, 200, size=(10, 784)).astype(np.uint8)
    np.savez(cache / "mnist.npz", X_train=X, y_train=np.arange(10), X_test=X, y_test=np.arange(10))
    data = load("mnist")
    np.testing.assert_array_equal(data.X_test, X / 255)
    assert data.X_train.max() < 0.8


def test_one_class_against_the_rest(cache):
    X, y = RNG.integers(0, 999, size=(50, 54)), RNG.integers(1, 8, 50)
    save(cache, "covtype", X, y)
    assert load("covtype.binary").y_train.dtype == bool
    np.testing.assert_array_equal(load("covtype").y_test == 2, load("covtype.binary").y_test)


def test_a_dense_set_in_pieces(cache):
    cache.mkdir(parents=True)
    X = sp.csr_matrix(RNG.integers(0, 3, size=(20, 8)).astype(float))
    pieces = {"X_data": X.data, "X_indices": X.indices, "X_indptr": X.indptr, "X_shape": X.shape}
    np.savez(cache / "cadata.npz", y=np.arange(20.0), **pieces)
    np.testing.assert_array_equal(records("cadata").X, X.toarray())


def test_flights(cache):
    cache.mkdir(parents=True)
    X = np.array([[1, 1, 0, 100, 0, 1], [2, 3, 360, 200, 1, 0], [6, 30, 1439, 300, 1, 1]], np.int16)
    places = np.array([[10.0, 20], [30, 40]], np.float32)
    np.savez(cache / "flights3m.npz", X=X, y=np.array([5, -3, 0], np.int16), airport_latlon=places)
    table = records("flights3m")
    late = 2 * np.pi * 1439 / 1440
    expected = [
        [1, 0, 1, 100, 10, 20, 30, 40],
        [34, 1, 0, 200, 30, 40, 10, 20],
        [181, np.sin(late), np.cos(late), 300, 30, 40, 30, 40],
    ]
    np.testing.assert_allclose(table.X, expected, atol=1e-12)
    assert table.y.tolist() == [5, -3, 0]
    assert table.y.dtype == float
    assert len(table.feature_names) == 8
