"""Wrong input, lost workers, too little memory: named errors, and a cluster that is usable afterwards."""

import gc
import os
import signal
import time

import numpy as np
import pytest

pytest.importorskip("distributed")
import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import distributed
import pandas as pd
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from hck.dask import DaskHCKClassifier, DaskHCKGaussianProcessRegressor, DaskHCKRegressor, cluster
from hck.dask.cluster import Watch, Work, explained
from hck.dask.workers import Facts
from hck.estimators.distributed import base

pytestmark = pytest.mark.usefixtures("one_thread")

GIVEN = {"lengthscale": 0.6, "alpha": 0.02, "rank": 12, "leaf_size": 30, "n_branches": 4, "random_state": 0}


def held(client):
    """How many tasks the scheduler knows of, once it has heard of all that were let go."""
    gc.collect()  # models are in cycles
    end = time.monotonic() + 60
    while number := client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
        if time.monotonic() > end:
            break
        time.sleep(0.05)
    return number


def wrong_inputs(x, y):
    X, Y = da.from_array(x, chunks=(200, 3)), da.from_array(y, chunks=200)
    hole, endless = x.copy(), y.copy()
    hole[450, 1], endless[601] = np.nan, np.inf
    frame = dd.from_pandas(pd.DataFrame(x).assign(y=y), npartitions=3)
    return {
        "unknown sizes": (X[X[:, 0] > 0.5], Y, r"X\.compute_chunk_sizes\(\)"),
        "unknown sizes of y": (X, Y[Y > 0], r"y\.compute_chunk_sizes\(\)"),
        "other lengths": (X, Y[:500], "X has 700 rows but y has 500"),
        "other partitions": (
            frame[[0, 1]],
            frame["y"].repartition(npartitions=2),
            "3 partitions but y has 2",
        ),
        "a frame and an array": (X, frame["y"], "X has 4 partitions but y has 3"),
        "an array and a frame": (frame[[0, 1]], y, "one of its columns"),
        "NaN in one block": (
            da.from_array(hole, chunks=(200, 3)),
            Y,
            "X has NaN or infinity in row 50 of block 2",
        ),
        "infinity in y": (X, da.from_array(endless, chunks=200), "y has NaN or infinity in row 1 of block 3"),
        "empty": (X[:0], Y[:0], "X is empty"),
        "one axis": (Y, Y, "Expected 2D array"),
        "text": (da.full((700, 3), "a", chunks=(200, 3)), Y, "X has something that is no number"),
        "no y": (X, None, "y is None"),
        "wrong block": (X.map_blocks(lambda a: a[:, :2], meta=np.ones((1, 3))), Y, "must have 3 columns"),
        "rows of blocks": (X.map_blocks(lambda a: a[1:], meta=np.ones((1, 3))), Y, "199 rows.* y has 200"),
        "sparse": (X.map_blocks(_sparse, meta=np.ones((1, 3))), Y, "sparse"),
        "one row": (X[:1], Y[:1], "X has one row: .* at least two branches"),
        "a series": (frame["y"], frame["y"], r"use X\.to_frame\(\)"),
        "a sparse matrix": (sp.csr_matrix(x), Y, r"X is sparse, .* use X\.toarray\(\)"),
        "a sparse y": (X, sp.csr_matrix(y), r"y is sparse, .* use y\.toarray\(\)"),
        "delayed": (dask.delayed(x), Y, r"X is a Delayed, .* dask\.array\.from_delayed"),
        "delayed y": (X, dask.delayed(y), r"y is a Delayed, .* dask\.array\.from_delayed"),
        "a bag": (db.from_sequence([1, 2]), Y, "X must be a Dask array or dataframe, got Bag"),
        # any of the blocks may be the first to be looked at
        "masked": (da.ma.masked_greater(X, 0.5), Y, r"block \d of X is masked"),
        "masked y": (X, da.ma.masked_greater(Y, 0.5), r"block \d of y is masked"),
        "masked and here": (np.ma.masked_greater(x, 0.5), Y, r"X is masked, .* X\.filled\(\)"),
        "missing numbers": (
            dd.from_pandas(
                pd.DataFrame({"a": pd.array([1, 2, None, 4], "Int64"), "b": np.ones(4)}), npartitions=1
            ),
            Y[:4],
            "X has NaN or infinity in row 2 of block 0",
        ),
    }


