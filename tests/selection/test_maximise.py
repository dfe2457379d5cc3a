"""The optimizers on functions whose largest value is known."""

import itertools

import numpy as np
import pytest

from hck.errors import NotPositiveDefiniteError
from hck.selection import climb, maximise, maximise_in_rounds

WIDE = np.array([[-50.0, 50.0]] * 2)
TARGET = np.array([0.9, -2.0])


def quadratic(target=TARGET, curvature=(1.0, 20.0)):
    """7 − Σ c (θ − target)² and its gradient."""

    def function(theta):
        rest = theta - target
        return 7 - float(np.asarray(curvature) @ rest**2), -2 * np.asarray(curvature) * rest

    return function


def valley(theta):
    """Rosenbrock's, upside down: largest, 0, at (1, 1)."""
    x, y = theta
    gradient = np.array([2 * (1 - x) + 400 * x * (y - x**2), -200 * (y - x**2)])
    return -((1 - x) ** 2 + 100 * (y - x**2) ** 2), gradient


def two_hills(theta):
    """A low hill at −2 and a higher one at 2."""
    low, high = np.exp(-((theta + 2) ** 2)), 3 * np.exp(-((theta - 2) ** 2))
    return float((low + high)[0]), -2 * (theta + 2) * low - 2 * (theta - 2) * high


class Recorder:
    """A function that remembers where it was asked."""

    def __init__(self, function):
        self.function, self.places = function, []

    def __call__(self, theta, *step):
        self.places.append(np.array(theta))
        return self.function(theta)


# L-BFGS -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [[0.0, 0.0], [-30.0, 40.0], TARGET.tolist()], ids=str)
def test_the_top_of_a_quadratic(start):
    found = maximise(quadratic(), np.array(start), WIDE)
    np.testing.assert_allclose(found.theta, TARGET, atol=1e-3)
    assert found.value == pytest.approx(7, abs=1e-5)
    assert found.converged


def test_a_curved_valley():
    found = maximise(valley, np.array([-1.2, 1.0]), WIDE, tolerance=1e-10)
    np.testing.assert_allclose(found.theta, [1, 1], atol=1e-3)


def test_history_rises_to_the_value():
    found = maximise(valley, np.array([-1.2, 1.0]), WIDE)
    assert len(found.history) > 5
    assert (np.diff(found.history) >= 0).all()
    assert found.history[-1] == pytest.approx(found.value)


def test_value_is_that_of_theta():
    found = maximise(valley, np.array([-1.2, 1.0]), WIDE, max_iter=7)
    assert found.value == pytest.approx(valley(found.theta)[0])


def test_few_iterations():
    found = maximise(valley, np.array([-1.2, 1.0]), WIDE, max_iter=3)
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
    maximise(function, start, WIDE, restarts=2)
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


# Restarts -----------------------------------------------------------------------------------------------


def test_restarts_find_the_higher_hill():
    bounds, start = np.array([[-5.0, 5.0]]), np.array([-1.0])
    alone = maximise(two_hills, start, bounds)
    np.testing.assert_allclose(alone.theta, [-2], atol=1e-2)
    best = maximise(two_hills, start, bounds, restarts=20, rng=np.random.RandomState(0))
    np.testing.assert_allclose(best.theta, [2], atol=1e-2)
    assert best.value == pytest.approx(3, abs=1e-3)
    assert best.history[-1] == pytest.approx(best.value)


def test_restarts_are_never_worse():
    bounds, start = np.array([[-5.0, 5.0]]), np.array([1.5])  # already below the higher hill
    alone = maximise(two_hills, start, bounds)
    for seed in range(5):
        rng = np.random.RandomState(seed)
        assert maximise(two_hills, start, bounds, restarts=3, rng=rng).value >= alone.value


def test_restarts_stay_within_bounds():
    bounds = np.array([[-0.6, 0.7], [-0.8, 0.5]])
    function = Recorder(quadratic())
    maximise(function, np.zeros(2), bounds, restarts=10)
    places = np.array(function.places)
    assert (places >= bounds[:, 0]).all()
    assert (places <= bounds[:, 1]).all()
    assert len(np.unique(places, axis=0)) > 5


def test_restarts_follow_the_seed():
    places = []
    for seed in (1, 1, 2):
        function = Recorder(quadratic())
        maximise(function, np.zeros(2), WIDE, restarts=2, rng=np.random.RandomState(seed))
        places.append(np.array(function.places))
    np.testing.assert_array_equal(places[0], places[1])
    assert places[0].shape != places[2].shape or (places[0] != places[2]).any()


