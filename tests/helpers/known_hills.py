"""Functions with a known top."""

import numpy as np

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


class Recorder:
    """A function that remembers where it was asked."""

    def __init__(self, function):
        self.function, self.places = function, []

    def __call__(self, theta, *step):
        self.places.append(np.array(theta))
        return self.function(theta)
