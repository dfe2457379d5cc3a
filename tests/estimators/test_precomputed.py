"""Kernels that are given as values: the same as the function that they come from."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.decomposition import KernelPCA
from sklearn.model_selection import cross_val_predict

from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKKernelPCA, HCKRegressor
from hck.kernels import Gaussian, Precomputed

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(150, 2)), RNG.normal(size=(40, 2))
Y = np.sin(X[:, 0]) + X[:, 1]
K, K_NEW = Gaussian(1.5)(X), Gaussian(1.5)(NEW, X)
OPTIONS = {"alpha": 0.01, "rank": 16, "partition": "kernel", "random_state": 0}


def of_things(a, b):
    """The kernel of points that are no vectors."""
    return Gaussian(1.5)(np.stack(a.tolist()), np.stack(b.tolist()))


def things(x):
    out = np.empty(len(x), dtype=object)
    out[:] = [tuple(row) for row in x]
    return out


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("approximation", ["hierarchical", "nystrom", "exact", "independent"])
def test_the_same_as_a_function(approximation, dtype):
    options = {**OPTIONS, "approximation": approximation, "dtype": dtype}
    found = HCKRegressor("precomputed", **options).fit(K, Y).predict(K_NEW)
    expected = HCKRegressor(of_things, lengthscale=None, **options).fit(things(X), Y).predict(things(NEW))
    np.testing.assert_allclose(found, expected, rtol=1e-10 if dtype == "float64" else 1e-4)


def test_one_leaf_is_the_exact_method():
    model = HCKRegressor("precomputed", **{**OPTIONS, "rank": 200}).fit(K, Y)
    exact = Y.mean() + K_NEW @ np.linalg.solve(K + 0.01 * np.eye(150), Y - Y.mean())
    np.testing.assert_allclose(model.predict(K_NEW), exact, rtol=1e-8)


def test_numbers_of_rows():
    """All values at once, or a function of numbers; new points have higher numbers."""
    both = np.vstack([X, NEW])
    whole = Gaussian(1.5)(both)
    expected = HCKRegressor("precomputed", **OPTIONS).fit(K, Y).predict(K_NEW)
    for source in (whole, lambda i, j: whole[np.ix_(i, j)]):
        model = HCKRegressor(Precomputed(source), **OPTIONS, lengthscale=None).fit(np.arange(150), Y)
        np.testing.assert_allclose(model.predict(np.arange(150, 190)), expected, rtol=1e-10)


def test_classes_and_all_automatic():
    labels = np.where(Y > 0, "high", "low")
    model = HCKClassifier("precomputed", partition="kernel", fit_time="fast", random_state=0).fit(K, labels)
    assert (model.predict(K_NEW) == np.where(np.sin(NEW[:, 0]) + NEW[:, 1] > 0, "high", "low")).mean() > 0.9


def test_weights_of_0_leave_points_out():
    weight = np.ones(150)
    weight[::3] = 0
    kept = np.flatnonzero(weight)
    options = {**OPTIONS, "rank": 200}
    found = HCKRegressor("precomputed", **options).fit(K, Y, weight).predict(K_NEW)
    expected = HCKRegressor("precomputed", **options).fit(K[np.ix_(kept, kept)], Y[kept])
    np.testing.assert_allclose(found, expected.predict(K_NEW[:, kept]), rtol=1e-10)


def test_components():
    ours = HCKKernelPCA(2, kernel="precomputed", partition="kernel", rank=200).fit(K)
    theirs = KernelPCA(2, kernel="precomputed").fit(K)
    np.testing.assert_allclose(np.abs(ours.transform(K_NEW)), np.abs(theirs.transform(K_NEW)), atol=1e-8)


def test_as_scikit_learn_has_it():
    model = HCKRegressor("precomputed", **OPTIONS)
    assert model.__sklearn_tags__().input_tags.pairwise
    assert not HCKRegressor().__sklearn_tags__().input_tags.pairwise
    found = cross_val_predict(model, K, Y, cv=3)
    assert np.corrcoef(found, Y)[0, 1] > 0.98
    fitted = clone(model).fit(torch.from_numpy(K), Y)
    assert fitted.n_features_in_ == 150
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(K_NEW), fitted.predict(K_NEW))
    assert len(pickle.dumps(fitted)) < K.nbytes  # values of training points are not kept


def test_nothing_of_the_callers_is_kept():
    values = K.copy()
    model = HCKRegressor("precomputed", **OPTIONS).fit(values, Y)
    kernel = Precomputed(values)
    before = model.predict(K_NEW), kernel(np.arange(3), np.arange(3))
    values[:] = 0
    np.testing.assert_array_equal(model.predict(K_NEW), before[0])
    np.testing.assert_array_equal(kernel(np.arange(3), np.arange(3)), before[1])


def changed(i, j, value):
    out = K.copy()
    out[i, j] = value
    return out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (K[:, :100], "square matrix.* got shape"),
        (changed(3, 7, 0.123), "symmetric, but the values of points [37] and [37] are"),
        (changed(3, 3, np.nan), "NaN"),
        (changed(3, 3, np.inf), "infinity"),
        (K[:100, :100], "inconsistent numbers"),
        (X[:, 0], "2D array"),
    ],
)
def test_wrong_matrices(given, message):
    with pytest.raises(ValueError, match=message):
        HCKRegressor("precomputed", **OPTIONS).fit(given, Y)


def test_errors(tmp_path):
    model = HCKRegressor("precomputed", **OPTIONS).fit(K, Y)
    with pytest.raises(ValueError, match="expecting 150 features"):
        model.predict(K_NEW[:, :10])
    with pytest.raises(TypeError, match="a kernel given by its values"):
        model.save(tmp_path / "model")
    with pytest.raises(TypeError, match="partition='kernel'"):
        HCKRegressor("precomputed", alpha=0.1, rank=16).fit(K, Y)
    with pytest.raises(ValueError, match="unknown kernel 'precomputed'"):
        HCKGaussianProcessRegressor("precomputed").fit(K, Y)
    with pytest.raises(ValueError, match="from 0 to 149, got"):
        Precomputed(K)(np.array([150]), np.array([0]))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_missing(bad):
    wrong, rows = K.copy(), K_NEW.copy()
    wrong[3, 5] = wrong[5, 3] = rows[2, 7] = bad
    model = HCKRegressor("precomputed", **OPTIONS)
    with pytest.raises(
        ValueError, match="precomputed kernel has NaN or infinity: its value in row 3 and column 5"
    ):
        model.fit(wrong, Y)
    with pytest.raises(ValueError, match="row 2 and column 7"):
        model.fit(K, Y).predict(rows)


def test_values_that_are_times_and_landmarks_that_are_vectors():
    model = HCKRegressor("precomputed", **OPTIONS)
    with pytest.raises(ValueError, match="X has dates or durations"):
        model.fit(K.astype("m8[s]"), Y)
    with pytest.raises(ValueError, match="nor those with landmarks that are given"):
        model.set_params(landmarks=X[:5]).fit(K, Y)
