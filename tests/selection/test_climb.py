"""Steps along noisy gradients."""

import numpy as np
import pytest

from hck.selection import climb
from known_hills import TARGET, WIDE, Recorder, quadratic


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
