"""Links to elsewhere: which there are, and what is said of those that are gone."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import check_links


class Answer(BaseHTTPRequestHandler):
    """The status that the path names."""

    def do_GET(self):
        self.send_response(int(self.path[1:]))
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


def test_links_are_found():
    links = check_links.all_links()
    assert "https://www.jmlr.org/papers/v18/15-376.html" in links
    assert "https://semver.org" in links  # without the full stop behind it
    assert any(link.endswith(".bz2") for link in links)  # of a data set


def test_what_is_gone(server, capsys):
    links = {f"{server}/{code}" for code in (200, 403, 404)}
    assert check_links.check(links) == [f"{server}/404"]
    said = capsys.readouterr().out
    assert f"look at it yourself: {server}/403" in said
    assert "2 of 3" in said


def test_without_a_network(capsys):
    assert check_links.check({"http://127.0.0.1:9"}) == []
    assert "no network" in capsys.readouterr().out
