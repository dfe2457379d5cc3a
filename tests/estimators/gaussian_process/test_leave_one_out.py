"""What the others say of each observation."""

import numpy as np
import pytest

from hck import HCKGaussianProcessRegressor, metrics
from process_problem import N, X, Y

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore:y has one value only"),
]


def test_leave_one_out(learned):
    mean, std = learned.loo_predict(return_std=True)
    assert mean.shape == std.shape == (N,)
    np.testing.assert_array_equal(learned.loo_predict(), mean)
    found = learned.loo_metrics()
    assert found == pytest.approx(
        {
            "rmse": np.sqrt(np.mean((Y - mean) ** 2)),
            "lpd": np.mean(-0.5 * ((Y - mean) / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi)),
            "crps": metrics.crps(Y, mean, std),
            "coverage": np.mean(np.abs(Y - mean) < 1.959964 * std),
        }
    )
    assert (std**2 > learned.noise_).all()
    assert 0.08 < found["rmse"] < 0.15
    assert found["coverage"] > 0.85


@pytest.mark.parametrize(("n", "trend"), [(1, "zero"), (2, "constant"), (4, "linear")])
def test_leave_one_out_of_few(n, trend):
    model = HCKGaussianProcessRegressor(trend=trend, random_state=0).fit(X[:n], Y[:n])
    mean, std = model.loo_predict(return_std=True)
    assert np.isfinite(mean).all()
    assert (std > 0).all()
    assert np.isfinite(list(model.loo_metrics().values())).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("n", "trend"), [(1, "constant"), (2, "linear"), (3, "linear")])
def test_without_a_point_there_may_be_no_trend(n, trend, dtype):
    """What is left says nothing of it: deviations are infinite, not undefined, nor left to rounding."""
    model = HCKGaussianProcessRegressor(trend=trend, dtype=dtype, random_state=0).fit(X[:n], Y[:n])
    mean, std = model.loo_predict(return_std=True)
    assert np.isfinite(mean).all()
    assert np.isposinf(std).all()
