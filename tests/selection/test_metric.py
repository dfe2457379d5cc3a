"""Metrics that are learned on neighbourhoods, against slow gradients and known answers."""

import numpy as np
import pytest
import torch

from hck.backend.random import Random
from hck.kernels import kernel_names, make_kernel
from hck.points import as_points
from hck.selection import Observations
from hck.selection.metric import Lesson, Metric, _formula, _gradient, _learn, can_learn, learn_metrics
from hck.selection.neighbourhoods import Neighbourhoods, placed, regions

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
NAMES = [name for name in kernel_names() if can_learn(name)]


def tensor(x):
    return torch.tensor(np.asarray(x), dtype=torch.float64)


def neighbourhoods(x, y, seed=0):
    return Neighbourhoods.of(Observations(as_points(x), tensor(y)), Random(seed))


def slow_loss(name, x, y, metric, levels, noise):
    """Minus the log-likelihood per value of y, by the definition."""
    kernel = make_kernel(name, 1.0)
    kernel = kernel.with_parameters(
        {each: levels[2].exp() for each in kernel.parameters() if each == "alpha"}
    )
    z = x @ metric if metric.ndim == 2 else x * metric
    matrix = levels[0].exp() * kernel.evaluate(z, z) / kernel.amplitude
    matrix = matrix + levels[1].exp() * torch.diag(noise)
    solved = torch.linalg.solve(matrix, y)
    value = (y * solved).sum() / 2 + y.shape[1] * torch.logdet(matrix) / 2
    return value / y.numel()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("whole", [True, False])
def test_the_gradient_is_that_of_the_likelihood(name, columns, whole):
    x, y = tensor(RNG.normal(size=(12, 3))), tensor(RNG.normal(size=(12, columns)))
    noise = tensor(RNG.uniform(0.5, 2.0, size=12))
    metric = tensor(RNG.normal(size=(3, 2)) if whole else RNG.uniform(0.5, 2.0, size=3)).requires_grad_()
    levels = tensor([0.3, -1.0, 0.4]).requires_grad_()
    slow_loss(name, x, y, metric, levels, noise).backward()
    with torch.no_grad():
        z = placed(x[None], metric[None])
        by_place, by_level = _gradient(z, y[None], noise[None], [_formula(name)], levels[None], fixed=False)
    found = x.mT @ by_place[0] if whole else (x * by_place[0]).sum(0)
    torch.testing.assert_close(found, metric.grad, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(by_level[0], levels.grad, rtol=1e-7, atol=1e-9)
    assert (by_level[0, 2] != 0) == _formula(name).shaped


def test_a_matrix_that_is_not_positive_definite_teaches_nothing():
    z = torch.zeros(1, 5, 2, dtype=torch.float64)
    nothing = torch.full((1, 3), -800.0, dtype=torch.float64)  # exp(−800) is 0
    y, noise = torch.ones(1, 5, 1).double(), torch.ones(1, 5).double()
    by_place, by_level = _gradient(z, y, noise, [_formula("gaussian")], nothing, fixed=False)
    assert not by_place.any()
    assert not by_level.any()


def test_neighbourhoods_are_the_nearest_points():
    x = RNG.normal(size=(500, 3))
    near = neighbourhoods(x, x[:, :1])
    metric = tensor([[1.0, 0.1, 3.0], [1.0, 1.0, 1.0]])
    rows = near.draw(3, metric, 40)
    for each, found in zip(metric, rows, strict=True):
        away = (near.x[:, None] - near.x) * each
        ranks = away.square().sum(-1).argsort(1)[:, :40]  # the nearest of each point
        assert any(set(row.tolist()) == set(found.tolist()) for row in ranks)


def test_points_from_everywhere():
    x = np.linspace(0, 1, 1000)[:, None]
    near = neighbourhoods(x, x)
    rows = near.draw(0, tensor([[1.0], [1.0]]), 100, torch.tensor([False, True]))
    spread = near.x[rows, 0].amax(1) - near.x[rows, 0].amin(1)
    assert spread[0] < 0.25 < 0.8 < spread[1]


@pytest.mark.parametrize("most", [10, 64, 1000])
def test_regions_have_all_points(most):
    parts = regions(as_points(RNG.normal(size=(300, 2))), most, Random(0))
    assert sorted(torch.cat(parts).tolist()) == list(range(300))
    assert max(map(len, parts)) <= most


def test_one_lengthscale_stays_one():
    x = RNG.normal(size=(400, 3))
    start = Metric("matern32", tensor([1.0, 2.0, 4.0]))
    (found,) = learn_metrics([start], Lesson("one", 20), neighbourhoods(x, np.sin(x[:, :1])))
    ratio = found.matrix / start.matrix
    assert ratio[0] != 1
    torch.testing.assert_close(ratio, ratio[0].expand(3))


def test_features_without_use_are_found():
    x = RNG.normal(size=(1500, 6))
    y = np.sin(2 * x[:, :1]) + 0.05 * RNG.normal(size=(1500, 1))
    start = Metric("matern32", torch.full((6,), 6**-0.5, dtype=torch.float64))
    (found,) = learn_metrics([start], Lesson("each", 100, 0.15), neighbourhoods(x, y / y.std()))
    assert found.matrix[0] > 5 * found.matrix[1:].max()


def test_a_direction_is_found():
    """y depends on one direction, which no lengthscales show."""
    x = RNG.normal(size=(3000, 4))
    direction = np.array([1.0, -1.0, 1.0, -1.0]) / 2
    y = np.sin(3 * x @ direction)[:, None]
    start = Metric("matern32", torch.full((4,), 0.5, dtype=torch.float64), alpha=0.01)
    (found,) = learn_metrics([start], Lesson("matrix", 250, 0.02), neighbourhoods(x, y / y.std()))
    values, vectors = np.linalg.eigh((found.matrix @ found.matrix.mT).numpy())
    assert abs(vectors[:, -1] @ direction) > 0.97
    assert values[-1] > 2 * values[-2]


def test_a_ridge_that_is_given_stays():
    x = RNG.normal(size=(300, 2))
    start = Metric("gaussian", tensor([1.0, 1.0]), alpha=0.07)
    (found,) = learn_metrics([start], Lesson("each", 10, fixed=True), neighbourhoods(x, x[:, :1]))
    assert found.alpha == 0.07


def test_metrics_are_learned_as_alone():
    """All at once, as on a GPU, or each on a thread of its own: the same."""
    x = RNG.normal(size=(600, 3))
    near, lesson = neighbourhoods(x, np.sin(x[:, :1])), Lesson("each", 15)
    starts = [
        Metric(name, tensor([0.5, 0.5, 0.5]), mixed=mixed)
        for name in ("matern32", "laplace")
        for mixed in (False, True)
    ]
    for together, alone in zip(
        _learn(starts, lesson, near), learn_metrics(starts, lesson, near), strict=True
    ):
        torch.testing.assert_close(together.matrix, alone.matrix, rtol=1e-9, atol=0)


def test_fewer_points_than_a_neighbourhood():
    x = RNG.normal(size=(7, 2))
    (found,) = learn_metrics(
        [Metric("matern12", tensor([1.0, 1.0]))], Lesson("matrix", 10), neighbourhoods(x, x)
    )
    assert found.matrix.shape == (2, 2)
    assert found.matrix.isfinite().all()
