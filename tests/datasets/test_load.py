"""Where files are looked for, downloaded to and kept."""

import numpy as np
import pytest
import scipy.sparse as sp

from hck.datasets import is_at_hand, load, names, records
from hck.datasets._find import cache as cache_folder
from hck.datasets._registry import REGISTRY
from made_downloads import PACK, RNG, at, made, save, text


def dense(X):
    return X.toarray() if sp.issparse(X) else X


TEXTS = [name for name in names() if REGISTRY[name].files and not REGISTRY[name].frame]


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
