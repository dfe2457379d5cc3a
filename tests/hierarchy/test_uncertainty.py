"""The variance at new points against dense algebra, on the whole zoo."""

import pytest
import torch

from hck.hierarchy.uncertainty import Uncertainty

pytestmark = pytest.mark.usefixtures("one_thread")


def test_variance(problem):
    """k(x, x) − k_h(x, X) (K_h + αI)⁻¹ k_h(X, x)."""
    cross = problem.dense_cross
    prior = problem._joint.diagonal()[problem.n :]
    expected = prior - (cross * torch.linalg.solve(problem.noisy, cross)).sum(0)
    got = Uncertainty(problem.hierarchical.blueprint, problem.factor).variance(problem.new_points)
    assert (got >= 0).all()
    problem.assert_close(got, expected, "solve")


def test_covariance(problem):
    """k_h(x, x') − k_h(x, X) (K_h + αI)⁻¹ k_h(X, x')."""
    cross = problem.dense_cross
    prior = problem._joint[problem.n :, problem.n :]
    expected = prior - cross.mT @ torch.linalg.solve(problem.noisy, cross)
    got = Uncertainty(problem.hierarchical.blueprint, problem.factor).covariance(problem.new_points)
    problem.assert_close(got, expected, "solve")


@pytest.mark.parametrize(
    "problem", ["random_projection/prime@float64", "kmeans/prime@float64"], indirect=True
)
def test_memory_budget_changes_nothing(problem):
    expected = Uncertainty(problem.hierarchical.blueprint, problem.factor).variance(problem.new_points)
    tight = problem.build(memory_budget=1)
    got = Uncertainty(tight.blueprint, tight.factor(problem.alpha)).variance(problem.new_points)
    torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("problem", ["random_projection/prime@float64"], indirect=True)
def test_little_is_left_at_a_training_point_without_noise(problem):
    h = problem.hierarchical
    got = Uncertainty(h.blueprint, h.factor(1e-8)).variance(problem.points)
    assert float(got.max()) <= 1e-6
