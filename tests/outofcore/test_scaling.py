"""Features are scaled by the moments of all rows."""

import numpy as np
import pytest
import torch

from disk_problem import SMALL
from hck.outofcore import DiskHCKRegressor
from hck.points import DensePoints
from hck.preparation.sample import Moments
from hck.preparation.scaling import Scaling

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize(("scale", "lengthscale"), [("standard", 0.4), ("minmax", "auto")])
def test_features_are_scaled_by_all_rows(data, scale, lengthscale, tmp_path, monkeypatch):
    """Also by one that is in no sample."""
    X, y, new = data
    X = X.copy()
    X[17, 1] = 50.0
    monkeypatch.setattr("hck.estimators.branched._CHOSEN_ON", 500)
    monkeypatch.setattr("hck.estimators.branched.POINTS_PER_BRANCH", 50)
    monkeypatch.setattr("hck.outofcore.rows._BLOCK", 40_000)  # several blocks
    given = {**SMALL, "lengthscale": lengthscale, "scale": scale, "fit_time": 0.1, "leave_one_out": False}
    model = DiskHCKRegressor(**given, folder=tmp_path / "model").fit(X, y)
    expected = Scaling.of(scale, DensePoints(torch.from_numpy(X)))
    found = model._known["plan"].scaling
    torch.testing.assert_close(found.centre, expected.centre, rtol=1e-12, atol=0)
    torch.testing.assert_close(found.factor, expected.factor, rtol=1e-12, atol=0)
    np.testing.assert_allclose(model.to_local().predict(new), model.predict(new), rtol=1e-8)


@pytest.mark.parametrize("sizes", [[1000], [0, 300, 1, 0, 699], [1] * 1000])
def test_moments_of_pieces(sizes):
    rng = np.random.default_rng(0)
    x, weight = 1e9 + rng.normal(size=(1000, 3)), rng.uniform(size=1000)
    x[:, 2] = 0.1
    ends = np.cumsum(sizes)[:-1]
    for w in (None, weight):
        parts = zip(np.split(x, ends), np.split(weight, ends), strict=True)
        found = sum((Moments.of(a, None if w is None else b) for a, b in parts), Moments.none(3))
        mean = np.average(x - 1e9, axis=0, weights=w)
        np.testing.assert_allclose(found.mean - 1e9, mean, atol=1e-5)
        square = np.average((x - 1e9 - mean) ** 2, axis=0, weights=w)[:2]
        np.testing.assert_allclose(found.square[:2] / found.count, square, rtol=1e-5)
        np.testing.assert_array_equal(found.low, x.min(0))
        np.testing.assert_array_equal(found.high, x.max(0))
        assert found.square[2] == 0


def test_float32_with_an_offset(data, tmp_path):
    """Features lose their digits if they are rounded before they are centred."""
    X, y, new = data
    moved = {**SMALL, "lengthscale": 1.4, "scale": "standard", "dtype": "float32"}
    far = DiskHCKRegressor(**moved, folder=tmp_path / "far").fit(1e9 + 100 * X, y)
    near = DiskHCKRegressor(**moved, folder=tmp_path / "near").fit(100 * X, y)
    np.testing.assert_allclose(far.predict(1e9 + 100 * new), near.predict(100 * new), atol=5e-3)
