"""Commands end at a signal with one line, and leave no half-written files."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from hck import HCKRegressor

PROMPT = 10  # seconds; two are promised, but the machine of the tests may be busier still


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signals")
    x = np.random.default_rng(0).uniform(size=(20_000, 6))
    y = np.sin(6 * x[:, 0])
    np.savez(folder / "data.npz", X=x, y=y)
    np.savez(folder / "many.npz", X=np.tile(x, (50, 1)), y=np.tile(y, 50))
    HCKRegressor(lengthscale=0.5, alpha=0.1, rank=32).fit(x[:500], y[:500]).save(folder / "saved")
    return folder


# Programs that a shell starts in the background, tests too, are deaf to Ctrl-C.
STARTED = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from hck.cli import main
print("started", flush=True)
main()
"""


def start(folder, arguments):
    """A command, once it works."""
    command = [sys.executable, "-c", STARTED, *arguments]
    run = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    run.stdout.readline()
    return run


FIT = ("fit", "data.npz", "--out", "model", "--fit-time", "best")


@pytest.mark.parametrize(
    ("arguments", "number", "status", "after"),
    [
        (FIT, "SIGINT", 130, 0.5),
        (FIT, "SIGTERM", 143, 2.0),
        (("predict", "saved", "many.npz", "--out", "values.csv"), "SIGHUP", 129, 1.0),
        (("evaluate", "saved", "many.npz"), "SIGINT", 130, 1.5),
        (("info", "saved"), "SIGTERM", 143, 0.1),
        (("report", "saved", "--data", "many.npz", "--out", "page.html"), "SIGTERM", 143, 1.5),
        (("compare", "data.npz", "--out", "table.csv"), "SIGINT", 130, 1.5),
        (("bench", "--n", "1000000"), "SIGINT", 130, 1.5),
        (("compile",), "SIGTERM", 143, 1.5),
    ],
)
def test_a_signal_ends_a_command(folder, arguments, number, status, after):
    run = start(folder, arguments)
    time.sleep(after)
    sent = time.perf_counter()
    run.send_signal(getattr(signal, number))
    _, said = run.communicate(timeout=60)
    assert time.perf_counter() - sent < PROMPT
    assert run.returncode == status, said
    assert said.startswith("hck: ")
    assert said.count("\n") == 1
    assert {*os.listdir(folder)} == {"data.npz", "many.npz", "saved"}


def test_a_signal_that_was_ignored_stays_ignored(folder):
    command = f"trap '' HUP; exec {sys.executable} -m hck.cli info nowhere"
    run = subprocess.Popen(["sh", "-c", command], cwd=folder, stderr=subprocess.PIPE, text=True)
    for _ in range(3):
        time.sleep(0.1)
        run.send_signal(signal.SIGHUP)
    assert "nowhere" in run.communicate(timeout=60)[1]
    assert run.returncode == 1


def test_terminals_without_unicode(folder):
    settings = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    for arguments in (["reproduce"], ["info", "nicht-da-ß"]):
        run = subprocess.run(
            [sys.executable, "-m", "hck.cli", *arguments],
            cwd=folder,
            env=settings,
            capture_output=True,
            timeout=60,
        )
        assert run.returncode == (1 if "info" in arguments else 0), run.stderr
        assert b"Traceback" not in run.stderr