def _with_a_hole():
    return pd.DataFrame({"a": pd.array([1, 2, None, 4], "Int64"), "b": np.ones(4)})


def _sparse(x):
    return sp.csr_matrix(x)


@pytest.mark.parametrize("what", list(wrong_inputs(np.ones((700, 3)), np.ones(700))))
def test_wrong_data(client, data, what):
    X, y, message = wrong_inputs(*data)[what]
    with pytest.raises(ValueError, match=message):
        DaskHCKRegressor(**GIVEN).fit(X, y)
    assert held(client) == 0


def test_wrong_labels(client, data):
    x, y = data
    for labels, message in (
        (np.zeros(700), "at least two classes"),
        (y, "Unknown label type"),
        (np.column_stack([y, y]).round(), "one column"),
        (np.array(["a", None] * 350, dtype=object), "no label in row 1 of block 0"),
        (pd.Series(["a", "b", pd.NA, "b"] * 175, dtype="string"), "no label in row 2 of block 0"),
        (np.array(["a", 1] * 350, dtype=object), "is text, but has something else in row 1 of block 0: 1"),
        (np.ma.masked_array(np.arange(700) % 2, y > 1), "y is masked"),
    ):
        with pytest.raises(ValueError, match=message):
            DaskHCKClassifier(**GIVEN).fit(x, labels)
    assert held(client) == 0


def test_too_many_classes(client, data, monkeypatch):
    monkeypatch.setattr("hck.preparation.coding.MOST_CLASSES", 3)
    with pytest.raises(ValueError, match="more than 3 different labels"):
        DaskHCKClassifier(**GIVEN).fit(data[0], np.arange(700) % 4)


def test_wrong_parameters(client, data):
    for given, message in (
        ({"partition": "kmeans"}, "kmeans.*random_projection"),
        ({"approximation": "nystrom"}, "only 'hierarchical'"),
        ({"n_branches": 3}, "power of two"),
        ({"n_branches": 4.0}, "integer that is a power of two"),
        ({"n_branches": "auto"}, "integer that is a power of two"),
        ({"device": "bogus"}, "device='bogus' is not known"),
        ({"n_branches": 1024}, "at least as many points"),
        ({"device": "cuda"}, "no CUDA device on some of the workers"),
        ({"landmarks": "same"}, "landmarks"),
    ):
        with pytest.raises(ValueError, match=message):
            DaskHCKRegressor(**{**GIVEN, **given}).fit(*data)
    for estimator in (DaskHCKRegressor, DaskHCKClassifier):
        with pytest.raises(ValueError, match="weights are not supported"):
            estimator(**GIVEN).fit(*data, sample_weight=np.ones(700))
    with pytest.raises(NotFittedError):
        DaskHCKGaussianProcessRegressor().predict(data[0])
    assert held(client) == 0


def test_wrong_new_points(client, data):
    x, y = data
    model = DaskHCKRegressor(**GIVEN).fit(x, y)
    hole = x.copy()
    hole[3] = np.nan
    lazy = model.predict(da.from_array(hole, chunks=(300, 3)))
    with pytest.raises(ValueError, match="X has NaN or infinity in row 3 of block 0"):
        lazy.compute()
    with pytest.raises(ValueError, match="2 features"):
        model.predict(da.ones((5, 2)))
    with pytest.raises(ValueError, match="NaN"):
        model.predict(hole)
    del lazy, model
    gc.collect()  # tracebacks
    assert held(client) == 0


def test_no_client(data, monkeypatch):
    def none():
        raise ValueError("No clients found")

    monkeypatch.setattr(distributed.Client, "current", none)
    with pytest.raises(ValueError, match=r"no Dask client: start one.*Client\(\)"):
        DaskHCKRegressor().fit(*data)


# Lost workers ----------------------------------------------------------------------------------------


