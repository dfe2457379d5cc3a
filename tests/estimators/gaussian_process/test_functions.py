"""Draws that are functions, from fitted estimators."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch

from hck import HCKGaussianProcessRegressor
from hck.kernels import InverseMultiquadric, Matern
from process_problem import NEW, TREE, N, X, Y, changed, fixed, rational

pytestmark = pytest.mark.usefixtures("one_thread")

SIZES = pytest.mark.parametrize(
    "settings",
    [{"rank": N}, TREE, {**TREE, "n_trees": 3}, {"approximation": "fourier", "rank": 30, "random_state": 0}],
    ids=["one_leaf", "tree", "forest", "fourier"],
)


@SIZES
@pytest.mark.parametrize("trend", ["zero", "linear"])
def test_mean_and_covariance_of_predictions(settings, trend):
    count = 3000
    model = fixed(trend=trend, **settings).fit(X, Y)
    few = np.concatenate([X[:4], NEW[:4], NEW[4:7] + 1])
    mean, cov = model.predict(few, return_cov=True)
    drawn = model.draw_functions(count, random_state=1, n_waves=24)(few)
    std = np.sqrt(np.diag(cov))
    assert (np.abs(drawn.mean(1) - mean) < 5 * std / count**0.5).all()
    allowed = 5.5 * (2 / count) ** 0.5 * np.outer(std, std) + 1e-6
    assert (np.abs(np.cov(drawn) - cov) < allowed).all()


def test_at_training_points_they_are_gaussian():
    """Whatever the waves: here one."""
    count = 4000
    model = fixed(**TREE).fit(X, Y)
    mean, std = model.predict(X[:20], return_std=True)
    z = (model.draw_functions(count, n_waves=1)(X[:20]) - mean[:, None]) / std[:, None]
    assert np.abs((z**4).mean(1) - 3).max() < 5 * (96 / count) ** 0.5


@pytest.mark.parametrize("kernel", [Matern(0.5), Matern(0.5, nu=0.5)], ids=str)
def test_between_training_points_they_are_nearly_gaussian(kernel):
    """Even with next to no noise, where all that is left open is due to rare, high frequencies."""
    count = 3000
    model = fixed(kernel, noise=1e-4, **TREE).fit(X, Y)
    mean, std = model.predict(NEW, return_std=True)
    z = (model.draw_functions(count, n_waves=100)(NEW) - mean[:, None]) / std[:, None]
    assert abs((z**2).mean() - 1) < 0.05
    assert abs((z**4).mean() - 3) < 0.5


@SIZES
def test_the_same_function_at_every_call(settings):
    model = fixed(trend="linear", **settings).fit(X, Y)
    draws = model.draw_functions(4, random_state=3)
    assert len(draws) == 4
    every = draws(NEW)
    assert every.shape == (15, 4)
    close = {"rtol": 1e-8, "atol": 1e-8}
    np.testing.assert_allclose(draws(NEW[5:9]), every[5:9], **close)
    for number, one in enumerate(draws):
        assert one(NEW).shape == (15,)
        np.testing.assert_allclose(one(NEW[::-1])[::-1], every[:, number], **close)
    np.testing.assert_allclose(draws[-1](NEW), every[:, 3], **close)
    np.testing.assert_array_equal(model.draw_functions(4, random_state=3)(NEW), every)
    assert not np.isclose(model.draw_functions(4, random_state=4)(NEW), every).any()
    again = pickle.loads(pickle.dumps(draws))
    np.testing.assert_allclose(again(NEW), every, **close)
    model.fit(X, Y + 100)  # which they do not notice
    np.testing.assert_array_equal(draws(NEW), every)


def test_a_draw_can_be_optimised():
    from scipy.optimize import minimize

    model = fixed(**TREE).fit(X, Y)
    draw = model.draw_functions(1, random_state=0)[0]
    best = X[draw(X).argmin()]
    found = minimize(lambda x: float(draw(x[None])[0]), best, method="Nelder-Mead", bounds=[(0, 1)] * 2)
    assert found.fun <= draw(X).min()
    assert found.fun == draw(found.x[None])[0]


def test_kinds_of_points():
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = fixed(**TREE).fit(frame, Y)
    expected = fixed(**TREE).fit(X, Y).draw_functions(2)(NEW)
    draws = model.draw_functions(2)
    np.testing.assert_allclose(draws(frame.iloc[:5]), draws(frame)[:5], rtol=1e-9)
    np.testing.assert_allclose(draws(pd.DataFrame(NEW, columns=["a", "b"])), expected, rtol=1e-9)
    with pytest.raises(ValueError, match="feature names should match"):
        draws(frame.rename(columns={"a": "z"}))
    tensor = fixed(**TREE).fit(torch.from_numpy(X), Y).draw_functions(2)(torch.from_numpy(NEW))
    np.testing.assert_allclose(tensor.numpy(), expected, rtol=1e-9)
    sparse = fixed(**TREE).fit(sp.csr_matrix(X), Y).draw_functions(2)
    assert sparse(sp.csr_matrix(NEW)).shape == (15, 2)
    assert fixed(dtype="float32", **TREE).fit(X, Y).draw_functions(2)(NEW).dtype == np.float32


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (fixed(rational, **TREE), "spectral density"),
        (fixed(1.7 * InverseMultiquadric(1.0), **TREE), "spectral density"),
        (fixed(approximation="tapered", **TREE), "kernels of trees and of features"),
    ],
    ids=["function", "kernel", "tapered"],
)
def test_where_there_are_none(model, message):
    model.fit(X, Y)
    with pytest.raises(ValueError, match=message):
        model.draw_functions()
    assert model.sample_y(NEW, 2).shape == (15, 2)


def test_objects_have_none():
    model = HCKGaussianProcessRegressor(
        lambda a, b: np.array([[float(len(s & t)) for t in b] for s in a]), optimizer=None, partition="kernel"
    ).fit([{1, 2}, {2, 3}, {4}], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="points with coordinates"):
        model.draw_functions()


def test_bad_arguments(fixed_tree):
    for bad in (0, -1, 1.5, True, "2"):
        with pytest.raises(ValueError, match="n_samples must be a whole number"):
            fixed_tree.draw_functions(bad)
        with pytest.raises(ValueError, match="n_waves must be a whole number"):
            fixed_tree.draw_functions(1, n_waves=bad)
    draws = fixed_tree.draw_functions(2)
    with pytest.raises(ValueError, match="infinity"):
        draws(changed(X, np.inf))
    with pytest.raises(ValueError, match="X has 1 features"):
        draws(X[:, :1])
    for bad in (2, -3, 0.0):
        with pytest.raises(IndexError, match="there are 2 functions"):
            draws[bad]
