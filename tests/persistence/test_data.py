"""Saved and loaded models of data of any kind predict the same."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch

from hck import HCKClassifier, HCKRegressor
from saved_problem import NAMES, NEW, RIDGE, RNG, X, Y, same

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"], dtype=object),
        np.array([False, True]),
        np.array([3, 7], dtype=np.uint8),
        np.array([3, 7], dtype=">i4"),
        np.array(["2020-01-01", "2021-06-01"], dtype="datetime64[D]"),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_of_any_type(again, labels):
    y = labels[(Y > 0.7).astype(int)]
    model = HCKClassifier(**RIDGE).fit(X, y, sample_weight=1.0 + (X[:, 0] > 0.5))
    found = again(model)
    same(found.predict(NEW), model.predict(NEW))
    same(found.predict_proba(NEW), model.predict_proba(NEW))
    assert found.classes_.dtype == model.classes_.dtype.newbyteorder("=")


@pytest.mark.parametrize(
    ("approximation", "sparse", "dtype"),
    [
        ("hierarchical", sp.csr_matrix, "float64"),
        ("hierarchical", sp.csc_array, "float32"),
        ("nystrom", sp.csr_matrix, "float32"),
        ("fourier", sp.csr_array, "float64"),
    ],
)
def test_sparse_data(again, approximation, sparse, dtype):
    x = sparse(np.where(X[:100] > 0.5, X[:100], 0))
    options = {**RIDGE, "approximation": approximation, "dtype": dtype, "scale": "standard"}
    model = HCKRegressor(**options, n_trees=2).fit(x, Y[:100])
    found = again(model)
    same(found.predict(x), model.predict(x))
    same(found.predict(NEW), model.predict(NEW))
    members = found.forest_.members
    assert members[0].points.dtype == model.forest_.members[0].points.dtype
    if approximation == "hierarchical":
        assert members[0].points is members[1].points


@pytest.mark.parametrize("approximation", NAMES)
def test_float32(again, approximation):
    model = HCKRegressor(**RIDGE, approximation=approximation, dtype="float32").fit(X, Y)
    found = again(model)
    assert found.forest_.members[0].points.dtype == torch.float32
    assert found.predict(NEW).dtype == np.float32
    same(found.predict(NEW), model.predict(NEW))


def test_tensors(again):
    model = HCKRegressor(**RIDGE).fit(torch.from_numpy(X), torch.from_numpy(Y))
    found = again(model)
    assert isinstance(found.predict(torch.from_numpy(NEW)), torch.Tensor)
    same(found.predict(NEW), model.predict(NEW))
    assert found.n_features_in_ == 3


@pytest.mark.parametrize("dtype", ["category", "object", "string"])
def test_tables(again, dtype):
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
        colour=pd.Series(RNG.choice(["red", "green", "blue", None], 200)).astype(dtype),
        size=pd.Series(RNG.choice(["s", "m"], 200)).astype(dtype),
    )
    model = HCKRegressor(**RIDGE).fit(table, Y)
    found = again(model)
    new = table[:20].assign(colour=["red", "purple", None, "blue"] * 5)
    same(found.predict(new), model.predict(new))
    same(found.feature_names_in_, table.columns)
    assert found.feature_names_in_.dtype == model.feature_names_in_.dtype
    assert found._columns_in.codings == model._columns_in.codings
    assert [found._columns_in.names[i] for i in found._columns_in.positions] == ["colour", "size"]
    with pytest.raises(ValueError, match="in columns colour, size: pass a table"):
        found.predict(NEW)
    with pytest.raises(ValueError, match=r"[Ff]eature names|columns are missing"):
        found.predict(table.rename(columns={"a": "z"}))


def test_names_that_are_numbers(again):
    table = pd.DataFrame({3: X[:, 0], 7: RNG.choice(["x", "y"], 200)})
    model = HCKRegressor(**RIDGE).fit(table, Y)
    found = again(model)
    same(found.predict(table), model.predict(table))
    assert [found._columns_in.names[i] for i in found._columns_in.positions] == [7]
