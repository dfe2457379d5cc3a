"""A run that was stopped goes on where it was."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch

from disk_problem import SMALL
from hck.backend.files import replacing
from hck.branches import Plan
from hck.outofcore import DiskHCKRegressor
from hck.outofcore.job import Job
from hck.outofcore.spool import Spool

pytestmark = pytest.mark.usefixtures("one_thread")


class Stop(Exception):
    pass


@pytest.mark.parametrize("where", ["deal", "up", "down"])
def test_a_stopped_run_goes_on(data, where, tmp_path, monkeypatch):
    X, y, new = data
    monkeypatch.setattr("hck.outofcore.rows._BLOCK", 40_000)  # several blocks
    expected = DiskHCKRegressor(**SMALL, folder=tmp_path / "whole").fit(X, y).predict(new)
    owner, name = {"deal": (Spool, "add"), "up": (Plan, "up"), "down": (Plan, "down")}[where]
    original, calls = getattr(owner, name), []

    def counted(self, *args):
        calls.append(str(args[0][0] if where == "deal" else args[:2]))
        if len(calls) == 3:
            if where == "deal":  # when some files have the block, and another a part of a record
                monkeypatch.setattr("hck.outofcore.spool.replacing", None)
                with pytest.raises(TypeError):
                    original(self, *args)
                monkeypatch.setattr("hck.outofcore.spool.replacing", replacing)
                with self._path(0, 0).open("ab") as file:
                    file.write(b"half a record")
            raise Stop
        return original(self, *args)

    monkeypatch.setattr(owner, name, counted)
    model = DiskHCKRegressor(**SMALL, folder=tmp_path / "model")
    with pytest.raises(Stop):
        model.fit(X, y)
    done, rows = set(calls[:2]), len(calls)
    del calls[:]
    calls += [None] * 3
    model.fit(X, y)
    assert not done & set(calls)
    assert rows == 3
    np.testing.assert_array_equal(model.predict(new), expected)
    kept = sorted(path.name for path in (tmp_path / "model").iterdir())
    assert kept == ["branches", "job.json", "lock", "model", "plan"]


@pytest.mark.skipif(os.name != "posix", reason="Windows has no SIGKILL")
def test_a_killed_process_goes_on(data, tmp_path):
    """Killed, without a chance to tidy up, as soon as the first branch has come down."""
    X, y, new = data
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    program = f"""
        import os, signal
        from hck.outofcore import DiskHCKRegressor
        from hck.outofcore.job import Job
        keep = Job.keep
        def kill(self, name, value):
            keep(self, name, value)
            if name.startswith("branches"):
                os.kill(os.getpid(), signal.SIGKILL)
        Job.keep = kill
        given = {SMALL!r}
        DiskHCKRegressor(**given, folder={str(tmp_path / "model")!r}).fit(
            {str(tmp_path / "X.npy")!r}, {str(tmp_path / "y.npy")!r}
        )
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env=os.environ, check=False)
    assert run.returncode == -signal.SIGKILL
    assert len(list((tmp_path / "model" / "branches").iterdir())) == 1
    model = DiskHCKRegressor(**SMALL, folder=tmp_path / "model").fit(tmp_path / "X.npy", tmp_path / "y.npy")
    expected = DiskHCKRegressor(**SMALL, folder=tmp_path / "whole").fit(X, y)
    np.testing.assert_allclose(model.predict(new), expected.predict(new), rtol=1e-12, atol=1e-12)


def test_a_finished_run_is_not_repeated(data, tmp_path, monkeypatch):
    X, y, new = data
    expected = DiskHCKRegressor(**SMALL, folder=tmp_path / "model").fit(X, y).predict(new)
    monkeypatch.setattr(Plan, "grow", None)
    model = DiskHCKRegressor(**SMALL, folder=tmp_path / "model").fit(X, y)
    np.testing.assert_array_equal(model.predict(new), expected)


def test_killed_before_it_has_tidied_up(data, tmp_path, monkeypatch):
    X, y, new = data
    model = DiskHCKRegressor(**SMALL, folder=tmp_path / "model")
    with monkeypatch.context() as patch:
        patch.setattr("hck.outofcore.job.Job.forget", None)
        with pytest.raises(TypeError):
            model.fit(X, y)
    (tmp_path / "model" / "branches" / ".0-1.abc.tmp").mkdir()
    model.fit(X, y).predict(new)
    assert not (tmp_path / "model" / "points").exists()
    assert not list((tmp_path / "model" / "branches").glob(".*"))


def test_blocks_of_another_size_after_a_stop(data, tmp_path, monkeypatch):
    X, y, new = data
    expected = DiskHCKRegressor(**SMALL, folder=tmp_path / "whole").fit(X, y).predict(new)
    monkeypatch.setattr("hck.outofcore.rows._BLOCK", 40_000)
    with monkeypatch.context() as patch:
        patch.setattr(Plan, "up", None)
        with pytest.raises(TypeError):
            DiskHCKRegressor(**SMALL, folder=tmp_path / "model").fit(X, y)
    counts = tmp_path / "model" / "points" / "counts.json"
    assert '"done": 6000' in counts.read_text()
    monkeypatch.setattr("hck.outofcore.rows._BLOCK", 70_000)
    found = DiskHCKRegressor(**SMALL, folder=tmp_path / "model").fit(X, y).predict(new)
    np.testing.assert_array_equal(found, expected)


def test_points_that_were_lost_are_noticed(data, tmp_path, monkeypatch):
    X, y, _ = data
    model = DiskHCKRegressor(**SMALL, folder=tmp_path / "model")
    with monkeypatch.context() as patch:
        patch.setattr(Plan, "up", None)
        with pytest.raises(TypeError):
            model.fit(X, y)
    (tmp_path / "model" / "points" / "0-1.points").write_bytes(b"")
    with pytest.raises(OSError, match="shorter than it was"):
        model.fit(X, y)


@pytest.mark.skipif(os.name != "posix", reason="folders are locked by fcntl, which Windows lacks")
def test_one_process_at_a_time(data, tmp_path):
    X, y, _ = data
    job = Job(tmp_path / "model", torch.device("cpu"))
    with job.alone(), pytest.raises(RuntimeError, match="another process is at work"):
        DiskHCKRegressor(**SMALL, folder=tmp_path / "model").fit(X, y)
    DiskHCKRegressor(**SMALL, folder=tmp_path / "model").fit(X, y)


def test_a_failed_start_does_not_block_the_folder(data, tmp_path):
    X, y, _ = data
    bad = X.copy()
    bad[0, 0] = np.nan
    model = DiskHCKRegressor(**SMALL, folder=tmp_path / "model")
    with pytest.raises(ValueError, match="row 0"):
        model.fit(bad, y)
    model.fit(X, y)


def test_a_run_that_lacks_a_parameter_with_its_default(data, tmp_path):
    """As of a version that did not have the parameter yet."""
    X, y, new = data
    expected = DiskHCKRegressor(**SMALL, folder=tmp_path / "model").fit(X, y).predict(new)
    settings = tmp_path / "model" / "job.json"
    known = json.loads(settings.read_text())
    settings.write_text(json.dumps({name: value for name, value in known.items() if name != "jitter"}))
    model = DiskHCKRegressor(**SMALL, folder=tmp_path / "model").fit(X, y)
    np.testing.assert_array_equal(model.predict(new), expected)
    with pytest.raises(ValueError, match="holds a run that differs in jitter:"):
        DiskHCKRegressor(**SMALL, jitter=1e-3, folder=tmp_path / "model").fit(X, y)
