"""Samples and moments of all chunks."""

import numpy as np
import pytest
import torch

pytest.importorskip("distributed")
import dask
import dask.array as da

from dask_problem import GIVEN, check
from hck.dask import DaskHCKRegressor
from hck.dask.training import Training, draw
from hck.points import DensePoints
from hck.preparation.coding import NumberTally
from hck.preparation.sample import Moments, draw_rows
from hck.preparation.scaling import Scaling
from hck.preparation.survey import Chunk

pytestmark = pytest.mark.usefixtures("one_thread", "client")


def test_the_sample_is_the_same_for_all_chunks(data, monkeypatch):
    """And so is the model, to rounding, of rows in other blocks or in one piece."""
    x, y = data
    monkeypatch.setattr("hck.estimators.branched._CHOSEN_ON", 100)
    monkeypatch.setattr("hck.estimators.branched.POINTS_PER_BRANCH", 50)
    given = {**GIVEN, "scale": "standard", "leave_one_out": False}
    expected = DaskHCKRegressor(**given).fit(x, y)
    assert expected.bytes_.sample == 200 * 8 * 4
    X = da.from_array(x, chunks=((100, 0, 500, 100), 3))
    model = DaskHCKRegressor(**given).fit(X, da.from_array(y, chunks=300))
    np.testing.assert_allclose(model.predict(x), expected.predict(x), rtol=1e-10)


class OnThisMachine:
    """Does what workers would do, with blocks whose rows are their numbers."""

    def compute(self, made):
        return dask.compute(*made, scheduler="synchronous")

    def gather(self, found, what):
        return list(found)

    def release(self, found):
        pass


class Endless:
    """The numbers from one on."""

    def __init__(self, first):
        self.first = first

    def __getitem__(self, rows):
        return rows + self.first


def test_a_sample_of_thousands_of_millions_of_rows():
    rows, first = [3 * 10**9, 0, 10**9], [0, 3 * 10**9, 3 * 10**9]
    chunks = [Chunk(Endless(k), Endless(k)) for k in first]
    targets = NumberTally(np.zeros(()), sum(rows))
    data = Training(sum(rows), Moments.none(1), targets, (), 16, chunks, rows, None)
    drawn = draw(OnThisMachine(), data, 4000, np.random.RandomState(0))
    assert len(np.unique(drawn.x)) == len(drawn.x) == 4000
    np.testing.assert_array_equal(drawn.x, drawn.y)
    assert (drawn.x >= 3 * 10**9).mean() == pytest.approx(0.25, abs=0.05)
    assert (np.diff(drawn.x) < 0).mean() == pytest.approx(0.5, abs=0.05)
    np.testing.assert_array_equal(draw_rows(7, 7, np.random.default_rng(0)), np.arange(7))


@pytest.mark.parametrize(("scale", "lengthscale"), [("standard", 0.6), ("minmax", "auto")])
def test_features_are_scaled_by_all_rows(data, scale, lengthscale, monkeypatch):
    """Also by one that is in no sample."""
    x, y = data
    x = x.copy()
    x[17, 1] = 50.0
    monkeypatch.setattr("hck.estimators.branched._CHOSEN_ON", 100)
    monkeypatch.setattr("hck.estimators.branched.POINTS_PER_BRANCH", 50)
    given = {**GIVEN, "scale": scale, "lengthscale": lengthscale, "fit_time": 0.1, "n_branches": 2}
    model = DaskHCKRegressor(**given).fit(da.from_array(x, chunks=(200, 3)), y)
    expected = Scaling.of(scale, DensePoints(torch.from_numpy(x)))
    assert model.bytes_.sample == 100 * 8 * 4
    torch.testing.assert_close(model._model.plan.scaling.centre, expected.centre, rtol=1e-12, atol=0)
    torch.testing.assert_close(model._model.plan.scaling.factor, expected.factor, rtol=1e-12, atol=0)
    np.testing.assert_allclose(model.to_local().predict(x), model.predict(x), rtol=1e-8)


def test_many_equal_points(data):
    """Branches that no point is sent to are left out."""
    x, y = data
    x = np.where(np.arange(700)[:, None] < 600, 0.5, x)
    model = DaskHCKRegressor(**{**GIVEN, "n_branches": 16}).fit(x, y)
    assert model._model.plan.trunks[0].n_branches < 16
    check(model, x, y[:, None], da.from_array(x, chunks=(300, 3)))
