"""Models that were saved when format 1 was new are still loaded, and predict the same."""

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest

import hck
from hck.outofcore import DiskHCKClassifier, DiskHCKRegressor

pytestmark = pytest.mark.usefixtures("one_thread")

FOLDER = Path(__file__).parent / "format1"
EXPECTED = dict(np.load(FOLDER / "expected.npz"))
DISK = {"disk-regressor": DiskHCKRegressor, "disk-classifier": DiskHCKClassifier}


@pytest.fixture(scope="module")
def made():
    """The script that has saved them."""
    spec = importlib.util.spec_from_file_location("make", FOLDER / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def scores(name, predicted):
    """What was predicted; of probabilities of a model on disk, which is calibrated when it is opened,
    the logarithms in units of their own, since the rule for that has changed."""
    if name != "disk-classifier":
        return predicted
    logs = np.log(predicted) - np.log(predicted).mean(1, keepdims=True)
    return logs / np.abs(logs).max()


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_predictions(made, name, tmp_path):
    folder, expected = shutil.copytree(FOLDER / name, tmp_path / name), scores(name, EXPECTED[name])
    model = DISK[name].open(folder) if name in DISK else hck.load(folder)
    np.testing.assert_allclose(scores(name, made.predictions(name, model)), expected, rtol=1e-9, atol=1e-11)
    if name in DISK:
        local = model.to_local()
        found = scores(name, made.predictions(name, local))
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)
        local.save(tmp_path / "again")
    else:
        model.save(tmp_path / "again")
    found = scores(name, made.predictions(name, hck.load(tmp_path / "again")))
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)
