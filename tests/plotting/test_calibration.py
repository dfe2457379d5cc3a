"""Intervals that hold as much as they say, and probabilities that come true as often as they say."""

import numpy as np
import pytest

from hck.metrics import calibration_curve
from hck.plotting import plot_interval_calibration, plot_reliability

RNG = np.random.default_rng(0)


def test_intervals():
    y, zero, one = RNG.normal(size=400), np.zeros(400), np.ones(400)
    ax = plot_interval_calibration(y, zero, one)
    ideal, curve = ax.lines
    assert ideal.get_xydata().tolist() == [[0, 0], [1, 1]]
    np.testing.assert_allclose(curve.get_xydata().T, calibration_curve(y, zero, one))
    assert (ax.get_xlim(), ax.get_ylim()) == ((0, 1), (0, 1))
    assert ax.get_xlabel() == "level of the interval"
    (band,) = ax.collections
    corners = band.get_paths()[0].vertices
    at_half = corners[np.isclose(corners[:, 0], 0.5), 1]
    assert {round(float(height), 3) for height in at_half} == {0.451, 0.549}
    assert "chance, 400 points" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_levels_of_your_own():
    curve = plot_interval_calibration([0.0, 1.0], [0.0, 0.0], [1.0, 1.0], levels=[0.5, 0.9]).lines[1]
    assert curve.get_xydata().tolist() == [[0.5, 0.5], [0.9, 1.0]]


def test_two_classes():
    proba = np.array([0.05, 0.07, 0.55, 0.58, 0.95, 0.97])
    y = np.array(["no", "no", "no", "yes", "yes", "yes"])
    ax = plot_reliability(y, proba, ["no", "yes"], bins=2)
    np.testing.assert_allclose(ax.lines[1].get_xydata(), [[0.06, 0], [0.7625, 0.75]])
    assert len(ax.collections) == 1
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["ideal", "yes"]
    assert ax.get_legend().get_title().get_text() == "class"
    both = plot_reliability(y, np.stack([1 - proba, proba], 1), bins=2)
    np.testing.assert_allclose(both.lines[1].get_xydata(), ax.lines[1].get_xydata())


@pytest.mark.parametrize(("n_classes", "lines"), [(3, 3), (6, 6), (7, 1)])
def test_several_classes(n_classes, lines):
    proba = RNG.dirichlet(np.ones(n_classes), 2000)
    y = np.array([RNG.choice(n_classes, p=each) for each in proba])
    ax = plot_reliability(y, proba)
    assert len(ax.lines) == 1 + lines
    assert len(ax.collections) == lines
    for curve, marks in zip(ax.lines[1:], ax.collections, strict=True):
        across, up = curve.get_xydata()[np.argsort(marks.get_sizes())[-3:]].T  # those of the most points
        assert np.abs(across - up).max() < 0.15  # drawn from these probabilities


def test_marks_grow_with_the_number_of_points_and_few_are_left_out():
    proba = np.r_[np.full(400, 0.15), np.full(50, 0.55), 0.95]
    y = (RNG.uniform(size=451) < proba).astype(int)
    ax = plot_reliability(y, proba)
    small, large = sorted(ax.collections[0].get_sizes())
    assert len(ax.lines[1].get_xdata()) == 2
    assert large > 2 * small


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([0, 1], [0.5]), "same n"),
        (([0, 1], [[0.5, 0.5, 0.0]] * 2), "3 columns, but there are 2 classes"),
        (([0, 2], [0.5, 0.5], [0, 1]), "label 2, which is not one of the classes"),
        (([0, 1], [0.5, 1.5]), "between 0 and 1"),
        (([0, 1], [0.5, np.nan]), "between 0 and 1"),
        (([0, 1], [0.5, 0.5], None, 0), "bins"),
    ],
)
def test_bad_probabilities(given, message):
    with pytest.raises(ValueError, match=message):
        plot_reliability(*given)


def test_bad_intervals():
    with pytest.raises(ValueError, match="one shape"):
        plot_interval_calibration([0.0], [0.0, 1.0], [1.0])
    with pytest.raises(ValueError, match="levels"):
        plot_interval_calibration([0.0], [0.0], [1.0], levels=[2.0])
