"""Files and labels of all kinds, and those that are wrong."""

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr
from sklearn.base import clone
from sklearn.utils import get_tags

from disk_problem import GIVEN, SMALL
from hck import HCKClassifier, HCKRegressor
from hck.outofcore import DiskHCKClassifier, DiskHCKRegressor

pytestmark = pytest.mark.usefixtures("one_thread")


def test_files(data, tmp_path):
    X, y, new = data
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "new.npy", new)
    model = DiskHCKRegressor(**SMALL, folder=tmp_path / "a").fit(tmp_path / "X.npy", tmp_path / "y.npy")
    other = DiskHCKRegressor(**SMALL, folder=tmp_path / "b").fit(X, y)
    np.testing.assert_array_equal(model.predict(tmp_path / "new.npy"), other.predict(new))


@pytest.mark.parametrize("content", [b"", b"hello", b"\x93NUMPY", np.array(["a", None])], ids=str)
def test_arrays_that_are_none(data, content, tmp_path):
    if isinstance(content, bytes):
        (tmp_path / "X.npy").write_bytes(content)
    else:
        np.save(tmp_path / "X.npy", content)
    with pytest.raises(ValueError, match=r"X\.npy has no array of numbers or text, or is damaged"):
        DiskHCKRegressor(**SMALL, folder=tmp_path / "a").fit(tmp_path / "X.npy", data[1])


@pytest.mark.parametrize("kind", ["hdf5", "zarr", "parquet"])
def test_files_of_all_kinds(data, kind, tmp_path):
    X, y, new = data
    expected = DiskHCKRegressor(**SMALL, folder=tmp_path / "array").fit(X, y).predict(new)
    model = DiskHCKRegressor(**SMALL, folder=tmp_path / "model")
    if kind == "hdf5":
        with h5py.File(tmp_path / "data.h5", "w") as file:
            file["X"], file["y"] = X, y
        model.fit(f"{tmp_path}/data.h5::X", f"{tmp_path}/data.h5::y")
    elif kind == "zarr":
        for name, array in (("X", X), ("y", y)):
            stored = zarr.open_array(tmp_path / f"{name}.zarr", mode="w", shape=array.shape, dtype="f8")
            stored[...] = array
        model.fit(tmp_path / "X.zarr", tmp_path / "y.zarr")
    else:
        (tmp_path / "table").mkdir()
        frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(target=y)
        frame[:2500].to_parquet(tmp_path / "table" / "1.parquet")
        frame[2500:].to_parquet(tmp_path / "table" / "2.parquet")
        model.fit(tmp_path / "table", "target")
        other = pd.DataFrame(new, columns=["a", "b", "c"])[["c", "a", "b"]]
        other.to_parquet(tmp_path / "new.parquet")
        np.testing.assert_allclose(model.predict(tmp_path / "new.parquet"), expected, rtol=1e-12, atol=1e-12)
        with pytest.raises(ValueError, match=r"has the columns \['c', 'a', 'b'\]"):
            model.predict(other)
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["bytes", "bool", "object", "objects", "int8"])
def test_labels_of_all_kinds(data, kind, tmp_path):
    X, y, new = data
    up = y > 0.5
    label = {
        "bytes": np.where(up, b"up", b"low"),
        "bool": up,
        "object": np.where(up, "up", "low").astype(object),
        "objects": up.astype(int).astype(object),
        "int8": np.where(up, 3, -1).astype(np.int8),
    }[kind]
    model = DiskHCKClassifier(**SMALL, folder=tmp_path / "model").fit(X, label)
    expected = HCKClassifier(**GIVEN).fit(X, up).predict(new)
    assert ((model.predict(new) == model.classes_[-1]) == expected).mean() > 0.97


