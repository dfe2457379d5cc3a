"""Tables from files: what is read, and what is said of files that cannot be."""

import bz2
import gzip
import lzma
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import dump_svmlight_file

from hck import HCKRegressor
from hck.datasets import read_table
from hck.datasets.npz import parts_of, write_npz
from hck.datasets.table import Table

CSV = "rooms,place,price\n3,town,200.5\n5,country,150\n4,,90\n"
COMPRESS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def write(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# CSV ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", COMPRESS)
def test_csv(tmp_path, ending):
    path = write(tmp_path, "houses.csv" + ending, COMPRESS[ending](CSV.encode()))
    table = read_table(path, "price")
    assert isinstance(table.X, pd.DataFrame)
    assert table.feature_names == ["rooms", "place"]
    assert table.target_name == "price"
    assert table.X["rooms"].tolist() == [3, 5, 4]
    assert table.X["place"].isna().tolist() == [False, False, True]
    assert table.y.tolist() == [200.5, 150, 90]
    assert isinstance(table.y, np.ndarray)


@pytest.mark.parametrize("target", [0, -3, "rooms"])
def test_csv_target_by_position(tmp_path, target):
    table = read_table(str(write(tmp_path, "houses.csv", CSV)), target)
    assert table.target_name == "rooms"
    assert table.y.tolist() == [3, 5, 4]
    assert table.feature_names == ["place", "price"]


def test_csv_without_a_target(tmp_path):
    table = read_table(write(tmp_path, "houses.csv", CSV))
    assert table.y is None
    assert table.target_name is None
    assert table.X.shape == (3, 3)


def test_csv_with_classes_for_an_estimator(tmp_path):
    rows = "".join(f"{i},{'ab'[i % 2]},{i % 2}\n" for i in range(40))
    table = read_table(write(tmp_path, "t.csv", "x,letter,y\n" + rows), "y")
    model = HCKRegressor(rank=8, alpha=0.01, lengthscale=1.0, random_state=0).fit(table.X, table.y)
    assert model.score(table.X, table.y) > 0.9
    assert read_table(write(tmp_path, "t.csv", "x,letter,y\n" + rows), "letter").y[:2].tolist() == ["a", "b"]


@pytest.mark.parametrize("target", ["cost", 3, -4])
def test_csv_without_that_column(tmp_path, target):
    with pytest.raises(ValueError, match=rf"no column {target!r}; it has 'rooms', 'place', 'price'"):
        read_table(write(tmp_path, "houses.csv", CSV), target)


def test_csv_with_many_columns(tmp_path):
    path = write(tmp_path, "wide.csv", ",".join(f"c{i}" for i in range(30)) + "\n" + ",".join("1" * 30))
    with pytest.raises(ValueError, match="'c19' and 10 more"):
        read_table(path, "y")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "houses.csv is empty"),
        ("\n\n", "houses.csv is empty"),
        ("a,b\n", "has no records, only the names 'a', 'b'"),
        ("a,b\n1,2\n1,2,3\n", "ragged: some lines have more fields"),
        ("a,b\n1,2,3\n1,2,3\n", "ragged: some lines have more fields"),
        ("a,b,c\n1,2,3\n1,2\n", "ragged: line 3 has 2 fields, not 3"),
        ('a,b,c\n1,"2\n2",3\n1\n', "ragged: line 4 has 1 fields, not 3"),
    ],
)
def test_bad_csv(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        read_table(write(tmp_path, "houses.csv", content))


def test_short_lines_in_a_compressed_file(tmp_path):
    with pytest.raises(ValueError, match="line 3 has 2 fields"):
        read_table(write(tmp_path, "houses.csv.xz", lzma.compress(b"a,b,c\n1,2,3\n1,2\n")))


def test_values_may_be_missing_in_the_last_column(tmp_path):
    table = read_table(write(tmp_path, "houses.csv", "a,b\n1,\n\n2,3\n"), "a")
    assert table.X["b"].isna().tolist() == [True, False]


@pytest.mark.parametrize("content", ["x,y\n1,2\n2,\n3,\n", "x,y\n1,a\n2,\n3,NA\n"])
def test_missing_targets(tmp_path, content):
    with pytest.raises(
        ValueError, match="the target 'y' is missing in 2 of 3 records, the first of them record 2"
    ):
        read_table(write(tmp_path, "t.csv", content), "y")


# Parquet ------------------------------------------------------------------------------------------------


def test_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"x": [1.0, 2.0], "colour": ["red", "blue"], "y": [3, 4]})
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", "y")
    pd.testing.assert_frame_equal(table.X, frame[["x", "colour"]])
    assert table.y.tolist() == [3, 4]
    with pytest.raises(ValueError, match="no column 'z'; it has 'x', 'colour', 'y'"):
        read_table(tmp_path / "t.parquet", "z")


def test_parquet_as_pandas_reads_it(tmp_path, monkeypatch):
    frame = pd.DataFrame({0: [1.0, 2.0], 1: [3, 4]})
    monkeypatch.setattr(pd, "read_parquet", lambda path, engine: frame)
    table = read_table(write(tmp_path, "t.parquet", "anything"), 1)
    assert table.feature_names == ["0"]
    assert table.y.tolist() == [3, 4]


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="pip install pyarrow"):
        read_table(write(tmp_path, "t.parquet", "anything"))


def test_without_pandas(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        read_table(write(tmp_path, "houses.csv", CSV))


# LIBSVM text --------------------------------------------------------------------------------------------

TEXT = "1.5 1:0.5 3:-2\n-1 2:1e-3\n\n2 # a remark\n"
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


# npz ----------------------------------------------------------------------------------------------------

X = np.array([[1.0, 0, 2], [0, 3, 0]])
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
        ({"X": np.array([["a", None]], dtype=object)}, "allow_pickle"),
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


# Every format -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.npz", "t.libsvm", "t"])
def test_a_file_that_is_not_there(tmp_path, name):
    with pytest.raises(FileNotFoundError, match=f"there is no file .*{name}"):
        read_table(tmp_path / name)


def test_a_folder(tmp_path):
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize("name", ["t.xlsx", "t.npz.gz", "t.parquet.xz", "t.json", "t.zip"])
def test_unknown_formats(tmp_path, name):
    with pytest.raises(ValueError, match=rf"the format of {name} is not known\. Known are \.csv.*no ending"):
        read_table(write(tmp_path, name, "anything"))


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("t.svm", TEXT, {"target": "y"}, "says what its target is: leave target='y' out"),
        ("t.npz", "anything", {"target": 0}, "says what its target is: leave target=0 out"),
        ("t.csv", CSV, {"part": "train"}, "only npz files have parts"),
        ("t.csv", CSV, {"n_features": 3}, "only LIBSVM files leave columns out"),
    ],
)
def test_options_of_other_formats(tmp_path, name, content, options, message):
    with pytest.raises(ValueError, match=message):
        read_table(write(tmp_path, name, content), **options)
