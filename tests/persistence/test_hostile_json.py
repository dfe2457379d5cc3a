"""`model.json` that is no plain JSON file is refused, at once."""

import os
import shutil

import numpy as np
import pytest

import hck
from hck import HCKRegressor
from hck.errors import ModelFileError

pytestmark = pytest.mark.usefixtures("one_thread")

X = np.random.default_rng(0).uniform(size=(20, 2))


@pytest.fixture
def folder(tmp_path):
    HCKRegressor(lengthscale=0.5, alpha=0.1, rank=4, random_state=0).fit(X, X.sum(1)).save(tmp_path / "model")
    return tmp_path / "model"


def refused(folder, match):
    with pytest.raises(ModelFileError, match=match):
        hck.load(folder)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda text: b"\xef\xbb\xbf" + text, "BOM"),
        (lambda text: text.decode().encode("utf-16"), "truncated or damaged"),
        (lambda text: text.replace(b"{\n", b'{\n "format": "hck model",\n', 1), "'format' is there twice"),
        (lambda text: text.replace(b'"version": 1', b'"version": 1e999', 1), "too large for a number"),
        (lambda text: text.replace(b'"version": 1', b'"version": ' + b"9" * 5000, 1), "truncated or damaged"),
    ],
)
def test_json_of_another_kind(folder, change, match):
    file = folder / "model.json"
    file.write_bytes(change(file.read_bytes()))
    refused(folder, match)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
@pytest.mark.parametrize("name", ["model.json", "tensors.safetensors"])
def test_pipes(folder, name):
    (folder / name).unlink()
    os.mkfifo(folder / name)
    refused(folder, f"{name} is no regular file")


@pytest.mark.parametrize("name", ["model.json", "tensors.safetensors"])
def test_folders_in_the_place_of_files(folder, name):
    (folder / name).unlink()
    (folder / name).mkdir()
    refused(folder, f"{name} is no regular file")
    shutil.rmtree(folder / name)