def test_shapes_and_names(data, tmp_path, monkeypatch):
    X, y, new = data
    monkeypatch.chdir(tmp_path)
    model = DiskHCKRegressor(**SMALL, folder="model").fit(X, y[:, None])
    assert model.predict(new).shape == (500, 1)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert model.predict(new).shape == (500, 1)
    again = DiskHCKRegressor.open(tmp_path / "model")
    assert again.rank == 16
    assert again.to_local().lengthscale == 0.4


def test_wrong_input(data, tmp_path, monkeypatch):
    X, y, new = data
    folder = tmp_path / "model"
    with pytest.raises(ValueError, match="name a folder"):
        DiskHCKRegressor(**SMALL).fit(X, y)
    bad = X.copy()
    bad[4321, 1] = np.inf
    with pytest.raises(ValueError, match="X has NaN or infinity in row 4,321"):
        DiskHCKRegressor(**SMALL, folder=tmp_path / "bad").fit(bad, y)
    with pytest.raises(ValueError, match="6,000 rows but y has 5,999"):
        DiskHCKRegressor(**SMALL, folder=tmp_path / "short").fit(X, y[1:])
    with pytest.raises(ValueError, match="at least two classes"):
        DiskHCKClassifier(**SMALL, folder=tmp_path / "one").fit(X, np.zeros(6000))
    with pytest.raises(ValueError, match="no branches"):
        DiskHCKRegressor(**SMALL, approximation="nystrom", folder=tmp_path / "n").fit(X, y)
    with pytest.raises(ValueError, match="halves by hyperplanes"):
        DiskHCKRegressor(**SMALL, partition="kmeans", folder=tmp_path / "k").fit(X, y)
    with pytest.raises(ValueError, match="landmarks of branches"):
        DiskHCKRegressor(**SMALL, landmarks="same", folder=tmp_path / "k").fit(X, y)
    with pytest.raises(ValueError, match="a function as the kernel"):
        DiskHCKRegressor(lambda a, b: a @ b.T, rank=8, alpha=1.0, folder=tmp_path / "k").fit(X, y)
    with pytest.raises(ValueError, match="device='gpu' is not known"):
        DiskHCKRegressor(**SMALL, device="gpu", folder=tmp_path / "k").fit(X, y)
    with pytest.raises(ValueError, match="sparse"):
        DiskHCKRegressor(**SMALL, folder=tmp_path / "k").fit(sp.csr_matrix(X), y)
    with pytest.raises(ValueError, match="y is None"):
        DiskHCKRegressor(**SMALL, folder=tmp_path / "k").fit(X, None)
    with pytest.raises(ValueError, match="y has no label in row 3: None"):
        DiskHCKClassifier(**SMALL, folder=tmp_path / "k").fit(X, np.array(["a", "b", "a", None] * 1500))
    with pytest.raises(ValueError, match="Unknown label type: y has continuous numbers in row 0"):
        DiskHCKClassifier(**SMALL, folder=tmp_path / "c").fit(X, y)
    with monkeypatch.context() as patch:
        patch.setattr("hck.preparation.coding.MOST_CLASSES", 3)
        with pytest.raises(ValueError, match="more than 3 different labels"):
            DiskHCKClassifier(**SMALL, folder=tmp_path / "c").fit(X, np.arange(6000) % 4)
    rare, model = np.arange(6000) == 17, DiskHCKClassifier(random_state=0, folder=tmp_path / "r")
    monkeypatch.setattr("hck.estimators.branched._CHOSEN_ON", 500)
    with pytest.raises(ValueError, match=r"500 rows .* are all of one class"):
        model.fit(X, rare)
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match="is a file"):
        DiskHCKRegressor(**SMALL, folder=tmp_path / "file").fit(X, y)
    with pytest.raises(ValueError, match="weights are not supported"):
        DiskHCKRegressor(**SMALL, folder=tmp_path / "w").fit(X, y, np.ones(6000))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").touch()
    with pytest.raises(FileExistsError, match="is not empty"):
        DiskHCKRegressor(**SMALL, folder=tmp_path / "full").fit(X, y)
    model = DiskHCKRegressor(**SMALL, folder=folder).fit(X, y)
    with pytest.raises(ValueError, match="holds a run that differs in rank:"):
        DiskHCKRegressor(**{**SMALL, "rank": 17}, folder=folder).fit(X, y)
    with pytest.raises(ValueError, match="holds a run that differs in class"):
        DiskHCKClassifier(**SMALL, folder=folder).fit(X, y > 0)
    with pytest.raises(ValueError, match="holds a DiskHCKRegressor, not a DiskHCKClassifier"):
        DiskHCKClassifier.open(folder)
    with pytest.raises(ValueError, match="holds a run that differs in random_state:"):
        DiskHCKRegressor(**{**SMALL, "random_state": np.random.RandomState(1)}, folder=folder).fit(X, y)
    with pytest.raises(ValueError, match="holds a run that differs in y:"):
        DiskHCKRegressor(**SMALL, folder=folder).fit(X, y + 1)
    with pytest.raises(ValueError, match="X has 2 features, but 3 are expected"):
        model.predict(new[:, :2])
    with pytest.raises(FileNotFoundError, match="holds no finished model"):
        DiskHCKRegressor.open(tmp_path / "bad")
    with pytest.raises(ValueError, match="NaN or infinity in row 7"):
        model.predict(np.where(np.arange(500)[:, None] == 7, np.nan, new))


