"""Every file of a run is checked, and named when it is not as it was written."""

import json
import shutil

import numpy as np
import pytest

from disk_problem import SMALL
from hck.branches import Plan
from hck.errors import ModelFileError, RunFileError
from hck.outofcore import DiskHCKClassifier, DiskHCKRegressor

pytestmark = pytest.mark.usefixtures("one_thread")

PLAN = ["plan/model.json", "plan/tensors.safetensors"]
MESSAGE = ["messages/0-1/model.json", "messages/0-1/tensors.safetensors"]
POINTS = ["points/counts.json", "points/0-0.points", "points/0-1.points"]
STOPPED = ["job.json", *PLAN, *POINTS, *MESSAGE, "branches/0-0/tensors.safetensors"]
FINISHED = ["model/model.json", "model/tensors.safetensors", "branches/0-1/tensors.safetensors"]


class Stop(Exception):
    pass


@pytest.fixture(scope="module")
def few(data):
    X, y, new = data
    return X[:1500], y[:1500], new[:50]


def stopped_run(folder, X, y, cls=DiskHCKRegressor):
    """Stopped when one of the branches has come down."""
    down = Plan.down

    def once(self, tree, k, *rest):
        if k == 1:
            raise Stop
        return down(self, tree, k, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Plan, "down", once)
        with pytest.raises(Stop):
            cls(**SMALL, folder=folder).fit(X, y)
    return folder


@pytest.fixture(scope="module")
def stopped(few, tmp_path_factory):
    return stopped_run(tmp_path_factory.mktemp("stopped") / "run", *few[:2])


