"""What estimators make of numbers in tables: codes that come again, and heavy tails."""

import copy

import numpy as np
import pandas as pd
import pytest
import torch

from hck import HCKClassifier, HCKRegressor, load
from hck.estimators.inspection import scaling_kind
from hck.kernels import Gaussian
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


@pytest.fixture(scope="module")
def shops():
    """Numbers of shops and something else, of each row, and what was sold: by the shop more or less."""
    rng = np.random.default_rng(0)
    shop, size = rng.choice(rng.integers(1, 100_000, 30), 1200), rng.normal(size=1200)
    good = np.random.default_rng(1).random(100_000)
    y = good[shop] + 0.1 * np.sin(size) + 0.05 * rng.normal(size=1200)
    return np.stack([shop, size], 1).astype(float), y


@pytest.fixture(scope="module")
def seller(shops):
    X, y = shops
    return HCKRegressor(fit_time="fast", random_state=0).fit(X[:900], y[:900])


def test_numbers_that_are_codes(shops):
    X, y = shops
    wrong = np.random.default_rng(2).random(1200) < 0.1
    label = ((y > np.median(y)) ^ wrong).astype(int)
    table = pd.DataFrame(X, columns=["shop", "size"]).assign(town=np.where(wrong[::-1], "Ulm", "Jena"))
    model = HCKClassifier(fit_time="fast", random_state=0).fit(table[:900], label[:900])
    assert model.kernel_feature_names_[-1] == "shop: mean target"
    assert model.feature_importances_.argmax() == 0
    assert model.score(table[900:], label[900:]) > 0.8


def test_codes_of_arrays_are_those_of_tables(shops, seller, tmp_path):
    X, y = shops
    found = seller.predict(X[900:])
    assert np.mean((found - y[900:]) ** 2) < 0.05 * y.var()
    assert seller.n_features_in_ == 2
    assert seller._columns_in.repeated == [0]
    assert seller.feature_importances_.argmax() == 0
    frame = pd.DataFrame(X, columns=["shop", "size"])
    table = HCKRegressor(fit_time="fast", random_state=0).fit(frame[:900], y[:900])
    np.testing.assert_allclose(table.predict(frame[900:]), found)
    seller.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X[900:]), found)


def test_codes_of_tensors_and_narrow_numbers(shops, seller):
    X, y = shops
    found = seller.predict(torch.from_numpy(X[900:]))
    np.testing.assert_allclose(np.asarray(found), seller.predict(X[900:]))
    tensor, target = torch.from_numpy(X).float(), torch.from_numpy(y).float()
    narrow = HCKRegressor(fit_time="fast", random_state=0, dtype="float32").fit(tensor[:900], target[:900])
    error = np.asarray(narrow.predict(tensor[900:])) - y[900:]
    assert np.mean(error**2) < 0.05 * y.var()


def test_new_and_missing_codes_are_as_the_mean(shops, seller):
    new = shops[0][900:920] + np.array([0.5, 0])
    assert np.isfinite(seller.predict(new)).all()
    with pytest.warns(UserWarning, match="missing"):
        assert np.isfinite(seller.predict(np.where([True, False], np.nan, new))).all()


def test_models_with_codes_are_updated(shops, seller):
    X, y = shops
    model = copy.deepcopy(seller)
    before = np.mean((model.predict(X[900:]) - y[900:]) ** 2)
    model.partial_fit(X[900:1050], y[900:1050])
    assert np.mean((model.predict(X[1050:]) - y[1050:]) ** 2) < 1.5 * before
    assert model.predict_gradient(X[:5]).shape == (5, 2)


@pytest.mark.parametrize("given", [{"kernel": Gaussian(1.0)}, {"lengthscale": 1.0}, {"kernel": "matern32"}])
def test_arrays_stay_as_they_are_where_something_is_said_of_features(shops, given):
    X, y = shops
    model = HCKRegressor(**given, fit_time="fast", random_state=0).fit(X[:900], y[:900])
    assert not model._columns_in.repeated
