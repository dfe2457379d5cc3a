"""Losses of left-out observations: gradients against central differences, weights against copies."""

import numpy as np
import pytest
import torch

from hck.kernels import Gaussian, Laplace, Matern
from hck.points import as_points
from hck.selection import Observations, Space
from hck.selection.left_out import left_out_loss
from hck.selection.loss import Calibration, InUnits, LogLoss, SquaredError

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(50, 3))
CODES = {2: (X[:, 0] > 0.5).astype(int), 3: np.digitize(X[:, 0] + 0.2 * RNG.normal(size=50), [0.3, 0.7])}
LOSSES = {
    "squares": SquaredError(RNG.normal(size=(50, 2))),
    "weighted squares": SquaredError(RNG.normal(size=(50, 2)), RNG.uniform(0.5, 2, 50)),
    "two classes": LogLoss(CODES[2]),
    "three classes": LogLoss(CODES[3], RNG.uniform(0.5, 2, 50)),
}


def columns(name):
    return {"two classes": 1, "three classes": 3}.get(name, 2)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("unit", [False, True])
def test_gradient_by_predictions(name, unit):
    k = columns(name)
    loss = InUnits(LOSSES[name], np.full(k, 0.7), np.full(k, 0.1)) if unit else LOSSES[name]
    predicted = RNG.normal(size=(50, k))
    value, gradient = loss.with_gradient(predicted)
    assert value == loss(predicted)
    assert gradient.shape == predicted.shape
    for i, j in ((0, 0), (17, k - 1)):
        ends = []
        for step in (1e-5, -1e-5):
            moved = predicted.copy()
            moved[i, j] += step
            ends.append(loss(moved))
        # the slope is only found to some digits
        assert gradient[i, j] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("kernel", [Matern([0.5, 1.0, 2.0]), Gaussian(0.7), 2.0 * Laplace([1.0, 2.0, 0.5])])
@pytest.mark.parametrize("weighted", [False, True])
def test_gradient_by_parameters(kernel, weighted):
    y = np.stack([np.sin(6 * X[:, 0]), X[:, 1]], 1) + 0.1 * RNG.normal(size=(50, 2))
    noise = torch.from_numpy(RNG.uniform(0.5, 2, 50)) if weighted else None
    sample, loss = Observations(as_points(X), torch.from_numpy(y), noise=noise), SquaredError(y)
    space = Space.of(kernel, 0.05)
    value, gradient = left_out_loss(space, space.start, sample, loss)
    assert value < 1
    for i in range(len(gradient)):
        step = np.zeros_like(space.start)
        step[i] = 1e-5
        ends = [left_out_loss(space, space.start + s * step, sample, loss)[0] for s in (1, -1)]
        assert gradient[i] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5, abs=1e-8)


def test_left_out_predictions_are_those_of_the_others():
    y = np.sin(6 * X[:, :1])
    sample = Observations(as_points(X), torch.from_numpy(y))
    space = Space.of(Matern(0.5), 0.1)
    k = Matern(0.5)(X)
    errors = []
    for i in range(50):
        rest = np.delete(np.arange(50), i)
        errors.append(k[i, rest] @ np.linalg.solve(k[np.ix_(rest, rest)] + 0.1 * np.eye(49), y[rest]) - y[i])
    expected = np.mean(np.square(errors)) / y.var()
    assert left_out_loss(space, space.start, sample, SquaredError(y))[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", LOSSES)
def test_some_of_the_observations(name):
    loss, rows = LOSSES[name], np.arange(5, 45)
    weight = None if loss.weight is None else loss.weight[rows]
    predicted = RNG.normal(size=(40, columns(name)))
    expected = type(loss)(loss.observed[rows], weight)(predicted)
    assert loss.take(rows)(predicted) == expected
    units = InUnits(loss, np.full(columns(name), 2.0), np.zeros(columns(name)))
    assert units.take(rows)(predicted / 2) == pytest.approx(expected, rel=1e-9)
    assert units.margin == loss.margin


@pytest.mark.parametrize("classes", [2, 3])
def test_a_weight_counts_like_copies(classes):
    weight = RNG.integers(1, 4, 50).astype(float)
    again = np.repeat(np.arange(50), weight.astype(int))
    decision, code = RNG.normal(size=(50, classes if classes > 2 else 1)), CODES[classes]
    once, copies = LogLoss(code, weight)(decision), LogLoss(code[again])(decision[again])
    assert once == pytest.approx(copies, rel=1e-6)
    y = RNG.normal(size=(50, 1))
    once, copies = SquaredError(y, weight)(decision[:, :1]), SquaredError(y[again])(decision[again, :1])
    assert once == pytest.approx(copies, rel=1e-9)
    slopes = [Calibration.fit(decision, code, weight), Calibration.fit(decision[again], code[again])]
    assert slopes[0].slope == pytest.approx(slopes[1].slope, rel=1e-4)
