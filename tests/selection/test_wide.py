"""With far more features than points, these are compared by their coordinates in the space that they span."""

import numpy as np
import pytest
import torch

from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKRegressor
from hck.kernels import Gaussian, Laplace, Matern, RationalQuadratic
from hck.partition import KD
from hck.points import DensePoints, as_points
from hck.selection import Observations
from hck.selection.candidate import Candidate, Shape
from hck.selection.contest import Contest
from hck.selection.loss import SquaredError
from hck.selection.tuning import tune
from hck.selection.work import Limits
from hck.settings import Settings

pytestmark = pytest.mark.usefixtures("one_thread")
RNG = np.random.default_rng(0)
EACH = torch.from_numpy(RNG.uniform(10, 50, 400))
METRIC = torch.from_numpy(RNG.normal(size=(400, 300)) / 300)


def distances(x):
    return torch.cdist(x.double(), x.double(), compute_mode="donot_use_mm_for_euclid_dist")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("n", [1, 2, 40, 100])
def test_distances_are_the_same(n, dtype):
    x = torch.from_numpy(RNG.normal(size=(n, 400)) + 3).to(dtype)
    x[n // 2] = x[0]  # a point that is there twice stays so
    found = DensePoints(x).in_span.x
    assert found.shape == (n, n)
    assert found.dtype == dtype
    limit = 1e3 * torch.finfo(dtype).eps
    torch.testing.assert_close(distances(found), distances(x), rtol=limit, atol=30 * limit)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    "kernel",
    [
        Matern(20.0),
        Matern(EACH, 0.5),
        RationalQuadratic(EACH, 2.0),
        Gaussian(1.0, METRIC),
        Gaussian(torch.linspace(0.5, 2, 300, dtype=torch.float64), METRIC),
        Laplace(300.0),
        2.5 * Matern(20.0),
    ],
    ids=str,
)
@pytest.mark.parametrize("n", [3, 120])
def test_candidates_fare_the_same(n, kernel, dtype, monkeypatch):
    """One leaf: nothing depends on how the points are cut."""
    x = RNG.normal(size=(n, 400))
    y = torch.from_numpy(np.sin(x[:, :1]) + x[:, 1:2])

    def tuned():
        data = Observations(as_points(x, dtype), y.to(dtype))
        contest = Contest(data, SquaredError(y.numpy()), Settings(1), Limits(1e9), np.random.RandomState(0))
        return tune(contest.compare_on(n, Shape(1, n, 1)), Candidate(kernel, 0.3, "given"), 12)

    assert as_points(x).is_wide
    found = tuned()
    monkeypatch.setattr(DensePoints, "is_wide", False)
    plain = tuned()
    assert found.loss == pytest.approx(plain.loss, rel=1e-9 if dtype == torch.float64 else 1e-3)
    assert found.alpha == plain.alpha
    for name, value in found.kernel.parameters().items():
        torch.testing.assert_close(torch.as_tensor(value), torch.as_tensor(plain.kernel.parameters()[name]))


def test_models_of_wide_data_predict_as_well_as_a_process_by_hand():
    x = RNG.normal(size=(150, 5)) @ RNG.normal(size=(5, 2000)) + 0.3 * RNG.normal(size=(150, 2000))
    y = x[:, :10].sum(1)
    model = HCKRegressor(fit_time="fast", random_state=0).fit(x[:100], y[:100])
    centre, spread = x[:100].mean(0), x[:100].std(0)
    z = (x - centre) / spread
    linear = z[:100] @ z[:100].T
    weights = np.linalg.solve(linear + 30 * np.eye(100), y[:100] - y[:100].mean())
    by_hand = z[100:] @ z[:100].T @ weights + y[:100].mean()
    error, best = (np.square(each - y[100:]).mean() / y.var() for each in (model.predict(x[100:]), by_hand))
    assert error < max(0.1, 1.5 * best)


@pytest.mark.parametrize("make", [HCKRegressor, HCKClassifier, HCKGaussianProcessRegressor])
@pytest.mark.parametrize("n", [2, 100])
def test_all_points_are_the_same(make, n):
    y = np.arange(n) % 2
    model = make(random_state=0).fit(np.ones((n, 300)), y)
    predicted = model.predict(np.ones((3, 300)))
    assert (predicted == predicted[0]).all()


class AsTheyAre(KD):
    """Cuts that know how many features there are."""

    def directions(self, frontier):
        assert frontier.points.n_features == 400
        return super().directions(frontier)


@pytest.mark.parametrize("given", [{"partition": AsTheyAre()}, {"partition": "kd"}], ids=["a cutter", "kd"])
def test_cuts_by_features_see_them(given):
    x = RNG.normal(size=(150, 400))
    HCKRegressor(Gaussian(30.0), leaf_size=40, random_state=0, **given).fit(x, x[:, 0])
