"""Where data sets are found and how they are read, with small files in the places of the real ones."""

import bz2
import lzma
from dataclasses import replace
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest
import scipy.sparse as sp

from hck.datasets import is_at_hand, load, names, records
from hck.datasets._find import cache as cache_folder
from hck.datasets._registry import REGISTRY, File

RNG = np.random.default_rng(0)
PACK = {"bz2": bz2.compress, "xz": lzma.compress}


def text(X, y):
    """LIBSVM's, with indices from 1."""
    lines = []
    for row, target in zip(X, y, strict=True):
        pairs = " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row.tolist()) if value)
        lines.append(f"{target:g} {pairs}".rstrip())
    return ("\n".join(lines) + "\n").encode()


def made(name, n=50):
    """Small parts of something like a data set: one of records, or one to train and one to test on."""
    entry = REGISTRY[name]
    parts = []
    for _ in range(max(1, len(entry.files))):
        X = RNG.integers(0, 9, (n, entry.d)).astype(float)
        y = RNG.normal(size=n).round(3) if entry.task == "regression" else RNG.integers(1, 4, n)
        parts.append((X, y))
    return parts


def packed(file, X, y):
    return PACK.get(file.name.rsplit(".", 1)[-1], bytes)(text(X, y))


def at(server, monkeypatch, name, parts):
    """A data set whose home is a server on this machine."""
    files = REGISTRY[name].files
    for file, part in zip(files, parts, strict=True):
        server.files[file.name] = packed(file, *part)
    here = tuple(File(server.url(file.name)) for file in files)
    monkeypatch.setitem(REGISTRY, name, replace(REGISTRY[name], files=here))


def dense(X):
    return X.toarray() if sp.issparse(X) else X


TEXTS = [name for name in names() if REGISTRY[name].files]


def test_names():
    paper = "cadata YearPredictionMSD ijcnn1 covtype.binary SUSY mnist acoustic covtype"
    assert names() == (*paper.split(), "elevators", "pol", "flights3m", "a9a", "reuters")


def test_the_registry_is_complete():
    for name, entry in REGISTRY.items():
        assert entry.task in ("regression", "binary", "multiclass")
        assert entry.home.startswith("https://")
        assert entry.citation
        assert entry.n == entry.n_train + entry.n_test
        assert entry.names is None or len(entry.names) == entry.d, name
        assert bool(entry.files) + (entry.openml is not None) + bool(entry.arrays) == 1
        if len(entry.files) < 2:
            assert entry.n_test == -(-entry.n // 5)


@pytest.mark.parametrize("name", ["iris", "CADATA", "synthetic cadata"])
def test_unknown_names(name):
    for call in (load, records, is_at_hand):
        with pytest.raises(ValueError, match=f"no data set '{name}'; there are cadata, YearPredictionMSD"):
            call(name)


@pytest.mark.parametrize("split", [-1, 0.5, None])
def test_bad_splits(split):
    with pytest.raises((ValueError, TypeError), match=r"split must be a seed|integer"):
        load("cadata", split=split)


# Files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TEXTS)
def test_downloaded_then_kept(name, server, monkeypatch, cache):
    parts = made(name)
    at(server, monkeypatch, name, parts)
    assert not is_at_hand(name)
    data = load(name, prepare=False, verbose=False)
    entry = REGISTRY[name]
    assert data.source == f"Downloaded from {entry.home} to the cache of hck."
    assert not data.synthetic
    assert (data.name, data.task) == (name, entry.task)
    assert sp.issparse(data.X_train) == entry.sparse
    if len(parts) == 2:
        for X, y, found_X, found_y in (
            (*parts[0], data.X_train, data.y_train),
            (*parts[1], data.X_test, data.y_test),
        ):
            np.testing.assert_array_equal(dense(found_X), X)
            np.testing.assert_array_equal(found_y, y)
    else:
        X, y = parts[0]
        assert (len(data.X_train), len(data.X_test)) == (40, 10)
        table = records(name)
        np.testing.assert_array_equal(table.X, X)
        np.testing.assert_array_equal(table.y, y == 2 if entry.positive else y)
    assert data.y_train.dtype.kind == {"regression": "f", "multiclass": "i"}.get(
        entry.task, "b" if entry.positive else "i"
    )
    asked = len(server.asked)
    server.close()
    again = load(name, prepare=False)  # no network: from what was kept
    assert len(server.asked) == asked == len(parts)
    assert again.source.startswith(f"Found as {entry.npz}.npz in the cache of hck")
    np.testing.assert_array_equal(dense(again.X_train), dense(data.X_train))
    np.testing.assert_array_equal(again.y_test, data.y_test)
    assert is_at_hand(name)
    expected = {file.name for file in entry.files}
    assert {path.name for path in cache.iterdir()} == (
        expected | {f"{each}.sha256" for each in expected} | {f"{entry.npz}.npz"}
    )


@pytest.mark.parametrize("ending", ["", ".bz2", ".xz"])
def test_files_put_there_by_hand(tmp_path, monkeypatch, ending):
    """As they came, unpacked, or packed otherwise; the folder of HCK_DATA is only read."""
    (X, y), (X_test, y_test) = made("acoustic")
    for name, content in (("acoustic", text(X, y)), ("acoustic.t", text(X_test, y_test))):
        (tmp_path / f"{name}{ending}").write_bytes(PACK.get(ending[1:], bytes)(content))
    monkeypatch.setenv("HCK_DATA", str(tmp_path))
    data = load("acoustic", prepare=False)
    np.testing.assert_array_equal(data.X_train, X)
    np.testing.assert_array_equal(data.y_test, y_test)
    assert data.source.startswith(
        f"Found as acoustic{ending} and acoustic.t{ending} in the folder that HCK_DATA"
    )
    assert not (tmp_path / "acoustic.npz").exists()


def test_only_what_is_missing_is_downloaded(server, monkeypatch, cache):
    parts = made("acoustic")
    at(server, monkeypatch, "acoustic", parts)
    cache.mkdir(parents=True)
    (cache / "acoustic").write_bytes(text(*parts[0]))
    data = load("acoustic", prepare=False, verbose=False)
    assert [name for name, _ in server.asked] == ["acoustic.t.bz2"]
    np.testing.assert_array_equal(data.X_train, parts[0][0])


def save(folder, name, X, y):
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / f"{name}.npz", X=X, y=y)


