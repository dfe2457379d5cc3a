"""Estimators with a kernel that has a metric."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import hck
from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKKernelPCA, HCKRegressor
from hck.kernels import Gaussian, Matern
from hck.outofcore import DiskHCKClassifier, DiskHCKRegressor

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(120, 3)), RNG.normal(size=(20, 3))
Y = np.sin(X[:, 0] + X[:, 1]) + 0.1 * X[:, 2]
LABELS = np.array(["a", "b", "c"])[np.digitize(Y, [-0.5, 0.5])]
SCALE = np.array([0.8, 1.5, 6.0])
EACH, DIAGONAL = Matern(SCALE), Matern(1.0, metric=np.diag(1 / SCALE))
FULL = Matern(1.0, metric=[[1.0, 0.2], [1.0, -0.2], [0.0, 0.3]])
GIVEN = {"rank": 12, "leaf_size": 20, "random_state": 0}
RIDGE = {**GIVEN, "alpha": 0.01, "n_trees": 2}


def outputs(model, x=NEW):
    if isinstance(model, HCKKernelPCA):
        return [np.abs(model.transform(x))]
    if isinstance(model, HCKGaussianProcessRegressor):
        return list(model.predict(x, return_std=True))
    if hasattr(model, "predict_proba"):
        return [model.predict_proba(x)]
    return [model.predict(x), model.loo_predict()]


def models(kernel, folder):
    """By name: each estimator, and its targets."""
    process = {**GIVEN, "noise": 0.01, "optimizer": None}
    disk = {**GIVEN, "alpha": 0.01, "folder": folder, "memory_budget": "1MB"}
    return {
        "regressor": (HCKRegressor(kernel, **RIDGE), Y),
        "scaled": (HCKRegressor(kernel, **RIDGE, scale="standard"), Y),
        "fourier": (HCKRegressor(kernel, **RIDGE, approximation="fourier"), Y),
        "classifier": (HCKClassifier(kernel, **RIDGE), LABELS),
        "process": (HCKGaussianProcessRegressor(kernel, **process), Y),
        "learned": (HCKGaussianProcessRegressor(2.0 * kernel, **{**process, "optimizer": "lbfgs"}), Y),
        "components": (HCKKernelPCA(2, kernel=kernel, **GIVEN), None),
        "disk": (DiskHCKRegressor(kernel, **disk), Y),
        "disk_classifier": (DiskHCKClassifier(kernel, **disk), LABELS),
    }


NAMES = [*models(EACH, None)]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "learned"])
def test_a_diagonal_metric_is_a_lengthscale_for_each_feature(name, tmp_path):
    found, expected = (
        model.fit(X, y) if y is not None else model.fit(X)
        for model, y in (models(kernel, tmp_path / str(k))[name] for k, kernel in enumerate((DIAGONAL, EACH)))
    )
    for mine, theirs in zip(outputs(found), outputs(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_saved_and_loaded(name, tmp_path):
    model, y = models(FULL, tmp_path / "disk")[name]
    model = clone(model).fit(X, y) if y is not None else clone(model).fit(X)
    if name.startswith("disk"):
        again = type(model).open(tmp_path / "disk")
    else:
        model.save(tmp_path / "model")
        again = hck.load(tmp_path / "model")
    for mine, theirs in zip(outputs(again), outputs(model), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert "metric=3 × 2" in repr(again.kernel) or "metric=[[" in repr(again.kernel)


def test_the_metric_stays_while_the_rest_is_learned():
    model, _ = models(FULL, None)["learned"]
    model.fit(X, Y)
    assert set(model.kernel_.parameters()) == {"lengthscale", "scale"}
    assert model.kernel_.parameters()["lengthscale"] != 1.0
    np.testing.assert_array_equal(model.kernel_.kernel.metric, FULL.metric)
    start = HCKGaussianProcessRegressor(2.0 * FULL, **GIVEN, noise=0.01, optimizer=None).fit(X, Y)
    assert model.log_marginal_likelihood_value_ > start.log_marginal_likelihood_value_


def test_sparse_points():
    x = np.where(np.abs(X) < 0.3, 0, X)
    dense, sparse = (HCKRegressor(FULL, **RIDGE).fit(kind(x), Y) for kind in (np.asarray, sp.csr_matrix))
    np.testing.assert_allclose(sparse.predict(sp.csr_matrix(NEW)), dense.predict(NEW), rtol=0, atol=1e-8)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_single_precision(kind):
    expected = HCKRegressor(FULL, **RIDGE).fit(X, Y).predict(NEW)
    found = HCKRegressor(FULL, **RIDGE, dtype="float32").fit(kind(X), Y).predict(kind(NEW))
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.02)


def test_scaling_comes_first():
    factor = np.array([10.0, 1.0, 0.1])
    expected = HCKRegressor(FULL, **RIDGE, scale="standard").fit(X, Y).predict(NEW)
    found = HCKRegressor(FULL, **RIDGE, scale="standard").fit(X * factor, Y).predict(NEW * factor)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


def test_alpha_and_shape_are_chosen_for_it():
    model = HCKRegressor(FULL, random_state=0, fit_time="fast").fit(X, Y)
    np.testing.assert_array_equal(model.selection_.kernel.metric, FULL.metric)
    assert model.score(NEW, np.sin(NEW[:, 0] + NEW[:, 1]) + 0.1 * NEW[:, 2]) > 0.9


def test_what_does_not_fit():
    with pytest.raises(ValueError, match=r"metric has the shape \(3, 2\) but the points have 2 features"):
        HCKRegressor(FULL, **RIDGE).fit(X[:, :2], Y)
    for estimator in (
        HCKRegressor(lengthscale=FULL.metric, **RIDGE),
        HCKGaussianProcessRegressor("gaussian", lengthscale=FULL.metric.numpy(), **GIVEN),
        HCKKernelPCA(2, lengthscale=FULL.metric.tolist(), **GIVEN),
    ):
        with pytest.raises(ValueError, match=r"shape \(3, 2\): a matrix L is given .* metric=L"):
            estimator.fit(X, Y)
    model = HCKKernelPCA(2, kernel=Gaussian(1.0, metric=np.eye(3)), **GIVEN, fit_inverse_transform=True)
    with pytest.raises(ValueError, match="no metric"):
        model.fit(X)
