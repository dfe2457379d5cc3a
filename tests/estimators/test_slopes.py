"""Gradients of the estimators' predictions, against differences of these and against dense algebra."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.exceptions import NotFittedError

from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKRegressor, load
from hck.approximations import Iterative
from hck.errors import NoGradientError
from hck.kernels import CallableKernel, Gaussian, Matern
from hck.outofcore import DiskHCKRegressor

pytestmark = pytest.mark.filterwarnings("ignore:y has one value only")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3)) * [1.0, 20.0, 0.1] + [0.0, 500.0, 3.0]  # in units that differ
Z = (X - [0.0, 500.0, 3.0]) / [1.0, 20.0, 0.1]
Y = np.sin(Z[:, 0]) + Z[:, 1] * Z[:, 2] + 1e3
NEW = X[:9] + 0.01 * RNG.normal(size=(9, 3)) * [1.0, 20.0, 0.1]
TREES = {"rank": 12, "leaf_size": 30, "n_trees": 3, "random_state": 0}
METRIC = np.array([[1.0, 0.3, 0.0], [0.02, -0.05, 0.01], [0.0, 3.0, 5.0]])


def differences(function, x, steps):
    """Central ones: shape (points, d, …)."""
    each = np.diag(steps)
    return np.stack([(function(x + h) - function(x - h)) / (2 * h.sum()) for h in each], 1)


def assert_gradient(found, function, x=NEW, steps=(1e-5, 2e-4, 1e-6)):
    expected = differences(function, x, steps)
    assert found.shape == expected.shape
    scale = abs(expected).max(axis=0, keepdims=True)
    np.testing.assert_allclose(found / scale, expected / scale, atol=1e-6)


LENGTHSCALES = {"one": 1.0, "per feature": [0.5, 1.0, 2.0]}


@pytest.mark.parametrize("name", ["gaussian", "matern32", "matern12", "laplace", "periodic"])
@pytest.mark.parametrize("scale", LENGTHSCALES.values(), ids=LENGTHSCALES)
def test_regressor(name, scale):
    model = HCKRegressor(name, lengthscale=scale, alpha=1e-2, scale="standard", **TREES).fit(X, Y)
    assert_gradient(model.predict_gradient(NEW), model.predict)


@pytest.mark.parametrize("kernel", [Matern(1.0, metric=METRIC), Gaussian([1.0, 20.0, 0.1]) + Gaussian(30.0)])
def test_kernels_in_the_units_of_x(kernel):
    model = HCKRegressor(kernel, alpha=1e-2, **TREES).fit(X, np.stack([Y, -2 * Y], 1))
    found = model.predict_gradient(NEW)
    assert_gradient(found, model.predict)
    np.testing.assert_allclose(found[:, :, 1], -2 * found[:, :, 0])


def test_candidates_that_are_blended():
    y = Y[:150] - 1e3 + 0.3 * np.random.default_rng(1).normal(size=150)
    model = HCKRegressor(fit_time="best", random_state=0).fit(Z[:150], y)
    assert len(model.selection_.blend) > 1
    x = Z[:5] + 0.01
    assert_gradient(model.predict_gradient(x), model.predict, x, steps=(1e-4, 1e-4, 1e-4))


APPROXIMATIONS = {
    **{name: name for name in ("exact", "nystrom", "fourier", "compositional", "independent", "tapered")},
    "by iteration": Iterative(tolerance=1e-12),
}


@pytest.mark.parametrize("how", APPROXIMATIONS.values(), ids=APPROXIMATIONS)
def test_other_approximations(how):
    settings = {"approximation": how, "random_state": 0, "rank": 20}
    ridge = HCKRegressor(Matern([1.0, 20.0, 0.1]), alpha=1e-2, **settings).fit(X, Y)
    assert_gradient(ridge.predict_gradient(NEW), ridge.predict)
    kernel = Matern([1.0, 20.0, 0.1], nu=2.5)
    process = HCKGaussianProcessRegressor(kernel, noise=0.01, optimizer=None, **settings).fit(X, Y)
    mean, std = process.predict_gradient(NEW, return_std=True)
    assert_gradient(mean, process.predict)
    np.testing.assert_allclose(std, std_by_differences(process, NEW), rtol=2e-2)


def std_by_differences(process, x):
    """From covariances of the function at points that are close."""
    found = []
    for h in np.diag([1e-3, 2e-2, 1e-4]):
        both = np.concatenate([x + h, x - h])
        cov, n = process.predict(both, return_cov=True)[1], len(x)
        up, down, between = cov.diagonal()[:n], cov.diagonal()[n:], cov[:n, n:].diagonal()
        found.append(np.sqrt((up + down - 2 * between).clip(0)) / (2 * h.sum()))
    return np.stack(found, 1)


@pytest.mark.parametrize("trend", ["zero", "constant", "linear"])
def test_the_exact_process(trend):
    """One leaf, against the formulas of universal kriging, written out with NumPy."""
    kernel, noise = 1.7 * Gaussian([1.0, 20.0, 0.1]), 0.05
    model = HCKGaussianProcessRegressor(kernel, noise=noise, optimizer=None, trend=trend, rank=len(X)).fit(
        X, Y
    )
    mean, std = model.predict_gradient(NEW, return_std=True)
    assert_gradient(mean, model.predict)
    K, k = kernel(X, X) + noise * np.eye(len(X)), kernel(X, NEW)
    apart = (X[:, None] - NEW[None]) / np.square([1.0, 20.0, 0.1])  # (n, points, d)
    slopes = k[:, :, None] * apart  # ∂k(X, x)/∂x
    H = {"zero": np.ones((300, 0)), "constant": np.ones((300, 1)), "linear": np.c_[np.ones(300), Z]}[trend]
    dh = np.zeros((3, H.shape[1]))  # by column of X, for each trend
    if trend == "linear":
        dh[:, 1:] = np.diag([1.0, 1 / 20.0, 1 / 0.1])
    solved = np.linalg.solve(K, slopes.reshape(300, -1)).reshape(slopes.shape)
    own = 1.7 / np.square([1.0, 20.0, 0.1]) - (slopes * solved).sum(0)
    rest = dh[None] - np.einsum("npd,nt->pdt", solved, H)
    cov = np.linalg.inv(H.T @ np.linalg.solve(K, H)) if H.shape[1] else np.zeros((0, 0))
    expected = np.sqrt(own + np.einsum("pdt,tu,pdu->pd", rest, cov, rest))
    np.testing.assert_allclose(std, expected, rtol=1e-5)
    beta = cov @ H.T @ np.linalg.solve(K, Y)
    weights = np.linalg.solve(K, Y - H @ beta)
    np.testing.assert_allclose(
        mean, np.einsum("npd,n->pd", slopes, weights) + dh @ beta, rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("calibrate", [None, "loo"])
def test_trees_that_disagree(calibrate):
    kernel = Matern([1.0, 20.0, 0.1])
    settings = {"noise": 0.05, "optimizer": None, "trend": "linear", "calibrate": calibrate, **TREES}
    model = HCKGaussianProcessRegressor(kernel, **settings).fit(X, Y)
    mean, std = model.predict_gradient(NEW, return_std=True)
    assert_gradient(mean, model.predict)
    np.testing.assert_array_equal(mean, model.predict_gradient(NEW))
    along = model._trend.slope(3)
    members = model.posterior_.members
    within = np.mean([each.slope_variance(NEW, along).numpy() for each in members], 0)
    between = np.var([each.slope(NEW, along).numpy() for each in members], 0)
    spread = model.posterior_.spread
    np.testing.assert_allclose(std**2, spread.function * within + spread.between * between, rtol=1e-10)


@pytest.mark.parametrize("trend", ["zero", "linear"])
def test_a_process_of_several_targets(trend):
    both = np.stack([Y, 5 - 20 * Y], 1)
    given = {"trend": trend, "optimizer": None, "noise": 0.01, "lengthscale": [1.0, 20.0, 0.1], **TREES}
    model = HCKGaussianProcessRegressor("matern32", **given).fit(X, both)
    found, std = model.predict_gradient(NEW, return_std=True)
    assert_gradient(found, model.predict)
    np.testing.assert_array_equal(found, model.predict_gradient(NEW))
    assert std.shape == found.shape
    assert (std > 0).all()


def test_errors_of_slopes_are_as_large_as_they_say():
    """A draw's gradients, known by differences, are within two standard deviations nearly always."""
    x = RNG.uniform(-3, 3, (400, 1))
    kernel = Gaussian(1.0)
    grid = np.linspace(-2.5, 2.5, 60)[:, None]
    both = np.concatenate([x, grid + 1e-4, grid - 1e-4])
    root = np.linalg.cholesky(kernel(both) + 1e-11 * np.eye(len(both)))
    f = root @ RNG.normal(size=(len(both), 8))
    inside = []
    for column in f.T:
        y = column[:400] + 0.1 * RNG.normal(size=400)
        settings = {"noise": 0.01, "optimizer": None, "trend": "zero", "rank": 20, "random_state": 0}
        model = HCKGaussianProcessRegressor(kernel, **settings).fit(x, y)
        mean, std = model.predict_gradient(grid, return_std=True)
        slope = (column[400:460] - column[460:]) / 2e-4
        inside.append(abs(mean[:, 0] - slope) < 2 * std[:, 0] + 0.05)
    assert 0.85 < np.mean(inside) <= 1


