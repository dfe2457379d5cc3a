"""Which features matter, as fitted estimators say."""

import numpy as np
import pandas as pd
import pytest

from hck import HCKClassifier, HCKRegressor
from hck.kernels import CallableKernel, Matern

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3)) * [1.0, 10.0, 0.1]
Y = np.sin(2 * X[:, 0])


@pytest.mark.parametrize("metric", [np.diag([1.0, 0.1, 10.0]), None])
def test_they_are_parts_of_squared_distances(metric):
    kernel = Matern([1.0, 10.0, 0.1]) if metric is None else Matern(2.0, metric=metric)
    model = HCKRegressor(kernel, lengthscale=None, alpha=0.1, rank=32).fit(X, Y)
    expected = X.var(0) / np.square([1.0, 10.0, 0.1])
    np.testing.assert_allclose(model.feature_importances_, expected / expected.sum(), rtol=1e-6)


def test_features_without_use_matter_least():
    model = HCKRegressor("matern32", fit_time=0.5, random_state=0).fit(X, Y)
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert model.feature_importances_[0] > 0.7


def test_categories_count_as_one_column():
    table = pd.DataFrame({"number": X[:, 0], "kind": pd.Categorical(RNG.choice(["a", "b", "c"], 300))})
    model = HCKClassifier("gaussian", lengthscale=1.0, alpha=0.1, rank=16).fit(table, Y > 0)
    assert model.feature_importances_.shape == (2,)
    encoded = sum(np.var(table["kind"] == kind) for kind in "abc")
    expected = np.array([X[:, 0].var(), encoded])
    np.testing.assert_allclose(model.feature_importances_, expected / expected.sum(), rtol=1e-6)


def test_points_that_are_no_vectors_have_none():
    words = ["a", "bb", "ccc", "dddd"] * 5
    kernel = CallableKernel(lambda a, b: np.exp(-np.abs(np.array([[len(s) - len(t) for t in b] for s in a]))))
    model = HCKRegressor(kernel, lengthscale=None, alpha=0.1, rank=4, partition="kernel").fit(words, Y[:20])
    assert not hasattr(model, "feature_importances_")
