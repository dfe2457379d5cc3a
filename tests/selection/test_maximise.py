"""The search for the top of a function."""

import numpy as np
import pytest

from hck.errors import NotPositiveDefiniteError
from hck.selection import Effort, climb, maximise
from known_hills import TARGET, WIDE, Recorder, quadratic, valley


@pytest.mark.parametrize("start", [[0.0, 0.0], [-30.0, 40.0], TARGET.tolist()], ids=str)
def test_the_top_of_a_quadratic(start):
    found = maximise(quadratic(), np.array(start), WIDE)
    np.testing.assert_allclose(found.theta, TARGET, atol=1e-3)
    assert found.value == pytest.approx(7, abs=1e-5)
    assert found.converged


def test_a_curved_valley():
    found = maximise(valley, np.array([-1.2, 1.0]), WIDE, Effort(tolerance=1e-10))
    np.testing.assert_allclose(found.theta, [1, 1], atol=1e-3)


def test_history_rises_to_the_value():
    found = maximise(valley, np.array([-1.2, 1.0]), WIDE)
    assert len(found.history) > 5
    assert (np.diff(found.history) >= 0).all()
    assert found.history[-1] == pytest.approx(found.value)


def test_value_is_that_of_theta():
    found = maximise(valley, np.array([-1.2, 1.0]), WIDE, Effort(7))
    assert found.value == pytest.approx(valley(found.theta)[0])


def test_few_iterations():
    found = maximise(valley, np.array([-1.2, 1.0]), WIDE, Effort(3))
    assert len(found.history) == 3
    assert not found.converged
    assert found.value > valley(np.array([-1.2, 1.0]))[0]


def test_bounds():
    bounds = np.array([[-1.0, 0.5], [-1.5, 1.0]])
    function = Recorder(quadratic())
    found = maximise(function, np.zeros(2), bounds)
    np.testing.assert_allclose(found.theta, [0.5, -1.5])
    assert found.value == pytest.approx(quadratic()(np.array([0.5, -1.5]))[0])
    places = np.array(function.places)
    assert (places >= bounds[:, 0]).all()
    assert (places <= bounds[:, 1]).all()


def test_start_is_tried_first_and_left_alone():
    start = np.array([3.0, 4.0])
    function = Recorder(quadratic())
    maximise(function, start, WIDE, Effort(restarts=2))
    assert function.places[0].tolist() == [3.0, 4.0]
    assert start.tolist() == [3.0, 4.0]


@pytest.mark.parametrize("curvature", [(1.0, 1.0), (1.0, 20.0), (500.0, 100.0)], ids=str)
@pytest.mark.parametrize("limit", [1.0, 2.0, 10.0])
def test_failures_on_the_way_do_not_stop_it(limit, curvature):
    """The first steps go too far; the top itself is where the function can be computed."""
    failures = []

    def function(theta):
        if not np.isfinite(theta).all():
            raise AssertionError(f"asked at {theta}")
        if theta[0] > limit:
            failures.append(theta)
            raise NotPositiveDefiniteError("too far")
        return quadratic(curvature=curvature)(theta)

    found = maximise(function, np.array([-20.0, -3.0]), WIDE)
    assert failures
    np.testing.assert_allclose(found.theta, TARGET, atol=1e-2)


def test_it_ends_where_the_function_can_be_computed():
    """Even if the top is not there."""

    def function(theta):
        if theta[0] > 0.1:
            raise NotPositiveDefiniteError("too far")
        return quadratic()(theta)

    found = maximise(function, np.zeros(2), WIDE)
    assert found.theta[0] <= 0.1
    assert found.value >= quadratic()(np.zeros(2))[0]
    assert np.isfinite(found.history).all()


def test_an_error_at_the_start_is_raised():
    def function(theta):
        raise NotPositiveDefiniteError("the very first matrix")

    with pytest.raises(NotPositiveDefiniteError, match="the very first matrix"):
        maximise(function, np.zeros(2), WIDE)


@pytest.mark.parametrize("error", [ValueError, RuntimeError, KeyboardInterrupt])
def test_other_errors_are_raised(error):
    function = Recorder(quadratic())

    def later(theta):
        if len(function.places) == 2:
            raise error("something else")
        return function(theta)

    with pytest.raises(error, match="something else"):
        maximise(later, np.zeros(2), WIDE)


@pytest.mark.parametrize("search", ["lbfgs", "climb"])
@pytest.mark.parametrize("verbose", [False, True])
def test_progress_is_shown_when_asked_for(search, verbose, capsys):
    if search == "lbfgs":
        maximise(quadratic(), np.zeros(2), WIDE, Effort(verbose=verbose))
    else:
        climb(lambda theta, step: quadratic()(theta), np.zeros(2), WIDE, 5, verbose=verbose)
    assert ("Learning" in capsys.readouterr().out) == verbose