def test_the_order_of_places(tmp_path, monkeypatch, cache):
    X = RNG.normal(size=(20, 8))
    save(cache, "cadata", X, np.full(20, 1.0))
    save(tmp_path / "named", "cadata", X, np.full(20, 2.0))
    save(tmp_path / "given", "cadata", X, np.full(20, 3.0))
    assert load("cadata").y_train[0] == 1
    monkeypatch.setenv("HCK_DATA", str(tmp_path / "named"))
    assert load("cadata").y_train[0] == 2
    assert load("cadata", folder=tmp_path / "given").y_train[0] == 3
    assert "given" in load("cadata", folder=str(tmp_path / "given")).source
    assert not is_at_hand("cadata", folder=tmp_path)
    monkeypatch.setenv("HCK_DATA", str(tmp_path / "nowhere"))
    assert load("cadata").y_train[0] == 1


def test_a_folder_to_download_to(server, monkeypatch, tmp_path, cache):
    at(server, monkeypatch, "cadata", made("cadata"))
    load("cadata", folder=tmp_path / "mine", verbose=False)
    assert (tmp_path / "mine" / "cadata.npz").exists()
    assert not cache.exists()


def test_the_cache(monkeypatch, tmp_path):
    assert cache_folder() == tmp_path / "xdg" / "hck"
    monkeypatch.setenv("HOME", str(tmp_path))
    for base in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", base)
        assert cache_folder() == tmp_path / ".cache" / "hck"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == tmp_path / ".cache" / "hck"


def test_a_folder_that_cannot_be_written(server, monkeypatch, tmp_path):
    """Nothing is kept, and nothing else is different."""

    def full(*_):
        raise OSError("no space left")

    at(server, monkeypatch, "cadata", made("cadata"))
    monkeypatch.setattr("hck.datasets._find.write_npz", full)
    assert load("cadata", verbose=False).X_train.shape == (40, 8)
    assert load("cadata", verbose=False).source.startswith("Found as cadata in the cache")


def test_progress(server, monkeypatch, capsys):
    at(server, monkeypatch, "cadata", made("cadata"))
    load("cadata", verbose=True)
    shown = capsys.readouterr().out
    assert "downloading cadata" in shown
    assert "reading cadata" in shown


# Preparation --------------------------------------------------------------------------------------------


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


# What can go wrong --------------------------------------------------------------------------------------


def test_no_network(server, monkeypatch, cache):
    at(server, monkeypatch, "acoustic", made("acoustic"))
    server.close()
    urls = f"{server.url('acoustic.bz2')} and {server.url('acoustic.t.bz2')}"
    with pytest.raises(FileNotFoundError) as caught:
        load("acoustic", verbose=False)
    message = str(caught.value)
    assert message.startswith("acoustic was not found, and could not be downloaded (URLError: ")
    assert f"Download {urls} and put them, as they are, in {cache} or in the folder that" in message
    assert "HCK_DATA" in message


def test_one_file_without_network(server, monkeypatch, tmp_path):
    at(server, monkeypatch, "SUSY", made("SUSY"))
    server.close()
    with pytest.raises(FileNotFoundError, match=rf"SUSY\.xz and put it, as it is, in {tmp_path}/mine or"):
        load("SUSY", folder=tmp_path / "mine")


