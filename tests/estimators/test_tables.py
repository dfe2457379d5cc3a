"""What estimators make of numbers in tables: codes that come again, and heavy tails."""

import numpy as np
import pandas as pd
import pytest

from hck import HCKClassifier, HCKRegressor, load
from hck.estimators.inspection import scaling_kind
from hck.preparation.scaling import Scaling


def is_bent(model):
    return model._scaling.bend is not None


@pytest.fixture(scope="module")
def tail():
    """A function of the logarithm of a feature with a heavy tail, which hides its shape otherwise."""
    rng = np.random.default_rng(0)
    X = np.stack([np.exp(2 * rng.normal(size=1500)), rng.normal(size=1500)], 1)
    return X, np.sin(2 * np.log(X[:, 0])) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=1500)


@pytest.fixture(scope="module")
def fitted(tail):
    return HCKRegressor(fit_time="fast", random_state=0).fit(*tail)


def test_heavy_tails_are_drawn_in_where_that_helps(fitted, tail, tmp_path):
    assert is_bent(fitted)
    assert scaling_kind(fitted) == "standard, heavy tails drawn in"
    assert not is_bent(HCKRegressor(fit_time="fast", scale="standard", random_state=0).fit(*tail))
    fitted.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(tail[0]), fitted.predict(tail[0]))


def test_heavy_tails_stay_where_that_helps(tail):
    X, _ = tail
    y = np.sin(3 * X[:, 0] / X[:, 0].std())  # as wavy in the tail as anywhere
    assert Scaling.of("standard", HCKRegressor()._points(X)).bent(HCKRegressor()._points(X)) is not None
    assert not is_bent(HCKRegressor(fit_time="fast", random_state=0).fit(X, y))


def test_slopes_of_drawn_in_features(fitted, tail):
    X = tail[0][:30]
    step = 1e-5 * X[:, :1] * [1, 0]
    wanted = (fitted.predict(X + step) - fitted.predict(X - step)) / (2 * step[:, 0])
    np.testing.assert_allclose(fitted.predict_gradient(X)[:, 0], wanted, rtol=1e-3, atol=1e-4)


def test_numbers_that_are_codes():
    rng = np.random.default_rng(0)
    shops = rng.integers(1, 100_000, 30)
    shop, size = rng.choice(shops, 1200), rng.normal(size=1200)
    good = np.random.default_rng(1).random(100_000) < 0.5
    y = np.where(rng.random(1200) < 0.9, good[shop], rng.random(1200) < 0.5).astype(int)
    table = pd.DataFrame({"shop": shop, "size": size, "town": rng.choice(["Ulm", "Jena"], 1200)})
    model = HCKClassifier(fit_time="fast", random_state=0).fit(table[:900], y[:900])
    assert model.kernel_feature_names_[-1] == "shop: mean target"
    assert model.feature_importances_.argmax() == 0
    assert model.score(table[900:], y[900:]) > 0.9
