import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from chromium import Browser, find_chromium

HERE = Path(__file__).parent
HELPERS = [path.stem for path in (HERE / "helpers").glob("*.py")]
TOGETHER = ("tests/dask/", "tests/hierarchy/", "tests/site/")  # one cluster, one zoo, one site
FIRST = (HERE / "dask", HERE / "site")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """The tests of a file, or of some folders, run in one process, so that fixtures are made once."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file = nodeid.partition("::")[0]
            return next((folder for folder in TOGETHER if file.startswith(folder)), file)

    config.option.loadscopereorder = False
    return ByFile(config, log)


def pytest_collection_modifyitems(items):
    """The cluster, the site and real data come first, so that no process has them left at the end."""
    items.sort(key=lambda item: (not {*FIRST} & {*item.path.parents}, not item.get_closest_marker("data")))


@pytest.fixture(scope="session")
def real_data():
    """Loads a real data set by name from the folder HCK_DATA; skips the test where it is absent."""

    def load(name: str) -> dict[str, np.ndarray]:
        folder = os.environ.get("HCK_DATA")
        if not folder:
            pytest.skip("HCK_DATA is not set: it names the folder of the real data sets")
        path = Path(folder) / f"{name}.npz"
        if not path.exists():
            pytest.skip(f"no {path.name} in HCK_DATA")
        with np.load(path) as arrays:
            return dict(arrays)

    return load


@pytest.fixture(autouse=True)
def same_draws(request, monkeypatch):
    """A test draws the same numbers from its modules' generators, whichever tests ran before it."""
    helpers = [sys.modules[name] for name in HELPERS if name in sys.modules]
    for module in (request.module, *helpers):
        for name, value in list(vars(module).items()):
            if isinstance(value, np.random.Generator):
                monkeypatch.setattr(module, name, np.random.default_rng(1))
            elif isinstance(value, torch.Generator):
                monkeypatch.setattr(module, name, torch.Generator(value.device).manual_seed(1))


@pytest.fixture
def one_thread():
    """On problems this small, threads only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def interrupted():
    """Send Ctrl-C some seconds after a call has begun; returns how long it took to be answered."""

    # Programs that a shell starts in the background are deaf to it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def run(call, after):
        sent = []

        def send():
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Timer(after, send)
        try:
            timer.start()
            call()
            timer.cancel()
        except KeyboardInterrupt:
            return time.perf_counter() - sent[0]
        return pytest.fail("the call came to its end")

    yield run
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A headless Chromium; skips the test where there is none."""
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium: none on the PATH, none of playwright's, and HCK_CHROMIUM does not name one")
    if os.name != "posix":
        pytest.skip("the browser is driven over a pipe that only POSIX systems have")
    started = Browser(program, tmp_path_factory.mktemp("profile"))
    yield started
    started.close()