def test_it_goes_on_after_it_broke_off(server, monkeypatch):
    X, y = made("cadata", 2000)[0]
    at(server, monkeypatch, "cadata", [(X, y)])
    server.breaks_off_after = 5000
    with pytest.raises(FileNotFoundError, match=r"load it again to go on from there|IncompleteRead"):
        load("cadata", verbose=False)
    server.breaks_off_after = None
    assert load("cadata", verbose=False).X_train.shape[1] == 8
    assert [wanted for _, wanted in server.asked] == [None, "bytes=5000-"]


def test_another_file_than_the_first_time(server, monkeypatch, cache):
    at(server, monkeypatch, "cadata", made("cadata"))
    load("cadata", verbose=False)
    (cache / "cadata.npz").unlink()
    (cache / "cadata").unlink()
    server.files["cadata"] = text(*made("cadata")[0])
    with pytest.raises(ValueError, match="which it had when it was first downloaded"):
        load("cadata", verbose=False)
    assert not (cache / "cadata").exists()


def test_a_checksum_of_the_registry(server, monkeypatch, cache):
    at(server, monkeypatch, "cadata", made("cadata"))
    known = replace(REGISTRY["cadata"], files=(File(server.url("cadata"), "0" * 64),))
    monkeypatch.setitem(REGISTRY, "cadata", known)
    with pytest.raises(ValueError, match=rf"not {'0' * 64}, which it should have"):
        load("cadata", verbose=False)
    (cache / "cadata").write_bytes(text(*made("cadata")[0]))
    with pytest.raises(ValueError, match="which it should have"):
        load("cadata", verbose=False)


def test_a_page_instead_of_data(server, monkeypatch, cache):
    at(server, monkeypatch, "cadata", made("cadata"))
    server.files["cadata"] = b"<html>Please log in</html>\n"
    for _ in range(2):
        with pytest.raises(ValueError, match=rf"not LIBSVM text.*Delete {cache}/cadata, and cadata\.sha256"):
            load("cadata", verbose=False)


def test_flights_are_put_there_by_hand(cache):
    with pytest.raises(FileNotFoundError) as caught:
        load("flights3m")
    for part in (
        "no file to download",
        f"Put flights3m.npz in {cache}",
        "HCK_DATA",
        "airport_latlon",
        "transtats",
    ):
        assert part in str(caught.value)
    save(cache, "flights3m", np.zeros((3, 6)), np.zeros(3))
    with pytest.raises(ValueError, match=r"flights3m\.npz must hold X of shape.*; it has X, y"):
        load("flights3m")


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ({"X": np.zeros((20, 9)), "y": np.zeros(20)}, "cadata.npz has 9 features, not 8: it is another file"),
        ({"X": np.zeros((20, 8))}, "has no targets"),
        ({"features": np.zeros((20, 8))}, "no array 'X'; it has features"),
        ({"X": np.full((20, 8), np.nan), "y": np.zeros(20)}, "features of cadata contain NaN or infinity"),
        ({"X": np.zeros((20, 8)), "y": np.full(20, np.nan)}, "y is missing in 20 of 20 records"),
    ],
)
def test_bad_npz(cache, contents, message):
    cache.mkdir(parents=True)
    np.savez(cache / "cadata.npz", **contents)
    with pytest.raises(ValueError, match=message):
        load("cadata")


# OpenML -------------------------------------------------------------------------------------------------


def openml(monkeypatch, answer):
    asked = []

    def fetch(**options):
        asked.append(options)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr("hck.datasets._fetch.fetch_openml", fetch)
    return asked


def test_openml(monkeypatch, cache):
    X, y = RNG.normal(size=(50, 48)), RNG.uniform(50, 60, size=50)
    X[:, 10:32] = 7.0  # constant
    asked = openml(monkeypatch, SimpleNamespace(data=X, target=y.astype(str)))
    cache.mkdir(parents=True)
    data = load("pol", prepare=False)
    assert (asked[0]["data_id"], asked[0]["data_home"]) == (201, cache)
    assert data.X_train.shape == (40, 26)
    table = records("pol")
    np.testing.assert_array_equal(table.X, X[:, [*range(10), *range(32, 48)]])
    np.testing.assert_allclose(table.y, y - y.mean(), atol=1e-12)
    assert len(asked) == 1  # then it was kept


def test_openml_has_something_else(monkeypatch):
    openml(monkeypatch, SimpleNamespace(data=RNG.normal(size=(50, 19)), target=np.zeros(50)))
    with pytest.raises(ValueError, match="data set 216 of OpenML has 19 features that vary, not 18"):
        load("elevators")


def test_openml_without_network(monkeypatch, cache):
    openml(monkeypatch, URLError("no network"))
    with pytest.raises(FileNotFoundError) as caught:
        load("elevators")
    for part in (
        "no network",
        f"Put elevators.npz in {cache}",
        "X with 18 features, and y",
        "openml.org/d/216",
    ):
        assert part in str(caught.value)
