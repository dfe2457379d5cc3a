"""Saved and loaded ridge models predict the same."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.base import clone

from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKKernelPCA, HCKRegressor
from hck.kernels import Gaussian, InverseMultiquadric, Laplace, Matern, Periodic, RationalQuadratic
from hck.partition import KMeans, Tree, cutter_classes, known_landmarks, known_partitions
from hck.persistence import save
from saved_problem import EVERY, GIVEN, NEW, RIDGE, X, Y, same

pytestmark = pytest.mark.usefixtures("one_thread")

LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, [0.4, 0.9])]
TREE = Tree.from_labels(np.digitize(X[:, :2], [0.3, 0.6]))


def same_parameters(found, model):
    for name, value in model.get_params(deep=False).items():
        assert repr(found.get_params(deep=False)[name]) == repr(value)


@pytest.mark.parametrize("landmarks", known_landmarks())
@pytest.mark.parametrize("partition", known_partitions())
def test_partitions_and_landmarks(again, partition, landmarks):
    model = HCKRegressor(**RIDGE, partition=partition, landmarks=landmarks).fit(X, Y)
    found = again(model)
    same(found.predict(NEW), model.predict(NEW))
    same(found.loo_predict(), model.loo_predict())
    same_parameters(found, model)


@pytest.mark.parametrize(
    "cutter",
    [*(cutter() for cutter in cutter_classes()), KMeans(3)],
    ids=lambda cutter: type(cutter).__name__,
)
def test_cutters(again, cutter):
    model = HCKRegressor(**{**RIDGE, "lengthscale": [0.5, 1.0, 2.0]}, partition=cutter).fit(X, Y)
    found = again(model)
    same(found.predict(NEW), model.predict(NEW))
    assert type(found.partition) is type(cutter)
    assert vars(found.partition) == vars(cutter)


@pytest.mark.parametrize("given", ["array", "tensor", "list", "Landmarks"])
def test_a_tree_and_landmarks_that_are_given(again, given):
    first = HCKRegressor(**RIDGE, partition=TREE).fit(X, Y)
    count = len(first.tree_.inner)
    landmarks = {
        "array": X[:20],
        "tensor": torch.from_numpy(X[:20]),
        "list": [X[i : i + 5] for i in range(count)],
        "Landmarks": first.forest_.members[0].landmarks,
    }[given]
    model = HCKRegressor(**RIDGE, partition=TREE, landmarks=landmarks).fit(X, Y)
    found = again(model)
    same(found.predict(NEW), model.predict(NEW))
    same(found.partition.order, TREE.order)
    assert type(found.landmarks) is type(landmarks)
    same(clone(found).fit(X, Y).predict(NEW), model.predict(NEW))


@pytest.mark.parametrize("approximation", EVERY, ids=str)
def test_regression(again, approximation):
    model = HCKRegressor(**RIDGE, approximation=approximation, n_trees=2).fit(X, np.stack([Y, -Y], 1))
    found = again(model)
    same(found.predict(NEW), model.predict(NEW))
    assert found.residuals_ == model.residuals_
    assert found.approximation == model.approximation
    assert str(found.selection_) == str(model.selection_)


@pytest.mark.parametrize("approximation", EVERY, ids=str)
def test_classification(again, approximation):
    model = HCKClassifier(**RIDGE, approximation=approximation).fit(X, LABELS)
    found = again(model)
    same(found.decision_function(NEW), model.decision_function(NEW))
    same(found.predict(NEW), model.predict(NEW))
    same(found.classes_, model.classes_)
    assert found.classes_.dtype == model.classes_.dtype
    if model.calibration_ is not None:
        same(found.predict_proba(NEW), model.predict_proba(NEW))


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(0.5),
        Laplace([0.5, 1.0, 2.0]),
        InverseMultiquadric(torch.tensor([0.5, 1.0, 2.0])),
        Matern(0.5, nu=2.5),
        RationalQuadratic([0.5, 1.0, 2.0], alpha=0.7),
        Periodic(1.5, period=[3.0, 2.0, 5.0]),
        2.0 * Matern([1.0, 1.0, 0.5], nu=0.5) + Gaussian(0.3) * Laplace(3.0),
        torch.tensor(2.0, dtype=torch.float64) * Gaussian(0.5),
    ],
    ids=str,
)
def test_kernels(again, kernel):
    model = HCKRegressor(kernel, alpha=0.02, rank=20, partition="kernel", random_state=0).fit(X, Y)
    found = again(model)
    same(found.predict(NEW), model.predict(NEW))
    assert repr(found.kernel) == repr(kernel)


def test_everything_chosen(again):
    model = HCKRegressor(fit_time="fast", leaf_size=100, random_state=np.int64(3)).fit(X, Y)
    found = again(model)
    assert len(found.forest_.members) == 8
    same(found.predict(NEW), model.predict(NEW))
    assert str(found.selection_) == str(model.selection_)
    assert found.selection_.candidates[0].loss == model.selection_.candidates[0].loss
    assert found.random_state == 3


def test_trees_share_the_points_again(again):
    model = HCKRegressor(**RIDGE, n_trees=3).fit(X, Y)
    found = again(model)
    members = found.forest_.members
    assert all(member.points is members[0].points for member in members)
    assert all(member.landmarks.points is member.points for member in members)
    assert all(tree is member.tree for tree, member in zip(found.trees_, members, strict=True))
    assert members[0].order.data_ptr() == members[0].tree.order.data_ptr()
    assert members[0].kernel is members[1].kernel


def test_in_another_process(tmp_path):
    model = HCKClassifier(**RIDGE, n_trees=2).fit(X, LABELS)
    save(model, tmp_path / "model")
    np.save(tmp_path / "new.npy", NEW)
    script = (
        "import sys, numpy as np; from hck.persistence import load\n"
        "folder = sys.argv[1]; model = load(folder + '/model')\n"
        "np.save(folder + '/found.npy', model.predict_proba(np.load(folder + '/new.npy')))\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    np.testing.assert_allclose(
        np.load(tmp_path / "found.npy"), model.predict_proba(NEW), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize(
    "model",
    [
        HCKRegressor(**{**RIDGE, "rank": 200}),
        HCKRegressor(**RIDGE, n_trees=3),
        HCKClassifier(**RIDGE, memory_budget="1GiB", jitter=1e-6),
        HCKGaussianProcessRegressor(**GIVEN, optimizer=None, ard=False),
        HCKKernelPCA(**GIVEN),
    ],
    ids=repr,
)
def test_loaded_models_can_be_saved_and_fitted_again(again, model):
    model.fit(X, LABELS if isinstance(model, HCKClassifier) else Y)
    found = again(again(model))
    assert vars(found).keys() == vars(model).keys()
    same_parameters(found, model)
    predict = "transform" if isinstance(model, HCKKernelPCA) else "predict"
    same(getattr(found, predict)(NEW), getattr(model, predict)(NEW))
    found.fit(X[:100], LABELS[:100] if isinstance(model, HCKClassifier) else Y[:100])
    assert getattr(found, predict)(NEW).shape == getattr(model, predict)(NEW).shape
