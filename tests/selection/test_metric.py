"""Metrics that are learned on neighbourhoods, against slow gradients and known answers."""

import numpy as np
import pytest
import torch

from hck.backend.random import Random
from hck.points import as_points
from hck.selection import Observations
from hck.selection.learning import Lesson
from hck.selection.metric import Metric, _learn, learn_metrics
from hck.selection.neighbourhoods import Neighbourhoods, placed, regions, squared_lengths

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)


def tensor(x):
    return torch.tensor(np.asarray(x), dtype=torch.float64)


def neighbourhoods(x, y, seed=0):
    return Neighbourhoods.of(Observations(as_points(x), tensor(y)), Random(seed))


def test_neighbourhoods_are_the_nearest_points():
    x = RNG.normal(size=(500, 3))
    near = neighbourhoods(x, x[:, :1])
    metric = tensor([[1.0, 0.1, 3.0], [1.0, 1.0, 1.0]])
    rows = near.near(torch.tensor([3]), metric, 40)
    for each, found in zip(metric, rows, strict=True):
        nearest = ((near.x[3] - near.x) * each).square().sum(-1).argsort()[:40]
        assert set(nearest.tolist()) == set(found.tolist())


@pytest.mark.parametrize("shape", [(2, 5), (2, 5, 3)])
def test_lengths_in_a_metric(shape):
    x, metric = tensor(RNG.normal(size=(20, 5))), tensor(RNG.normal(size=shape))
    expected = placed(x, metric).square().sum(-1)
    torch.testing.assert_close(squared_lengths(x, metric), expected, rtol=1e-12, atol=0)


def test_points_from_everywhere():
    x = np.linspace(0, 1, 1000)[:, None]
    near = neighbourhoods(x, x)
    centres, anywhere = near.draws(3, 100)
    assert len(set(centres.tolist())) == 3
    for centre, rows in zip(centres[:, None], anywhere, strict=True):
        (close,) = near.near(centre, tensor([[1.0]]), 100)
        spread = [float(near.x[some].max() - near.x[some].min()) for some in (close, rows)]
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


@pytest.mark.parametrize("name", ["matern12", "matern32", "rational_quadratic"])
def test_points_that_repeat_teach_too(name):
    """Kernels of the distance's root have no slope where it is 0; points there have none to be moved by."""
    x = np.repeat(RNG.integers(0, 9, size=(100, 2)) / 8, 6, axis=0)
    y = np.sin(5 * x[:, :1]) + 0.1 * RNG.normal(size=(600, 1))
    (found,) = learn_metrics(
        [Metric(name, tensor([1.0, 1.0]))], Lesson("each", 60, 0.15), neighbourhoods(x, y / y.std())
    )
    assert found.matrix[0] > 2 * found.matrix[1]


def test_fewer_points_than_a_neighbourhood():
    x = RNG.normal(size=(7, 2))
    (found,) = learn_metrics(
        [Metric("matern12", tensor([1.0, 1.0]))], Lesson("matrix", 10), neighbourhoods(x, x)
    )
    assert found.matrix.shape == (2, 2)
    assert found.matrix.isfinite().all()
