"""The likelihood at each step, and the lengthscales that it led to."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_moons

from hck import HCKClassifier, HCKGaussianProcessRegressor, HCKKernelPCA, HCKRegressor
from hck.kernels import Gaussian, Laplace, Matern
from hck.plotting import plot_learning, plot_lengthscales


@pytest.fixture(scope="module")
def process():
    X = pd.DataFrame(np.random.default_rng(0).uniform(size=(120, 3)), columns=["x", "y", "$z_1"])
    y = np.sin(9 * X["x"]) + 0.1 * X["y"]
    return HCKGaussianProcessRegressor("matern32", rank=32, max_iter=6, random_state=0).fit(X, y)


def names(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def test_every_step_of_a_process(process):
    ax = plot_learning(process)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), process.history_)
    assert ax.lines[0].get_xdata().tolist() == list(range(1, len(process.history_) + 1))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step", "log-likelihood per observation")
    assert ax.lines[1].get_xydata().tolist() == [[len(process.history_), process.history_[-1]]]
    assert ax.get_title() == f"{len(process.history_)} steps, at last {process.history_[-1]:.4g}".replace(
        "-", "−"
    )


def test_first_steps_do_not_hide_the_others():
    history = np.r_[-50.0, -20.0, -1 + 0.01 * np.arange(40)]
    low, high = plot_learning(history).get_ylim()
    assert -1.5 < low < -1
    assert high > -0.61
    low, _ = plot_learning([-50.0, -1.0, -0.9]).get_ylim()
    assert low < -50  # few steps are all shown


def test_steps_without_a_value_are_left_out():
    ax = plot_learning([-1.0, -np.inf, -0.5, np.nan])
    assert ax.lines[0].get_xydata().tolist() == [[1, -1.0], [3, -0.5]]


def test_nothing_to_draw():
    for nothing in ([], [np.nan], [[1.0]]):
        with pytest.raises(ValueError, match="nothing was learned"):
            plot_learning(nothing)
    with pytest.raises(TypeError, match="HCKRegressor has no likelihood"):
        plot_learning(HCKRegressor())


# Lengthscales ---------------------------------------------------------------------------------------


def test_the_shortest_come_first(process):
    ax = plot_lengthscales(process)
    values = np.asarray(process.kernel_.parameters()["lengthscale"])
    order = np.argsort(values)
    assert names(ax) == [["x", "y", r"\$z_1"][i] for i in order]
    np.testing.assert_allclose(ax.lines[0].get_xdata(), values[order])
    assert ax.get_ylim() == (2.5, -0.5)  # from the top
    assert ax.get_xlabel() == "lengthscale"
    assert ax.get_legend() is None


def test_in_other_units():
    ax = plot_lengthscales(Gaussian([1.0, 10.0, 3.0]), unit=[1.0, 100.0, 10.0])
    assert names(ax) == ["feature 1", "feature 2", "feature 0"]
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [0.1, 0.3, 1.0])
    assert ax.get_xscale() == "log"
    alike = plot_lengthscales(Gaussian([1.0, 1.1]))
    assert alike.get_xscale() == "linear"
    assert alike.get_xlim()[0] == 0  # so that they look alike


def test_the_first_of_many():
    values = np.random.default_rng(0).lognormal(size=100)
    ax = plot_lengthscales(Matern(values), [f"f{i}" for i in range(100)], top=7)
    assert names(ax) == [f"f{i}" for i in np.argsort(values)[:7]]
    assert ax.get_title() == "the 7 shortest of 100"


def test_several_kernels():
    ax = plot_lengthscales(2.0 * Gaussian([1.0, 5.0]) + Laplace([4.0, 2.0]) * Laplace(7.0))
    assert len(ax.lines) == 2
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["left", "right.left"]


def test_scaled_features_and_categories():
    X, y = make_moons(120, noise=0.1, random_state=0)
    model = HCKClassifier("gaussian", lengthscale=[0.5, 1.0], alpha=0.1, rank=32, scale="standard").fit(X, y)
    assert plot_lengthscales(model).get_xlabel() == "lengthscale of the scaled feature"
    table = pd.DataFrame({"size": X[:, 0], "kind": np.where(X[:, 1] > 0, "up", "down")})
    model = HCKRegressor("gaussian", lengthscale=[3.0, 2.0, 1.0], alpha=0.1, rank=32).fit(table, y)
    assert names(plot_lengthscales(model)) == ["size", "kind: up", "kind: down"]
    embedding = HCKKernelPCA(1, lengthscale=[2.0, 1.0], rank=32).fit(X)
    assert names(plot_lengthscales(embedding)) == ["feature 1", "feature 0"]


@pytest.mark.parametrize(
    ("given", "changes", "error", "message"),
    [
        (Gaussian(0.5), {}, ValueError, "for all features: 0.5"),
        (Gaussian([1.0, 2.0]), {"feature_names": ["a"]}, ValueError, "1 feature names for 2 features"),
        (Gaussian([1.0, 2.0]), {"top": 0}, ValueError, "top must be"),
        (Gaussian([1.0, 2.0]), {"unit": [1.0, 0.0]}, ValueError, "unit must have a positive number"),
        (HCKRegressor(), {}, TypeError, "a fitted estimator"),
    ],
)
def test_bad_lengthscales(given, changes, error, message):
    with pytest.raises(error, match=message):
        plot_lengthscales(given, **changes)