@pytest.fixture(scope="module")
def little(tmp_path_factory):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(100, 2)), rng.uniform(size=100)
    return X, y, DiskHCKRegressor(**GIVEN, folder=tmp_path_factory.mktemp("little") / "model").fit(X, y)


@pytest.mark.parametrize("kind", ["array", "memmap", "npy", "hdf5", "zarr", "frame", "objects"])
@pytest.mark.parametrize("which", ["X", "y", "new"])
def test_complex_numbers(little, tmp_path, kind, which):
    """Whose imaginary part would be lost."""
    X, y, trained = little
    spoilt = (y if which == "y" else X) + 1j
    np.save(tmp_path / "Z.npy", spoilt)
    if kind == "hdf5":
        with h5py.File(tmp_path / "Z.h5", "w") as file:
            file["Z"] = spoilt
    if kind == "zarr":
        zarr.open_array(tmp_path / "Z.zarr", mode="w", shape=spoilt.shape, dtype="c16")[...] = spoilt
    Z = {
        "array": spoilt,
        "memmap": np.load(tmp_path / "Z.npy", mmap_mode="r"),
        "npy": tmp_path / "Z.npy",
        "hdf5": f"{tmp_path}/Z.h5::Z",
        "zarr": tmp_path / "Z.zarr",
        "frame": pd.DataFrame(spoilt) if which != "y" else pd.Series(spoilt),
        "objects": spoilt.astype(object),
    }[kind]
    model = trained if which == "new" else DiskHCKRegressor(**GIVEN, folder=tmp_path / "model")
    given = {"X": (Z, y), "y": (X, Z), "new": (Z,)}[which]
    with pytest.raises(ValueError, match=r"complex|Complex|numbers"):
        (model.predict if which == "new" else model.fit)(*given)


def test_parameters_of_estimators(tmp_path):
    model = DiskHCKRegressor(**SMALL, folder=tmp_path)
    assert clone(model).get_params()["folder"] == tmp_path
    assert "folder=" in repr(model)
    assert not get_tags(model).input_tags.sparse
    assert set(model.get_params()) == {*HCKRegressor().get_params(), "folder"}


@pytest.mark.parametrize("kind", ["M8[s]", "m8[s]"])
def test_times_are_no_numbers(kind, tmp_path):
    x, y = np.arange(200.0).reshape(100, 2), np.arange(100.0)
    for which, given in (("X", (x.astype(kind), y)), ("y", (x, y.astype(kind)))):
        with pytest.raises(ValueError, match=f"{which} has dates or durations"):
            DiskHCKRegressor(**SMALL, folder=tmp_path / which).fit(*given)
