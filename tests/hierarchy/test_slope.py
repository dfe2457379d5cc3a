"""Gradients of predictions, and their variances, against the definition differentiated by autograd."""

import pytest
import torch

from hck.errors import NoGradientError
from hck.hierarchy import Forest
from hck.hierarchy.uncertainty import Uncertainty
from hck.kernels.slope import slope_variance
from hck.points import DensePoints

pytestmark = pytest.mark.usefixtures("one_thread")

KERNELS = ("gaussian", "imq", "matern32", "matern52", "ard", "product", "batched")
TREES = ("kd", "kmeans", "user")
SIZES = ("one_point", "one_leaf", "two_leaves", "fewer_points_than_rank", "leaf_size_3")
PROBLEMS = [
    *(f"{kernel}/prime@float64" for kernel in KERNELS),
    *(f"{tree}/prime@float64" for tree in TREES),
    *(f"random_projection/{size}@float64" for size in SIZES),
    *("landmarks:kmeans@float64", "landmarks:list@float64"),
    *(f"{kernel}/prime@float32" for kernel in ("gaussian", "matern32", "product")),
]
ROUGH = ["matern12/prime@float64"]


def dense_slopes(problem):
    """∂k_h(X, x)/∂x of the definition: shape (n, points, d)."""
    x = problem.new_points.x.double().requires_grad_()
    tree, definition = problem.hierarchical.tree, problem.definition
    leaf = tree.route(problem.new_points)
    cached, definition._base = definition._base, type(definition)._base.__get__(definition)
    try:
        across = definition.matrix(problem.exact_points, tree.leaf_of_point, DensePoints(x), leaf)
    finally:
        definition._base = cached
    v = torch.ones_like(across).requires_grad_()  # by which Σ v ∂k_h/∂x is differentiated: a column has one x
    (total,) = torch.autograd.grad((across * v).sum(), x, create_graph=True)
    each = [torch.autograd.grad(total[:, m].sum(), v, retain_graph=True)[0] for m in range(x.shape[1])]
    return torch.stack(each, -1)


@pytest.mark.parametrize("problem", [*PROBLEMS, *ROUGH], indirect=True)
def test_slope(problem):
    w = torch.linalg.solve(problem.noisy, problem.b.double())
    expected = torch.einsum("npd,nc->pdc", dense_slopes(problem), w)
    predictor = problem.hierarchical.solution(problem.factor, problem.b)
    problem.assert_close(predictor.slope(problem.new_points), expected, "solve")


@pytest.mark.parametrize("problem", ["laplace/prime@float64", "sum/leaf_size_3@float64"], indirect=True)
def test_slope_by_differences(problem):
    """Where autograd has no second derivative of distances."""
    predictor, x, h = problem.hierarchical.solution(problem.factor, problem.b), problem.new_points.x, 1e-6
    steps = h * torch.eye(3, dtype=x.dtype)
    expected = [(predictor(x + step) - predictor(x - step)) / (2 * h) for step in steps]
    got = predictor.slope(x)
    torch.testing.assert_close(got, torch.stack(expected, 1), rtol=0, atol=1e-7 * float(got.abs().max()))


@pytest.mark.parametrize("problem", PROBLEMS, indirect=True)
def test_variance_of_slopes(problem):
    """∂²k(x, x')/∂x∂x' − k_h'(x, X) (K_h + αI)⁻¹ k_h'(X, x)."""
    slopes = dense_slopes(problem).flatten(1)
    left = (slopes * torch.linalg.solve(problem.noisy, slopes)).sum(0).unflatten(0, (-1, 3))
    expected = slope_variance(problem.kernel, problem.new_points.x.double()) - left
    got = Uncertainty(problem.hierarchical.blueprint, problem.factor).slope_variance(problem.new_points)
    assert (got >= 0).all()
    problem.assert_close(got, expected, "solve")


@pytest.mark.parametrize("problem", ["matern32/prime@float64", "product/prime@float64"], indirect=True)
def test_memory_budget_changes_nothing(problem):
    tight = problem.build(memory_budget=1)
    results = []
    for made in (problem.hierarchical, tight):
        factor = made.factor(problem.alpha)
        mean = made.solution(factor, problem.b).slope(problem.new_points)
        results.append((mean, Uncertainty(made.blueprint, factor).slope_variance(problem.new_points)))
    torch.testing.assert_close(results[0], results[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("problem", ["gaussian/prime@float64"], indirect=True)
def test_a_forest_averages(problem):
    new = problem.new_points
    members = [made.solution(made.factor(0.1), problem.b) for made in (problem.hierarchical, problem.build())]
    each = [member.slope(new) for member in members]
    torch.testing.assert_close(Forest(members).slope(new), (each[0] + each[1]) / 2)
    torch.testing.assert_close(Forest(members, [0.2, 0.7]).slope(new), 0.2 * each[0] + 0.7 * each[1])


@pytest.mark.parametrize("problem", ["sparse:gaussian@float64", "callable/prime@float64"], indirect=True)
def test_what_has_none(problem):
    predictor = problem.hierarchical.solution(problem.factor, problem.b)
    with pytest.raises(NoGradientError):
        predictor.slope(problem.new_points)
    with pytest.raises(NoGradientError):
        Uncertainty(problem.hierarchical.blueprint, problem.factor).slope_variance(problem.new_points)
