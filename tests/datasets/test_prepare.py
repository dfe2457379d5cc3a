"""The paper's preparation: properties of splits, of what is removed, and of scaling."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hck.datasets._prepare import cut, distinct, scale

FEW = arrays(np.int16, st.tuples(st.integers(1, 30), st.integers(1, 2)), elements=st.integers(0, 3))
MANY = arrays(
    float,
    st.tuples(st.integers(1, 12), st.integers(1, 4)),
    elements=st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda x: round(x, 3)),
)


def by_definition(X, y, are_classes):
    """Record by record."""
    seen, kept = {}, []
    for i, row in enumerate(map(tuple, X.tolist())):
        seen.setdefault(row, []).append(i)
    for same in seen.values():
        if are_classes:
            kept += same[:1] if len(set(y[same].tolist())) == 1 else []
        else:
            kept += {y[i]: i for i in reversed(same)}.values()
    return sorted(kept)


@given(FEW, st.booleans(), st.data())
def test_what_is_kept(X, are_classes, data):
    y = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(X), max_size=len(X))))
    kept = by_definition(X, y, are_classes)
    found_X, found_y = distinct(X, y, are_classes)
    np.testing.assert_array_equal(found_X, X[kept])
    np.testing.assert_array_equal(found_y, y[kept])
    again = distinct(found_X, found_y, are_classes)
    np.testing.assert_array_equal(again[0], found_X)  # nothing more to remove
    if are_classes:
        assert len(np.unique(found_X, axis=0)) == len(found_X)


@given(FEW)
def test_one_class_contradicts_nothing(X):
    kept, _ = distinct(X, np.zeros(len(X), dtype=bool), True)
    np.testing.assert_array_equal(np.unique(kept, axis=0), np.unique(X, axis=0))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, float])
def test_any_type_and_layout(dtype, order):
    X = np.array([[1, 2], [3, 4], [1, 2]], dtype=dtype, order=order)
    assert distinct(X, np.array([0, 1, 0]), True)[0].tolist() == [[1, 2], [3, 4]]


@given(MANY, MANY)
def test_scaled_to_the_unit_interval(train, test):
    test = np.resize(test, (len(test), train.shape[1]))
    scaled, other = scale(train, test, None)
    if np.abs(train).max() <= 1:
        np.testing.assert_array_equal(scaled, train)
        np.testing.assert_array_equal(other, test)
        return
    assert scaled.min() >= -1e-12
    assert scaled.max() <= 1 + 1e-12
    varies = np.ptp(train, axis=0) > 0
    np.testing.assert_allclose(np.ptp(scaled, axis=0)[varies], 1, rtol=1e-9)
    np.testing.assert_allclose(scaled[:, ~varies], 0, atol=1e-12)
    width = np.where(varies, np.ptp(train, axis=0), 1)
    np.testing.assert_allclose(other, (test - train.min(0)) / width, rtol=1e-6, atol=1e-6)


def test_kept_in_minus_one_to_one():
    train, test = np.array([[-1.0, 0.5], [0, 1]]), np.array([[-3.0, 3]])
    assert scale(train, test, None)[0].tolist() == train.tolist()
    assert scale(train, test, None)[1].tolist() == test.tolist()


def test_divided_by_a_unit():
    train, test = scale(np.array([[0, 255]], np.uint8), np.array([[51, 0]], np.uint8), 255.0)
    assert train.tolist() == [[0, 1]]
    assert test.tolist() == [[0.2, 0]]
    assert train.dtype == test.dtype == float


@given(st.integers(5, 200), st.integers(0, 5))
def test_splits(n, seed):
    X = np.arange(n)[:, None]
    X_train, y_train, X_test, y_test = cut(X, -X[:, 0], seed)
    assert len(X_test) == -(-n // 5)
    assert sorted([*X_train[:, 0], *X_test[:, 0]]) == list(range(n))
    np.testing.assert_array_equal(y_train, -X_train[:, 0])
    np.testing.assert_array_equal(y_test, -X_test[:, 0])
    np.testing.assert_array_equal(cut(X, -X[:, 0], seed)[2], X_test)


def test_other_seeds_split_otherwise():
    X = np.arange(1000)[:, None]
    assert not np.array_equal(cut(X, X[:, 0], 0)[2], cut(X, X[:, 0], 1)[2])
