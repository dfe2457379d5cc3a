"""Regression and classification on a cluster, against the one tree that the branches are."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch

pytest.importorskip("distributed")
import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import pandas as pd
from dask.sizeof import sizeof
from sklearn.base import clone
from sklearn.utils import get_tags

import hck
from hck.dask import DaskHCKClassifier, DaskHCKGaussianProcessRegressor, DaskHCKRegressor
from hck.dask.blocks import Block, Summary
from hck.dask.cluster import Facts, Worker, look_around
from hck.dask.devices import moved
from hck.dask.sampling import Training, draw
from hck.estimators.branched import draw_rows
from hck.hierarchy import Blueprint
from hck.hierarchy.layout import Layout
from hck.hierarchy.posterior import ridge_and_left_out
from hck.points import DensePoints
from hck.preparation.moments import Moments
from hck.preparation.scaling import Scaling
from hck.selection.loss import Calibration

pytestmark = pytest.mark.usefixtures("one_thread", "client")

GIVEN = {"lengthscale": 0.6, "alpha": 0.02, "rank": 12, "leaf_size": 30, "n_branches": 4, "random_state": 0}


def reference(model, targets):
    """Solutions and left-out predictions of ordinary ridge regression on the assembled trees, by tree."""
    local, found = model.to_local(), []
    for member, trunk in zip(local.forest_.members, model._model.plan.trunks, strict=True):
        layout = Layout.of(member.tree, lambda width, count: count)
        points = member.points.take(member.tree.order)
        source = Blueprint(member.kernel, points, member.landmarks, trunk.jitter, layout, 2**30)
        found.append(ridge_and_left_out(source, local.selection_.alpha, torch.from_numpy(targets)))
    return local, found


def check(model, x, targets, lazy):
    """Weights, predictions and left-out predictions are those of the whole."""
    intercept = targets.mean(0)
    local, found = reference(model, targets - intercept)
    new = np.random.default_rng(5).uniform(size=(50, x.shape[1]))
    points = model._model.plan.points(new)
    for member, (whole, _) in zip(local.forest_.members, found, strict=True):
        torch.testing.assert_close(member.weights, whole.weights, rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(member(points), whole(points), rtol=1e-8, atol=1e-8)
        assert torch.equal(member.points.x, model._model.plan.points(x).x)
    expected = np.mean([whole(points).numpy() for whole, _ in found], 0) + intercept
    np.testing.assert_allclose(model._evaluate(new), expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(local._evaluate(new), expected, rtol=1e-8, atol=1e-8)
    whole = model._evaluate(lazy)
    assert isinstance(whole, da.Array)
    assert whole.chunks[0] == lazy.chunks[0]
    np.testing.assert_allclose(whole.compute(), local._evaluate(x), rtol=1e-8, atol=1e-8)
    left_out = np.mean([left.numpy() for _, left in found], 0) + intercept
    np.testing.assert_array_equal(model.left_out_rows_, np.arange(len(x)))
    np.testing.assert_allclose(model._left_out_values(), left_out, rtol=1e-7, atol=1e-8)
    return local, left_out


@pytest.fixture(scope="module")
def fitted(client, data):
    """A forest of two trees on blocks of other sizes for X and y, some of them empty."""
    x, y = data
    X = da.from_array(x, chunks=((200, 0, 300, 1, 199), (2, 1)))
    return DaskHCKRegressor(**GIVEN, n_trees=2).fit(X, da.from_array(y, chunks=250))


def test_regression_of_a_forest(fitted, data, tmp_path):
    x, y = data
    local, _ = check(fitted, x, y[:, None], da.from_array(x, chunks=((0, 400, 300), (3,))))
    assert isinstance(local, hck.HCKRegressor)
    assert fitted.predict(x).shape == (700,)
    np.testing.assert_allclose(fitted.loo_predict(), local.loo_predict())
    fitted.save(tmp_path / "model")
    np.testing.assert_allclose(
        hck.load(tmp_path / "model").predict(x), fitted.predict(x), rtol=1e-12, atol=1e-12
    )


def test_what_travels(fitted):
    moved, branches, rank = fitted.bytes_, 2 * 4, 12
    assert moved.messages == branches * (8 * (rank * rank + rank) + 8)
    assert moved.replies == branches * 8 * (rank * rank + rank)
    assert moved.rows == 2 * 700 * (8 * 3 + 8 + 8)
    assert moved.sample == 700 * 8 * 4
    assert {"read", "sample", "split", "up", "trunk", "down"} <= set(fitted.seconds_)


def test_dask_knows_how_large_branches_are(fitted):
    part = fitted._model.gather()[0][0]
    rows = len(part.number)
    assert sizeof(part) == part.nbytes > rows * 8 * (3 + 1 + 1 + 1)


def test_score(fitted, data):
    x, y = data
    X, Y = da.from_array(x, chunks=(350, 3)), da.from_array(y, chunks=100)
    assert fitted.score(X, Y) == pytest.approx(fitted.score(x, y))
    assert fitted.score(x, y) > 0.95


def test_several_targets_in_single_precision(data):
    x, y = data
    y = np.column_stack([y, y**2])
    X = da.from_array(x.astype(np.float32), chunks=(300, 3))
    model = DaskHCKRegressor(**GIVEN, scale="standard", dtype="float32", leave_one_out=False).fit(X, y)
    predicted = model.predict(X)
    assert predicted.dtype == np.float32
    assert predicted.shape == (700, 2)
    np.testing.assert_allclose(predicted.compute(), model.to_local().predict(x), atol=1e-3)
    with pytest.raises(ValueError, match="leave_one_out=True"):
        model.loo_predict()


@pytest.mark.parametrize("names", [("no", "yes"), ("a", "b", "c")])
def test_classification(data, names):
    x, y = data
    code = np.digitize(y, np.quantile(y, np.arange(1, len(names)) / len(names)))
    labels = np.array(names)[code]
    X = da.from_array(x, chunks=(300, 3))
    model = DaskHCKClassifier(**GIVEN).fit(X, da.from_array(labels, chunks=300))
    columns = [1] if len(names) == 2 else range(len(names))
    targets = np.where(code[:, None] == columns, 1.0, -1.0)
    local, left_out = check(model, x, targets, X)
    assert model.classes_.tolist() == list(names)
    assert model.calibration_.slope == pytest.approx(Calibration.fit(left_out, code).slope, rel=1e-5)
    assert (model.predict(X).compute() == local.predict(x)).all()
    np.testing.assert_allclose(model.predict_proba(X).compute(), local.predict_proba(x), rtol=1e-8)
    np.testing.assert_allclose(model.predict_proba(x), local.predict_proba(x), rtol=1e-8)
    assert model.decision_function(X).ndim == (1 if len(names) == 2 else 2)
    assert model.score(X, da.from_array(labels, chunks=100)) == pytest.approx(local.score(x, labels))


def test_dataframes(data):
    x, y = data
    frame = pd.DataFrame(x, columns=["a", "b", "c"]).assign(y=y, kind=np.where(y > 1, "high", "low"))
    lazy = dd.from_pandas(frame, npartitions=3)
    model = DaskHCKRegressor(**GIVEN).fit(lazy[["a", "b", "c"]], lazy["y"])
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    predicted = model.predict(lazy[["a", "b", "c"]])
    assert np.isnan(predicted.shape[0])
    np.testing.assert_allclose(predicted.compute(), model.predict(x), rtol=1e-10)
    np.testing.assert_allclose(lazy.assign(p=predicted)["p"].compute(), model.predict(x), rtol=1e-10)
    np.testing.assert_allclose(model.to_local().predict(frame[["a", "b", "c"]]), model.predict(x), rtol=1e-10)
    assert model.score(lazy[["a", "b", "c"]], lazy["y"]) == pytest.approx(model.score(x, y))
    for wrong in (lazy, frame):
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(wrong[["b", "a", "c"]])
    here = DaskHCKRegressor(**GIVEN).fit(frame[["a", "b", "c"]], frame["y"])
    assert here.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(here.predict(x), model.predict(x), rtol=1e-10)
    named = DaskHCKClassifier(**GIVEN).fit(lazy[["a", "b", "c"]], lazy["kind"])
    assert named.classes_.tolist() == ["high", "low"]
    assert named.score(x, frame["kind"].to_numpy()) > 0.9
    for wrong in (lazy, frame):
        with pytest.raises(ValueError, match="not numbers: kind"):
            model.fit(wrong[["a", "kind"]], wrong["y"])


def test_branches_in_bundles(data):
    """More branches than twice the workers: several travel together."""
    x, y = data
    X = da.from_array(x, chunks=(150, 3))
    model = DaskHCKRegressor(**{**GIVEN, "n_branches": 8, "leaf_size": 12}).fit(X, y)
    check(model, x, y[:, None], X)


def test_the_sample_is_the_same_for_all_chunks(data, monkeypatch):
    """And so is the model, to rounding, of rows in other blocks or in one piece."""
    x, y = data
    monkeypatch.setattr("hck.estimators.branched._CHOSEN_ON", 100)
    monkeypatch.setattr("hck.estimators.branched.POINTS_PER_BRANCH", 50)
    given = {**GIVEN, "scale": "standard", "leave_one_out": False}
    expected = DaskHCKRegressor(**given).fit(x, y)
    assert expected.bytes_.sample == 200 * 8 * 4
    X = da.from_array(x, chunks=((100, 0, 500, 100), 3))
    model = DaskHCKRegressor(**given).fit(X, da.from_array(y, chunks=300))
    np.testing.assert_allclose(model.predict(x), expected.predict(x), rtol=1e-10)


class OnThisMachine:
    """Does what workers would do, with blocks whose rows are their numbers."""

    def compute(self, made):
        return dask.compute(*made, scheduler="synchronous")

    def gather(self, found, what):
        return list(found)

    def release(self, found):
        pass


class Endless:
    """The numbers from one on."""

    def __init__(self, first):
        self.first = first

    def __getitem__(self, rows):
        return rows + self.first


def test_a_sample_of_thousands_of_millions_of_rows():
    rows, first = [3 * 10**9, 0, 10**9], [0, 3 * 10**9, 3 * 10**9]
    summaries = [Summary(each, 1, 16, (), Moments.none(1)) for each in rows]
    data = Training([Block(Endless(k), Endless(k)) for k in first], summaries, 1, None)
    drawn = draw(OnThisMachine(), data, 4000, np.random.RandomState(0))
    assert len(np.unique(drawn.x)) == len(drawn.x) == 4000
    np.testing.assert_array_equal(drawn.x, drawn.y)
    assert (drawn.x >= 3 * 10**9).mean() == pytest.approx(0.25, abs=0.05)
    assert (np.diff(drawn.x) < 0).mean() == pytest.approx(0.5, abs=0.05)
    np.testing.assert_array_equal(draw_rows(7, 7, np.random.default_rng(0)), np.arange(7))


@pytest.mark.parametrize(("scale", "lengthscale"), [("standard", 0.6), ("minmax", "auto")])
def test_features_are_scaled_by_all_rows(data, scale, lengthscale, monkeypatch):
    """Also by one that is in no sample."""
    x, y = data
    x = x.copy()
    x[17, 1] = 50.0
    monkeypatch.setattr("hck.estimators.branched._CHOSEN_ON", 100)
    monkeypatch.setattr("hck.estimators.branched.POINTS_PER_BRANCH", 50)
    given = {**GIVEN, "scale": scale, "lengthscale": lengthscale, "fit_time": 0.1, "n_branches": 2}
    model = DaskHCKRegressor(**given).fit(da.from_array(x, chunks=(200, 3)), y)
    expected = Scaling.of(scale, DensePoints(torch.from_numpy(x)))
    assert model.bytes_.sample == 100 * 8 * 4
    torch.testing.assert_close(model._model.plan.scaling.centre, expected.centre, rtol=1e-12, atol=0)
    torch.testing.assert_close(model._model.plan.scaling.factor, expected.factor, rtol=1e-12, atol=0)
    np.testing.assert_allclose(model.to_local().predict(x), model.predict(x), rtol=1e-8)


def test_many_equal_points(data):
    """Branches that no point is sent to are left out."""
    x, y = data
    x = np.where(np.arange(700)[:, None] < 600, 0.5, x)
    model = DaskHCKRegressor(**{**GIVEN, "n_branches": 16}).fit(x, y)
    assert model._model.plan.trunks[0].n_branches < 16
    check(model, x, y[:, None], da.from_array(x, chunks=(300, 3)))


def test_how_many_branches(data, client):
    """Two for each of two threads, if there are points enough."""
    x, y = data
    given = {name: value for name, value in GIVEN.items() if name != "n_branches"}
    assert DaskHCKRegressor(**given).fit(x, y)._model.plan.trunks[0].n_branches == 4
    few = DaskHCKRegressor(**{**given, "leaf_size": 100}).fit(x, y)
    assert few._model.plan.trunks[0].n_branches == 2
    tight = DaskHCKRegressor(**{**given, "leaf_size": 12, "memory_budget": 60_000}).fit(x, y)
    assert tight._model.plan.trunks[0].n_branches == 8


def test_what_is_not_given_is_chosen(data):
    x, y = data
    model = DaskHCKRegressor(fit_time=0.2, random_state=0, n_branches=2)
    model.fit(da.from_array(x, chunks=(350, 3)), da.from_array(y, chunks=350))
    assert model.score(x, y) > 0.95
    assert model._model.n_trees == model.selection_.n_trees
    assert model._model.plan.scaling.factor is not None


def test_parameters(client, data):
    model = DaskHCKRegressor(rank=7, client=client, n_branches=2)
    given = model.get_params()
    assert given["client"] is client
    assert set(given) == {*hck.HCKRegressor().get_params(), "client", "n_branches"}
    again = clone(model)
    assert again.client is client
    assert again.rank == 7
    with pytest.raises(ValueError, match="rank"):
        clone(model).set_params(rank=0).fit(*data)
    assert not get_tags(model).input_tags.sparse


@pytest.mark.parametrize("cls", [DaskHCKRegressor, DaskHCKClassifier, DaskHCKGaussianProcessRegressor])
def test_what_is_said_of_parameters(cls):
    for said in ("at least two branches", "GPUs of the workers", "client : distributed.Client", "seconds_ :"):
        assert cls.__doc__.count(said) == 1
    assert "{" not in cls.__doc__.replace('{"', "")


def test_branches_stay_within_the_budget(fitted):
    plan, part = fitted._model.plan, fitted._model.gather()[0][0]
    plan = replace(plan, memory_budget=12_345)
    assert moved(plan, part.extension, torch.device("cpu")) is part.extension
    assert moved(plan, part.extension, torch.device("meta")).budget == 12_345


def test_trees_are_on_workers(fitted):
    with pytest.raises(AttributeError, match=r"to_local\(\)\.tree_"):
        _ = fitted.tree_
    assert not hasattr(fitted, "tree_")
    assert len(fitted.to_local().tree_.leaves) > 4


def test_progress_is_shown(data, capsys):
    DaskHCKRegressor(**GIVEN, verbose=1).fit(*data)
    assert "Dask: up" in capsys.readouterr().out


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


class Workers:
    """A client that knows what workers have."""

    def __init__(self, *workers):
        self.workers = workers

    def run(self, function, *args, on_error):
        return dict(enumerate(self.workers))


def test_what_workers_have():
    plain, gpu = Worker(4, 8000, 0), Worker(2, 8000, 1000)
    assert look_around(Workers(plain, plain), None) == Facts(2, 8, 1000, "cpu", 16_000)
    assert look_around(Workers(plain, gpu), None) == Facts(2, 6, 1000, "cpu", 16_000)
    assert look_around(Workers(gpu, gpu), None) == Facts(2, 4, 400, "cuda", 16_000)
    assert look_around(Workers(gpu, gpu), "cuda:1") == Facts(2, 4, 400, "cuda:1", 16_000)
    assert look_around(Workers(gpu, gpu), "cpu") == Facts(2, 4, 2000, "cpu", 16_000)
    assert look_around(Workers(Worker(1, 0, 0), OSError()), None) == Facts(1, 1, None, "cpu")
    with pytest.raises(ValueError, match=r"device='cuda:1' was asked for, .* no CUDA device on some"):
        look_around(Workers(plain, gpu), "cuda:1")
    with pytest.raises(ValueError, match="device='bogus' is not known; use 'cpu' or 'cuda'"):
        look_around(Workers(plain), "bogus")
    for device in ("mps", "meta"):
        with pytest.raises(ValueError, match=f"device='{device}' is not supported; use 'cpu' or 'cuda'"):
            look_around(Workers(plain), device)
    with pytest.raises(ValueError, match="wait_for_workers"):
        look_around(Workers(), None)


def test_points_here(fitted, data):
    x, _ = data
    assert isinstance(fitted.predict(torch.from_numpy(x[:5])), np.ndarray)
    assert isinstance(fitted._model.plan.points(x), DensePoints)
    with pytest.raises(ValueError, match="2 features"):
        fitted.predict(x[:, :2])
