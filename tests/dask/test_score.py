"""Scores on a cluster, against those of scikit-learn on everything in one place."""

import numpy as np
import pytest

pytest.importorskip("distributed")
import dask.array as da
import dask.dataframe as dd
import pandas as pd
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import accuracy_score, r2_score

from hck.dask import DaskHCKClassifier, DaskHCKRegressor

pytestmark = pytest.mark.usefixtures("one_thread", "client")

GIVEN = {
    "lengthscale": 0.6,
    "alpha": 0.02,
    "rank": 12,
    "leaf_size": 100,
    "n_branches": 2,
    "leave_one_out": False,
    "random_state": 0,
}
NAMES = ["a", "b", "c"]


@pytest.fixture(scope="module")
def frame(data):
    x, y = data
    weight = np.random.default_rng(3).uniform(size=700) * (np.arange(700) >= 250)  # the first block has none
    return pd.DataFrame(x, columns=NAMES).assign(y=y, w=weight, kind=np.where(y > 1, "high", "low"))


@pytest.fixture(scope="module")
def lazy(frame):
    return dd.from_pandas(frame, npartitions=3)


@pytest.fixture(scope="module")
def regressor(client, frame):
    return DaskHCKRegressor(**GIVEN).fit(frame[NAMES].to_numpy(), frame["y"].to_numpy())


@pytest.fixture(scope="module")
def classifier(client, frame):
    return DaskHCKClassifier(**GIVEN).fit(frame[NAMES].to_numpy(), frame["kind"].to_numpy())


def test_numbers(regressor, frame, lazy):
    x, y, w = frame[NAMES].to_numpy(), frame["y"].to_numpy(), frame["w"].to_numpy()
    X, Y, W = (da.from_array(each, chunks=(250, -1)[: each.ndim]) for each in (x, y, w))
    predicted = regressor.predict(x)
    plain, weighted = r2_score(y, predicted), r2_score(y, predicted, sample_weight=w)
    assert abs(plain - weighted) > 1e-4
    for X_, y_, w_ in (
        (X, Y[:, None], W),
        (X, frame["y"], W[:, None]),
        (lazy[NAMES], lazy[["y"]], lazy["w"]),
        (x, Y, W),
    ):
        assert regressor.score(X_, y_) == pytest.approx(plain, rel=1e-10)
        assert regressor.score(X_, y_, sample_weight=w_) == pytest.approx(weighted, rel=1e-10)


def test_labels(classifier, frame, lazy):
    x, y, w = frame[NAMES].to_numpy(), frame["kind"].to_numpy(), frame["w"].to_numpy()
    X, Y, W = (da.from_array(each, chunks=(250, -1)[: each.ndim]) for each in (x, y, w))
    predicted = classifier.predict(x)
    plain, weighted = accuracy_score(y, predicted), accuracy_score(y, predicted, sample_weight=w)
    assert plain != weighted
    for X_, y_, w_ in (
        (X, Y[:, None], w),
        (lazy[NAMES], lazy["kind"], lazy["w"]),
        (x, Y, W),
    ):
        assert classifier.score(X_, y_) == pytest.approx(plain)
        assert classifier.score(X_, y_, sample_weight=w_) == pytest.approx(weighted)


def test_several_targets_and_constant_ones(regressor, frame):
    x, y = frame[NAMES].to_numpy(), frame["y"].to_numpy()
    X = da.from_array(x, chunks=(250, 3))
    constant = np.full(700, 0.5)
    assert regressor.score(X, constant) == 0.0
    both = np.column_stack([y, constant, np.full(700, 2.0)])  # of which the last is predicted exactly
    model = DaskHCKRegressor(**GIVEN).fit(X, both)
    assert model.score(X, both) == pytest.approx(r2_score(both, model.predict(x)), rel=1e-10)
    with pytest.warns(UndefinedMetricWarning, match="fewer than two rows"):
        assert np.isnan(regressor.score(X[:1], y[:1]))


def test_what_does_not_belong_together(regressor, frame, lazy):
    x, y = frame[NAMES].to_numpy(), frame["y"].to_numpy()
    X = da.from_array(x, chunks=(250, 3))
    for X_, y_, message in (
        (X, y[:500], "X has 700 rows but y has 500"),
        (X, da.from_array(y[:500], chunks=250), "X has 700 rows but y has 500"),
        (X, np.column_stack([y, y]), "y has 2 targets, but 1 are predicted"),
        (X, lazy["y"].repartition(npartitions=2), "X has 3 partitions but y has 2"),
        (X, lazy["y"], "block 0 of X has 250 rows, but that of y has"),
        (lazy[NAMES], y, "for example one of its columns"),
        (lazy[NAMES], frame["y"], "for example one of its columns"),
    ):
        with pytest.raises(ValueError, match=message):
            regressor.score(X_, y_)
    with pytest.raises(ValueError, match="X has 700 rows but sample_weight has 500"):
        regressor.score(X, y, sample_weight=y[:500])
    with pytest.raises(ValueError, match="all weights are zero"):
        regressor.score(X, y, sample_weight=np.zeros(700))
