"""Files that are damaged, or hold what cannot be learned from: one clear error that names them."""

import numpy as np
import pandas as pd
import pytest

from hck.datasets import read_table
from table_files import COMPRESS, write

TABLE = "größe,日本,y\n1,2,3\n4,5,6\n".encode()
GOOD = {
    "X_data": np.ones(3),
    "X_indices": np.array([0, 2, 1]),
    "X_indptr": np.array([0, 2, 3]),
    "X_shape": np.array([2, 3]),
}
BAD = {
    "index too large": {"X_indices": [0, 3, 1]},
    "index far too large": {"X_indices": [0, 10**9, 1]},
    "index that wraps": {"X_indices": [0, 2**32 + 1, 1]},
    "index below 0": {"X_indices": [0, -1, 1]},
    "fractional index": {"X_indices": [0, 1.5, 1]},
    "too few indices": {"X_indices": [0, 1]},
    "two axes": {"X_indices": [[0, 2, 1]]},
    "pointer too large": {"X_indptr": [0, 10**9, 3]},
    "last pointer too large": {"X_indptr": [0, 2, 9]},
    "pointer below 0": {"X_indptr": [0, -2, 3]},
    "first pointer": {"X_indptr": [1, 2, 3]},
    "too few pointers": {"X_indptr": [0, 3]},
    "fractional pointer": {"X_indptr": [0, 1.5, 3]},
    "falling pointer": {"X_indptr": [0, 3, 2]},
    "one number as shape": {"X_shape": [2]},
    "shape below 0": {"X_shape": [2, -3]},
    "fractional shape": {"X_shape": [2.0, 3.0]},
    "narrow shape": {"X_shape": [2, 2]},
    "high shape": {"X_shape": [10**9, 3]},
    "words": {"X_data": ["a", "b", "c"]},
    "complex data": {"X_data": np.ones(3) * 1j},
    "complex target": {"y": np.ones(2) * 1j},
    "complex dense": {"X": np.ones((2, 2)) * 1j},
}


@pytest.mark.parametrize("what", BAD)
def test_npz(tmp_path, what):
    np.savez(tmp_path / "t.npz", **{**GOOD, **{name: np.asarray(value) for name, value in BAD[what].items()}})
    with pytest.raises(ValueError, match=r"t\.npz: [Xy]"):
        read_table(tmp_path / "t.npz")


def test_npz_as_it_should_be(tmp_path):
    np.savez(tmp_path / "t.npz", **GOOD)
    np.testing.assert_array_equal(read_table(tmp_path / "t.npz").X.toarray(), [[1, 0, 1], [0, 1, 0]])
    np.savez(tmp_path / "t.npz", **{**GOOD, "X_indices": np.array([2, 2, 1], "u8")})
    np.testing.assert_array_equal(read_table(tmp_path / "t.npz").X.toarray(), [[0, 0, 2], [0, 1, 0]])


@pytest.mark.parametrize("ending", COMPRESS)
@pytest.mark.parametrize("content", [b"a,b\n1,2\n3\0,4\n", b"a\0,b\n1,2\n", "a,b\n1,2\n".encode("utf-16")])
def test_null_bytes(tmp_path, content, ending):
    path = write(tmp_path, "t.csv" + ending, COMPRESS[ending](content))
    with pytest.raises(ValueError, match="has null bytes"):
        read_table(path)


def test_null_bytes_far_down(tmp_path):
    rows = b"1,2\n" * 500_000
    with pytest.raises(ValueError, match="has null bytes"):
        read_table(write(tmp_path, "t.csv", b"a,b\n" + rows + b"1,\0\n"))


@pytest.mark.parametrize("ending", COMPRESS)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["", "byte-order mark"])
def test_names_of_all_letters(tmp_path, ending, mark):
    table = read_table(write(tmp_path, "t.csv" + ending, COMPRESS[ending](mark + TABLE)), "y")
    assert table.feature_names == ["größe", "日本"]


def test_other_encodings(tmp_path):
    with pytest.raises(ValueError, match=r"t\.csv is not UTF-8"):
        read_table(write(tmp_path, "t.csv", "größe,b\n1,2\n".encode("latin-1")))


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("name", ["t.csv", "t.libsvm"])
def test_compressed_files_that_are_damaged(tmp_path, name, ending):
    content = COMPRESS[ending](TABLE if name == "t.csv" else b"1 1:2\n2 1:3\n")
    for damaged in (content[:-6], b"plain text\n"):
        with pytest.raises(ValueError, match=rf"{name}{ending} could not be read, it may be damaged"):
            read_table(write(tmp_path, name + ending, damaged))


@pytest.mark.parametrize("index", [2**31, 10**10, 10**14, 10**30])
def test_libsvm_indices_beyond_all(tmp_path, index):
    with pytest.raises(ValueError, match=r"t\.libsvm has an index beyond"):
        read_table(write(tmp_path, "t.libsvm", f"1 1:1 {index}:2\n2 2:1\n"))


def test_targets_that_are_not_needed(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0], "y": [np.nan, 1.0]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    np.savez(tmp_path / "t.npz", X=frame[["a"]], y=frame.y)
    write(tmp_path, "t.libsvm", "nan 1:1\n1 1:2\n")
    for name, target in (("t.csv", "y"), ("t.parquet", "y"), ("t.npz", None), ("t.libsvm", None)):
        assert read_table(tmp_path / name, target, target_needed=False).X.shape == (2, 1)
        with pytest.raises(ValueError, match="is missing in 1 of 2 records"):
            read_table(tmp_path / name, target)


@pytest.mark.parametrize("ending", COMPRESS)
def test_names_of_several_columns(tmp_path, ending):
    content = b"\xef\xbb\xbf\n  \na,b,a\n1,2,3\n"
    path = write(tmp_path, "t.csv" + ending, COMPRESS[ending](content))
    with pytest.raises(ValueError, match=r"t\.csv.* has several columns called 'a'"):
        read_table(path)
    path = write(tmp_path, "u.csv" + ending, COMPRESS[ending](b"a,a.1,,\n1,2,3,4\n"))
    assert read_table(path).X.shape == (1, 4)


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_other_separators(tmp_path, mark):
    (tmp_path / "t.csv").write_text(f"a{mark}b\n1{mark}2\n")
    with pytest.raises(ValueError, match=r"single column, 'a.*b': separate columns by commas"):
        read_table(tmp_path / "t.csv")
