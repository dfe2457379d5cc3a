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


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_predictions(made, name, tmp_path):
    folder = shutil.copytree(FOLDER / name, tmp_path / name)
    model = DISK[name].open(folder) if name in DISK else hck.load(folder)
    np.testing.assert_allclose(made.predictions(name, model), EXPECTED[name], rtol=1e-9, atol=1e-11)
    if name in DISK:
        local = model.to_local()
        np.testing.assert_allclose(made.predictions(name, local), EXPECTED[name], rtol=1e-8, atol=1e-9)
        local.save(tmp_path / "again")
    else:
        model.save(tmp_path / "again")
    found = hck.load(tmp_path / "again")
    np.testing.assert_allclose(made.predictions(name, found), EXPECTED[name], rtol=1e-8, atol=1e-9)
