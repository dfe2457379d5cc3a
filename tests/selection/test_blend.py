"""Weights of several models."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize

from hck import HCKClassifier, HCKRegressor
from hck.kernels import Gaussian
from hck.selection import Candidate
from hck.selection.auto import _blend
from hck.selection.left_out import blend_weights

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_least_squared_error(columns, weighted):
    y = RNG.normal(size=(200, columns))
    predicted = [y + scale * RNG.normal(size=y.shape) for scale in (0.3, 0.4, 2.0)]
    weight = RNG.uniform(size=200) if weighted else None
    each = np.ones(200) if weight is None else weight

    def error(w):
        return (each[:, None] * (sum(a * p for a, p in zip(w, predicted, strict=True)) - y) ** 2).sum()

    best = minimize(
        error,
        np.full(3, 1 / 3),
        bounds=[(0, 1)] * 3,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-14},
    ).x
    np.testing.assert_allclose(blend_weights(predicted, y, weight), best, rtol=0, atol=1e-2)


def test_a_model_that_adds_nothing_has_no_weight():
    y = RNG.normal(size=(100, 1))
    close, far = y + 0.01 * RNG.normal(size=y.shape), RNG.normal(size=y.shape)
    np.testing.assert_array_equal(blend_weights([close, far], y), [1, 0])
    np.testing.assert_array_equal(blend_weights([y, y + 1], y), [1, 0])
    assert blend_weights([y, y], y).sum() == pytest.approx(1)  # nothing is left to be explained
    tiny = 1e-200 * RNG.normal(size=(100, 2))
    np.testing.assert_allclose(blend_weights([tiny, -tiny], 0 * tiny), [0.5, 0.5], atol=1e-6)


X = RNG.uniform(size=(500, 4))
Y = np.sin(6 * X[:, 0]) + np.abs(X[:, 1] - 0.5) + 0.1 * RNG.normal(size=500)


@pytest.mark.parametrize("fit_time", ["fast", "best"])
def test_a_regressor_is_a_mean(fit_time):
    model = HCKRegressor(fit_time=fit_time, random_state=0)
    model.fit(X[:400], Y[:400])
    blend = model.selection_.blend
    assert 1 < len(blend) <= 3
    assert sum(each.weight for each in blend) == pytest.approx(1)
    assert model.forest_.weights is None or sum(model.forest_.weights) == pytest.approx(1)
    assert "weights in the mean" in str(model.selection_)
    alone = [
        HCKRegressor(each.kernel, alpha=each.alpha, scale="standard", leaf_size=400).fit(X[:400], Y[:400])
        for each in blend
    ]
    parts = [other.loo_predict() for other in alone]
    expected = sum(each.weight * part for each, part in zip(blend, parts, strict=True))
    np.testing.assert_allclose(model.loo_predict(), expected, rtol=0, atol=1e-6)
    new = sum(each.weight * other.predict(X[400:]) for each, other in zip(blend, alone, strict=True))
    np.testing.assert_allclose(model.predict(X[400:]), new, rtol=0, atol=1e-6)


def test_classes():
    model = HCKClassifier(fit_time="best", random_state=0).fit(X[:400], Y[:400] > 0.5)
    assert model.score(X[400:], Y[400:] > 0.5) > 0.85
    np.testing.assert_allclose(model.predict_proba(X[400:]).sum(1), 1)


@pytest.mark.parametrize("margin", [0.0, 0.5])
def test_with_a_margin_all_are_of_one_kind(margin):
    """As is known of series: those that it does not trust have no part in the mean."""
    y = RNG.normal(size=(100, 1))
    met = [
        Candidate(Gaussian(1.0), 0.1, str(i), many=i == 1, predicted=y + 0.1 * RNG.normal(size=y.shape))
        for i in range(3)
    ]
    meeting = SimpleNamespace(weights=lambda predicted: blend_weights(predicted, y))
    shared = _blend(met, meeting, margin)
    assert sorted(each.origin for each in shared) == (["0", "2"] if margin else ["0", "1", "2"])
    assert sum(each.weight for each in shared) == pytest.approx(1)


def test_importances_are_those_of_the_mean():
    model = HCKRegressor(fit_time="fast", random_state=0).fit(X[:400], Y[:400])
    blend, spread = model.selection_.blend, model._trained_points().x.numpy().var(0)
    each = [spread * (1 if (own := one.kernel.importances()) is None else own.numpy()) for one in blend]
    expected = sum(one.weight * share / share.sum() for one, share in zip(blend, each, strict=True))
    np.testing.assert_allclose(model.feature_importances_, expected, rtol=1e-6)


def test_nothing_of_the_contest_is_kept():
    given = HCKRegressor("matern32", lengthscale=1.0, rank=16, random_state=0).fit(X[:400], Y[:400])
    chosen = HCKRegressor(fit_time="fast", random_state=0).fit(X[:400], Y[:400])
    for selection in (given.selection_, chosen.selection_):
        assert all(each.predicted is None for each in (*selection.candidates, *selection.blend))
