"""Downloads from a server on this machine: whole, broken off, changed, and without any network."""

import hashlib

import pytest

from hck.datasets._download import check, download

CONTENT = bytes(range(256)) * 5000


def digest(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new" / "file.bz2"


@pytest.fixture
def served(server):
    server.files["file.bz2"] = CONTENT
    return server


def get(server, path, **options):
    download(server.url("file.bz2"), path, **{"show": False, **options})


def names(path):
    return sorted(each.name for each in path.parent.iterdir())


def test_whole(served, path):
    get(served, path)
    assert path.read_bytes() == CONTENT
    assert names(path) == ["file.bz2", "file.bz2.sha256"]
    assert (path.parent / "file.bz2.sha256").read_text() == digest(CONTENT) + "\n"
    assert served.asked == [("file.bz2", None)]


def test_a_bar_is_shown_only_if_asked_for(served, path, capsys):
    get(served, path)
    assert capsys.readouterr().out == ""
    get(served, path, show=True)
    assert "downloading file.bz2" in capsys.readouterr().out


def test_a_server_that_says_no_size(served, path):
    served.sizes = False
    get(served, path, show=True)
    assert path.read_bytes() == CONTENT


def test_it_goes_on_where_it_broke_off(served, path):
    served.breaks_off_after = 1000
    with pytest.raises(ConnectionError, match=r"1,000 of 1,280,000 bytes; load it again|IncompleteRead"):
        get(served, path)
    assert names(path) == ["file.bz2.part"]
    served.breaks_off_after = None
    get(served, path)
    assert served.asked == [("file.bz2", None), ("file.bz2", "bytes=1000-")]
    assert path.read_bytes() == CONTENT
    assert names(path) == ["file.bz2", "file.bz2.sha256"]


def test_it_breaks_off_twice(served, path):
    for after in (1000, 5000):
        served.breaks_off_after = after
        with pytest.raises(ConnectionError):
            get(served, path)
    served.breaks_off_after = None
    get(served, path, sha256=digest(CONTENT))
    assert [wanted for _, wanted in served.asked] == [None, "bytes=1000-", "bytes=5000-"]


def test_a_server_that_has_no_ranges(served, path):
    served.ranges = False
    path.parent.mkdir()
    (path.parent / "file.bz2.part").write_bytes(b"something else")
    get(served, path)
    assert path.read_bytes() == CONTENT


def test_all_of_it_was_there(served, path):
    path.parent.mkdir()
    (path.parent / "file.bz2.part").write_bytes(CONTENT)
    get(served, path)
    assert path.read_bytes() == CONTENT
    assert len(served.asked) == 1


def test_more_than_all_of_it_was_there(served, path):
    path.parent.mkdir()
    (path.parent / "file.bz2.part").write_bytes(CONTENT + b"more")
    get(served, path)
    assert path.read_bytes() == CONTENT
    assert [wanted for _, wanted in served.asked] == ["bytes=1280004-", None]


def test_a_checksum_that_is_known(served, path):
    get(served, path, sha256=digest(CONTENT))
    served.files["file.bz2"] = CONTENT[:-1]
    path.unlink()
    with pytest.raises(
        ValueError, match=rf"{digest(CONTENT[:-1])}, not {digest(CONTENT)}, which it should have"
    ):
        get(served, path, sha256=digest(CONTENT))
    assert names(path) == ["file.bz2.sha256"]  # nothing to go on from


def test_the_checksum_of_the_first_download(served, path):
    get(served, path)
    path.unlink()
    get(served, path)
    path.unlink()
    served.files["file.bz2"] = b"changed"
    with pytest.raises(
        ValueError, match=r"first downloaded \(see file.bz2.sha256\).* if the change is wanted"
    ):
        get(served, path)
    (path.parent / "file.bz2.sha256").unlink()
    get(served, path)
    assert path.read_bytes() == b"changed"


def test_a_file_that_was_damaged_later(served, path):
    get(served, path)
    check(path)
    path.write_bytes(b"damaged")
    with pytest.raises(ValueError, match=r"file\.bz2 has the SHA-256 checksum"):
        check(path)


def test_a_file_put_there_by_hand(path):
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    check(path)
    with pytest.raises(ValueError, match="which it should have"):
        check(path, digest(b"another"))


def test_not_found(server, path):
    with pytest.raises(ConnectionError, match="404"):
        get(server, path)
    assert names(path) == []


def test_no_network(server, path):
    server.close()
    with pytest.raises(ConnectionError, match="refused"):
        get(server, path)
