"""Several who save and load at once: each model is whole, and what a killed save has left is removed."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import hck
from hck import HCKRegressor
from hck.persistence import folder as folder_module
from hck.persistence import save

pytestmark = pytest.mark.usefixtures("one_thread")

X = np.random.default_rng(0).uniform(size=(30, 2))
MODELS = [
    HCKRegressor(lengthscale=0.5, alpha=alpha, rank=4, random_state=0).fit(X, X.sum(1))
    for alpha in (0.1, 1.0, 10.0)
]
POSSIBLE = [model.predict(X) for model in MODELS]


def is_one_of_them(path):
    found = hck.load(path).predict(X)
    return any(np.array_equal(found, each) for each in POSSIBLE)


def together(*jobs):
    """Run functions in threads of their own; the errors that they raise."""
    errors = []

    def run(job):
        try:
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return errors


@pytest.mark.parametrize("exists", [False, True])
def test_saves_at_once(tmp_path, exists):
    if exists:
        save(MODELS[0], tmp_path / "model")

    def work(model):
        for _ in range(4):
            save(model, tmp_path / "model", force=True)
            assert is_one_of_them(tmp_path / "model")

    assert together(*(lambda model=model: work(model) for model in MODELS)) == []
    assert [each.name for each in tmp_path.iterdir()] == ["model"]
    assert len(list((tmp_path / "model").iterdir())) == 2


def test_only_one_save_without_force_succeeds(tmp_path):
    errors = together(*(lambda model=model: save(model, tmp_path / "model") for model in MODELS))
    assert [type(error) for error in errors] == [FileExistsError] * 2
    assert is_one_of_them(tmp_path / "model")


def test_loads_while_it_is_replaced(tmp_path):
    save(MODELS[0], tmp_path / "model")
    done = threading.Event()

    def replace():
        try:
            for k in range(12):
                save(MODELS[k % 3], tmp_path / "model", force=True)
        finally:
            done.set()

    def read():
        while not done.is_set():
            assert is_one_of_them(tmp_path / "model")

    assert together(replace, read, read) == []


@pytest.mark.skipif(os.name != "posix", reason="the other process locks as POSIX does")
def test_saves_wait_for_another_process_until_it_dies(tmp_path):
    save(MODELS[0], tmp_path / "model")
    code = "import fcntl, sys, time; file = open(sys.argv[1], 'ab'); fcntl.flock(file, fcntl.LOCK_EX); "
    code += "print('held', flush=True); time.sleep(60)"
    command = [sys.executable, "-c", code, str(tmp_path / ".model.lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"held\n"
        waiting = threading.Thread(target=save, args=(MODELS[1], tmp_path / "model", True))
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
        other.kill()
    waiting.join(60)
    np.testing.assert_array_equal(hck.load(tmp_path / "model").predict(X), POSSIBLE[1])


def test_what_killed_saves_have_left(tmp_path):
    save(MODELS[0], tmp_path / "model")
    left = tmp_path / ".model.0a1b2c3d.tmp"
    left.mkdir()
    (left / "tensors.safetensors").write_bytes(b"half")
    (tmp_path / ".model.lock").touch()
    other = tmp_path / ".model.2.0a1b2c3d.tmp"  # of another model
    other.mkdir()
    save(MODELS[1], tmp_path / "model", force=True)
    assert {each.name for each in tmp_path.iterdir()} == {"model", other.name}


@pytest.mark.parametrize("exists", [False, True])
def test_a_full_disk_is_explained(tmp_path, monkeypatch, exists):
    if exists:
        save(MODELS[0], tmp_path / "model")

    def full(arrays, file):
        raise folder_module.SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(folder_module, "save_file", full)
    state = "that is there is intact" if exists else "nothing was left there"
    with pytest.raises(OSError, match=rf"needs [\d,]+ bytes .*{state}") as info:
        save(MODELS[1], tmp_path / "model", force=True)
    assert info.value.errno == 28
    assert info.value.filename == str(tmp_path / "model")
    assert [each.name for each in tmp_path.iterdir()] == (["model"] if exists else [])
    assert not exists or is_one_of_them(tmp_path / "model")
