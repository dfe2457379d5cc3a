"""Predictions beside the truth."""

import numpy as np
import pytest
import torch
from matplotlib.collections import LineCollection, PathCollection, PolyCollection

from hck.plotting import plot_predictions
from hck.plotting.style import BLUE, RED

RNG = np.random.default_rng(0)


def kinds(ax, kind):
    return [each for each in ax.collections if isinstance(each, kind)]


def test_points_and_the_line_of_right_ones():
    y = np.array([1.0, 2.0, 5.0])
    ax = plot_predictions(y, torch.tensor([1.5, 2.0, 4.0]))
    (points,) = kinds(ax, PathCollection)
    np.testing.assert_allclose(points.get_offsets(), [[1, 1.5], [2, 2], [5, 4]])
    assert ax.get_xlim() == ax.get_ylim() == pytest.approx((0.88, 5.12))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("observed", "predicted")
    assert ax.get_title() == "3 points"
    assert ax.lines[0].get_slope() == 1


def test_intervals():
    y, mean, std = np.array([0.0, 1.0, 2.0]), np.array([0.1, 0.9, 3.0]), np.array([0.1, 0.2, 0.3])
    ax = plot_predictions(y, mean, std, level=0.9)
    inside, outside = kinds(ax, PathCollection)
    assert (len(inside.get_offsets()), len(outside.get_offsets())) == (2, 1)
    (bars,) = kinds(ax, LineCollection)
    ends = np.array(bars.get_segments())
    np.testing.assert_allclose(ends[:, 0, 1], mean - 1.6448536 * std)
    np.testing.assert_allclose(ends[:, 1, 1], mean + 1.6448536 * std)
    np.testing.assert_allclose(ends[:, :, 0], y[:, None] * [1, 1])
    assert ax.get_title() == "3 points, 67 % inside 90 % intervals"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "prediction = truth",
        "inside the interval",
        "outside the interval",
        "90 % interval",
    ]
    from matplotlib.colors import to_hex

    assert [to_hex(each.get_facecolors()[0]).upper() for each in (inside, outside)] == [BLUE, RED]


def test_some_of_many_intervals():
    y = RNG.normal(size=3000)
    ax = plot_predictions(y, y + RNG.normal(size=3000), np.ones(3000))
    assert len(kinds(ax, LineCollection)[0].get_segments()) == 100
    assert sum(len(each.get_offsets()) for each in kinds(ax, PathCollection)) == 3000
    assert all(each.get_rasterized() for each in kinds(ax, PathCollection))
    assert ax.get_legend().get_texts()[-1].get_text() == "95 % interval (100 drawn)"


def test_the_density_of_very_many():
    y = RNG.normal(size=30_000)
    ax = plot_predictions(y, y)
    assert not kinds(ax, PathCollection)
    (cells,) = kinds(ax, PolyCollection)
    assert cells.get_array().sum() == 30_000
    assert ax.figure.axes[1].get_ylabel() == "points"


def test_one_point():
    ax = plot_predictions([1.0], [1.0])
    assert ax.get_xlim() == (0.5, 1.5)
    assert ax.get_title() == "1 point"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([1.0, 2.0], [1.0]), r"y and mean must have one shape \(n,\), got y \(2,\), mean \(1,\)"),
        (([[1.0]], [[1.0]]), "one shape"),
        (([], []), "one shape"),
        (([np.nan], [1.0]), "y contains NaN"),
        (([1.0], [1.0], [0.0]), "std must be positive"),
        (([1.0], [1.0], [1.0, 2.0]), "one shape"),
        (([1.0], [1.0], [1.0], 1.0), "level"),
    ],
)
def test_bad_input(given, message):
    with pytest.raises(ValueError, match=message):
        plot_predictions(*given)
