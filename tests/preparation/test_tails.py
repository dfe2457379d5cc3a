"""Heavy tails of features, which scaling may draw in."""

import numpy as np
import pytest
import torch

from hck.points import as_points
from hck.preparation.scaling import Scaling, other_units
from hck.preparation.ties import Ties


@pytest.fixture
def points():
    rng = np.random.default_rng(0)
    columns = rng.normal(size=5000), np.exp(2 * rng.normal(size=5000)), rng.random(5000) < 0.01
    return as_points(np.stack(columns, 1))


def test_only_heavy_tails_are_drawn_in(points):
    plain = Scaling.of("standard", points)
    bent = plain.bent(points)
    bent.validate()
    assert (bent.bend > 0).tolist() == [False, True, False]  # a rare 1 among 0 is no tail
    before, after = plain(points, torch.float64).x, bent(points, torch.float64).x
    assert torch.equal(before[:, [0, 2]], after[:, [0, 2]])
    assert after[:, 1].std() == pytest.approx(1)
    assert after[:, 1].abs().max() < before[:, 1].abs().max() / 3
    assert torch.equal(after[:, 1].argsort(), before[:, 1].argsort())
    assert len(other_units(bent, points)) == 1 < len(other_units(plain, points))


def test_the_middle_is_hardly_bent_and_the_tail_is_a_logarithm(points):
    bent = Scaling.of("standard", points).bent(points)
    centre = float(bent.centre[1])

    def at(x):
        return float(bent(as_points(np.array([[0.0, x, 0.0]])), torch.float64).x[0, 1])

    width = 1 / float(bent.factor[1] * bent.bend[1])
    assert at(centre) == pytest.approx(0)
    assert at(centre + 0.01 * width) == pytest.approx(0.01 * width * float(bent.factor[1]), rel=1e-4)
    far = at(centre + 1e6 * width) - at(centre + 1e4 * width)
    assert far == pytest.approx(np.log(100) / float(bent.bend[1]), rel=1e-4)


def test_without_heavy_tails_or_scaling_there_is_nothing_to_do(points):
    some = as_points(points.x[:, :1].numpy())
    assert Scaling.of("standard", some).bent(some) is None
    assert Scaling().bent(points) is None


def test_tied_features_are_not_bent(points):
    ties = Ties(np.array([0, 0, 1]), np.zeros(3))
    assert Scaling.of("standard", points, ties).bent(points, ties) is None


def test_values_that_are_mostly_the_same():
    rng = np.random.default_rng(1)
    x = np.where(rng.random(4000) < 0.9, 0.0, rng.exponential(1000, 4000))
    points = as_points(x[:, None])
    bent = Scaling.of("standard", points).bent(points)
    assert float(bent.centre[0]) == 0
    assert bent(points, torch.float64).x.isfinite().all()


def test_slopes_are_those_by_differences(points):
    bent = Scaling.of("standard", points).bent(points)
    x = points.x[:20].clone().requires_grad_()
    scaled = bent._bent((x - bent.centre) * bent.factor)
    wanted = torch.autograd.grad(scaled.sum(), x)[0]
    torch.testing.assert_close(bent.back(torch.ones(20, 3, dtype=torch.float64), scaled.detach()), wanted)


@pytest.mark.parametrize("bend", [[-1.0], [float("nan")], [1.0, 1.0], [1e200]])
def test_forged_ones_are_refused(bend):
    one = torch.ones(1, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"bend|scaling"):
        Scaling(one, one, torch.tensor(bend, dtype=torch.float64)).validate()
