"""What can go wrong on the way to a data set."""

from dataclasses import replace

import numpy as np
import pytest

from hck.datasets import load
from hck.datasets._registry import REGISTRY, File
from made_downloads import at, made, save, text


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
