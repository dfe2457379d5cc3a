"""Searches from several starts, and in rounds on better and better functions."""

import itertools

import numpy as np
import pytest

from hck.errors import NotPositiveDefiniteError
from hck.selection import Effort, maximise, maximise_in_rounds
from known_hills import TARGET, WIDE, Recorder, quadratic, valley


def two_hills(theta):
    """A low hill at −2 and a higher one at 2."""
    low, high = np.exp(-((theta + 2) ** 2)), 3 * np.exp(-((theta - 2) ** 2))
    return float((low + high)[0]), -2 * (theta + 2) * low - 2 * (theta - 2) * high


def test_restarts_find_the_higher_hill():
    bounds, start = np.array([[-5.0, 5.0]]), np.array([-1.0])
    alone = maximise(two_hills, start, bounds)
    np.testing.assert_allclose(alone.theta, [-2], atol=1e-2)
    best = maximise(two_hills, start, bounds, Effort(restarts=20, rng=np.random.RandomState(0)))
    np.testing.assert_allclose(best.theta, [2], atol=1e-2)
    assert best.value == pytest.approx(3, abs=1e-3)
    assert best.history[-1] == pytest.approx(best.value)


def test_restarts_are_never_worse():
    bounds, start = np.array([[-5.0, 5.0]]), np.array([1.5])  # already below the higher hill
    alone = maximise(two_hills, start, bounds)
    for seed in range(5):
        rng = np.random.RandomState(seed)
        assert maximise(two_hills, start, bounds, Effort(restarts=3, rng=rng)).value >= alone.value


def test_restarts_stay_within_bounds():
    bounds = np.array([[-0.6, 0.7], [-0.8, 0.5]])
    function = Recorder(quadratic())
    maximise(function, np.zeros(2), bounds, Effort(restarts=10))
    places = np.array(function.places)
    assert (places >= bounds[:, 0]).all()
    assert (places <= bounds[:, 1]).all()
    assert len(np.unique(places, axis=0)) > 5


def test_restarts_follow_the_seed():
    places = []
    for seed in (1, 1, 2):
        function = Recorder(quadratic())
        maximise(function, np.zeros(2), WIDE, Effort(restarts=2, rng=np.random.RandomState(seed)))
        places.append(np.array(function.places))
    np.testing.assert_array_equal(places[0], places[1])
    assert places[0].shape != places[2].shape or (places[0] != places[2]).any()


def test_a_restart_that_fails_does_not_spoil_the_rest():
    """Around the start all is well; the restarts begin where the function cannot be computed."""

    def function(theta):
        if np.abs(theta).max() > 0.01:
            raise NotPositiveDefiniteError("too far")
        return quadratic(np.zeros(2))(theta)

    found = maximise(function, np.array([0.005, -0.005]), WIDE, Effort(restarts=3))
    assert found.value == pytest.approx(7, abs=1e-3)


def test_rounds_on_one_function_are_one_search():
    places = []

    def make(theta):
        places.append(theta)
        return valley

    start = np.array([-1.2, 1.0])
    found = maximise_in_rounds(make, start, WIDE, Effort(tolerance=1e-10))
    np.testing.assert_allclose(found.theta, [1, 1], atol=1e-2)
    assert found.converged
    assert found.value == pytest.approx(valley(found.theta)[0])
    assert found.history[-1] == pytest.approx(found.value)
    assert (np.diff(found.history) >= 0).all()
    assert places[0].tolist() == start.tolist() == [-1.2, 1.0]
    assert len(places) > 1


def test_each_round_goes_on_from_where_the_last_one_ended():
    """Each function has its top halfway between where it was made and the target."""
    places = []

    def make(theta):
        places.append(theta)
        return quadratic((theta + TARGET) / 2)

    found = maximise_in_rounds(make, np.array([10.0, 10.0]), WIDE)
    for before, after in itertools.pairwise([*places, found.theta]):
        np.testing.assert_allclose(after, (before + TARGET) / 2, atol=0.01)
    np.testing.assert_allclose(found.theta, TARGET, atol=0.1)
    assert found.converged


@pytest.mark.parametrize("max_iter", [1, 2, 3, 7, 30])
def test_rounds_share_the_iterations(max_iter):
    found = maximise_in_rounds(lambda theta: valley, np.array([-1.2, 1.0]), WIDE, Effort(max_iter))
    assert len(found.history) <= max_iter
    assert found.value > valley(np.array([-1.2, 1.0]))[0]
    if max_iter < 10:  # on the way, there is always more to gain
        assert len(found.history) == max_iter
        assert not found.converged


def test_rounds_stay_within_bounds():
    bounds = np.array([[-1.0, 0.5], [-1.5, 1.0]])
    found = maximise_in_rounds(lambda theta: quadratic(), np.zeros(2), bounds)
    np.testing.assert_allclose(found.theta, [0.5, -1.5])


def test_only_the_first_round_has_restarts():
    made = []

    def make(theta):
        made.append(Recorder(two_hills))
        return made[-1]

    effort = Effort(restarts=20, rng=np.random.RandomState(0))
    found = maximise_in_rounds(make, np.array([-1.0]), np.array([[-5.0, 5.0]]), effort)
    np.testing.assert_allclose(found.theta, [2], atol=1e-2)
    assert len(made) > 1
    assert len(made[0].places) > 40
    assert all(len(later.places) < 10 for later in made[1:])


def test_an_error_in_the_first_round_is_raised():
    def function(theta):
        raise NotPositiveDefiniteError("the very first matrix")

    with pytest.raises(NotPositiveDefiniteError, match="the very first matrix"):
        maximise_in_rounds(lambda theta: function, np.zeros(2), WIDE)
