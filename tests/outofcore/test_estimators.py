"""Models on disk are those in memory."""

import numpy as np
import pytest
import torch

import hck
from disk_problem import GIVEN, SMALL
from hck import HCKClassifier, HCKRegressor
from hck.hierarchy import Blueprint, ridge
from hck.hierarchy.layout import Layout
from hck.kernels import Gaussian
from hck.outofcore import DiskHCKClassifier, DiskHCKRegressor
from hck.preparation.scaling import Scaling
from hck.selection import Selection

pytestmark = pytest.mark.usefixtures("one_thread")


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
    assert np.abs(model.predict_proba(new) - usual.predict_proba(new)).mean() < 0.03
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
        assert not self._given().blends
        self.selection_ = Selection(Gaussian(0.4), 0.02, 1, None, 16)
        self._scaling = Scaling()
        return self


def test_candidates_are_not_averaged(data, tmp_path, monkeypatch):
    X, y, _ = data
    monkeypatch.setattr(DiskHCKRegressor, "_plain", Quick)
    given = {"fit_time": "best", "random_state": 0, "memory_budget": "1MB"}
    model = DiskHCKRegressor(**given, folder=tmp_path / "model").fit(X, y)
    assert model.left_out_rows_ is not None
    DiskHCKRegressor(**SMALL, fit_time="best", folder=tmp_path / "given").fit(X, y)  # nothing is chosen
