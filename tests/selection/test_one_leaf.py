"""Devices that are fast with one large matrix compare candidates on that, and not on trees."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from hck import HCKRegressor
from hck.backend.kinds import KINDS
from hck.hierarchy.kernel import HierarchicalKernel
from hck.kernels import Gaussian, Matern
from hck.points import as_points
from hck.selection.left_out import left_out_of
from hck.selection.work import Effort, exact_rows

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def dense(monkeypatch):
    """Make the CPU such a device."""
    return lambda: monkeypatch.setitem(KINDS, "cpu", replace(KINDS["cpu"], dense_gain=10.0))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("n", [1, 7, 203])
def test_the_same_predictions(n, dtype):
    rng = np.random.default_rng(n)
    x, y = (torch.from_numpy(rng.uniform(size=(n, k))).to(dtype) for k in (3, 2))
    matrix = HierarchicalKernel.build(Matern(0.4), x, rank=1, leaf_size=n, generator=0)
    for noise in (0.1, torch.from_numpy(rng.uniform(0.1, 1, n)).to(dtype)):
        expected = left_out_of(matrix, y, noise)
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(KINDS, "cpu", replace(KINDS["cpu"], dense_gain=10.0))
            found = left_out_of(matrix, y, noise)
        rtol = 1e-9 if dtype == torch.float64 else 1e-4
        torch.testing.assert_close(found.mean, expected.mean, rtol=rtol, atol=rtol)
        torch.testing.assert_close(found.variance, expected.variance, rtol=rtol, atol=rtol)


def test_no_predictions_where_the_matrix_is_not_definite(dense):
    dense()
    x = torch.full((50, 2), 0.5)
    matrix = HierarchicalKernel.build(Gaussian(1.0), x, rank=1, leaf_size=50, generator=0)
    matrix.matrix.residual[0][0, 0, 1] = matrix.matrix.residual[0][0, 1, 0] = 3.0
    assert left_out_of(matrix, torch.ones(50, 1), 0.1) is None


def test_as_many_points_as_the_work_is_worth(dense):
    points = as_points(np.random.default_rng(0).uniform(size=(5000, 4)))
    assert exact_rows(points, 10, 1e12) == 0
    dense()
    few, more = exact_rows(points, 10, 1e10), exact_rows(points, 10, 1e11)
    assert 0 < few < more < len(points)
    assert exact_rows(points, 10, 1e16) == len(points)
    effort = Effort.within(1e11, points, 1000)
    assert effort.scouting.leaf_size == effort.scouts


def test_what_is_chosen_there_predicts_as_well(dense):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(1500, 4))
    f = np.sin(3 * X[:, 0] + X[:, 1]) + X[:, 2] ** 2
    y = f + 0.1 * rng.normal(size=1500)

    def error():
        model = HCKRegressor(fit_time="fast", random_state=0).fit(X[:1000], y[:1000])
        return np.sqrt(np.mean((model.predict(X[1000:]) - f[1000:]) ** 2))

    with_trees = error()
    dense()
    assert error() < 1.15 * with_trees < 0.06
