"""Rows that are left out, alone and in forests."""

import numpy as np
import pytest

from disk_problem import GIVEN, SMALL
from hck import HCKRegressor
from hck.outofcore import DiskHCKRegressor

pytestmark = pytest.mark.usefixtures("one_thread")


def test_left_out_rows(data, tmp_path):
    X, y, _ = data
    model = DiskHCKRegressor(**SMALL, folder=tmp_path / "model").fit(X, y)
    np.testing.assert_array_equal(model.left_out_rows_, np.arange(6000))
    expected = HCKRegressor(**GIVEN).fit(X, y).loo_predict()
    error, usual = np.abs(model.loo_predict() - y).mean(), np.abs(expected - y).mean()
    assert error == pytest.approx(usual, rel=0.1)
    np.testing.assert_array_equal(model.to_local().loo_predict(), model.loo_predict())


def test_left_out_rows_of_forests(data, tmp_path, monkeypatch):
    X, y, _ = data
    monkeypatch.setattr("hck.branches.plan._PROBED", 1000)
    model = DiskHCKRegressor(**SMALL, n_trees=3, folder=tmp_path / "model").fit(X, y)
    np.testing.assert_array_equal(model.left_out_rows_, np.arange(0, 6000, 6))
    expected = HCKRegressor(**GIVEN, n_trees=3).fit(X, y).loo_predict()[::6]
    error, usual = np.abs(model.loo_predict() - y[::6]).mean(), np.abs(expected - y[::6]).mean()
    assert error == pytest.approx(usual, rel=0.1)
