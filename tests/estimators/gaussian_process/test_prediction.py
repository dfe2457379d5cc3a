"""Means, deviations and covariances at new points."""

import numpy as np
import pytest
import torch

from hck import metrics
from hck.kernels import Gaussian
from process_problem import NEW, TREE, N, X, Y, fixed

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("trend", ["zero", "mean", "constant", "linear"])
def test_covariances_have_the_deviations_on_their_diagonal(trend):
    model = fixed(trend=trend, **TREE).fit(X, Y)
    every = np.concatenate([X[:20], NEW, NEW + 3])
    mean, std = model.predict(every, return_std=True)
    again, cov = model.predict(every, return_cov=True)
    np.testing.assert_array_equal(model.predict(every), mean)
    np.testing.assert_array_equal(again, mean)
    np.testing.assert_allclose(np.diag(cov), std**2, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(cov, cov.T, rtol=1e-12, atol=1e-14)
    assert np.linalg.eigvalsh(cov).min() > -1e-8


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("rank", [8, N])
def test_deviations_are_never_negative(dtype, rank):
    """At the training points of a very smooth function with next to no noise they are rounding errors."""
    model = fixed(
        100.0 * Gaussian(1.0), noise=1e-4, rank=rank, dtype=dtype, jitter=1e-4, random_state=0, trend="zero"
    ).fit(X, np.sin(X[:, 0]))
    std = model.predict(np.concatenate([X, NEW]), return_std=True)[1]
    assert np.isfinite(std).all()
    assert (std >= 0).all()
    assert std.max() < 0.2


def test_means_do_not_pay_for_the_uncertainty():
    model = fixed(**TREE).fit(X, Y)
    model.predict(NEW)
    model.predict(NEW, observed=True)
    model.log_marginal_likelihood()
    assert "uncertainty" not in model.posterior_.members[0].factorization.__dict__
    model.predict(NEW, return_std=True)
    assert "uncertainty" in model.posterior_.members[0].factorization.__dict__


def test_intervals_hold_what_they_should(learned):
    rng = np.random.default_rng(7)
    x = rng.uniform(size=(2000, 2))
    y = np.sin(5 * x[:, 0]) + x[:, 1] + 0.1 * rng.standard_normal(2000)
    mean, std = learned.predict(x, return_std=True, observed=True)
    assert 0.9 < metrics.coverage(y, mean, std) < 0.99
    assert learned.score(x, y) > 0.95


def test_deviations_or_covariances(fixed_tree):
    with pytest.raises(ValueError, match="one of return_std, return_cov and interval"):
        fixed_tree.predict(NEW, return_std=True, return_cov=True)


@pytest.mark.parametrize("points", [X, torch.from_numpy(X)], ids=["array", "tensor"])
def test_wrong_number_of_features(fixed_tree, points):
    message = "X has 1 features, but HCKGaussianProcessRegressor is expecting 2 features"
    for use in (fixed_tree.predict, fixed_tree.sample_prior, fixed_tree.sample_posterior):
        with pytest.raises(ValueError, match=message):
            use(points[:, :1])
