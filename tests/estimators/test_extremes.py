"""Targets, weights, ridges and features that are tiny or huge: right, or refused by a name."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from every_estimator import CLASSIFIERS, NEW, REGRESSORS, SUPERVISED, X, says
from hck import (
    HCKClassifier,
    HCKGaussianProcessClassifier,
    HCKGaussianProcessRegressor,
    HCKRegressor,
)

pytestmark = pytest.mark.filterwarnings("ignore:y has one value only")

LOSSES = [name for name in REGRESSORS if name not in ("squared", "process")]
OF_LOSSES = {name: each for name, each in SUPERVISED.items() if "process" not in name}


def made(name, **changes):
    model, y = SUPERVISED[name]
    return clone(model).set_params(**changes), y


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(("dtype", "sizes"), [("float32", (1e-35, 1e35)), ("float64", (1e-140, 1e140))])
def test_targets_of_losses(name, dtype, sizes):
    for size, message in zip(sizes, ("y is too small.*Scale y", "y is too large.*Scale y"), strict=True):
        model, y = made(name, dtype=dtype)
        with pytest.raises(ValueError, match=message):
            model.fit(X, y * size)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("size", [1e-25, 1e25])
def test_single_precision_is_right_within(name, size):
    """In units of `size`, where the ridge suits them."""
    power = {"absolute": -1, "quantile": -1, "poisson": 1, "tweedie": 0.5}.get(name, 0)
    model, y = made(name, alpha=0.1 * size**power)
    expected = says(model.fit(X, y * size)) / size
    found = says(model.set_params(dtype="float32").fit(X, y * size)) / size
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.03)


@pytest.mark.parametrize("automatic", [True, False])
@pytest.mark.parametrize("kind", [HCKRegressor, HCKGaussianProcessRegressor])
def test_small_targets(kind, automatic):
    given = {"fit_time": "fast"} if automatic else {"lengthscale": 1.0, "rank": 8}
    y = REGRESSORS["squared"][1]
    for dtype, size in (("float64", 1e-155), ("float64", 1e-300), ("float32", 1e-37)):
        with pytest.raises(ValueError, match=r"y is too small: .*Scale y"):
            kind(random_state=0, dtype=dtype, **given).fit(X, y * size)
    assert np.isfinite(kind(random_state=0, **given).fit(X, np.zeros(len(X))).predict(NEW)).all()


def test_updates_of_a_process_with_large_targets():
    model, y = made("process")
    before = says(model.fit(X, y))
    for call in (lambda: model.partial_fit(X[:1], [1e200]), lambda: model.update([1], [1e200])):
        with pytest.raises(ValueError, match="y is too large"):
            call()
    np.testing.assert_array_equal(says(model), before)
    model.partial_fit(X[:1], [1e-200])  # beside others, which are larger


@pytest.mark.parametrize("name", OF_LOSSES)
def test_a_huge_ridge_leaves_a_constant(name):
    """K̃ w is lost where it is taken for the difference of much larger numbers."""
    for alpha in (1e9, 1e12, 1e20, 1e90):
        model, y = made(name, alpha=alpha)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = says(model.fit(X, y))
        np.testing.assert_allclose(
            found, np.tile(found[:1], (len(found),) + (1,) * (found.ndim - 1)), atol=1e-6
        )
        assert np.abs(found).max() < 10


@pytest.mark.parametrize("name", OF_LOSSES)
@pytest.mark.parametrize("size", [1e-200, 1e-90, 1e90, 1e200])
def test_weights_and_ridge_in_other_units(name, size):
    model, y = made(name, alpha=0.1 * size)
    weight = np.linspace(0.5, 2, len(y))
    if size in (1e-200, 1e200):
        with pytest.raises(ValueError, match=r"sample weights are too (small|large).*Divide them"):
            model.fit(X, y, weight * size)
        return
    expected = says(made(name)[0].fit(X, y, weight))
    np.testing.assert_allclose(says(model.fit(X, y, weight * size)), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", OF_LOSSES)
@pytest.mark.parametrize("tiny", [1e-30, 1e-200])
def test_tiny_weights_count_for_nothing(name, tiny):
    model, y = made(name, rank=64)
    weight = np.ones(len(y))
    weight[:4] = 0.0
    expected = says(model.fit(X, y, weight))
    weight[:4] = tiny
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = says(model.fit(X, y, weight))
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-4 if name != "huber" else 0.05)


@pytest.mark.parametrize("kind", [HCKRegressor, HCKClassifier, HCKGaussianProcessRegressor])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_features_whose_squares_are_lost(kind, container):
    x = X * [1.0, 1e-200, 1.0]
    y = CLASSIFIERS["squared of classes"][1]
    with pytest.raises(ValueError, match=r"feature 1 varies by .*Scale the features"):
        kind(fit_time="fast", random_state=0).fit(container(x), y)
    x[:, 1] = 3.0  # a constant is none of these
    assert kind(fit_time="fast", random_state=0).fit(container(x), y).n_features_in_ == 3


@pytest.mark.parametrize("scale", ["standard", "minmax"])
def test_scaling_of_small_features(scale, tmp_path):
    y = REGRESSORS["squared"][1]
    given = {"lengthscale": 1.0, "alpha": 0.1, "rank": 8, "random_state": 0, "scale": scale}
    with pytest.raises(ValueError, match="varies by"):
        HCKRegressor(**given).fit(X * 1e-160, y)
    model, expected = HCKRegressor(**given).fit(X * 1e-140, y), HCKRegressor(**given).fit(X, y).predict(NEW)
    model.save(tmp_path / "model")  # what can be fitted can be loaded
    np.testing.assert_allclose(model.predict(NEW * 1e-140), expected, rtol=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        HCKGaussianProcessRegressor("matern32", lengthscale=None, rank=8, max_iter=3, random_state=0),
        HCKGaussianProcessClassifier(rank=8, max_iter=3, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_learned_lengthscales_follow_the_features(model):
    y = CLASSIFIERS["squared of classes"][1]
    expected = says(model.fit(X, y))
    for size in (1e-70, 1e70):
        np.testing.assert_allclose(says(model.fit(X * size, y), NEW * size), expected, rtol=0, atol=1e-5)
    for size in (1e-100, 1e-160, 1e-300, 1e100, 1e150):
        with pytest.raises(ValueError, match=r"varies by .*Scale the features"):
            model.fit(X * size, y)


@pytest.mark.parametrize("name", SUPERVISED)
def test_singular_kernels(name):
    """A constant that is larger than what rounding leaves of anything else."""
    model, y = made(name, kernel=lambda a, b: np.full((len(a), len(b)), 1e20), lengthscale=None)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model.fit(X, y)
    score = (
        model.predict_latent
        if hasattr(model, "predict_latent")
        else getattr(model, "decision_function", None)
    )
    size = np.abs(model.predict(X) if score is None else score(X)).max()
    said = any("wrong by rounding" in str(each.message) for each in found)
    assert said or size < 100
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # where nothing is wrong, nothing is said
        made(name)[0].fit(X, y)
