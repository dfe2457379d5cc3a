"""Training on disk with a GPU: as good as in memory, and the model opens anywhere."""

import numpy as np
import pytest
import torch

from hck import HCKRegressor
from hck.outofcore import DiskHCKClassifier, DiskHCKRegressor

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]

GIVEN = {"kernel": "gaussian", "lengthscale": 0.4, "alpha": 0.02, "rank": 16, "random_state": 0}
SMALL = {**GIVEN, "memory_budget": "1MB", "device": "cuda"}  # several branches


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X, new = rng.uniform(size=(6000, 3)), rng.uniform(size=(500, 3))
    return X, smooth(X) + 0.1 * rng.standard_normal(6000), new


def smooth(x):
    return np.sin(6 * x[:, 0]) + x[:, 1] ** 2


def test_regression(data, tmp_path):
    X, y, new = data
    model = DiskHCKRegressor(**SMALL, folder=tmp_path / "model").fit(X, y)
    predicted, local = model.predict(new), model.to_local()
    np.testing.assert_allclose(local.predict(new), predicted, rtol=1e-9, atol=1e-9)
    in_memory = HCKRegressor(**GIVEN, leave_one_out=False).fit(X, y)
    assert np.abs(predicted - smooth(new)).mean() < 1.2 * np.abs(in_memory.predict(new) - smooth(new)).mean()
    assert np.abs(model.loo_predict() - y).mean() < 0.12
    for device in ("cpu", "cuda"):
        opened = DiskHCKRegressor.open(tmp_path / "model", device=device)
        np.testing.assert_allclose(opened.predict(new), predicted, rtol=1e-9, atol=1e-9)


def test_classes(data, tmp_path):
    X, y, new = data
    model = DiskHCKClassifier(**SMALL, folder=tmp_path / "model").fit(X, np.digitize(y, [0.3, 1.0]))
    assert np.mean(model.predict(new) == np.digitize(smooth(new), [0.3, 1.0])) > 0.9
    np.testing.assert_allclose(model.predict_proba(new).sum(1), 1)


def test_everything_automatic(data, tmp_path):
    X, y, new = data
    model = DiskHCKRegressor(folder=tmp_path / "model", device="cuda", memory_budget="8MB", random_state=0)
    assert np.abs(model.fit(X, y).predict(new) - smooth(new)).mean() < 0.05
