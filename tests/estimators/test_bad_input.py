"""Every wrong input gets an error that says what is wrong, and leaves nothing half-done."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.exceptions import NotFittedError

from hck import (
    HCKClassifier,
    HCKGaussianProcessClassifier,
    HCKGaussianProcessRegressor,
    HCKKernelPCA,
    HCKRegressor,
    NotPositiveDefiniteError,
    NumericalWarning,
)

rng = np.random.default_rng(0)
X = rng.uniform(size=(60, 3))
y = X.sum(1)
labels = (y > 1.5).astype(int)


def indefinite(a, b):
    return np.cos(40 * (a[:, :1] + b[:, :1].T))


def _with(value):
    bad = X.copy()
    bad[3, 1] = value
    return bad


@pytest.mark.parametrize("estimator", [HCKRegressor, HCKClassifier])
@pytest.mark.parametrize(
    ("points", "targets", "message"),
    [
        (sp.csr_matrix(_with(np.nan)), labels, "NaN"),
        (_with(np.inf), labels, "infinity"),
        (np.empty((0, 3)), np.empty(0), "0 sample"),
        (np.empty((5, 0)), np.arange(5) % 2, "0 feature"),
        (X, labels[:-1], "inconsistent numbers of samples"),
        (X[:, 0], labels, "1D array"),
        (X, None, "requires y to be passed"),
        (torch.from_numpy(_with(np.inf)), labels, "infinity"),
        (torch.from_numpy(X), labels[:-1], "60 points but y has 59"),
        (torch.from_numpy(X[:, 0].copy()), labels, "2D"),
        (torch.empty(0, 3), np.empty(0), "empty|0 sample"),
    ],
)
def test_bad_training_data(estimator, points, targets, message):
    model = estimator()
    with pytest.raises(ValueError, match=message):
        model.fit(points, targets)
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_targets(bad):
    targets = y.copy()
    targets[5] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        HCKRegressor(alpha=0.01, lengthscale=None, rank=128).fit(X, targets)


@pytest.mark.parametrize("estimator", [HCKRegressor, HCKClassifier])
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rank": 0}, "rank"),
        ({"rank": -3}, "rank"),
        ({"rank": 2.5}, "rank"),
        ({"leaf_size": 0}, "leaf_size"),
        ({"lengthscale": 0.0}, "lengthscale"),
        ({"lengthscale": -1.0}, "lengthscale"),
        ({"lengthscale": [1.0, -1.0, 1.0]}, "lengthscale must be positive"),
        ({"lengthscale": [1.0, 1.0]}, "2 lengthscales but the points have 3 features"),
        ({"alpha": -0.1}, "alpha"),
        ({"alpha": np.nan}, "alpha"),
        ({"jitter": -1e-8}, "jitter"),
        ({"kernel": "gauss"}, "unknown kernel 'gauss'; known kernels: gaussian, laplace"),
        ({"partition": "kdtree"}, "unknown partition 'kdtree'; known partitions: random_projection"),
        ({"landmarks": "best", "rank": 8}, "unknown landmarks 'best'; known: uniform"),
        ({"dtype": "float16"}, "dtype"),
        ({"device": "tpu"}, "device|Expected one of"),
        ({"memory_budget": "plenty"}, "memory_budget"),
        ({"memory_budget": 0}, "memory_budget"),
        ({"kernel": lambda a, b: np.ones((2, 2))}, r"returned shape \(2, 2\)"),
        ({"kernel": lambda a, b: np.full((len(a), len(b)), np.nan)}, "NaN or infinity"),
        ({"kernel": 3}, "kernel"),
    ],
)
def test_bad_parameters(estimator, parameters, message):
    with pytest.raises((ValueError, TypeError, RuntimeError), match=message):
        estimator(**parameters).fit(X, labels)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_asked_for_and_absent():
    with pytest.raises(ValueError, match="no CUDA device"):
        HCKRegressor(device="cuda", alpha=0.01, lengthscale=None, rank=128).fit(X, y)


@pytest.mark.parametrize("points", [X, torch.from_numpy(X)])
def test_wrong_number_of_features_at_predict(points):
    model = HCKRegressor(alpha=0.01, lengthscale=None, rank=128).fit(points, y)
    with pytest.raises(ValueError, match="X has 2 features, but HCKRegressor is expecting 3 features"):
        model.predict(points[:, :2])


def test_unfitted_predict():
    with pytest.raises(NotFittedError):
        HCKRegressor(alpha=0.01, lengthscale=None, rank=128).predict(X)
    with pytest.raises(NotFittedError):
        HCKClassifier(alpha=0.01, lengthscale=None, rank=128).decision_function(X)


def test_one_class_only():
    with pytest.raises(ValueError, match="one class only"):
        HCKClassifier(alpha=0.01, lengthscale=None, rank=128).fit(X, np.ones(60))


def test_continuous_labels():
    with pytest.raises(ValueError, match=r"Unknown label type"):
        HCKClassifier(alpha=0.01, lengthscale=None, rank=128).fit(X, y)


@pytest.mark.parametrize("weights", [np.ones(59), -np.ones(60), np.zeros(60), np.full(60, np.nan)])
def test_bad_weights(weights):
    with pytest.raises(ValueError, match=r"weight|NaN"):
        HCKRegressor(alpha=0.01, lengthscale=None, rank=128).fit(X, y, sample_weight=weights)


def test_alpha_zero_interpolates_where_the_kernel_allows_it():
    model = HCKRegressor("laplace", alpha=0.0, rank=10, random_state=0, lengthscale=None).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_indefinite_kernel_says_what_to_raise(dtype):
    with pytest.raises(NotPositiveDefiniteError, match=rf"(?s)torch\.{dtype}.*alpha.*jitter.*dtype"):
        HCKRegressor(indefinite, alpha=0.0, rank=10, dtype=dtype, random_state=0, lengthscale=None).fit(X, y)


def test_repeated_points_without_noise_get_a_jitter_and_a_warning():
    twice = np.repeat(X, 2, axis=0)
    with pytest.warns(NumericalWarning, match=r"not positive definite in \d+ of \d+ blocks; a jitter of"):
        model = HCKRegressor(
            "laplace", alpha=0.0, leaf_size=40, rank=10, random_state=0, lengthscale=None
        ).fit(twice, np.repeat(y, 2))
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-3)


def test_a_failed_refit_keeps_the_old_model():
    model = HCKRegressor(random_state=0, alpha=0.01, lengthscale=None, rank=128).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="unknown kernel"):
        model.set_params(kernel="nope").fit(X, y)
    np.testing.assert_array_equal(model.predict(X), before)


def test_a_late_failure_keeps_the_old_regressor():
    model = HCKRegressor(random_state=0, alpha=0.01, lengthscale=None, rank=128).fit(X, y)
    before = model.predict(X)
    with pytest.raises(NotPositiveDefiniteError):
        model.set_params(kernel=indefinite, alpha=0.0, rank=10).fit(X, y + 100)
    np.testing.assert_array_equal(model.predict(X), before)


def test_a_late_failure_keeps_the_old_classifier():
    model = HCKClassifier(random_state=0, alpha=0.01, lengthscale=None, rank=128).fit(X, np.arange(60) % 3)
    before = model.predict(X)
    with pytest.raises(ValueError, match="one class only"):
        model.fit(X, np.ones(60))
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("value", ["tree", None, 3])
def test_things_that_are_no_sequence(value):
    model = HCKRegressor(
        lambda a, b: np.ones((len(a), len(b))), partition="kernel", alpha=0.01, lengthscale=None, rank=128
    ).fit(["a", "b"], [1.0, 2.0])
    with pytest.raises(TypeError, match="expected a sequence of points"):
        model.predict(value)


def test_zero_weights_with_a_tree_that_has_the_points():
    tree = HCKRegressor(rank=10, random_state=0, alpha=0.01, lengthscale=None).fit(X, y).tree_
    with pytest.raises(ValueError, match="points of weight 0 are left out"):
        HCKRegressor(partition=tree, alpha=0.01, lengthscale=None, rank=128).fit(
            X, y, sample_weight=np.arange(60.0)
        )


KINDS = [HCKRegressor, HCKClassifier, HCKGaussianProcessRegressor, HCKGaussianProcessClassifier, HCKKernelPCA]
NO_TABLES = ["hello", b"abc", {"a": [1.0, 2.0]}, {1.0, 2.0}, None, iter([[1.0], [2.0]])]


@pytest.mark.parametrize("X", NO_TABLES, ids=lambda X: type(X).__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_table(kind, X):
    """Letters of a text are not points."""
    with pytest.raises(TypeError, match="X must be an array"):
        kind(rank=2).fit(X, **given(kind))
    with pytest.raises(TypeError, match="X must be an array"):
        (fitted(kind).transform if kind is HCKKernelPCA else fitted(kind).predict)(X)


def given(kind):
    return {} if kind is HCKKernelPCA else {"y": np.arange(5) % 2}


@cache
def fitted(kind):
    few = {"n_components": 1} if kind is HCKKernelPCA else {}
    return kind(rank=2, **few).fit(np.arange(10.0).reshape(5, 2), **given(kind))


@pytest.mark.parametrize(
    ("kind", "changed", "message"),
    [
        (
            HCKClassifier,
            {"y": np.array(["a", 1] * 30, dtype=object)},
            "y is text, but has something else in row 1",
        ),
        (HCKGaussianProcessClassifier, {"y": np.array(["a", 1] * 30, dtype=object)}, "y is text, but"),
        (HCKRegressor, {"y": 1.0}, "y must have a value for each row"),
        (HCKRegressor, {"sample_weight": "balanced"}, "sample_weight must be numbers, got 'balanced'"),
        (HCKClassifier, {"y": labels, "sample_weight": {0: 1, 1: 5}}, "sample_weight must be numbers"),
        (HCKGaussianProcessRegressor, {"noise_variance": "a"}, "noise_variance must be numbers, got 'a'"),
        (
            HCKRegressor,
            {"X": np.where(X > 0.99, "abc", X.astype(object))},
            "X must be a table of numbers.*frames",
        ),
        (HCKRegressor, {"X": [[1, 2, 3], [3]] * 30}, "X must be a table of numbers"),
        (
            HCKRegressor,
            {"X": sp.csr_matrix(_with(np.nan))},
            "X contains NaN: of sparse X none may be missing",
        ),
    ],
)
def test_messages_name_the_argument(kind, changed, message):
    with pytest.raises(ValueError, match=message):
        kind().fit(**{"X": X, "y": y} | changed)


def test_bounds_that_are_no_numbers():
    with pytest.raises(ValueError, match="bounds of 'noise' must be two positive numbers"):
        HCKGaussianProcessRegressor(bounds={"noise": ("a", "b")}).fit(X, y)


def test_sparse_points_after_dense_ones_with_gaps():
    model = HCKRegressor(fit_time="fast", random_state=0).fit(_with(np.nan), y)
    np.testing.assert_allclose(model.predict(sp.csr_matrix(X)), model.predict(X), rtol=1e-9)
