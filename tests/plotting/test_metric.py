"""How much features count, and how they act together."""

import numpy as np
import pandas as pd
import pytest

from hck import HCKGaussianProcessClassifier, HCKRegressor
from hck.kernels import Gaussian, Laplace, Matern
from hck.plotting import plot_importances, plot_lengthscales, plot_metric
from hck.selection import Candidate

L = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 0.0], [-1.0, 0.5]])
M = L @ L.T


def names(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


@pytest.mark.parametrize("kernel", [Matern(2.0, metric=L), 3.0 * Gaussian([1.0, 1.0], metric=L)])
def test_the_most_important_come_first(kernel):
    ax = plot_importances(kernel, top=3)
    assert names(ax) == ["feature 1", "feature 3", "feature 0"]
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], np.diag(M)[[1, 3, 0]] / np.trace(M))
    assert ax.get_title() == "the 3 most important of 4"


def test_in_other_units():
    ax = plot_importances(Gaussian(1.0, metric=L), list("abcd"), unit=[10.0, 0.1, 1.0, 1.0])
    assert names(ax) == ["a", "d", "b", "c"]
    assert names(plot_importances(Gaussian([3.0, 1.0]))) == ["feature 1", "feature 0"]


def test_the_matrix():
    image = plot_metric(Gaussian(0.5, metric=L)).images[0]
    np.testing.assert_allclose(image.get_array(), M / M.max())
    ax = plot_metric(Gaussian(0.5, metric=L), top=2)
    assert names(ax) == ["feature 1", "feature 3"]
    assert ax.get_title() == "the 2 most important of 4"


def test_of_a_model():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["size", "age"])
    kernel = Matern(1.0, metric=[[1.0], [-2.0]])
    model = HCKRegressor(kernel, alpha=0.1, rank=16, random_state=0).fit(X, X["size"])
    assert names(plot_importances(model)) == ["age", "size"]
    assert names(plot_metric(model)) == ["size", "age"]


def test_kernels_that_share_trees_are_drawn_as_their_mean():
    """Once the first alone was."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    model = HCKRegressor(Matern([1.0, 2.0, 4.0]), alpha=0.1, rank=16, random_state=0).fit(X, X[:, 0])
    kernels = [Matern([1.0, 2.0, 4.0]), Gaussian([9.0, 9.0, 0.5]), Gaussian(2.0)]
    weights = [0.5, 0.3, 0.2]
    model.selection_.blend = [
        Candidate(kernel, 0.1, "given", weight=weight)
        for kernel, weight in zip(kernels, weights, strict=True)
    ]
    shares = [np.array([1.0, 2.0, 4.0]) ** -2.0, np.array([9.0, 9.0, 0.5]) ** -2.0, np.ones(3)]
    expected = sum(weight * share / share.sum() for weight, share in zip(weights, shares, strict=True))
    ax = plot_importances(model)
    order = np.argsort(-expected)
    assert names(ax) == [f"feature {i}" for i in order]
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], expected[order])


def test_kernels_of_classes_are_drawn_as_their_mean():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model = HCKGaussianProcessClassifier(Matern([1.0, 2.0]), optimizer=None, rank=60)
    model.fit(X, np.arange(60) % 3)
    model.kernels_ = [Matern([1.0, 2.0]), Matern([2.0, 1.0]), Matern([1.0, 1.0])]
    np.testing.assert_allclose([bar.get_width() for bar in plot_importances(model).patches], 0.5)


def test_lengthscales_along_features():
    """Of points that differ in one feature alone; one that is left out has none."""
    ax = plot_lengthscales(2.0 * Matern([1.0, 4.0], metric=L))
    scaled = (L / [1.0, 4.0]) ** 2
    expected = np.sort(scaled.sum(1)[[0, 1, 3]] ** -0.5)
    assert names(ax) == ["feature 1", "feature 3", "feature 0"]
    np.testing.assert_allclose(ax.lines[0].get_xdata(), expected)
    both = plot_lengthscales(Matern(1.0, metric=L) + Laplace([1.0, 2.0, 3.0, 4.0]))
    assert len(both.lines) == 2
    assert len(names(both)) == 4


@pytest.mark.parametrize(
    ("plot", "given", "changes", "message"),
    [
        (plot_importances, Gaussian(0.5), {}, "one lengthscale for all features"),
        (plot_importances, Gaussian(1.0, metric=L), {"top": 0}, "top must be"),
        (plot_importances, Gaussian(1.0, metric=L), {"unit": [1.0]}, "unit must have"),
        (plot_importances, Gaussian(1.0, metric=L), {"feature_names": ["a"]}, "1 feature names for 4"),
        (plot_metric, Gaussian([1.0, 2.0]), {}, "has no metric"),
        (plot_metric, Gaussian(1.0, metric=L), {"top": 0}, "top must be"),
    ],
)
def test_what_cannot_be_drawn(plot, given, changes, message):
    with pytest.raises(ValueError, match=message):
        plot(given, **changes)
