"""HCKClassifier: one against all, by ridge regression on ±1."""

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs, make_moons

from hck import HCKClassifier, HCKRegressor


@pytest.fixture(scope="module")
def moons():
    return make_moons(400, noise=0.15, random_state=0)


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(500, centers=4, cluster_std=1.0, random_state=0)


def test_binary_decision_is_regression_on_signs(moons):
    X, y = moons
    parameters = {"lengthscale": 0.3, "alpha": 0.01, "rank": 32, "random_state": 0}
    scores = HCKClassifier(**parameters).fit(X, y).decision_function(X)
    regression = HCKRegressor(**parameters).fit(X, 2.0 * y - 1).predict(X)
    np.testing.assert_allclose(scores, regression, rtol=1e-10)


def test_multiclass_decision_is_one_regression_per_class(blobs):
    X, y = blobs
    parameters = {"lengthscale": 1.0, "alpha": 0.01, "rank": 32, "random_state": 0}
    scores = HCKClassifier(**parameters).fit(X, y).decision_function(X)
    assert scores.shape == (500, 4)
    for c in range(4):
        target = np.where(y == c, 1.0, -1.0)
        np.testing.assert_allclose(
            scores[:, c], HCKRegressor(**parameters).fit(X, target).predict(X), rtol=1e-9, atol=1e-12
        )


@pytest.mark.parametrize("names", [["no", "yes"], [7, 3], [1.0, 2.0], [False, True]])
def test_labels_of_any_type_come_back(moons, names):
    X, y = moons
    labels = np.array(names)[y]
    model = HCKClassifier(lengthscale=0.3, rank=32, random_state=0, alpha=0.01).fit(X, labels)
    predicted = model.predict(X)
    assert predicted.dtype == labels.dtype
    assert (predicted == labels).mean() > 0.97
    assert set(model.classes_.tolist()) == set(names)


def test_scores_agree_with_predictions(blobs, moons):
    for X, y in (blobs, moons):
        model = HCKClassifier(lengthscale=0.5, rank=32, random_state=0, alpha=0.01).fit(X, y)
        scores = model.decision_function(X)
        code = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(1)
        np.testing.assert_array_equal(model.classes_[code], model.predict(X))


def test_zero_weights_remove_points(moons):
    X, y = moons
    keep = np.random.default_rng(0).uniform(size=len(y)) < 0.5
    model = HCKClassifier(lengthscale=0.3, rank=16, random_state=0, alpha=0.01)
    weighted = model.fit(X, y, sample_weight=keep.astype(float)).decision_function(X)
    np.testing.assert_allclose(weighted, model.fit(X[keep], y[keep]).decision_function(X), rtol=1e-9)


def test_tensors_in_tensors_out(blobs):
    X, y = blobs
    model = HCKClassifier(lengthscale=1.0, rank=32, random_state=0, alpha=0.01).fit(
        torch.from_numpy(X), torch.from_numpy(y)
    )
    predicted = model.predict(torch.from_numpy(X))
    assert isinstance(predicted, torch.Tensor)
    np.testing.assert_array_equal(predicted.numpy(), model.predict(X))
    assert (predicted.numpy() == y).mean() > 0.9
