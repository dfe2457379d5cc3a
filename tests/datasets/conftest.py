"""Every test has a cache of its own, and none reaches beyond this machine."""

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@pytest.fixture(autouse=True)
def own_folders(request, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    if request.node.get_closest_marker("data") is None:
        monkeypatch.delenv("HCK_DATA", raising=False)


@pytest.fixture
def cache(tmp_path):
    """The folder that downloads go to; there is none at first."""
    return tmp_path / "xdg" / "hck"


class Server:
    """Serves bytes by name, in whole or in part, and remembers what was asked for."""

    def __init__(self):
        self.files, self.asked = {}, []
        self.ranges, self.sizes = True, True  # whether it serves ranges, and says sizes
        self.breaks_off_after = None
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                server.answer(self)

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def url(self, name):
        return f"http://127.0.0.1:{self.http.server_port}/{name}"

    def answer(self, request):
        name, wanted = request.path[1:], request.headers.get("Range")
        self.asked.append((name, wanted))
        if name not in self.files:
            request.send_error(404)
            return
        content, start = self.files[name], 0
        if wanted and self.ranges:
            start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])
            if start >= len(content):
                request.send_response(416)
                request.send_header("Content-Range", f"bytes */{len(content)}")
                request.end_headers()
                return
        request.send_response(206 if start else 200)
        if self.sizes:
            request.send_header("Content-Length", str(len(content) - start))
        request.end_headers()
        request.wfile.write(content[start : self.breaks_off_after])

    def close(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def server():
    made = Server()
    yield made
    made.close()
