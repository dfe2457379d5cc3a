"""How points are dealt to branches."""

import numpy as np
import pytest

from disk_problem import SMALL
from hck import HCKRegressor
from hck.estimators.branched import Extent, branches_within, sizes_for
from hck.outofcore import DiskHCKRegressor
from hck.settings import Settings

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.filterwarnings("ignore:so many rows are alike")
@pytest.mark.parametrize("alike", [2500, 5000, 5999, 6000])
def test_equal_rows(data, alike, tmp_path):
    """Those cannot be divided: branches are fewer, and uneven."""
    X, y, new = data
    X = X.copy()
    X[:alike] = 0.5
    model = DiskHCKRegressor(**SMALL, n_trees=2, leave_one_out=False, folder=tmp_path / "model").fit(X, y)
    np.testing.assert_allclose(model.to_local().predict(new), model.predict(new), rtol=1e-9, atol=1e-9)
    assert model.predict([[0.5, 0.5, 0.5]])[0] == pytest.approx(y[:alike].mean(), abs=0.05)


def test_uneven_branches(data, tmp_path):
    X, y, _ = data
    X = X.copy()
    X[:2500] = 0.5
    with pytest.warns(UserWarning, match="times as many as others"):
        DiskHCKRegressor(**SMALL, folder=tmp_path / "model").fit(X, y)


def test_branches_within_a_budget():
    model = HCKRegressor(rank=32, memory_budget="2GiB")
    number, size = sizes_for(model, Extent(50_000_000, 8, 1))
    assert number == branches_within(model, Extent(50_000_000, 8, 1), Settings(32)) == 128
    assert size == 5000 * 128
    assert branches_within(model, Extent(50_000_000, 8, 20), Settings(32)) > number  # more right-hand sides
    assert branches_within(model, Extent(100_000_000, 8, 1), Settings(32)) == 2 * number
    small = HCKRegressor(rank=32, memory_budget="64MiB")
    number, size = sizes_for(small, Extent(50_000_000, 8, 1))
    assert 8 * 9 * size <= 2**26 / 4 + 8 * 9 * 64 * number
