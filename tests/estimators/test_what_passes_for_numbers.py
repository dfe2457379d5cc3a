"""Masks, times, objects, strides: numbers are taken for what they are, and all else is refused by name."""

import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from sklearn.base import clone

from every_estimator import CLASSIFIERS, EVERY, NEW, REGRESSORS, SUPERVISED, X, says
from hck import HCKGaussianProcessRegressor, HCKRegressor
from hck.losses import Huber, Quantile, Tweedie

MASK = np.zeros(X.shape, dtype=bool)
MASK[3, 1] = True
GAPS = np.where(MASK, np.nan, X)


def made(kinds, name):
    model, y = kinds[name]
    return clone(model), y


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.filterwarnings("ignore:values are missing")
def test_what_is_masked_is_missing(name):
    model, y = made(EVERY, name)
    expected = says(model.fit(GAPS, y), GAPS)
    hidden = np.ma.masked_array(np.where(MASK, 1e6, X), MASK)
    np.testing.assert_array_equal(says(model.fit(hidden, y), hidden), expected)
    bare = np.ma.masked_array(X, np.zeros_like(MASK))
    np.testing.assert_array_equal(says(model.fit(bare, y)), says(model.fit(X, y)))


@pytest.mark.parametrize("name", SUPERVISED)
def test_masked_targets(name):
    model, y = made(SUPERVISED, name)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, np.ma.masked_array(y, np.arange(len(y)) == 3))


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("kind", ["M8[s]", "m8[s]"])
def test_times_are_no_numbers(name, kind):
    model, y = made(EVERY, name)
    with pytest.raises(ValueError, match=r"X has dates or durations .*turn them into numbers"):
        model.fit(X.astype(kind), y)
    model.fit(X, y)
    with pytest.raises(ValueError, match="X has dates or durations"):
        says(model, NEW.astype(kind))


@pytest.mark.parametrize("name", SUPERVISED)
def test_strides(name):
    model, y = made(SUPERVISED, name)
    expected = says(model.fit(X, y))
    np.testing.assert_array_equal(says(model.fit(X[::-1].copy()[::-1], y[::-1].copy()[::-1])), expected)


@pytest.mark.parametrize("name", REGRESSORS)
@pytest.mark.parametrize(
    "wrong", [None, np.nan, pd.NA, pd.NaT, np.inf, decimal.Decimal("nan"), 10**400, "3.5", b"1", [1.0], 1j]
)
def test_targets_that_are_objects(name, wrong):
    model, y = made(REGRESSORS, name)
    y = y.astype(object)
    y[3] = wrong
    message = r"y must be real numbers, got .* in row 3|y contains (NaN|infinity)"
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    y[3] = decimal.Decimal("1.5")
    model.fit(X, y)


@pytest.mark.parametrize("wrong", [None, pd.NA, np.inf, 10**400, "x"])
@pytest.mark.parametrize("name", ["squared", "process"])
def test_updates_with_objects(name, wrong):
    model, y = made(REGRESSORS, name)
    before = says(model.fit(X, y))
    some = np.array([1.0, wrong, 2.0], dtype=object)
    for call in (lambda: model.partial_fit(X[:3], some), lambda: model.update([0, 1, 2], some)):
        with pytest.raises(ValueError, match=r"y must be real numbers|y contains (NaN|infinity)"):
            call()
    np.testing.assert_array_equal(says(model), before)


def test_labels_that_are_missing_in_an_update():
    model, y = made(CLASSIFIERS, "squared of classes")
    model.fit(X, y)
    for missing in (None, decimal.Decimal("nan")):
        with pytest.raises(ValueError, match="no label in row 0"):
            model.update([1], np.array([missing], dtype=object))


def test_whole_numbers_beyond_floats():
    for kinds in (REGRESSORS, CLASSIFIERS):
        model, y = made(kinds, next(iter(kinds)))
        with pytest.raises(ValueError, match="too large for float64"):
            model.fit([[10**400, 1]] * len(y), y)


def test_weights():
    model, y = made(REGRESSORS, "squared")
    ones = np.ones(len(y))
    expected = says(model.fit(X, y, ones))
    np.testing.assert_array_equal(says(model.fit(X, y, ones[::-1])), expected)
    with pytest.raises(ValueError, match="sample_weight has dates"):
        model.fit(X, y, ones.astype("M8[s]"))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, y, np.ma.masked_array(ones, np.arange(len(y)) == 3))
    process, y = made(REGRESSORS, "process")
    with pytest.raises(ValueError, match="dates or durations"):
        process.fit(X, y, ones.astype("m8[s]"))


def test_columns_of_things():
    frame = pd.DataFrame({"a": X[:, 0], "b": [object()] * len(X)})
    model, y = made(REGRESSORS, "squared")
    with pytest.raises(TypeError, match="column 'b' has dtype object: turn it into"):
        model.fit(frame, y)  # their text is an address
    with pytest.raises(TypeError, match="column 'b'"):
        model.fit(frame.assign(b=[[1, 2]] * len(X)), y)
    model.fit(frame.assign(b=[("x", i % 2) for i in range(len(X))]), y)
    with pytest.raises(ValueError, match="several columns are called 'a'"):
        model.fit(pd.DataFrame(X, columns=["a", "b", "a"]), y)


