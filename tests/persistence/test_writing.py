"""A model is written whole or not at all, and nothing is overwritten by accident."""

import json
import os
import stat

import numpy as np
import pytest

from hck import HCKRegressor
from hck.persistence import folder as folder_module
from hck.persistence import load, save

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(60, 2))
OLD, NEW = (
    HCKRegressor(lengthscale=0.5, alpha=alpha, rank=8, random_state=0).fit(X, X.sum(1))
    for alpha in (0.1, 1.0)
)
FILES = {"model.json", "tensors.safetensors"}


def names(path):
    return {each.name for each in path.iterdir()}


def holds(path, model):
    np.testing.assert_array_equal(load(path).predict(X), model.predict(X))
    return True


@pytest.fixture
def saved(tmp_path):
    save(OLD, tmp_path / "model")
    return tmp_path / "model"


def test_a_folder_of_two_files(saved, tmp_path):
    assert names(saved) == FILES
    assert names(tmp_path) == {"model"}
    document = json.loads((saved / "model.json").read_text())
    assert document["format"] == "hck model"
    assert document["version"] == 1
    assert document["device"] == "cpu"
    save(OLD, str(tmp_path / "text"))
    assert holds(str(tmp_path / "text"), OLD)


def test_who_may_read_it_is_as_of_other_files(saved, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "file").touch()
    assert stat.S_IMODE(saved.stat().st_mode) == stat.S_IMODE((tmp_path / "other").stat().st_mode)
    for name in FILES:
        assert stat.S_IMODE((saved / name).stat().st_mode) == stat.S_IMODE((tmp_path / "file").stat().st_mode)


def test_nothing_is_overwritten(saved):
    with pytest.raises(FileExistsError, match=r"model exists: choose another name, or .* force=True"):
        save(NEW, saved)
    assert holds(saved, OLD)


def test_force(saved):
    for model in (NEW, OLD, NEW, NEW):  # the file of tensors changes its name and back
        save(model, saved, force=True)
        assert holds(saved, model)
        assert len(names(saved)) == 2
    save(NEW, saved.parent / "first", force=True)
    assert holds(saved.parent / "first", NEW)


def test_paths_that_are_something_else(tmp_path):
    (tmp_path / "file").write_text("mine")
    for force in (False, True):
        with pytest.raises(FileExistsError, match="is a file; a model is saved as a folder"):
            save(OLD, tmp_path / "file", force=force)
        with pytest.raises(FileNotFoundError, match="missing is not a folder: make it first"):
            save(OLD, tmp_path / "missing" / "model", force=force)
        with pytest.raises(FileNotFoundError, match="file is not a folder"):
            save(OLD, tmp_path / "file" / "model", force=force)
    assert names(tmp_path) == {"file"}


@pytest.mark.parametrize("content", [{}, {"mine.txt": "x"}, {"model.json": "{}"}, {"model.json": "{"}])
def test_folders_that_are_no_model(tmp_path, content):
    (tmp_path / "data").mkdir()
    for name, text in content.items():
        (tmp_path / "data" / name).write_text(text)
    with pytest.raises(FileExistsError, match="force=True"):
        save(OLD, tmp_path / "data")
    with pytest.raises(FileExistsError, match=r"is not a saved model, .* never replaced"):
        save(OLD, tmp_path / "data", force=True)
    assert {each.name: each.read_text() for each in (tmp_path / "data").iterdir()} == content


def test_models_with_other_files_beside(saved):
    (saved / "mine.txt").write_text("x")
    with pytest.raises(FileExistsError, match="holds more than that"):
        save(NEW, saved, force=True)
    assert holds(saved, OLD)


@pytest.mark.skipif(os.name != "posix", reason="links need special rights on Windows")
def test_links(saved, tmp_path):
    (tmp_path / "link").symlink_to(saved)
    save(NEW, tmp_path / "link", force=True)
    assert (tmp_path / "link").is_symlink()
    assert holds(saved, NEW)


# Interruptions -----------------------------------------------------------------------------------


class Interrupted(BaseException):
    """As KeyboardInterrupt is one, not an Exception."""


STEPS = ["save_file", "_sha256", "_write_json", "os.fsync", "os.rename", "os.replace"]


def interrupt(monkeypatch, step, after=False):
    """Stop before or after a step."""
    owner = os if step.startswith("os.") else folder_module
    name = step.removeprefix("os.")
    whole = getattr(owner, name)

    def stop(*args, **options):
        if after:
            whole(*args, **options)
        raise Interrupted

    monkeypatch.setattr(owner, name, stop)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", [step for step in STEPS if step != "os.replace"])
def test_interrupted_while_it_is_written(tmp_path, monkeypatch, step, after):
    with monkeypatch.context() as patch:
        interrupt(patch, step, after)
        with pytest.raises(Interrupted):
            save(NEW, tmp_path / "model")
    complete = step == "os.rename" and after
    assert names(tmp_path) == ({"model"} if complete else set())
    assert not complete or holds(tmp_path / "model", NEW)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", STEPS)
def test_interrupted_while_it_is_replaced(saved, monkeypatch, step, after):
    with monkeypatch.context() as patch:
        interrupt(patch, step, after)
        with pytest.raises(Interrupted):
            save(NEW, saved, force=True)
    assert holds(saved, NEW if step == "os.replace" and after else OLD)
    assert len(names(saved)) == 2
    assert names(saved.parent) == {"model"}
    save(NEW, saved, force=True)
    assert holds(saved, NEW)


@pytest.mark.parametrize("step", STEPS)
def test_killed_while_it_is_replaced(saved, monkeypatch, step):
    """Nobody tidies up."""
    with monkeypatch.context() as patch:
        interrupt(patch, step, after=True)
        patch.setattr(folder_module, "_tidy", lambda path: None)
        patch.setattr(folder_module.shutil, "rmtree", lambda path, ignore_errors: None)
        with pytest.raises(Interrupted):
            save(NEW, saved, force=True)
    assert holds(saved, NEW if step == "os.replace" else OLD)
    for model in (OLD, NEW):
        save(model, saved, force=True)
        assert holds(saved, model)
        assert len(names(saved)) == 2


def test_a_full_disk(saved, monkeypatch):
    def full(arrays, file):
        file.write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(folder_module, "save_file", full)
    for path in (saved, saved.parent / "other"):
        with pytest.raises(OSError, match="no space left"):
            save(NEW, path, force=True)
    assert names(saved.parent) == {"model"}
    assert names(saved) == FILES
    assert holds(saved, OLD)
