"""Training on disk, against the same tree in memory; and stopped runs that go on."""

import os
import signal
import subprocess
import sys
import textwrap

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
import zarr
from sklearn.base import clone
from sklearn.utils import get_tags

import hck
from hck import HCKClassifier, HCKRegressor
from hck.backend.files import replacing
from hck.estimators.branched import Plan, branches_within, sizes_for
from hck.hierarchy import Blueprint, ridge
from hck.hierarchy.layout import Layout
from hck.kernels import Gaussian
from hck.outofcore import DiskHCKClassifier, DiskHCKRegressor
from hck.outofcore.job import Job
from hck.outofcore.spool import Spool
from hck.points import DensePoints
from hck.preparation.moments import Moments
from hck.preparation.scaling import Scaling
from hck.selection.auto import Selection

pytestmark = pytest.mark.usefixtures("one_thread")

GIVEN = {"kernel": "gaussian", "lengthscale": 0.4, "alpha": 0.02, "rank": 16, "random_state": 0}
SMALL = {**GIVEN, "memory_budget": "1MB"}  # several branches


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(6000, 3))
    y = np.sin(6 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(6000)
    return X, y, rng.uniform(size=(500, 3))


def test_the_same_tree_in_memory(data, tmp_path):
    X, y, new = data
    model = DiskHCKRegressor(**SMALL, folder=tmp_path / "model").fit(X, y)
    predicted, local = model.predict(new), model.to_local()
    assert len(model._known["plan"].branches[0]) >= 4
    assert type(local) is HCKRegressor
    np.testing.assert_allclose(local.predict(new), predicted, rtol=1e-10, atol=1e-10)
    found = local.forest_.members[0]
    layout = Layout.of(found.tree, lambda width, count: count)
    jitter = model._known["plan"].trunks[0].jitter
    points = found.points.take(found.tree.order)
    blueprint = Blueprint(found.kernel, points, found.landmarks, jitter, layout, 2**30)
    whole = ridge(blueprint, 0.02, torch.from_numpy(y - y.mean()))
    torch.testing.assert_close(found.weights, whole.weights, rtol=1e-8, atol=1e-8)
    in_memory = HCKRegressor(**GIVEN, leave_one_out=False).fit(X, y)
    truth = np.sin(6 * new[:, 0]) + new[:, 1] ** 2
    assert np.abs(predicted - truth).mean() < 1.2 * np.abs(in_memory.predict(new) - truth).mean()


def test_left_out_rows(data, tmp_path):
    X, y, _ = data
    model = DiskHCKRegressor(**SMALL, folder=tmp_path / "model").fit(X, y)
    np.testing.assert_array_equal(model.left_out_rows_, np.arange(6000))
    expected = HCKRegressor(**GIVEN).fit(X, y).loo_predict()
    error, usual = np.abs(model.loo_predict() - y).mean(), np.abs(expected - y).mean()
    assert error == pytest.approx(usual, rel=0.1)
    np.testing.assert_array_equal(model.to_local().loo_predict(), model.loo_predict())


def test_a_saved_copy_in_memory(data, tmp_path):
    X, y, new = data
    model = DiskHCKRegressor(**SMALL, folder=tmp_path / "model").fit(X, y)
    model.to_local().save(tmp_path / "local")
    np.testing.assert_allclose(hck.load(tmp_path / "local").predict(new), model.predict(new), rtol=1e-10)


@pytest.mark.parametrize("classes", [2, 3])
def test_classes(data, classes, tmp_path):
    X, y, new = data
    label = np.array(["low", "middle", "up"])[np.digitize(y, [0.3, 1.0][: classes - 1])]
    model = DiskHCKClassifier(**SMALL, folder=tmp_path / "model").fit(X, label)
    usual = HCKClassifier(**GIVEN).fit(X, label)
    assert model.classes_.tolist() == usual.classes_.tolist()
    assert (model.predict(new) == usual.predict(new)).mean() > 0.97
    np.testing.assert_allclose(model.predict_proba(new).sum(1), 1)
    assert np.abs(model.predict_proba(new) - usual.predict_proba(new)).mean() < 0.02
    np.testing.assert_allclose(model.to_local().predict_proba(new), model.predict_proba(new), atol=1e-8)
    assert (DiskHCKClassifier.open(tmp_path / "model").predict(new) == model.predict(new)).all()


def test_several_targets_trees_and_types(data, tmp_path):
    X, y, new = data
    both = np.stack([y, -2 * y], 1)
    given = {**SMALL, "n_trees": 2, "dtype": "float32", "leave_one_out": False}
    model = DiskHCKRegressor(**given, folder=tmp_path / "model").fit(X.astype(np.float32), both)
    predicted = model.predict(new)
    assert predicted.shape == (500, 2)
    np.testing.assert_allclose(predicted[:, 1], -2 * predicted[:, 0], atol=1e-2)
    assert len(model.to_local().trees_) == 2
    assert model.left_out_rows_ is None
    with pytest.raises(ValueError, match="leave_one_out=True"):
        model.loo_predict()


def test_parameters_that_choose_themselves(data, tmp_path):
    X, y, new = data
    model = DiskHCKRegressor(fit_time=1.0, random_state=0, folder=tmp_path / "model").fit(X, y)
    truth = np.sin(6 * new[:, 0]) + new[:, 1] ** 2
    assert np.abs(model.predict(new) - truth).mean() < 0.05
    assert model.selection_.candidates


class Quick(HCKRegressor):
    """Chooses at once."""

    def fit(self, X, y):
        assert not self.leave_one_out  # which nobody looks at
        self.selection_ = Selection(Gaussian(0.4), 0.02, 1, None, 16)
        self._scaling = Scaling()
        return self


def test_candidates_are_not_averaged(data, tmp_path, monkeypatch):
    X, y, _ = data
    monkeypatch.setattr(DiskHCKRegressor, "_plain", Quick)
    given = {"fit_time": "best", "random_state": 0, "memory_budget": "1MB"}
    with pytest.warns(UserWarning, match="fit_time='best' averages several candidates on one machine only"):
        model = DiskHCKRegressor(**given, folder=tmp_path / "model").fit(X, y)
    assert model.left_out_rows_ is not None
    DiskHCKRegressor(**SMALL, fit_time="best", folder=tmp_path / "given").fit(X, y)  # nothing is chosen


@pytest.mark.parametrize(("scale", "lengthscale"), [("standard", 0.4), ("minmax", "auto")])
def test_features_are_scaled_by_all_rows(data, scale, lengthscale, tmp_path, monkeypatch):
    """Also by one that is in no sample."""
    X, y, new = data
    X = X.copy()
    X[17, 1] = 50.0
    monkeypatch.setattr("hck.estimators.branched._CHOSEN_ON", 500)
    monkeypatch.setattr("hck.estimators.branched.POINTS_PER_BRANCH", 50)
    monkeypatch.setattr("hck.outofcore.rows._BLOCK", 40_000)  # several blocks
    given = {**SMALL, "lengthscale": lengthscale, "scale": scale, "fit_time": 0.1, "leave_one_out": False}
    model = DiskHCKRegressor(**given, folder=tmp_path / "model").fit(X, y)
    expected = Scaling.of(scale, DensePoints(torch.from_numpy(X)))
    found = model._known["plan"].scaling
    torch.testing.assert_close(found.centre, expected.centre, rtol=1e-12, atol=0)
    torch.testing.assert_close(found.factor, expected.factor, rtol=1e-12, atol=0)
    np.testing.assert_allclose(model.to_local().predict(new), model.predict(new), rtol=1e-8)


@pytest.mark.parametrize("sizes", [[1000], [0, 300, 1, 0, 699], [1] * 1000])
def test_moments_of_pieces(sizes):
    rng = np.random.default_rng(0)
    x, weight = 1e9 + rng.normal(size=(1000, 3)), rng.uniform(size=1000)
    x[:, 2] = 0.1
    ends = np.cumsum(sizes)[:-1]
    for w in (None, weight):
        parts = zip(np.split(x, ends), np.split(weight, ends), strict=True)
        found = sum((Moments.of(a, None if w is None else b) for a, b in parts), Moments.none(3))
        mean = np.average(x - 1e9, axis=0, weights=w)
        np.testing.assert_allclose(found.mean - 1e9, mean, atol=1e-5)
        square = np.average((x - 1e9 - mean) ** 2, axis=0, weights=w)[:2]
        np.testing.assert_allclose(found.square[:2] / found.count, square, rtol=1e-5)
        np.testing.assert_array_equal(found.low, x.min(0))
        np.testing.assert_array_equal(found.high, x.max(0))
        assert found.square[2] == 0


def test_files(data, tmp_path):
    X, y, new = data
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    np.save(tmp_path / "new.npy", new)
    model = DiskHCKRegressor(**SMALL, folder=tmp_path / "a").fit(tmp_path / "X.npy", tmp_path / "y.npy")
    other = DiskHCKRegressor(**SMALL, folder=tmp_path / "b").fit(X, y)
    np.testing.assert_array_equal(model.predict(tmp_path / "new.npy"), other.predict(new))


class Stop(Exception):
    pass


@pytest.mark.parametrize("where", ["deal", "up", "down"])
def test_a_stopped_run_goes_on(data, where, tmp_path, monkeypatch):
    X, y, new = data
    monkeypatch.setattr("hck.outofcore.rows._BLOCK", 40_000)  # several blocks
    expected = DiskHCKRegressor(**SMALL, folder=tmp_path / "whole").fit(X, y).predict(new)
    owner, name = {"deal": (Spool, "add"), "up": (Plan, "up"), "down": (Plan, "down")}[where]
    original, calls = getattr(owner, name), []

    def counted(self, *args):
        calls.append(str(args[0][0] if where == "deal" else args[:2]))
        if len(calls) == 3:
            if where == "deal":  # when some files have the block, and another a part of a record
                monkeypatch.setattr("hck.outofcore.spool.replacing", None)
                with pytest.raises(TypeError):
                    original(self, *args)
                monkeypatch.setattr("hck.outofcore.spool.replacing", replacing)
                with self._path(0, 0).open("ab") as file:
                    file.write(b"half a record")
            raise Stop
        return original(self, *args)

    monkeypatch.setattr(owner, name, counted)
    model = DiskHCKRegressor(**SMALL, folder=tmp_path / "model")
    with pytest.raises(Stop):
        model.fit(X, y)
    done, rows = set(calls[:2]), len(calls)
    del calls[:]
    calls += [None] * 3
    model.fit(X, y)
    assert not done & set(calls)
    assert rows == 3
    np.testing.assert_array_equal(model.predict(new), expected)
    kept = sorted(path.name for path in (tmp_path / "model").iterdir())
    assert kept == ["branches", "job.json", "lock", "model", "plan"]


def test_a_killed_process_goes_on(data, tmp_path):
    """Killed, without a chance to tidy up, as soon as the first branch has come down."""
    X, y, new = data
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    program = f"""
        import os, signal
        from hck.outofcore import DiskHCKRegressor
        from hck.outofcore.job import Job
        keep = Job.keep
        def kill(self, name, value):
            keep(self, name, value)
            if name.startswith("branches"):
                os.kill(os.getpid(), signal.SIGKILL)
        Job.keep = kill
        given = {SMALL!r}
        DiskHCKRegressor(**given, folder={str(tmp_path / "model")!r}).fit(
            {str(tmp_path / "X.npy")!r}, {str(tmp_path / "y.npy")!r}
        )
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env=os.environ, check=False)
    assert run.returncode == -signal.SIGKILL
    assert len(list((tmp_path / "model" / "branches").iterdir())) == 1
    model = DiskHCKRegressor(**SMALL, folder=tmp_path / "model").fit(tmp_path / "X.npy", tmp_path / "y.npy")
    expected = DiskHCKRegressor(**SMALL, folder=tmp_path / "whole").fit(X, y)
    np.testing.assert_allclose(model.predict(new), expected.predict(new), rtol=1e-12, atol=1e-12)


def test_a_finished_run_is_not_repeated(data, tmp_path, monkeypatch):
    X, y, new = data
    expected = DiskHCKRegressor(**SMALL, folder=tmp_path / "model").fit(X, y).predict(new)
    monkeypatch.setattr(Plan, "grow", None)
    model = DiskHCKRegressor(**SMALL, folder=tmp_path / "model").fit(X, y)
    np.testing.assert_array_equal(model.predict(new), expected)


def test_killed_before_it_has_tidied_up(data, tmp_path, monkeypatch):
    X, y, new = data
    model = DiskHCKRegressor(**SMALL, folder=tmp_path / "model")
    with monkeypatch.context() as patch:
        patch.setattr("hck.outofcore.job.Job.forget", None)
        with pytest.raises(TypeError):
            model.fit(X, y)
    (tmp_path / "model" / "branches" / ".0-1.abc.tmp").mkdir()
    model.fit(X, y).predict(new)
    assert not (tmp_path / "model" / "points").exists()
    assert not list((tmp_path / "model" / "branches").glob(".*"))


def test_blocks_of_another_size_after_a_stop(data, tmp_path, monkeypatch):
    X, y, new = data
    expected = DiskHCKRegressor(**SMALL, folder=tmp_path / "whole").fit(X, y).predict(new)
    monkeypatch.setattr("hck.outofcore.rows._BLOCK", 40_000)
    with monkeypatch.context() as patch:
        patch.setattr(Plan, "up", None)
        with pytest.raises(TypeError):
            DiskHCKRegressor(**SMALL, folder=tmp_path / "model").fit(X, y)
    counts = tmp_path / "model" / "points" / "counts.json"
    assert '"done": 6000' in counts.read_text()
    monkeypatch.setattr("hck.outofcore.rows._BLOCK", 70_000)
    found = DiskHCKRegressor(**SMALL, folder=tmp_path / "model").fit(X, y).predict(new)
    np.testing.assert_array_equal(found, expected)


def test_points_that_were_lost_are_noticed(data, tmp_path, monkeypatch):
    X, y, _ = data
    model = DiskHCKRegressor(**SMALL, folder=tmp_path / "model")
    with monkeypatch.context() as patch:
        patch.setattr(Plan, "up", None)
        with pytest.raises(TypeError):
            model.fit(X, y)
    (tmp_path / "model" / "points" / "0-1.points").write_bytes(b"")
    with pytest.raises(OSError, match="shorter than it was"):
        model.fit(X, y)


def test_one_process_at_a_time(data, tmp_path):
    X, y, _ = data
    job = Job(tmp_path / "model", torch.device("cpu"))
    with job.alone(), pytest.raises(RuntimeError, match="another process is at work"):
        DiskHCKRegressor(**SMALL, folder=tmp_path / "model").fit(X, y)
    DiskHCKRegressor(**SMALL, folder=tmp_path / "model").fit(X, y)


def test_a_failed_start_does_not_block_the_folder(data, tmp_path):
    X, y, _ = data
    bad = X.copy()
    bad[0, 0] = np.nan
    model = DiskHCKRegressor(**SMALL, folder=tmp_path / "model")
    with pytest.raises(ValueError, match="row 0"):
        model.fit(bad, y)
    model.fit(X, y)


def test_float32_with_an_offset(data, tmp_path):
    """Features lose their digits if they are rounded before they are centred."""
    X, y, new = data
    moved = {**SMALL, "lengthscale": 1.4, "scale": "standard", "dtype": "float32"}
    far = DiskHCKRegressor(**moved, folder=tmp_path / "far").fit(1e9 + 100 * X, y)
    near = DiskHCKRegressor(**moved, folder=tmp_path / "near").fit(100 * X, y)
    np.testing.assert_allclose(far.predict(1e9 + 100 * new), near.predict(100 * new), atol=5e-3)


def test_left_out_rows_of_forests(data, tmp_path, monkeypatch):
    X, y, _ = data
    monkeypatch.setattr("hck.estimators.branched._PROBED", 1000)
    model = DiskHCKRegressor(**SMALL, n_trees=3, folder=tmp_path / "model").fit(X, y)
    np.testing.assert_array_equal(model.left_out_rows_, np.arange(0, 6000, 6))
    expected = HCKRegressor(**GIVEN, n_trees=3).fit(X, y).loo_predict()[::6]
    error, usual = np.abs(model.loo_predict() - y[::6]).mean(), np.abs(expected - y[::6]).mean()
    assert error == pytest.approx(usual, rel=0.1)


@pytest.mark.parametrize("kind", ["hdf5", "zarr", "parquet"])
def test_files_of_all_kinds(data, kind, tmp_path):
    X, y, new = data
    expected = DiskHCKRegressor(**SMALL, folder=tmp_path / "array").fit(X, y).predict(new)
    model = DiskHCKRegressor(**SMALL, folder=tmp_path / "model")
    if kind == "hdf5":
        with h5py.File(tmp_path / "data.h5", "w") as file:
            file["X"], file["y"] = X, y
        model.fit(f"{tmp_path}/data.h5::X", f"{tmp_path}/data.h5::y")
    elif kind == "zarr":
        for name, array in (("X", X), ("y", y)):
            stored = zarr.open_array(tmp_path / f"{name}.zarr", mode="w", shape=array.shape, dtype="f8")
            stored[...] = array
        model.fit(tmp_path / "X.zarr", tmp_path / "y.zarr")
    else:
        (tmp_path / "table").mkdir()
        frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(target=y)
        frame[:2500].to_parquet(tmp_path / "table" / "1.parquet")
        frame[2500:].to_parquet(tmp_path / "table" / "2.parquet")
        model.fit(tmp_path / "table", "target")
        other = pd.DataFrame(new, columns=["a", "b", "c"])[["c", "a", "b"]]
        other.to_parquet(tmp_path / "new.parquet")
        np.testing.assert_allclose(model.predict(tmp_path / "new.parquet"), expected, rtol=1e-12, atol=1e-12)
        with pytest.raises(ValueError, match=r"has the columns \['c', 'a', 'b'\]"):
            model.predict(other)
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["bytes", "bool", "object", "objects", "int8"])
def test_labels_of_all_kinds(data, kind, tmp_path):
    X, y, new = data
    up = y > 0.5
    label = {
        "bytes": np.where(up, b"up", b"low"),
        "bool": up,
        "object": np.where(up, "up", "low").astype(object),
        "objects": up.astype(int).astype(object),
        "int8": np.where(up, 3, -1).astype(np.int8),
    }[kind]
    model = DiskHCKClassifier(**SMALL, folder=tmp_path / "model").fit(X, label)
    expected = HCKClassifier(**GIVEN).fit(X, up).predict(new)
    assert ((model.predict(new) == model.classes_[-1]) == expected).mean() > 0.97


def test_shapes_and_names(data, tmp_path, monkeypatch):
    X, y, new = data
    monkeypatch.chdir(tmp_path)
    model = DiskHCKRegressor(**SMALL, folder="model").fit(X, y[:, None])
    assert model.predict(new).shape == (500, 1)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert model.predict(new).shape == (500, 1)
    again = DiskHCKRegressor.open(tmp_path / "model")
    assert again.rank == 16
    assert again.to_local().lengthscale == 0.4


@pytest.mark.filterwarnings("ignore:so many rows are alike")
@pytest.mark.parametrize("alike", [2500, 5000, 5999, 6000])
def test_equal_rows(data, alike, tmp_path):
    """Those cannot be divided: branches are fewer, and uneven."""
    X, y, new = data
    X = X.copy()
    X[:alike] = 0.5
    model = DiskHCKRegressor(**SMALL, n_trees=2, leave_one_out=False, folder=tmp_path / "model").fit(X, y)
    np.testing.assert_allclose(model.to_local().predict(new), model.predict(new), rtol=1e-9, atol=1e-9)
    assert model.predict([[0.5, 0.5, 0.5]])[0] == pytest.approx(y[:alike].mean(), abs=0.05)


def test_uneven_branches(data, tmp_path):
    X, y, _ = data
    X = X.copy()
    X[:2500] = 0.5
    with pytest.warns(UserWarning, match="times as many as others"):
        DiskHCKRegressor(**SMALL, folder=tmp_path / "model").fit(X, y)


def test_branches_within_a_budget():
    model = HCKRegressor(rank=32, memory_budget="2GiB")
    number, size = sizes_for(model, 50_000_000, 8, 1)
    assert number == branches_within(model, 50_000_000, 8, 1, None, 32) == 128
    assert size == 5000 * 128
    assert branches_within(model, 50_000_000, 8, 20, None, 32) > number  # more right-hand sides
    assert branches_within(model, 100_000_000, 8, 1, None, 32) == 2 * number
    small = HCKRegressor(rank=32, memory_budget="64MiB")
    number, size = sizes_for(small, 50_000_000, 8, 1)
    assert 8 * 9 * size <= 2**26 / 4 + 8 * 9 * 64 * number


def test_wrong_input(data, tmp_path, monkeypatch):
    X, y, new = data
    folder = tmp_path / "model"
    with pytest.raises(ValueError, match="name a folder"):
        DiskHCKRegressor(**SMALL).fit(X, y)
    bad = X.copy()
    bad[4321, 1] = np.inf
    with pytest.raises(ValueError, match="X has NaN or infinity in row 4,321"):
        DiskHCKRegressor(**SMALL, folder=tmp_path / "bad").fit(bad, y)
    with pytest.raises(ValueError, match="6,000 rows but y has 5,999"):
        DiskHCKRegressor(**SMALL, folder=tmp_path / "short").fit(X, y[1:])
    with pytest.raises(ValueError, match="at least two classes"):
        DiskHCKClassifier(**SMALL, folder=tmp_path / "one").fit(X, np.zeros(6000))
    with pytest.raises(ValueError, match="no branches"):
        DiskHCKRegressor(**SMALL, approximation="nystrom", folder=tmp_path / "n").fit(X, y)
    with pytest.raises(ValueError, match="halves by hyperplanes"):
        DiskHCKRegressor(**SMALL, partition="kmeans", folder=tmp_path / "k").fit(X, y)
    with pytest.raises(ValueError, match="landmarks of branches"):
        DiskHCKRegressor(**SMALL, landmarks="same", folder=tmp_path / "k").fit(X, y)
    with pytest.raises(ValueError, match="a function as the kernel"):
        DiskHCKRegressor(lambda a, b: a @ b.T, rank=8, alpha=1.0, folder=tmp_path / "k").fit(X, y)
    with pytest.raises(ValueError, match="device='gpu' is not known"):
        DiskHCKRegressor(**SMALL, device="gpu", folder=tmp_path / "k").fit(X, y)
    with pytest.raises(ValueError, match="sparse"):
        DiskHCKRegressor(**SMALL, folder=tmp_path / "k").fit(sp.csr_matrix(X), y)
    with pytest.raises(ValueError, match="y is None"):
        DiskHCKRegressor(**SMALL, folder=tmp_path / "k").fit(X, None)
    with pytest.raises(ValueError, match="y has no label in row 3: None"):
        DiskHCKClassifier(**SMALL, folder=tmp_path / "k").fit(X, np.array(["a", "b", "a", None] * 1500))
    with pytest.raises(ValueError, match="Unknown label type: y has continuous numbers in row 0"):
        DiskHCKClassifier(**SMALL, folder=tmp_path / "c").fit(X, y)
    with monkeypatch.context() as patch:
        patch.setattr("hck.preparation.coding.MOST_CLASSES", 3)
        with pytest.raises(ValueError, match="more than 3 different labels"):
            DiskHCKClassifier(**SMALL, folder=tmp_path / "c").fit(X, np.arange(6000) % 4)
    rare, model = np.arange(6000) == 17, DiskHCKClassifier(random_state=0, folder=tmp_path / "r")
    monkeypatch.setattr("hck.estimators.branched._CHOSEN_ON", 500)
    with pytest.raises(ValueError, match=r"500 rows .* are all of one class"):
        model.fit(X, rare)
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match="is a file"):
        DiskHCKRegressor(**SMALL, folder=tmp_path / "file").fit(X, y)
    with pytest.raises(ValueError, match="weights are not supported"):
        DiskHCKRegressor(**SMALL, folder=tmp_path / "w").fit(X, y, np.ones(6000))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").touch()
    with pytest.raises(FileExistsError, match="is not empty"):
        DiskHCKRegressor(**SMALL, folder=tmp_path / "full").fit(X, y)
    model = DiskHCKRegressor(**SMALL, folder=folder).fit(X, y)
    with pytest.raises(ValueError, match="holds a run that differs in rank:"):
        DiskHCKRegressor(**{**SMALL, "rank": 17}, folder=folder).fit(X, y)
    with pytest.raises(ValueError, match="holds a run that differs in class"):
        DiskHCKClassifier(**SMALL, folder=folder).fit(X, y > 0)
    with pytest.raises(ValueError, match="holds a DiskHCKRegressor, not a DiskHCKClassifier"):
        DiskHCKClassifier.open(folder)
    with pytest.raises(ValueError, match="holds a run that differs in random_state:"):
        DiskHCKRegressor(**{**SMALL, "random_state": np.random.RandomState(1)}, folder=folder).fit(X, y)
    with pytest.raises(ValueError, match="holds a run that differs in y:"):
        DiskHCKRegressor(**SMALL, folder=folder).fit(X, y + 1)
    with pytest.raises(ValueError, match="X has 2 features, but 3 are expected"):
        model.predict(new[:, :2])
    with pytest.raises(FileNotFoundError, match="holds no finished model"):
        DiskHCKRegressor.open(tmp_path / "bad")
    with pytest.raises(ValueError, match="NaN or infinity in row 7"):
        model.predict(np.where(np.arange(500)[:, None] == 7, np.nan, new))


def test_parameters_of_estimators(tmp_path):
    model = DiskHCKRegressor(**SMALL, folder=tmp_path)
    assert clone(model).get_params()["folder"] == tmp_path
    assert "folder=" in repr(model)
    assert not get_tags(model).input_tags.sparse
    assert set(model.get_params()) == {*HCKRegressor().get_params(), "folder"}