@pytest.mark.parametrize("classes", [2, 3])
def test_classifier(classes):
    labels = np.digitize(Z[:, 0], [-0.4, 0.4][: classes - 1])
    model = HCKClassifier("matern52", lengthscale=1.0, alpha=0.1, scale="minmax", **TREES).fit(X, labels)
    found = model.predict_gradient(NEW)
    assert found.shape == ((9, 3) if classes == 2 else (9, 3, 3))
    assert_gradient(found, model.decision_function)


# Input of other kinds ---------------------------------------------------------------------------------


def test_tensors_and_single_precision():
    settings = {"lengthscale": 1.0, "alpha": 1e-2, "scale": "standard", **TREES}
    exact = HCKRegressor("matern32", **settings).fit(X, Y).predict_gradient(NEW)
    single = HCKRegressor("matern32", dtype="float32", **settings).fit(X, Y)
    found = single.predict_gradient(torch.from_numpy(NEW))
    assert isinstance(found, torch.Tensor)
    assert found.dtype == torch.float32
    scale = abs(exact).max(0)
    np.testing.assert_allclose(found.numpy() / scale, exact / scale, atol=2e-3)
    assert single.predict_gradient(NEW[:1]).shape == (1, 3)


def test_one_point_and_constant_y():
    model = HCKRegressor("gaussian", lengthscale=1.0, alpha=0.1).fit([[1.0, 2.0]], [3.0])
    np.testing.assert_array_equal(model.predict_gradient([[0.0, 0.0]]), 0.0)
    process = HCKGaussianProcessRegressor("gaussian", random_state=0).fit(Z[:30], np.ones(30))
    mean, std = process.predict_gradient(Z[:4], return_std=True)
    assert np.isfinite(std).all()
    np.testing.assert_allclose(mean, 0, atol=1e-8)