def kill_one(client):
    pid = max(client.run(os.getpid).values())
    os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(os.name != "posix", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("phase", ["split", "down"])
def test_a_worker_is_killed_during_a_fit(client, data, monkeypatch, phase):
    x, y = data
    X, Y = da.from_array(x, chunks=(200, 3)), da.from_array(y, chunks=200)
    calm = DaskHCKRegressor(**GIVEN).fit(X, Y).predict(x)
    wait, killed = Work.wait, []

    def wait_and_kill(self, futures, what=""):
        if what == phase and not killed:
            killed.append(True)
            kill_one(client)
        wait(self, futures, what)

    monkeypatch.setattr(Work, "wait", wait_and_kill)
    model = DaskHCKRegressor(**GIVEN).fit(X, Y)
    assert killed
    np.testing.assert_allclose(model.predict(x), calm, rtol=1e-12, atol=1e-12)


@pytest.mark.skipif(os.name != "posix", reason="Windows has no SIGKILL")
def test_a_worker_is_killed_after_a_fit(client, data):
    x, y = data
    X, Y = da.from_array(x, chunks=(200, 3)), da.from_array(y, chunks=200)
    model = DaskHCKGaussianProcessRegressor(
        rank=12, leaf_size=30, n_branches=4, optimizer=None, random_state=0
    )
    model.fit(X, Y)
    calm = model.predict(x, return_std=True)
    kill_one(client)
    again = dask.compute(*model.predict(X, return_std=True))
    np.testing.assert_allclose(again, calm, rtol=1e-10)


# Memory ----------------------------------------------------------------------------------------------


def test_a_worker_without_memory(monkeypatch):
    """A block that is larger than the worker may be: Dask ends the worker, and here it is said why."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, memory_limit="1GB", dashboard_address=":0"
        ) as small,
        distributed.Client(small, set_as_default=False) as client,
    ):
        large = da.ones((10**8, 2), chunks=-1) + 1
        with pytest.raises(MemoryError, match="more workers or workers with a larger memory limit"):
            DaskHCKRegressor(**GIVEN, client=client).fit(large, large[:, 0])
        assert client.submit(sum, [1, 2]).result() == 3
        assert held(client) == 0
        small.scheduler.allowed_failures = 10**6  # as where other tasks die each time
        monkeypatch.setattr(cluster, "_LOOK", 0.0)
        monkeypatch.setattr(cluster, "_LOSSES", 0)
        with (
            pytest.raises(MemoryError, match=r"split; 1 workers were lost\).*larger memory limit"),
            Work(client) as work,
        ):
            work.wait([work.submit(lambda: (time.sleep(1), os._exit(1)))], "split")
        assert held(client) == 0


def test_workers_are_lost_again_and_again(client, monkeypatch):
    """Dask starts others, and computes everything again."""
    monkeypatch.setattr(cluster, "_LOOK", 0.0)
    watch = Watch(client, "split")
    for time_ in range(8):
        monkeypatch.setattr(
            cluster, "_status_of_workers", lambda client, now=time_: {f"{now}": "running", "b": "running"}
        )
        if time_ < 7:
            watch.look()
    with pytest.raises(MemoryError, match="split; 7 workers were lost"):
        watch.look()


def test_a_warning_before_memory_is_short(client, data, monkeypatch):
    monkeypatch.setattr(base, "look_around", lambda client, device: Facts(2, 2, None, "cpu", 100_000))
    said = r"rows of all trees take about [\d.]+ [kM]B.*use more or larger workers"
    with pytest.warns(UserWarning, match=said):
        DaskHCKRegressor(**GIVEN, n_trees=2, leave_one_out=False).fit(*data)


def test_all_workers_are_paused(client, monkeypatch):
    monkeypatch.setattr(cluster, "_LOOK", 0.0)
    monkeypatch.setattr(cluster, "_status_of_workers", lambda client: {"a": "paused", "b": "paused"})
    watch = Watch(client, "up")
    watch.look()
    monkeypatch.setattr(cluster, "_PATIENCE", 0.0)
    with pytest.raises(MemoryError, match="up; all workers are paused"):
        watch.look()
    monkeypatch.setattr(cluster, "_status_of_workers", lambda client: {"a": "paused", "b": "running"})
    watch.look()


def test_errors_that_mean_memory():
    for error in (MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")):
        with pytest.raises(MemoryError, match=r"n_branches"), explained("down"):
            raise error
    with pytest.raises(RuntimeError, match="other"), explained("down"):
        raise RuntimeError("other")


def test_the_cluster_is_still_usable(client, data):
    """The last test: after all of that."""
    assert DaskHCKRegressor(**GIVEN).fit(*data).score(*data) > 0.9
    assert held(client) == 0
