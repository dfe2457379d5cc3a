"""Where there is nothing to learn: a function as kernel, and a known noise."""

import numpy as np
import pytest

from hck import HCKGaussianProcessRegressor
from process_problem import TREE, X, Y, rational

pytestmark = pytest.mark.usefixtures("one_thread")


def test_nothing_to_learn(nothing):
    assert nothing.theta_.shape == (0,)
    assert nothing.theta_names_ == []
    assert nothing.history_ == []
    assert nothing.noise_ == 0.01
    assert np.isfinite(nothing.log_marginal_likelihood())
    np.testing.assert_allclose(nothing.predict(X), Y, atol=0.5)
    assert nothing.log_marginal_likelihood([]) == pytest.approx(nothing.log_marginal_likelihood())


def test_gradient_of_nothing(nothing):
    value, gradient = nothing.log_marginal_likelihood(eval_gradient=True)
    assert value == pytest.approx(nothing.log_marginal_likelihood())
    assert gradient.shape == (0,)


def test_standard_errors_of_nothing(nothing):
    assert nothing.standard_errors() == {}


def test_only_the_noise_of_a_function_is_learned():
    model = HCKGaussianProcessRegressor(rational, **TREE).fit(X, Y)
    assert model.theta_names_ == ["noise"]
    assert 0.07 < model.noise_**0.5 < 0.14


def test_history_can_be_drawn(learned, nothing):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    axes = learned.plot_history()
    np.testing.assert_array_equal(axes.get_lines()[0].get_ydata(), learned.history_)
    assert axes.get_xlabel() == "step"
    _, mine = plt.subplots()
    assert learned.plot_history(ax=mine) is mine
    with pytest.raises(ValueError, match="learn"):
        nothing.plot_history(mine)
    plt.close("all")
