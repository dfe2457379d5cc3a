"""Missing values: the mean in their place, and a feature that says so."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch

import hck
from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKKernelPCA, HCKRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1]
GAPS = X.copy()
GAPS[RNG.random(300) < 0.2, 0] = np.nan
GAPS[RNG.random(300) < 0.1, 2] = np.nan
GIVEN = {"rank": 16, "alpha": 0.01, "lengthscale": 1.0, "random_state": 0}


def by_hand(x, means, columns=(0, 2)):
    """What an estimator is to make of an array."""
    return np.hstack([np.where(np.isnan(x), means, x), np.isnan(x[:, columns]).astype(float)])


@pytest.mark.parametrize(
    "kind", [np.asarray, pd.DataFrame, torch.from_numpy], ids=["array", "frame", "tensor"]
)
def test_the_same_as_by_hand(kind):
    found = HCKRegressor(**GIVEN).fit(kind(GAPS), Y).predict(kind(GAPS[:50]))
    means = np.nanmean(GAPS, 0)
    model = HCKRegressor(**GIVEN).fit(by_hand(GAPS, means), Y)
    np.testing.assert_allclose(found, model.predict(by_hand(GAPS[:50], means)), rtol=1e-10)
    assert isinstance(found, torch.Tensor) == (kind is torch.from_numpy)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_changes_where_nothing_is_missing(dtype):
    model = HCKRegressor(**GIVEN).fit(X.astype(dtype), Y)
    again = HCKRegressor(**GIVEN)
    again._validate_alone(X.astype(dtype))
    assert again._validate_alone(X.astype(dtype)).dtype == dtype
    assert model._columns_in.indicated == []
    x = X.copy()
    assert again._validate_alone(x) is x  # not even a copy


@pytest.mark.parametrize("make", [HCKRegressor, HCKClassifier, HCKGaussianProcessRegressor, HCKKernelPCA])
def test_all_estimators(make):
    y = (Y > 0).astype(float) if make is HCKClassifier else Y
    options = {"optimizer": None} if make is HCKGaussianProcessRegressor else {}
    model = make(rank=16, random_state=0, **options).fit(GAPS, y)
    found = (model.transform if make is HCKKernelPCA else model.predict)(GAPS)
    assert np.isfinite(found).all()
    assert make is HCKKernelPCA or model.score(GAPS, y) > 0.6


def test_a_weight_for_the_indicator_is_learned():
    """Where a value is missing says all."""
    x = RNG.normal(size=(500, 2))
    x[::2, 1] = np.nan
    y = np.isnan(x[:, 1]) * 2.0
    model = HCKRegressor(fit_time="fast", random_state=0).fit(x, y)
    new = np.array([[0.3, np.nan], [0.3, 0.0], [0.3, 1.5]])
    np.testing.assert_allclose(model.predict(new), [2, 0, 0], atol=0.1)
    assert model.feature_importances_[1] > 0.9
    assert model.feature_importances_.shape == (2,)


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy], ids=["array", "tensor"])
def test_missing_for_the_first_time(kind):
    model = HCKRegressor(**GIVEN).fit(kind(X), Y)
    new, mean = X[:5].copy(), X[:5].copy()
    new[:, 1], mean[:, 1] = np.nan, X[:, 1].mean()
    with pytest.warns(UserWarning, match=r"missing, or not known, .* without such in training: 1\. The mean"):
        found = model.predict(kind(new))
    np.testing.assert_allclose(found, model.predict(kind(mean)), rtol=1e-10)


def test_frames_of_all_kinds_of_missing_values():
    table = pd.DataFrame(
        {
            "whole": pd.array([1, None, 3, 4] * 20, dtype="Int64"),
            "truth": pd.array([True, None, False, True] * 20, dtype="boolean"),
            "thing": np.array([1.5, None, pd.NA, np.nan] * 20, dtype=object),
            "plain": np.arange(80.0),
        }
    )
    model = HCKRegressor(**GIVEN).fit(table, np.arange(80.0))
    expected = [
        "whole",
        "truth",
        "thing",
        "plain",
        "whole is missing",
        "truth is missing",
        "thing is missing",
    ]
    assert model.kernel_feature_names_ == expected
    features = model._columns_in(table)
    np.testing.assert_allclose(features[:4, 0], [1, 8 / 3, 3, 4])
    np.testing.assert_allclose(features[:4, 1], [1, 2 / 3, 0, 1])
    np.testing.assert_allclose(features[:4, 2], 1.5)
    np.testing.assert_array_equal(features[:4, 4:], [[0, 0, 0], [1, 1, 1], [0, 0, 1], [0, 0, 1]])


def test_columns_that_are_all_missing():
    x = np.column_stack([X[:, :1], np.full(300, np.nan)])
    exact = {**GIVEN, "rank": 512}  # in which no random direction tells of the other column
    model = HCKRegressor(**exact).fit(x, Y)
    alone = HCKRegressor(**exact).fit(X[:, :1], Y)
    np.testing.assert_allclose(model.predict(x), alone.predict(X[:, :1]), rtol=1e-6)
    automatic = HCKRegressor(fit_time="fast", random_state=0).fit(np.full((50, 1), np.nan), np.arange(50.0))
    np.testing.assert_allclose(automatic.predict([[np.nan]]), 24.5)


def test_sparse_matrices_have_none():
    with pytest.raises(ValueError, match="NaN"):
        HCKRegressor(**GIVEN).fit(sp.csr_matrix(GAPS), Y)
    model = HCKRegressor(**GIVEN).fit(sp.csr_matrix(X), Y)
    with pytest.raises(ValueError, match="NaN"):
        model.predict(GAPS)


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy], ids=["array", "tensor"])
def test_infinity_is_refused(kind):
    wrong = X.copy()
    wrong[3, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        HCKRegressor(**GIVEN).fit(kind(wrong), Y)
    with pytest.raises(ValueError, match="infinity"):
        HCKRegressor(**GIVEN).fit(kind(X), Y).predict(kind(wrong))


def test_saved_models_fill_as_well(tmp_path):
    model = HCKRegressor(**GIVEN).fit(GAPS, Y)
    model.save(tmp_path / "model")
    again = hck.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(GAPS), model.predict(GAPS))


def test_the_way_back_needs_all_values():
    with pytest.raises(ValueError, match="missing values"):
        HCKKernelPCA(rank=16, fit_inverse_transform=True).fit(GAPS)