def test_categories_have_no_gradient():
    frame = pd.DataFrame({"a": Z[:, 0], "kind": np.where(Z[:, 1] > 0, "x", "y"), "b": Z[:, 2]})
    model = HCKRegressor("gaussian", lengthscale=1.0, alpha=0.1, scale=None).fit(frame, Y)
    found, new = model.predict_gradient(frame[:5]), frame[:5]
    assert np.isnan(found[:, 1]).all()
    for column, name in ((0, "a"), (2, "b")):
        up, down = (model.predict(new.assign(**{name: new[name] + h})) for h in (1e-6, -1e-6))
        np.testing.assert_allclose(found[:, column], (up - down) / 2e-6, rtol=1e-4, atol=1e-6)
    process = HCKGaussianProcessRegressor("gaussian", trend="linear", max_iter=2, random_state=0).fit(
        frame, Y
    )
    mean, std = process.predict_gradient(new, return_std=True)
    assert np.isnan(mean[:, 1]).all()
    assert np.isfinite(mean[:, [0, 2]]).all()
    assert (std[:, [0, 2]] > 0).all()


def test_what_has_no_gradient_says_so(tmp_path):
    sparse = HCKRegressor("gaussian", lengthscale=1.0, alpha=0.1).fit(sp.csr_matrix(Z), Y)
    with pytest.raises(NoGradientError, match=r"fit it to X.toarray\(\)"):
        sparse.predict_gradient(sp.csr_matrix(Z[:3]))
    words = HCKRegressor(lambda a, b: np.array([[float(s == t) for t in b] for s in a]), alpha=0.1)
    words.set_params(partition="kernel")
    with pytest.raises(NoGradientError, match="objects"):
        words.fit(["one", "two", "three"], [1.0, 2.0, 3.0]).predict_gradient(["one"])
    function = HCKRegressor(CallableKernel(lambda a, b: 1 + a @ b.T), alpha=0.1).fit(Z, Y)
    with pytest.raises(NoGradientError, match="must be batched"):
        function.predict_gradient(Z[:3])
    disk = DiskHCKRegressor(lengthscale=1.0, alpha=0.1, rank=8, folder=tmp_path / "model").fit(Z, Y)
    with pytest.raises(NoGradientError, match="to_local"):
        disk.predict_gradient(Z[:3])
    assert disk.to_local().predict_gradient(Z[:3]).shape == (3, 3)


