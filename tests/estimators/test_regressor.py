"""HCKRegressor against kernel ridge regression and against the definition of the hierarchical kernel."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.kernel_ridge import KernelRidge

from hck import HCKRegressor
from hck.hierarchy.dense import Definition
from hck.kernels import CallableKernel, make_kernel
from hck.points import as_points


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(307, 3))
    y = np.sin(5 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(307) + 7
    return X, y, rng.uniform(size=(41, 3))


@pytest.mark.parametrize(
    ("kernel", "exact"),
    [
        ("gaussian", {"kernel": "rbf", "gamma": 1 / (2 * 0.3**2)}),
        ("laplace", {"kernel": "laplacian", "gamma": 1 / 0.3}),
    ],
)
@pytest.mark.parametrize("size", [{"rank": 307}, {"rank": 5, "leaf_size": 307}])
def test_one_leaf_is_exact_kernel_ridge_regression(data, kernel, exact, size):
    X, y, X_new = data
    ours = HCKRegressor(kernel, lengthscale=0.3, alpha=0.05, **size).fit(X, y)
    assert ours.tree_.n_leaves == 1
    theirs = KernelRidge(alpha=0.05, **exact).fit(X, y - y.mean())
    np.testing.assert_allclose(ours.predict(X_new), theirs.predict(X_new) + y.mean(), rtol=1e-9)


@pytest.mark.parametrize("partition", ["random_projection", "kmeans", "kernel"])
def test_prediction_is_ridge_regression_with_the_hierarchical_kernel(data, partition):
    X, y, X_new = data
    model = HCKRegressor(
        "matern32", lengthscale=0.4, alpha=0.05, rank=20, partition=partition, random_state=0
    )
    model.fit(X, y)
    landmarks = model.forest_.members[0].landmarks
    kernel, points = make_kernel("matern32", 0.4), as_points(X)
    exact = Definition(kernel, model.tree_, landmarks, 1e-8)
    K, k = exact.square(points), exact.cross(points, as_points(X_new))
    w = torch.linalg.solve(K + 0.05 * torch.eye(len(y), dtype=torch.float64), torch.from_numpy(y - y.mean()))
    np.testing.assert_allclose(model.predict(X_new), (k.mT @ w).numpy() + y.mean(), rtol=1e-9)


def test_several_targets_are_several_regressions(data):
    X, y, X_new = data
    both = np.stack([y, y**2], 1)
    model = HCKRegressor(lengthscale=0.3, rank=32, random_state=0, alpha=0.01)
    together = model.fit(X, both).predict(X_new)
    assert together.shape == (41, 2)
    for column in range(2):
        alone = model.fit(X, both[:, column]).predict(X_new)
        assert alone.shape == (41,)
        np.testing.assert_allclose(together[:, column], alone, rtol=1e-10)


def test_shifted_targets_shift_predictions(data):
    X, y, X_new = data
    model = HCKRegressor(lengthscale=0.3, rank=32, random_state=0, alpha=0.01)
    np.testing.assert_allclose(
        model.fit(X, y + 1000).predict(X_new), model.fit(X, y).predict(X_new) + 1000, rtol=1e-9
    )


def test_sample_weights_count_points(data):
    X, y, X_new = data
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    model = HCKRegressor(lengthscale=0.3, alpha=0.05, leaf_size=2000, rank=128)
    weighted = model.fit(X, y, sample_weight=weight).predict(X_new)
    repeated = model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).predict(X_new)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-8)


def test_sample_weights_on_a_deep_tree_are_noise_per_point(data):
    X, y, X_new = data
    model = HCKRegressor(lengthscale=0.3, alpha=0.1, rank=20, random_state=0)
    plain = model.fit(X, y).predict(X_new)
    half = model.set_params(alpha=0.05).fit(X, y, sample_weight=np.full(len(y), 0.5)).predict(X_new)
    np.testing.assert_allclose(half, plain, rtol=1e-9)


@pytest.mark.parametrize(
    ("kernel", "partition"),
    [
        ("gaussian", "random_projection"),
        ("laplace", "pca"),
        ("inverse_multiquadric", "kd"),
        ("matern12", "kmeans"),
        ("matern32", "kernel"),
        ("matern52", "pca"),
        ("laplace", "kernel"),
        ("gaussian", "kmeans"),
    ],
)
def test_sparse_is_dense(data, kernel, partition):
    X, y, X_new = data
    X, X_new = np.where(X < 0.5, 0, X), np.where(X_new < 0.5, 0, X_new)
    model = HCKRegressor(
        kernel, lengthscale=[0.3, 0.5, 1.0], rank=20, partition=partition, random_state=0, alpha=0.01
    )
    dense = model.fit(X, y).predict(X_new)
    model.fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(model.predict(sp.csr_matrix(X_new)), dense, rtol=1e-6)
    np.testing.assert_allclose(model.predict(sp.csc_array(X_new)), dense, rtol=1e-6)
    np.testing.assert_allclose(model.predict(X_new), dense, rtol=1e-6)


def test_tensors_in_tensors_out(data):
    X, y, X_new = data
    model = HCKRegressor(lengthscale=0.3, rank=32, random_state=0, alpha=0.01)
    expected = model.fit(X, y).predict(X_new)
    model.fit(torch.from_numpy(X), torch.from_numpy(y))
    predicted = model.predict(torch.from_numpy(X_new))
    assert isinstance(predicted, torch.Tensor)
    np.testing.assert_array_equal(predicted.numpy(), expected)
    np.testing.assert_array_equal(model.predict(X_new), expected)


def test_float32_is_close_to_float64(data):
    X, y, X_new = data
    model = HCKRegressor(
        lengthscale=0.3, jitter=1e-4, rank=32, random_state=0, landmarks="uniform", alpha=0.01
    )
    double = model.fit(X, y).predict(X_new)
    single = HCKRegressor(
        lengthscale=0.3,
        jitter=1e-4,
        partition=model.tree_,
        landmarks=[model.forest_.members[0].landmarks.of_slot(i).x for i in range(len(model.tree_.inner))],
        rank=32,
        dtype="float32",
        alpha=0.01,
    )
    single.fit(X, y)
    assert single.predict(X_new).dtype == np.float32
    np.testing.assert_allclose(single.predict(X_new), double, rtol=1e-5)


def shared_letters(a, b):
    """A kernel on strings: the number of letters in common, and a constant."""
    return np.array([[1 + len(set(s) & set(t)) for t in b] for s in a], dtype=float)


def test_strings_with_a_kernel_of_their_own():
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefghij"), 5)) for _ in range(200)]
    y = np.array([("a" in w) + 2.0 * ("b" in w) for w in words])
    model = HCKRegressor(
        shared_letters, partition="kernel", rank=10, alpha=1e-3, random_state=0, lengthscale=None
    )
    model.fit(words, y)
    assert model.tree_.depth > 2
    np.testing.assert_allclose(model.predict(words), y, atol=0.02)
    model.set_params(kernel=CallableKernel(shared_letters)).fit(np.array(words), y)
    np.testing.assert_allclose(model.predict(np.array(words)), y, atol=0.02)


def shared_members(a, b):
    return np.array([[1 + len(set(s) & set(t)) for t in b] for s in a], dtype=float)


@pytest.mark.parametrize("kind", [set, frozenset, tuple, list])
def test_objects_of_any_kind_and_kernels_of_kernels(kind):
    rng = np.random.default_rng(0)
    things = [kind(rng.choice(10, rng.integers(2, 6), replace=False).tolist()) for _ in range(100)]
    y = np.array([(1 in t) + 2.0 * (2 in t) for t in things])
    kernel = 0.5 * CallableKernel(shared_members) + CallableKernel(shared_members)
    model = HCKRegressor(
        kernel, partition="kernel", rank=10, alpha=1e-3, random_state=0, lengthscale=None
    ).fit(things, y)
    assert model.tree_.depth > 1
    np.testing.assert_allclose(model.predict(things), y, atol=0.02)


def test_landmarks_that_are_objects():
    words = ["abc", "bcd", "cde", "def", "efg", "fgh", "ghi", "hij"]
    model = HCKRegressor(
        shared_members,
        partition="kernel",
        leaf_size=2,
        landmarks=words[:3],
        random_state=0,
        alpha=0.01,
        lengthscale=None,
        rank=128,
    )
    assert model.fit(words, np.arange(8.0)).forest_.members[0].landmarks.rank == 3


@pytest.mark.parametrize("kernel", ["gaussian", "matern12", "matern32"])
def test_one_outlier_does_not_spoil_float32(kernel):
    X = np.random.default_rng(0).uniform(size=(3001, 3))
    X[0] = 30
    y = np.sin(5 * X[:, 1])
    double, single = (
        HCKRegressor(kernel, lengthscale=0.3, rank=32, dtype=dtype, random_state=0, alpha=0.01)
        .fit(X, y)
        .predict(X)
        for dtype in ("float64", "float32")
    )
    assert np.abs(single - double).mean() < 0.02  # trees differ


@pytest.mark.parametrize("offset", [0, 1e4, 1e8])
def test_large_offsets_of_targets_in_float32(data, offset):
    X, y, _ = data
    model = HCKRegressor(lengthscale=0.3, rank=32, dtype="float32", random_state=0, alpha=0.01).fit(
        X, y + offset
    )
    assert model.forest_(X).flatten().numpy() == pytest.approx(y - y.mean(), abs=0.5)


def test_landmarks_of_another_model_are_kept(data):
    X, y, X_new = data
    first = HCKRegressor(lengthscale=0.3, rank=20, random_state=0, alpha=0.01).fit(X, y)
    again = HCKRegressor(
        lengthscale=0.3,
        rank=20,
        partition=first.tree_,
        landmarks=first.forest_.members[0].landmarks,
        random_state=1,
        alpha=0.01,
    )
    np.testing.assert_array_equal(again.fit(X, y).predict(X_new), first.predict(X_new))


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_very_few_points(n):
    X = np.arange(n, dtype=float)[:, None]
    model = HCKRegressor(rank=1, alpha=1e-6, kernel="laplace", random_state=0, lengthscale=None).fit(
        X, X[:, 0]
    )
    np.testing.assert_allclose(model.predict(X), X[:, 0], atol=1e-4)


def test_chunked_prediction_is_the_same(data):
    X, y, X_new = data
    model = HCKRegressor(lengthscale=0.3, rank=20, random_state=0, alpha=0.01)
    expected = model.fit(X, y).predict(X_new)
    model.set_params(memory_budget="200 kB").fit(X, y)
    np.testing.assert_allclose(model.predict(X_new), expected, rtol=1e-10)


def test_progress_is_shown_when_asked_for(data, capsys):
    X, y, X_new = data
    HCKRegressor(rank=20, random_state=0, alpha=0.01, lengthscale=None).fit(X, y).predict(X_new)
    assert capsys.readouterr().out == ""
    HCKRegressor(rank=20, random_state=0, verbose=1, alpha=0.01, lengthscale=None).fit(X, y).predict(X_new)
    shown = capsys.readouterr().out
    assert "Leaves: factor" in shown
    assert "Predict" in shown
