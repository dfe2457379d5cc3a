"""Forests: an average of trees, however they are trained."""

import numpy as np
import pytest
import torch

from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKRegressor
from hck.hierarchy import Forest

RNG = np.random.default_rng(0)
X, NEW = RNG.uniform(size=(700, 3)), RNG.uniform(size=(60, 3))
Y = np.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RNG.standard_normal(700)
LABELS = np.digitize(Y, [0.5, 1.0])
SETTINGS = {"lengthscale": 0.5, "rank": 16, "random_state": 0}


def test_a_forest_is_the_mean_of_its_trees():
    model = HCKRegressor(n_trees=5, alpha=0.01, **SETTINGS).fit(X, Y)
    assert len(model.trees_) == 5
    assert not torch.equal(model.trees_[0].order, model.trees_[1].order)
    each = [model.forest_.members[k](NEW)[:, 0].numpy() for k in range(5)]
    np.testing.assert_allclose(
        model.predict(NEW), np.mean(each, 0) + model.intercept_, rtol=1e-12, atol=1e-12
    )


def test_trees_share_the_points_and_change_nothing_by_it():
    """The first tree of a forest is the only one of a forest of one."""
    forest = HCKRegressor(n_trees=3, alpha=0.01, **SETTINGS).fit(X, Y).forest_
    assert all(member.points is forest.members[0].points for member in forest.members)
    assert all(member.landmarks.points is member.points for member in forest.members)
    one = HCKRegressor(n_trees=1, alpha=0.01, **SETTINGS).fit(X, Y).forest_
    torch.testing.assert_close(Forest(forest.members[:1])(NEW), one(NEW), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "estimator",
    [
        HCKRegressor(alpha=0.01, n_trees=4, **SETTINGS),
        HCKClassifier(alpha=0.01, n_trees=4, **SETTINGS),
        HCKGaussianProcessRegressor(optimizer=None, n_trees=4, **SETTINGS),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_side_by_side_or_one_after_another(estimator):
    targets = LABELS if isinstance(estimator, HCKClassifier) else Y
    threads, found = torch.get_num_threads(), []
    for count, budget in ((4, None), (4, 1_500_000), (1, None)):
        torch.set_num_threads(count)
        try:
            model = estimator.set_params(memory_budget=budget).fit(X, targets)
            evaluate = getattr(model, "decision_function", model.predict)
            found.append(evaluate(NEW))
        finally:
            torch.set_num_threads(threads)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-9, atol=1e-9)


def test_more_trees_predict_better():
    truth = np.sin(4 * NEW[:, 0]) + NEW[:, 1] * NEW[:, 2]
    errors = []
    for n_trees in (1, 8):
        each = []
        for seed in range(6):
            model = HCKRegressor(n_trees=n_trees, alpha=0.05, lengthscale=0.5, rank=8, random_state=seed)
            each.append(np.mean((model.fit(X, Y).predict(NEW) - truth) ** 2))
        errors.append(np.mean(each))
    assert errors[1] < 0.9 * errors[0]


def test_a_mixture_of_processes():
    """Mean of means; mean of variances and the variance of means; the same for what is left out."""
    given = {"optimizer": None, "noise": 0.01, "calibrate": None, "n_trees": 3, **SETTINGS}
    model = HCKGaussianProcessRegressor(**given).fit(X, Y)
    features = model._trend(NEW)
    members = model.posterior_.members
    means = np.stack([model._trend.restore(features, m.predict(NEW, features)).numpy() for m in members])
    variances = np.stack([m.variance(NEW, features).numpy() for m in members])
    mean, std = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, means.mean(0), rtol=1e-10)
    np.testing.assert_allclose(std**2, variances.mean(0) + means.var(0), rtol=1e-8)
    np.testing.assert_allclose(mean, model.predict(NEW), rtol=1e-12, atol=1e-12)
    covariance = model.predict(NEW, return_cov=True)[1]
    np.testing.assert_allclose(covariance.diagonal(), std**2, rtol=1e-8)
    left_out = [m.leave_one_out() for m in members]
    loo_mean, loo_std = model.loo_predict(return_std=True)
    each = np.stack([one.mean.numpy() for one in left_out])
    within = np.mean([one.variance.numpy() for one in left_out], 0)
    np.testing.assert_allclose(loo_std**2, within + each.var(0), rtol=1e-8)
    assert loo_mean == pytest.approx(each.mean(0) + model._trend.rough[0], rel=1e-9)
    drawn = model.sample_posterior(NEW, 4000)
    assert (np.abs(drawn.mean(1) - mean) <= 5 * std / 4000**0.5).all()
    assert np.cov(drawn) == pytest.approx(covariance, abs=6 * (2 / 4000) ** 0.5 * std.max() ** 2)


def test_number_of_trees_must_be_positive():
    with pytest.raises(ValueError, match="n_trees"):
        HCKRegressor(n_trees=0).fit(X, Y)
