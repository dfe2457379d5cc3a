"""Clients: one that is not the default, one that is closed, one whose workers are gone."""

import copy
import weakref

import numpy as np
import pytest

pytest.importorskip("distributed")
import dask.array as da
import distributed

from hck.dask import DaskHCKClassifier, DaskHCKGaussianProcessRegressor, DaskHCKRegressor, cluster
from hck.dask.cluster import explained
from hck.dask.workers import find_client

pytestmark = pytest.mark.usefixtures("one_thread")

GIVEN = {
    "lengthscale": 0.6,
    "alpha": 0.02,
    "rank": 12,
    "leaf_size": 100,
    "n_branches": 2,
    "leave_one_out": False,
    "random_state": 0,
}


@pytest.fixture
def threads():
    """A cluster in this process, and a client that is not the default."""
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0", memory_limit=0
        ) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        yield made, client


@pytest.mark.parametrize("others", [False, True])
def test_a_client_that_is_not_the_default(client, threads, data, monkeypatch, others):
    """Without a default, and where another one is the default."""
    x, y = data
    X, Y = da.from_array(x, chunks=(350, 3)), da.from_array(y, chunks=350)
    if not others:
        monkeypatch.setattr("distributed.client._global_clients", weakref.WeakValueDictionary())
    model = DaskHCKRegressor(**GIVEN, client=threads[1]).fit(X, Y)
    expected = model.predict(x)
    assert model.score(X, Y) == pytest.approx(model.score(x, y))
    assert model.score(x, Y) == pytest.approx(model.score(x, y))
    np.testing.assert_allclose(
        threads[1].compute(model.predict(X)).result(), expected, rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(model.to_local().predict(x), expected, rtol=1e-10)
    named = DaskHCKClassifier(**GIVEN, client=threads[1]).fit(X, Y > 1)
    assert named.score(X, Y > 1) == pytest.approx(named.score(x, y > 1))


def test_a_client_that_is_closed(threads, data):
    x, y = data
    X = da.from_array(x, chunks=(350, 3))
    model = DaskHCKRegressor(**GIVEN, client=threads[1]).fit(x, y)
    process = DaskHCKGaussianProcessRegressor(
        rank=12, n_branches=2, optimizer=None, client=threads[1], random_state=0
    ).fit(x, y)
    threads[1].cancel(model._model.pieces[0])  # as when it is restarted
    with pytest.raises(RuntimeError, match=r"the branches are gone.* fit again"):
        model.predict(x)
    process.predict(X, return_std=True)
    threads[1].close()
    for call in (
        lambda: process.predict(x),
        lambda: process.predict(X),
        lambda: process.predict(X, return_std=True),
        lambda: process.score(X, y),
        process.to_local,
    ):
        with pytest.raises(RuntimeError, match=r"the branches are gone.* fit again"):
            call()
    with pytest.raises(ValueError, match="the Dask client is closed: start another"):
        model.fit(x, y)


def test_what_is_no_client(threads):
    for wrong in ("tcp://127.0.0.1:8786", threads[0]):
        with pytest.raises(TypeError, match=f"must be a distributed.Client, got {type(wrong).__name__}"):
            find_client(wrong)
    assert find_client(threads[1]) is threads[1]
    with pytest.raises(RuntimeError, match="fit again"), explained("predict"):
        raise distributed.client.FutureCancelledError("key", "reason")


def test_all_workers_are_gone(threads, data, monkeypatch):
    x, y = data
    made, client = threads
    model = DaskHCKRegressor(**GIVEN, client=client).fit(x, y)
    made.sync(made.workers[0].close)
    monkeypatch.setattr(cluster, "_LOOK", 0.0)
    monkeypatch.setattr(cluster, "_PATIENCE", 0.0)
    for call in (lambda: model.predict(x), model.to_local, lambda: model.score(x, da.from_array(y))):
        with pytest.raises(RuntimeError, match=r"has no workers any more.*\((predict|to_local)\): start"):
            call()
    with pytest.raises(ValueError, match="no workers yet"):
        model.fit(x, y)


def test_copies_have_the_same_client(threads):
    model = DaskHCKRegressor(lengthscale=[1.0, 2.0], client=threads[1])
    shallow, deep = copy.copy(model), copy.deepcopy(model)
    assert shallow.client is deep.client is threads[1]
    assert shallow.lengthscale is model.lengthscale
    assert deep.lengthscale == model.lengthscale
    assert deep.lengthscale is not model.lengthscale