@pytest.mark.parametrize("model", [HCKRegressor, HCKGaussianProcessRegressor])
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_trees": 10**30}, "n_trees"),
        ({"lengthscale": 1e-310}, "lengthscale must be at least 1e-300"),
        ({"lengthscale": {}}, "lengthscale"),
        ({"landmarks": {}}, "points must be numbers, got things"),
        ({"verbose": torch.ones(2)}, "verbose"),
    ],
)
def test_parameters(model, parameters, message):
    with pytest.raises(ValueError, match=message):
        model(**{"rank": 8, **parameters}).fit(X, X[:, 0])


def test_large_parameters_are_taken():
    given = {"lengthscale": 1.0, "alpha": 0.1, "random_state": 0}
    one = HCKRegressor(rank=8, leaf_size=len(X), **given).fit(X, X[:, 0])
    other = HCKRegressor(rank=8, leaf_size=10**30, **given).fit(X, X[:, 0])
    np.testing.assert_array_equal(one.predict(NEW), other.predict(NEW))
    assert HCKRegressor(rank=8, jitter=10**30, **given).fit(X, X[:, 0]).tree_.n_points == len(X)


def test_units_of_targets_are_a_copy():
    model = HCKGaussianProcessRegressor(rank=8, lengthscale=1.0, noise=0.1, optimizer=None, random_state=0)
    model.fit(X, X[:, :2])
    before = model.predict(NEW)
    model.y_scale_[:] = 100.0
    np.testing.assert_array_equal(model.predict(NEW), before)


def test_a_tensor_of_targets_with_gaps():
    model, y = made(REGRESSORS, "squared")
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, torch.tensor([np.nan, *y[1:]]))


@pytest.mark.parametrize("name", REGRESSORS)
def test_tensors_of_types_that_numpy_lacks(name):
    model, y = made(REGRESSORS, name)
    short, target = torch.from_numpy(X).bfloat16(), torch.from_numpy(np.asarray(y, dtype=float)).bfloat16()
    expected = says(model.fit(short.float().numpy(), target.float().numpy()))
    np.testing.assert_allclose(says(model.fit(short, target)), expected, rtol=1e-12)
    np.testing.assert_allclose(model.predict(short), model.predict(short.double()), rtol=1e-12)
    with pytest.raises(ValueError, match="float8_e5m2 on 'cpu' has no numbers to learn from"):
        model.fit(short.to(torch.float8_e5m2), y)
    with pytest.raises(ValueError, match="float8_e5m2"):
        model.fit(X, target.to(torch.float8_e5m2))


def test_parameters_of_types_that_numpy_lacks():
    y, widths = X[:, 0], torch.full((X.shape[1],), 1.5)
    given = {"rank": 8, "alpha": 0.1, "random_state": 0}
    expected = HCKRegressor(lengthscale=widths, **given).fit(X, y).predict(NEW)
    model = HCKRegressor(lengthscale=widths.bfloat16(), **given).fit(X, y, torch.ones(len(y)).bfloat16())
    np.testing.assert_allclose(model.predict(NEW), expected, rtol=1e-12)
    levels = torch.tensor([0.25, 0.75])
    both = [
        HCKRegressor(loss="quantile", quantile=each, lengthscale=1.0, **given).fit(X, y).predict(NEW)
        for each in (levels, levels.bfloat16())
    ]
    np.testing.assert_array_equal(*both)


@pytest.mark.parametrize(
    ("points", "error", "message"),
    [
        (np.array(1.0), ValueError, "Expected 2D array, got scalar"),
        (torch.tensor(1.0), ValueError, "Expected 2D array, got a tensor of shape"),
        (list, TypeError, "float"),
        (pd.DataFrame(index=range(len(X))), ValueError, "X has no columns"),
        (pd.DataFrame({"a": [10**400] * len(X)}), ValueError, "column 'a' must be numbers: int too large"),
        (pa.record_batch({"a": X[:, 0]}), TypeError, r"use pyarrow\.Table\.from_batches"),
    ],
)
def test_what_is_no_table_of_numbers(points, error, message):
    model, y = made(REGRESSORS, "squared")
    with pytest.raises(error, match=message):
        model.fit(points, y)


@pytest.mark.parametrize("quantile", [["a"], [[0.1]], {0.1}, {}])
def test_quantiles_that_are_no_numbers(quantile):
    with pytest.raises(ValueError, match=r"quantiles? must be"):
        HCKRegressor(loss="quantile", quantile=quantile, lengthscale=1.0, rank=8).fit(X, X[:, 0])


@pytest.mark.parametrize("loss", [Huber, Quantile, Tweedie])
@pytest.mark.parametrize("value", ["1.5", True, [1.5], 1.5j])
def test_parameters_of_losses_that_are_no_numbers(loss, value):
    with pytest.raises(ValueError, match="must be"):
        loss(value)
