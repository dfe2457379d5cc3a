"""Targets, tensors and columns of odd types: taken for the numbers they are, or refused by name."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch

from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKKernelPCA, HCKRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = np.round(np.sin(X[:, 0]), 1)
RIDGE = {"lengthscale": 1.0, "alpha": 0.1, "rank": 8, "random_state": 0}
NUMBERS = [HCKRegressor(**RIDGE), HCKGaussianProcessRegressor(rank=8, optimizer=None, random_state=0)]
EVERY = [*NUMBERS, HCKClassifier(**RIDGE)]


@pytest.mark.parametrize("model", NUMBERS, ids=lambda model: type(model).__name__)
def test_targets(model):
    expected = model.fit(X, Y).predict(X)
    half = (8 * Y).astype(np.float16)  # whole eighths, without rounding
    np.testing.assert_allclose(model.fit(X, half).predict(X), model.fit(X, half.astype(float)).predict(X))
    for same in (Y.astype(np.longdouble), Y.astype(object), Y.astype(">f8"), pd.Series(Y, range(9, 49))):
        np.testing.assert_array_equal(model.fit(X, same).predict(X), expected)
    for wrong in (Y.astype(str), Y.astype("S"), Y.astype("M8[s]"), Y.astype("m8[s]")):
        with pytest.raises(ValueError, match="y must be real numbers, got "):
            model.fit(X, wrong)
    np.testing.assert_array_equal(model.fit(X, Y).predict(X), expected)


def test_labels_that_are_missing():
    for missing in (None, np.nan, pd.NA):
        with pytest.raises(ValueError, match=r"no label in row 1|NaN"):
            EVERY[2].fit(X, np.array(["a", missing] * 20, dtype=object))


@pytest.mark.parametrize("model", EVERY, ids=lambda model: type(model).__name__)
def test_what_has_no_numbers(model):
    with pytest.raises(ValueError, match="y is a sparse matrix"):
        model.fit(X, sp.csr_matrix(Y[:, None]))
    labels = (Y > 0) * 1
    nothing = torch.empty(40, 2, device="meta")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that torch will not have these for ever
        packed = torch.quantize_per_tensor(torch.ones(40, 2), 0.1, 0, torch.qint8)
    model.fit(X, labels)
    for wrong in (nothing, packed):
        for call in (model.predict, lambda x: model.fit(x, labels), lambda x: HCKKernelPCA(rank=8).fit(x)):
            with pytest.raises(ValueError, match="has no numbers to learn from"):
                call(wrong)
    with pytest.raises(TypeError, match=r"column 'a' has dtype interval.*numbers, dates or text first"):
        model.fit(pd.DataFrame({"a": pd.interval_range(0, 40), "b": Y}), labels)
    assert len(model.set_params(n_trees=True).fit(X, labels).trees_) == 1  # as Python has it
    model.set_params(n_trees=1)
