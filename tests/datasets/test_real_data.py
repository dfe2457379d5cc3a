"""The real data sets, where they are: sizes, and the paper's preparation, step by step."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils import shuffle

from hck.datasets import is_at_hand, load, names, records
from hck.datasets._registry import REGISTRY

pytestmark = pytest.mark.data


def need(name):
    """Skip the test where the file is absent."""
    folder = os.environ.get("HCK_DATA")
    if not folder:
        pytest.skip("HCK_DATA is not set: it names the folder of the real data sets")
    if not is_at_hand(name, folder=folder):
        pytest.skip(f"no {name} in HCK_DATA")
    return Path(folder) / f"{REGISTRY[name].npz}.npz"


def arrays_of(name):
    with np.load(need(name)) as arrays:
        return dict(arrays)


def distinct(X, y):
    """Record by record."""
    first, contradicted = {}, set()
    for i, row in enumerate(np.ascontiguousarray(X)):
        key = row.tobytes()
        if y[first.setdefault(key, i)] != y[i]:
            contradicted.add(key)
    kept = [i for key, i in first.items() if key not in contradicted]
    return X[kept], y[kept]


def check_parts(data, *expected):
    for found, wanted in zip((data.X_train, data.y_train, data.X_test, data.y_test), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def check_whole(data, X, y):
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=0)
    X_train, y_train = distinct(X_train, y_train)
    scaler = MinMaxScaler().fit(X_train.astype(float))
    check_parts(
        data, scaler.transform(X_train.astype(float)), y_train, scaler.transform(X_test.astype(float)), y_test
    )


@pytest.mark.parametrize("name", names())
def test_sizes(name):
    need(name)
    data, real = load(name), REGISTRY[name]
    assert not data.synthetic
    assert data.source.startswith(f"Found as {real.npz}")
    assert "in the folder that HCK_DATA names" in data.source
    assert data.X_train.shape[1] == data.X_test.shape[1] == real.d
    assert len(data.y_test) == real.n_test
    assert (0.93 if name == "letter" else 0.995) * real.n_train < len(data.y_train) <= real.n_train
    classes = {"mnist": 10, "pendigits": 10, "letter": 26, "covtype": 7}
    if real.task != "regression":
        assert len(np.unique(data.y_train)) == classes.get(name, 2)
    if real.frame is None:
        assert data.X_train.dtype == data.X_test.dtype == float
    if not real.stays_as_it_came:
        assert data.X_train.min() >= -1
        assert data.X_train.max() <= 1 + 1e-12


@pytest.mark.parametrize("name", ["cadata", "elevators", "pol", "kin8nm", "house8L"])
def test_regression(name):
    arrays = arrays_of(name)
    check_whole(load(name), arrays["X"], arrays["y"].astype(float))
    table = records(name)
    np.testing.assert_array_equal(table.X, arrays["X"])
    np.testing.assert_array_equal(table.y, arrays["y"])


@pytest.mark.parametrize(("name", "unit"), [("ijcnn1", 1), ("mnist", 255)])
def test_sets_that_come_split(name, unit):
    arrays = arrays_of(name)
    X, y = distinct(*shuffle(arrays["X_train"], arrays["y_train"], random_state=0))
    check_parts(
        load(name), X.astype(float) / unit, y, arrays["X_test"].astype(float) / unit, arrays["y_test"]
    )
    raw = load(name, prepare=False)
    check_parts(raw, arrays["X_train"], arrays["y_train"], arrays["X_test"], arrays["y_test"])


def test_the_published_split_trains_on_validation_as_well():
    arrays = arrays_of("cpu_act")
    X, y = (np.concatenate([arrays[f"{part}_train"], arrays[f"{part}_val"]]) for part in "Xy")
    check_parts(load("cpu_act", prepare=False), X, y, arrays["X_test"], arrays["y_test"])


def test_covtype_binary():
    arrays = arrays_of("covtype")
    check_whole(load("covtype.binary"), arrays["X"], arrays["y"] == 2)


@pytest.mark.parametrize("name", ["a9a", "reuters"])
def test_sparse(name):
    arrays, data = arrays_of(name), load(name)
    for part, found in (("train", data.X_train), ("test", data.X_test)):
        assert sp.issparse(found)
        np.testing.assert_array_equal(found.data, arrays[f"X_{part}_data"])
        np.testing.assert_array_equal(found.indices, arrays[f"X_{part}_indices"])
        np.testing.assert_array_equal(found.indptr, arrays[f"X_{part}_indptr"])
    np.testing.assert_array_equal(data.y_train, arrays["y_train"])


def test_flights_are_in_order_and_in_place():
    arrays = arrays_of("flights3m")
    table = records("flights3m")
    assert table.X.shape == (3_000_000, 8)
    assert (np.diff(table.X[:, 0]) >= 0).all()
    np.testing.assert_allclose(np.hypot(table.X[:, 1], table.X[:, 2]), 1)
    np.testing.assert_array_equal(table.X[:, 4:6], arrays["airport_latlon"][arrays["X"][:, 4]])
    np.testing.assert_array_equal(table.y, arrays["y"])


@pytest.mark.parametrize("name", ["cadata", "pol"])
def test_splits_differ(name):
    need(name)
    assert not np.array_equal(load(name).y_test, load(name, split=1).y_test)