def test_a_restart_that_fails_does_not_spoil_the_rest():
    """Around the start all is well; the restarts begin where the function cannot be computed."""

    def function(theta):
        if np.abs(theta).max() > 0.01:
            raise NotPositiveDefiniteError("too far")
        return quadratic(np.zeros(2))(theta)

    found = maximise(function, np.array([0.005, -0.005]), WIDE, restarts=3)
    assert found.value == pytest.approx(7, abs=1e-3)


# Rounds -------------------------------------------------------------------------------------------------


def test_rounds_on_one_function_are_one_search():
    places = []

    def make(theta):
        places.append(theta)
        return valley

    start = np.array([-1.2, 1.0])
    found = maximise_in_rounds(make, start, WIDE, tolerance=1e-10)
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
    found = maximise_in_rounds(lambda theta: valley, np.array([-1.2, 1.0]), WIDE, max_iter)
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

    found = maximise_in_rounds(
        make, np.array([-1.0]), np.array([[-5.0, 5.0]]), restarts=20, rng=np.random.RandomState(0)
    )
    np.testing.assert_allclose(found.theta, [2], atol=1e-2)
    assert len(made) > 1
    assert len(made[0].places) > 40
    assert all(len(later.places) < 10 for later in made[1:])


def test_an_error_in_the_first_round_is_raised():
    def function(theta):
        raise NotPositiveDefiniteError("the very first matrix")

    with pytest.raises(NotPositiveDefiniteError, match="the very first matrix"):
        maximise_in_rounds(lambda theta: function, np.zeros(2), WIDE)


# Steps along noisy gradients ----------------------------------------------------------------------------


def test_climb_to_the_top_of_a_quadratic():
    def function(theta, step):
        return quadratic()(theta)

    found = climb(function, np.array([0.0, 0.0]), WIDE, 200)
    np.testing.assert_allclose(found.theta, TARGET, atol=0.05)
    assert len(found.history) == 200
    assert found.history[0] == quadratic()(np.zeros(2))[0]
    assert found.value == pytest.approx(7, abs=0.1)


def test_climb_counts_its_steps():
    steps = []

    def function(theta, step):
        steps.append(step)
        return quadratic()(theta)

    climb(function, np.zeros(2), WIDE, 12)
    assert steps == list(range(12))


def test_climb_with_noisy_gradients():
    rng = np.random.default_rng(0)

    def function(theta, step):
        value, gradient = quadratic(curvature=(1.0, 1.0))(theta)
        return value + rng.standard_normal(), gradient + rng.standard_normal(2)

    found = climb(function, np.array([-1.0, 1.0]), WIDE, 500)
    np.testing.assert_allclose(found.theta, TARGET, atol=0.3)


def test_climb_within_bounds():
    bounds = np.array([[-1.0, 0.5], [-1.5, 1.0]])
    function = Recorder(quadratic())
    found = climb(function, np.zeros(2), bounds, 100)
    np.testing.assert_allclose(found.theta, [0.5, -1.5], atol=1e-6)
    places = np.array(function.places)
    assert (places >= bounds[:, 0]).all()
    assert (places <= bounds[:, 1]).all()


@pytest.mark.parametrize("steps", [1, 2, 9, 10, 11])
def test_few_steps_still_move_upwards(steps):
    start = np.zeros(2)
    found = climb(lambda theta, step: quadratic()(theta), start, WIDE, steps)
    assert len(found.history) == steps
    assert quadratic()(found.theta)[0] > quadratic()(start)[0]
    assert start.tolist() == [0, 0]


def test_climb_does_not_depend_on_the_size_of_gradients():
    found = [
        climb(lambda theta, step, c=c: (0.0, c * quadratic()(theta)[1]), np.zeros(2), WIDE, 50).theta
        for c in (1e-3, 1e3)
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


@pytest.mark.parametrize("search", ["lbfgs", "climb"])
@pytest.mark.parametrize("verbose", [False, True])
def test_progress_is_shown_when_asked_for(search, verbose, capsys):
    if search == "lbfgs":
        maximise(quadratic(), np.zeros(2), WIDE, verbose=verbose)
    else:
        climb(lambda theta, step: quadratic()(theta), np.zeros(2), WIDE, 5, verbose=verbose)
    assert ("Learning" in capsys.readouterr().out) == verbose