@pytest.fixture(scope="module")
def finished(few, tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    return folder, DiskHCKRegressor(**SMALL, folder=folder).fit(*few[:2]).predict(few[2])


@pytest.fixture
def copy(tmp_path):
    return lambda run: shutil.copytree(run, tmp_path / "run")


def flip(path):
    """Another digit or letter in the middle of a file."""
    content = bytearray(path.read_bytes())
    middle = next(i for i in range(len(content) // 2, len(content)) if chr(content[i]).isalnum())
    content[middle] ^= 1
    path.write_bytes(content)


DAMAGE = {
    "altered": flip,
    "truncated": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: path.write_bytes(b""),
    "other": lambda path: path.write_bytes(b"[1, 2]"),
}
CASES = [(name, how) for name in STOPPED for how in ("altered", "truncated")]
CASES += [(name, how) for name in ("job.json", "points/counts.json") for how in ("empty", "other")]


@pytest.mark.parametrize(("name", "how"), CASES)
def test_damage_of_a_stopped_run(few, stopped, copy, name, how):
    X, y, _ = few
    folder = copy(stopped)
    DAMAGE[how](folder / name)
    with pytest.raises(RunFileError) as raised:
        DiskHCKRegressor(**SMALL, folder=folder).fit(X, y)
    text = str(raised.value)
    assert str(folder / (name if name.startswith(("job", "points")) else name.rpartition("/")[0])) in text
    assert "remove " in text
    assert isinstance(raised.value, ModelFileError)
    assert isinstance(raised.value, OSError)


@pytest.mark.parametrize("how", ["altered", "truncated"])
@pytest.mark.parametrize("name", FINISHED)
def test_damage_of_a_finished_run(few, finished, copy, name, how):
    folder = copy(finished[0])
    DAMAGE[how](folder / name)
    with pytest.raises(RunFileError, match=name.rpartition("/")[0]):
        DiskHCKRegressor.open(folder).predict(few[2])


def test_targets_that_were_overwritten(few, stopped, copy):
    """As many bytes as before, and numbers as good as any."""
    X, y, _ = few
    folder = copy(stopped)
    record = np.dtype([("row", "i8"), ("b", "f8", (1,)), ("x", "f8", (3,))])
    records = np.memmap(folder / "points" / "0-1.points", record, "r+")
    records["b"][:10] = 1e6
    records.flush()
    with pytest.raises(RunFileError, match=r"0-1\.points is damaged"):
        DiskHCKRegressor(**SMALL, folder=folder).fit(X, y)


@pytest.mark.parametrize("name", ["points", "messages/0-1", "branches/0-0", "points/counts.json"])
def test_what_is_removed_is_made_again(few, stopped, finished, copy, name):
    """As the messages say; the result is that of a run that was never stopped."""
    X, y, new = few
    folder = copy(stopped)
    (shutil.rmtree if (folder / name).is_dir() else lambda path: path.unlink())(folder / name)
    model = DiskHCKRegressor(**SMALL, folder=folder).fit(X, y)
    np.testing.assert_array_equal(model.predict(new), finished[1])


def test_a_branch_of_a_finished_run_is_made_again(few, finished, copy):
    X, y, new = few
    folder = copy(finished[0])
    flip(folder / "branches" / "0-1" / "tensors.safetensors")
    with pytest.raises(RunFileError, match=r"0-1 and .*model, and call fit with the same data"):
        DiskHCKRegressor.open(folder).predict(new)
    shutil.rmtree(folder / "branches" / "0-1")
    with pytest.raises(RunFileError, match="0-1 is missing"):
        DiskHCKRegressor.open(folder).predict(new)
    shutil.rmtree(folder / "model")
    model = DiskHCKRegressor(**SMALL, folder=folder).fit(X, y)
    np.testing.assert_array_equal(model.predict(new), finished[1])


@pytest.mark.parametrize("name", ["job.json", "plan"])
def test_what_all_rests_upon_is_missed(few, stopped, copy, name):
    X, y, _ = few
    folder = copy(stopped)
    (shutil.rmtree if name == "plan" else lambda path: path.unlink())(folder / name)
    with pytest.raises(RunFileError, match=f"{name} is missing.*begin again"):
        DiskHCKRegressor(**SMALL, folder=folder).fit(X, y)


@pytest.mark.parametrize("name", ["points", "messages/0-1", "branches/0-0"])
def test_files_of_another_run(few, stopped, copy, tmp_path, name):
    """Which are whole, but were made of other rows."""
    X, y, _ = few
    folder, other = copy(stopped), stopped_run(tmp_path / "other", X, y + 1)
    shutil.rmtree(folder / name)
    shutil.copytree(other / name, folder / name)
    with pytest.raises(RunFileError, match=f"{name}.* is not of this run"):
        DiskHCKRegressor(**SMALL, folder=folder).fit(X, y)


def test_files_of_another_branch(few, stopped, copy):
    X, y, _ = few
    folder = copy(stopped)
    shutil.rmtree(folder / "messages" / "0-1")
    shutil.copytree(folder / "messages" / "0-0", folder / "messages" / "0-1")
    with pytest.raises(RunFileError, match="0-1 is not of this run, or not of this step"):
        DiskHCKRegressor(**SMALL, folder=folder).fit(X, y)


def test_rows_without_checksums_are_dealt_again(few, stopped, finished, copy):
    """As an earlier version has left them."""
    X, y, new = few
    folder = copy(stopped)
    counts = folder / "points" / "counts.json"
    known = json.loads(counts.read_text())
    counts.write_text(json.dumps({name: known[name] for name in ("done", "counts")}))
    flip(folder / "points" / "0-1.points")
    model = DiskHCKRegressor(**SMALL, folder=folder).fit(X, y)
    np.testing.assert_array_equal(model.predict(new), finished[1])


def test_classes(few, tmp_path):
    X, y, _ = few
    folder = stopped_run(tmp_path / "run", X, y > 0.5, DiskHCKClassifier)
    flip(folder / "points" / "0-1.points")
    with pytest.raises(RunFileError, match=r"0-1\.points is damaged"):
        DiskHCKClassifier(**SMALL, folder=folder).fit(X, y > 0.5)