@pytest.mark.parametrize("approximation", ["hierarchical", "fourier"])
def test_processes_with_kinks_have_means_only(approximation):
    settings = {"optimizer": None, "noise": 0.1, "approximation": approximation, "random_state": 0}
    process = HCKGaussianProcessRegressor("matern12", lengthscale=1.0, **settings).fit(Z, Y)
    assert np.isfinite(process.predict_gradient(Z[:3] + 0.01)).all()
    with pytest.raises(NoGradientError, match="Matérn 1/2 has no gradient"):
        process.predict_gradient(Z[:3], return_std=True)


def test_a_trend_that_is_a_function():
    process = HCKGaussianProcessRegressor(
        "gaussian", optimizer=None, noise=0.1, trend=lambda x: x[:, :1] ** 2
    )
    with pytest.raises(NoGradientError, match="trend='linear'"):
        process.fit(Z, Y).predict_gradient(Z[:3])


@pytest.mark.parametrize("bad", [NEW[:, :2], np.full((2, 3), np.inf), NEW[0], np.full((2, 3), "a")])
def test_bad_input(bad):
    model = HCKRegressor("gaussian", lengthscale=1.0, alpha=0.1, **TREES).fit(X, Y)
    with pytest.raises(ValueError):
        model.predict_gradient(bad)


def test_before_fit():
    for model in (HCKRegressor(), HCKClassifier(), HCKGaussianProcessRegressor()):
        with pytest.raises(NotFittedError):
            model.predict_gradient(NEW)


def test_saved_models_have_them(tmp_path):
    process = HCKGaussianProcessRegressor("gaussian", optimizer=None, noise=0.1, **TREES).fit(Z, Y)
    expected = process.predict_gradient(Z[:4], return_std=True)
    process.save(tmp_path / "process")
    for ours, theirs in zip(load(tmp_path / "process").predict_gradient(Z[:4], True), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_of_other_losses():
    counts = np.random.default_rng(0).poisson(np.exp(np.sin(Z[:, 0])))
    model = HCKRegressor("gaussian", lengthscale=1.0, alpha=1.0, loss="poisson", **TREES).fit(Z, counts)
    x, steps = Z[:9] + 0.01, (1e-5, 1e-5, 1e-5)
    assert_gradient(model.predict_gradient(x), model.predict, x, steps)
    mean, lower, upper = model.predict(Z, interval=0.9)
    np.testing.assert_array_equal(mean, model.predict(Z))
    assert 0.85 < ((lower <= counts) & (counts <= upper)).mean() < 1
    given = {"loss": "quantile", "quantile": [0.1, 0.5, 0.9], **TREES}
    model = HCKRegressor("gaussian", lengthscale=1.0, alpha=1.0, **given).fit(Z, Y - 1e3)
    assert_gradient(model.predict_gradient(x), model.predict, x, steps)
    with pytest.raises(ValueError, match="several quantiles are intervals already"):
        model.predict(Z, interval=0.9)


def test_missing_values_have_slopes_where_they_are_known():
    holes = Z.copy()
    holes[::5, 1] = np.nan
    model = HCKRegressor("gaussian", lengthscale=1.0, alpha=0.01, scale="standard", **TREES).fit(holes, Y)
    x, steps = Z[:9] + 0.01, (1e-5, 1e-5, 1e-5)
    assert_gradient(model.predict_gradient(x), model.predict, x, steps)
