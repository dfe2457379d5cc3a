"""Tables in LIBSVM text."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import dump_svmlight_file

from hck.datasets import read_table
from table_files import COMPRESS, TEXT, write

MATRIX = [[0.5, 0, -2], [0, 1e-3, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    "name", ["cadata", "a9a.t", "ijcnn1.tr", "ijcnn1.val", "t.libsvm", "t.svm", "t.scale"]
)
@pytest.mark.parametrize("ending", COMPRESS)
def test_libsvm(tmp_path, name, ending):
    table = read_table(write(tmp_path, name + ending, COMPRESS[ending](TEXT.encode())))
    assert sp.issparse(table.X)
    assert table.X.format == "csr"
    np.testing.assert_array_equal(table.X.toarray(), MATRIX)
    assert table.y.tolist() == [1.5, -1, 2]
    assert table.feature_names is None


def test_libsvm_may_count_from_0(tmp_path):
    assert read_table(write(tmp_path, "t.svm", "1 0:5 2:6\n")).X.toarray().tolist() == [[5, 0, 6]]


def test_libsvm_features_that_are_0(tmp_path):
    path = write(tmp_path, "t.svm", TEXT)
    assert read_table(path, n_features=5).X.shape == (3, 5)
    with pytest.raises(ValueError, match="columns, but there should be 2"):
        read_table(path, n_features=2)


@given(
    X=arrays(float, st.tuples(st.integers(1, 8), st.integers(1, 5)), elements=st.integers(-3, 3).map(float)),
    zero_based=st.booleans(),
)
def test_libsvm_as_it_was_written(tmp_path_factory, X, zero_based):
    X[0, 0] = 1.0  # so that it shows where indices begin
    path = tmp_path_factory.mktemp("libsvm") / "t.svm"
    y = np.arange(len(X))
    dump_svmlight_file(X, y, str(path), zero_based=zero_based)
    table = read_table(path, n_features=X.shape[1])
    np.testing.assert_array_equal(table.X.toarray(), X)
    np.testing.assert_array_equal(table.y, y)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "t.svm is empty"),
        ("# nothing\n\n", "t.svm has no records"),
        ("one 1:2\n", "not LIBSVM text"),
        ("1 1:two\n", "not LIBSVM text"),
        ("1 a:2\n", "not LIBSVM text"),
        ("1 2 3\n", "not LIBSVM text"),
        ("a,b\n1,2\n", "not LIBSVM text"),
        ("1 2:1 1:1\n", "not LIBSVM text.*sorted"),
        ("<html><body>Not here</body></html>\n", "not LIBSVM text"),
        ("1 1:2\nnan 1:2\n", "the target is missing in 1 of 2 records, the first of them record 2"),
    ],
)
def test_bad_libsvm(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        read_table(write(tmp_path, "t.svm", content))


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("damage", [lambda packed: packed[: len(packed) // 2], lambda packed: b"no" + packed])
def test_damaged_libsvm(tmp_path, ending, damage):
    packed = COMPRESS[ending](TEXT.encode() * 1000)
    with pytest.raises(ValueError, match="damaged"):
        read_table(write(tmp_path, "t.svm" + ending, damage(packed)))
