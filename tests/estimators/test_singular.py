"""Targets that are too large, and singular matrices: right, or an error or a warning that says so."""

import warnings

import numpy as np
import pytest

from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKRegressor
from hck.errors import NotPositiveDefiniteError, NumericalWarning

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(200, 3)), RNG.normal(size=(50, 3))
Y = np.clip(1.5 * np.sin(X[:, 0]) + 0.5, -1, 2)
APPROXIMATIONS = ["hierarchical", "compositional", "independent", "exact", "nystrom", "fourier", "tapered"]


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_targets(approximation, dtype):
    given = {"alpha": 0.1, "rank": 16, "random_state": 0, "approximation": approximation}
    model = HCKRegressor("gaussian", lengthscale=1.0, dtype=dtype, **given)
    expected = model.fit(X, Y).predict(NEW)
    sizes = (1e20, 1e30, 1e36, 1e37, 1e38) if dtype == "float32" else (1e100, 1e150, 1e300)
    for size in sizes:
        try:
            found = model.fit(X, Y * size).predict(NEW)
        except ValueError as error:
            assert "Scale y" in str(error)  # noqa: PT017 (one or the other)
            assert size > 1e36 if dtype == "float32" else size > 1e150
            continue
        np.testing.assert_allclose(found / size, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_targets_of_a_process(dtype):
    model = HCKGaussianProcessRegressor("matern32", rank=16, max_iter=3, dtype=dtype, random_state=0)
    for size in (1e25, 1e37, 1e38) if dtype == "float32" else (1e153, 1e155, 1e300):
        with pytest.raises(ValueError, match=r"y is too large.*Scale y"), np.errstate(over="ignore"):
            model.fit(X, Y * size)
    size = 1e10 if dtype == "float32" else 1e100
    assert np.isfinite(model.fit(X, Y * size).predict(NEW, return_std=True)).all()


@pytest.mark.parametrize("size", [1.0, 10.0, 1e8, 1e50])
def test_huge_variance(size):
    """As scikit-learn tests it: what GPy predicts of x sin x, with targets that are far larger."""
    x, new = np.array([[1.0, 3.0, 5.0, 6.0, 7.0, 8.0]]).T, np.array([[2.0, 4.0, 5.5, 6.5, 7.5]]).T
    y = (x * np.sin(x)).ravel()
    mean, std = (
        HCKGaussianProcessRegressor("gaussian", random_state=0).fit(x, size * y).predict(new, return_std=True)
    )
    gpy = np.array([15.16918303, -27.98707845, -39.31636019, 14.52605515, 69.18503589]) / 10
    np.testing.assert_allclose(mean / size, gpy, rtol=0.07)
    gpy = np.array([7.78860962, 3.83179178, 0.63149951, 0.52745188, 0.86170042]) / 10
    np.testing.assert_allclose(std / size, gpy, rtol=0.15)


def said_or_bounded(model, y, largest=20.0):
    """Predictions are about as large as y, or something was said."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            predicted = model.fit(X, y).predict(NEW)
        except NotPositiveDefiniteError:
            return
    said = any(issubclass(each.category, NumericalWarning) for each in found)
    assert said or np.abs(predicted).max() < largest


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
@pytest.mark.parametrize("alpha", [0.0, 1e-300])
def test_singular_matrices(approximation, alpha):
    for kernel in ("gaussian", "matern32"):
        for lengthscale in (1e4, 1e9):
            given = {"alpha": alpha, "rank": 16, "approximation": approximation, "random_state": 0}
            said_or_bounded(HCKRegressor(kernel, lengthscale=lengthscale, **given), Y)


def test_a_solution_that_is_too_large_is_said():
    given = {"lengthscale": 1e9, "alpha": 0.0, "rank": 16, "random_state": 0}
    for model in (HCKRegressor("gaussian", **given), HCKClassifier("gaussian", **given)):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            model.fit(X, Y > 0.5)
        assert any("wrong by rounding" in str(each.message) for each in found)


def test_a_singular_kernel_as_in_kernel_ridge():
    """The linear kernel, without a ridge: least squares, and a warning."""

    def linear(a, b):
        return a @ b.T

    y = X @ [1.0, 2.0, 3.0]
    model = HCKRegressor(linear, alpha=0.0, approximation="exact", random_state=0)
    with pytest.warns(NumericalWarning, match="not positive definite"):
        found = model.fit(X - X.mean(0), y).predict(X - X.mean(0))
    np.testing.assert_allclose(found, y, atol=1e-2)
