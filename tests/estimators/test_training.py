"""The steps of training, one by one."""

import numpy as np
import pytest
import torch

from hck.approximations import make_approximation
from hck.estimators.training import Ensemble, Equations, Fitted, Solved, blend, scale, weigh
from hck.kernels import Gaussian
from hck.points import as_points
from hck.preparation.scaling import Scaling
from hck.selection import Selection
from hck.selection.loss import SquaredError

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(60, 2))
Y = np.stack([np.sin(6 * X[:, 0]), X[:, 1] + 5], 1)
WEIGHT = torch.from_numpy(RNG.integers(1, 4, 60).astype(float))


# Weigh ---------------------------------------------------------------------------------------------------


def test_targets_are_centred():
    found = weigh(Y, None)
    np.testing.assert_allclose(found.intercept, Y.mean(0))
    np.testing.assert_allclose(found.y.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(found.spread, Y.std(0))
    assert found.noise(True) is found.noise(False) is found.weights is None


def test_a_weight_counts_like_copies():
    again = np.repeat(np.arange(60), WEIGHT.int().numpy())
    np.testing.assert_allclose(weigh(Y, WEIGHT).intercept, weigh(Y[again], None).intercept)


def test_noise_is_relative_to_alpha():
    found = weigh(Y, WEIGHT)
    np.testing.assert_allclose(found.noise(False), 1 / WEIGHT)
    np.testing.assert_allclose(found.noise(True) / found.noise(False), WEIGHT.mean())


def test_points_that_count_for_nothing_are_not_there():
    weight = WEIGHT.clone()
    weight[::5] = 0
    kept = np.flatnonzero(weight)
    found, alone = weigh(Y, weight), weigh(Y[kept], weight[kept])
    np.testing.assert_array_equal(found.rows, kept)
    torch.testing.assert_close(found.y, alone.y)
    torch.testing.assert_close(found.weight, weight[kept])


def test_constant_targets_have_spread_1():
    np.testing.assert_array_equal(weigh(np.ones((5, 2)), None).spread, 1)


def test_the_loss_is_that_of_targets_in_their_units():
    weight = WEIGHT.clone()
    weight[:10] = 0
    found = weigh(Y, weight)
    predicted = RNG.normal(size=(50, 2))
    expected = SquaredError(Y[10:], weight[10:].numpy())(
        predicted * found.spread.numpy() + found.intercept.numpy()
    )
    assert found.loss(SquaredError, Y)(predicted) == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(found.observations(as_points(X[10:]), None).y.std(0, correction=0), 1)


# Scale ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [None, "standard", "minmax"])
def test_scaling(kind):
    found = scale(as_points(100 * X), kind, other=False, dtype=torch.float32)
    assert found.points.x.dtype == torch.float32
    assert list(found.units) == [""]
    spread = float(found.points.x.double().std(correction=0))
    assert spread == pytest.approx({None: 29, "standard": 1, "minmax": 0.29}[kind], rel=0.1)


def test_other_units_are_known_if_they_are_to_be_tried():
    points = as_points(X * [1, 100])
    assert len(scale(points, "standard", other=True, dtype=torch.float64).units) > 1


# Train ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_equations(weighted):
    weighed = weigh(Y, WEIGHT if weighted else None)
    points, kernel = as_points(X), Gaussian(0.5)
    equations = Equations(points, weighed.y, weighed.noise(False), left_out=True)
    approximation = make_approximation("exact", kernel, points, rank=64)
    solved = equations.solve(approximation, alpha=0.1)
    function, others = solved.predictor, solved.left_out
    k, y = kernel(X), weighed.y.numpy()
    noise = np.diag(0.1 / WEIGHT.numpy()) if weighted else 0.1 * np.eye(60)
    np.testing.assert_allclose(function(points), k @ np.linalg.solve(k + noise, y), atol=1e-6)
    q = np.linalg.inv(k + noise)
    np.testing.assert_allclose(others, y - q @ y / np.diag(q)[:, None], atol=1e-6)


def test_trees_are_averaged():
    others = [torch.ones(3, 1), 3 * torch.ones(3, 1)]
    found = Ensemble.of([Solved("a", others[0]), Solved("b", others[1])])
    assert found.members == ["a", "b"]
    assert found.weights is None
    np.testing.assert_array_equal(found.left_out, 2)
    assert Ensemble.of([Solved("a", None)]).left_out is None


# Blend ---------------------------------------------------------------------------------------------------


def test_blends_of_the_left_out():
    groups = [Ensemble(["a", "b"], Y + 1), Ensemble(["c"], Y - 3)]
    found = blend(groups, [0.75, 0.25])
    assert found.members == ["a", "b", "c"]
    np.testing.assert_allclose(found.weights, [0.375, 0.375, 0.25])
    np.testing.assert_allclose(found.left_out, Y)
    assert blend([groups[0], Ensemble(["c"])], [0.75, 0.25]).left_out is None


def test_one_is_no_blend():
    first = Ensemble(["a"], Y)
    assert blend([first], []) is first


# Keep ----------------------------------------------------------------------------------------------------


def test_what_is_kept():
    weighed = weigh(Y, None)
    selection = Selection(Gaussian(1.0), 0.1, 1, None, 16)
    fitted = Fitted(Ensemble(["a"], weighed.y.numpy()), weighed, Scaling(), selection)
    np.testing.assert_allclose(fitted.left_out, Y)
    assert Fitted(Ensemble(["a"]), weighed, Scaling(), selection).left_out is None
