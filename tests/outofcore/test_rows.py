"""Tables that are read block by block."""

import h5py
import numpy as np
import pandas as pd
import pytest
import zarr

from hck.outofcore import ArrayRows, ParquetRows, as_rows
from hck.outofcore.training import Training
from hck.preparation.survey import as_numbers

X = np.random.default_rng(0).normal(size=(1003, 4))


def stored(kind, folder):
    if kind == "array":
        return X
    if kind == "list":
        return X.tolist()
    if kind == "npy":
        np.save(folder / "X.npy", X)
        return folder / "X.npy"
    if kind == "hdf5":
        with h5py.File(folder / "X.h5", "w") as file:
            file["features"], file["other"] = X, X[:3]
        return f"{folder / 'X.h5'}::features"
    if kind == "zarr":
        array = zarr.open_array(folder / "X.zarr", mode="w", shape=X.shape, chunks=(100, 4), dtype="f8")
        array[:] = X
        return str(folder / "X.zarr")
    frame = pd.DataFrame(X, columns=list("abcd"))
    for k, (begin, end) in enumerate([(0, 400), (400, 410), (410, 1003)]):
        frame[begin:end].to_parquet(folder / f"part-{k}.parquet", row_group_size=150)
    return folder


@pytest.mark.parametrize("kind", ["array", "list", "npy", "hdf5", "zarr", "parquet"])
@pytest.mark.parametrize(("size", "start"), [(100, 0), (1003, 0), (5000, 0), (256, 512), (17, 1002)])
def test_blocks(kind, size, start, tmp_path):
    rows = as_rows(stored(kind, tmp_path))
    assert (rows.n, rows.width, len(rows)) == (1003, 4, 1003)
    blocks = list(rows.blocks(size, start))
    np.testing.assert_array_equal(np.concatenate(blocks), X[start:])
    assert all(len(block) == size for block in blocks[:-1])


def test_memory_maps_are_not_read_at_once(tmp_path):
    rows = as_rows(stored("npy", tmp_path))
    assert isinstance(rows.array, np.memmap)


def test_a_column_of_parquet_files_as_the_target(tmp_path):
    pair = Training.of(stored("parquet", tmp_path), "c")
    rows, target = pair.rows, pair.target
    np.testing.assert_array_equal(np.concatenate(list(target.blocks(99))), X[:, 2:3])
    np.testing.assert_array_equal(np.concatenate(list(rows.blocks(99))), X[:, [0, 1, 3]])


def test_fingerprints_tell_data_apart(tmp_path):
    path = stored("parquet", tmp_path)
    before = ParquetRows(path).fingerprint()
    assert ParquetRows(path).fingerprint() == before
    (tmp_path / "part-2.parquet").unlink()
    assert ParquetRows(path).fingerprint() != before
    assert ArrayRows(X).fingerprint() == ArrayRows(X.copy()).fingerprint()
    assert ArrayRows(X).fingerprint() != ArrayRows(X[:-1]).fingerprint()
    assert ArrayRows(X).fingerprint() != ArrayRows(X + 1).fingerprint()
    other = X.copy()
    other[-1, 0] += 1
    assert ArrayRows(X).fingerprint() != ArrayRows(other).fingerprint()
    labels = np.array(["a", "b"] * 500, dtype=object)
    assert ArrayRows(labels).fingerprint() == ArrayRows(labels.copy()).fingerprint()


def test_wrong_input(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file or folder .*nothing\.npy to read X from"):
        as_rows(tmp_path / "nothing.npy")
    (tmp_path / "data.xyz").touch()
    with pytest.raises(ValueError, match="is none of"):
        as_rows(tmp_path / "data.xyz")
    path = stored("hdf5", tmp_path).partition("::")[0]
    with pytest.raises(ValueError, match="with one of the arrays in it: features, other"):
        as_rows(path)
    with pytest.raises(ValueError, match="one or two dimensions"):
        as_rows(np.zeros((2, 2, 2)))
    with pytest.raises(ValueError, match="1,003 rows but y has 1,002"):
        Training.of(X, X[1:, 0])
    with pytest.raises(ValueError, match="too few"):
        Training.of(X[:1], X[:1, 0])
    with pytest.raises(ValueError, match="no column 'z'; its columns: a, b, c, d"):
        ParquetRows(stored("parquet", tmp_path), ["z"])
    bad = X.copy()
    bad[70, 2] = np.nan
    with pytest.raises(ValueError, match="X has NaN or infinity in row 1,070"):
        as_numbers(bad, "X", 1000)
    with pytest.raises(ValueError, match="no number in rows from 5 on"):
        as_numbers(np.array([["a"], ["b"]]), "X", 5)
    with pytest.raises(ValueError, match="Complex data not supported: X"):
        as_numbers(X * 1j, "X")
    with pytest.raises(ValueError, match="y has NaN or infinity in row 6 of block 2"):
        as_numbers(np.array([1, None], dtype=object), "y", 5, " of block 2")
    with pytest.raises(ValueError, match="y has NaN or infinity in row 1 of block 2"):
        as_numbers(np.array([[1, "a"], [pd.NA, 2]], dtype=object), "y", where=" of block 2")
