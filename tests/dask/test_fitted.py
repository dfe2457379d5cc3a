"""What a fitted model holds, and where."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch

pytest.importorskip("distributed")
import dask.array as da
import distributed
from dask.sizeof import sizeof

from dask_problem import GIVEN
from hck.dask import DaskHCKRegressor
from hck.dask.pieces import moved
from hck.points import DensePoints

pytestmark = pytest.mark.usefixtures("one_thread", "client")


def test_what_travels(fitted):
    moved, branches, rank = fitted.bytes_, 2 * 4, 12
    assert moved.messages == branches * (8 * (rank * rank + rank) + 8)
    assert moved.replies == branches * 8 * (rank * rank + rank)
    assert moved.rows == 2 * 700 * (8 * 3 + 8 + 8)
    assert moved.sample == 700 * 8 * 4
    assert {"read", "sample", "split", "up", "trunk", "down"} <= set(fitted.seconds_)


def test_dask_knows_how_large_branches_are(fitted):
    part = fitted._model.gather()[0][0]
    rows = len(part.rows)
    assert sizeof(part) == part.nbytes > rows * 8 * (3 + 1 + 1 + 1)


def test_score(fitted, data):
    x, y = data
    X, Y = da.from_array(x, chunks=(350, 3)), da.from_array(y, chunks=100)
    assert fitted.score(X, Y) == pytest.approx(fitted.score(x, y))
    assert fitted.score(x, y) > 0.95


def test_branches_stay_within_the_budget(fitted):
    plan, part = fitted._model.plan, fitted._model.gather()[0][0]
    plan = replace(plan, settings=replace(plan.settings, memory_budget=12_345))
    assert moved(plan, part.predictor, torch.device("cpu")) is part.predictor
    assert moved(plan, part.predictor, torch.device("meta")).budget == 12_345


def test_trees_are_on_workers(fitted):
    with pytest.raises(AttributeError, match=r"to_local\(\)\.tree_"):
        _ = fitted.tree_
    assert not hasattr(fitted, "tree_")
    assert len(fitted.to_local().tree_.leaves) > 4


def test_new_points_of_unknown_number(fitted, data):
    x, _ = data
    X = da.from_array(x, chunks=(200, 3))
    predicted = fitted.predict(X[X[:, 0] > 0.5])
    np.testing.assert_allclose(predicted.compute(), fitted.predict(x[x[:, 0] > 0.5]), rtol=1e-10)


def test_several_threads_in_one_process(fitted, data):
    """And without limits of memory: the same model as on processes of one thread."""
    x, y = data
    X, Y = da.from_array(x, chunks=((200, 0, 300, 1, 199), (2, 1))), da.from_array(y, chunks=250)
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0", memory_limit=0
    )
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        model = DaskHCKRegressor(**GIVEN, n_trees=2, client=client).fit(X, Y)
        np.testing.assert_allclose(model.predict(x), fitted.predict(x), rtol=1e-10)
        assert model.bytes_.rows == 0


def test_pickles(fitted, client):
    assert pickle.loads(pickle.dumps(DaskHCKRegressor(rank=7, client=client))).rank == 7
    with pytest.raises(TypeError, match=r"use to_local\(\)"):
        pickle.dumps(fitted)


def test_points_here(fitted, data):
    x, _ = data
    assert isinstance(fitted.predict(torch.from_numpy(x[:5])), np.ndarray)
    assert isinstance(fitted._model.plan.points(x), DensePoints)
    with pytest.raises(ValueError, match="2 features"):
        fitted.predict(x[:, :2])
