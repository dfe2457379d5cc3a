"""Tables in npz files."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hck.datasets import read_table
from hck.datasets.npz import parts_of, write_npz
from hck.datasets.table import Table
from table_files import X, write

PIECES = {
    "X_data": np.array([1, 2, 3], np.uint8),
    "X_indices": np.array([0, 2, 1], np.uint16),
    "X_indptr": np.array([0, 2, 3]),
    "X_shape": np.array([2, 3]),
}


def saved(tmp_path, **contents):
    np.savez(tmp_path / "t.npz", **contents)
    return tmp_path / "t.npz"


def test_npz(tmp_path):
    table = read_table(saved(tmp_path, X=X, y=[1, 2]))
    np.testing.assert_array_equal(table.X, X)
    assert table.y.tolist() == [1, 2]
    assert read_table(saved(tmp_path, X=X)).y is None


def test_npz_of_a_sparse_matrix(tmp_path):
    table = read_table(saved(tmp_path, y=[1, 2], **PIECES))
    assert table.X.dtype == float
    np.testing.assert_array_equal(table.X.toarray(), X)


def test_npz_with_parts(tmp_path):
    pieces = {name.replace("X", "X_test"): value for name, value in PIECES.items()}
    path = saved(tmp_path, X_train=X, y_train=[1, 2], y_test=[3, 4], **pieces)
    assert read_table(path, part="train").y.tolist() == [1, 2]
    assert sp.issparse(read_table(path, part="test").X)
    with pytest.raises(ValueError, match="has the parts train, test: say which"):
        read_table(path)
    with pytest.raises(ValueError, match="has the parts train, test"):
        read_table(path, part="val")


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ({"a": X, "b": X}, "no array 'X'; it has a, b"),
        ({"X": X[0]}, r"shape \(n, d\) with n > 0, got \(3,\)"),
        ({"X": X[:0]}, r"shape \(n, d\) with n > 0, got \(0, 3\)"),
        ({"X": X, "y": [1]}, r"y must have the shape \(2,\), got \(1,\)"),
        ({"X": X, "y": [1, np.nan]}, "y is missing in 1 of 2 records, the first of them record 2"),
        ({"X": np.array([["a", None]], dtype=object)}, "has an array of Python's objects"),
    ],
)
def test_bad_npz(tmp_path, contents, message):
    with pytest.raises(ValueError, match=message):
        read_table(saved(tmp_path, **contents))


def test_something_else_called_npz(tmp_path):
    with pytest.raises(ValueError, match="not an npz file, or is damaged"):
        read_table(write(tmp_path, "t.npz", "no zip"))
    whole = saved(tmp_path, X=X).read_bytes()
    with pytest.raises(ValueError, match="not an npz file, or is damaged"):
        read_table(write(tmp_path, "t.npz", whole[:-40]))
    changed = bytearray(whole)
    changed[150] ^= 255  # in the middle of X
    with pytest.raises(ValueError, match="damaged: Bad CRC-32"):
        read_table(write(tmp_path, "t.npz", bytes(changed)))


@given(
    arrays(
        float,
        st.tuples(st.integers(1, 6), st.integers(1, 4)),
        elements=st.one_of(st.integers(-300, 300).map(float), st.floats(allow_nan=False)),
    ),
    st.booleans(),
)
def test_npz_as_it_was_written(tmp_path_factory, features, is_sparse):
    path = tmp_path_factory.mktemp("npz") / "t.npz"
    table = Table(sp.csr_matrix(features) if is_sparse else features, np.arange(len(features)))
    write_npz(path, {"train": table, "test": table})
    assert parts_of(path) == ("train", "test")
    assert [each.name for each in path.parent.iterdir()] == ["t.npz"]
    for part in ("train", "test"):
        read = read_table(path, part=part)
        found = read.X.toarray() if is_sparse else read.X
        np.testing.assert_array_equal(found, features)
        np.testing.assert_array_equal(read.y, table.y)
    write_npz(path, {None: table})
    assert parts_of(path) == (None,)
