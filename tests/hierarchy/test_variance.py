"""The variance at new points against dense algebra, on the whole zoo."""

import pytest
import torch

from hck.hierarchy.variance import Variance

pytestmark = pytest.mark.usefixtures("one_thread")


def test_variance(problem):
    """k(x, x) − k_h(x, X) (K_h + αI)⁻¹ k_h(X, x)."""
    cross = problem.dense_cross
    prior = problem._joint.diagonal()[problem.n :]
    expected = prior - (cross * torch.linalg.solve(problem.noisy, cross)).sum(0)
    got = Variance(problem.hierarchical, problem.factor)(problem.new_points)
    assert (got >= 0).all()
    problem.assert_close(got, expected, "solve")


@pytest.mark.parametrize(
    "problem", ["random_projection/prime@float64", "kmeans/prime@float64"], indirect=True
)
def test_memory_budget_changes_nothing(problem):
    expected = Variance(problem.hierarchical, problem.factor)(problem.new_points)
    tight = problem.build(memory_budget=1)
    got = Variance(tight, tight.factor(problem.alpha))(problem.new_points)
    torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("problem", ["random_projection/prime@float64"], indirect=True)
def test_little_is_left_at_a_training_point_without_noise(problem):
    h = problem.hierarchical
    got = Variance(h, h.factor(1e-8))(problem.points)
    assert float(got.max()) <= 1e-6
