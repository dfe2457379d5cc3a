"""The kernel between training points and new ones, on the whole zoo, against the definition."""

import numpy as np
import pytest
import torch

from hck.hierarchy import HierarchicalKernel
from hck.hierarchy.dense import Definition
from hck.kernels import CallableKernel, Gaussian
from hck.partition import Tree
from hck.points import as_points

pytestmark = pytest.mark.usefixtures("one_thread")


def test_extend(problem):
    """x ↦ wᵀ k_h(X, x), for several w and for one."""
    expected = problem.dense_cross.mT @ problem.b.double()
    problem.assert_close(problem.hierarchical.extend(problem.b)(problem.new_points), expected, "solve")
    one = problem.hierarchical.extend(problem.b[:, 1])(problem.new_points)
    problem.assert_close(one, expected[:, 1:2], "solve")


def test_prediction_from_solve(problem):
    """k_h(x, X)(K_h + αI)⁻¹ b, from what solving has computed on its way."""
    padded = problem.hierarchical.matrix.layout.pad(problem.b, problem.b)
    weights = problem.factor.solve_padded(padded)
    assert weights.own.shape == padded.shape
    predictor = problem.hierarchical.predictor(weights)
    expected = problem.dense_cross.mT @ torch.linalg.solve(problem.noisy, problem.b.double())
    problem.assert_close(predictor(problem.new_points), expected, "solve")
    again = problem.hierarchical.extend(problem.factor.solve(problem.b))
    problem.assert_close(again(problem.new_points), expected, "solve")


def test_cross(problem):
    problem.assert_close(problem.hierarchical.cross(problem.new_points), problem.dense_cross, "matrix")


@pytest.mark.parametrize(
    "problem", ["random_projection/prime", "kd/leaf_size_3", "pca/one_leaf", "kernel/prime"], indirect=True
)
def test_training_points_as_new_points(problem):
    """They find their own leaves, where the kernel is the one of the matrix."""
    h = problem.hierarchical
    assert torch.equal(h.tree.route(problem.points), h.tree.leaf_of_point)
    problem.assert_close(h.extend(problem.b)(problem.points), h @ problem.b, "solve")
    problem.assert_close(h.cross(problem.points), problem.dense, "matrix")


@pytest.mark.parametrize(
    "problem", ["kd/prime", "user/prime", "sparse:gaussian", "strings:uniform"], indirect=True
)
@pytest.mark.parametrize("count", [0, 1])
def test_few_new_points(problem, count):
    few = problem.new_points.take(torch.arange(count))
    problem.assert_close(problem.hierarchical.cross(few), problem.dense_cross[:, :count], "matrix")
    expected = problem.dense_cross[:, :count].mT @ problem.b
    problem.assert_close(problem.hierarchical.extend(problem.b)(few), expected, "solve")


@pytest.mark.parametrize("problem", ["kmeans/prime", "pca/one_leaf", "landmarks:list"], indirect=True)
def test_many_new_points_in_one_leaf(problem):
    """More new points in a leaf than it has training points, in pieces and at once; repeated points agree."""
    many = problem.new_points.take(torch.arange(problem.n * 3) % 2)
    expected = problem.dense_cross[:, :2].mT @ problem.b
    for budget in (1, "10kB", None):
        f = problem.build(memory_budget=budget).extend(problem.b)
        problem.assert_close(f(many), expected.repeat(problem.n * 2, 1)[: len(many)], "solve")


def test_memory_budget_bounds_what_is_evaluated_at_once(rng):
    """However many new points fall into one leaf."""
    largest = 0

    def recorded(a, b):
        nonlocal largest
        values = torch.exp(-torch.cdist(a, b))
        largest = max(largest, values.nbytes)
        return values

    kernel = CallableKernel(recorded, batched=True)
    h = HierarchicalKernel.build(kernel, rng.uniform(size=(64, 2)), 8, 16, memory_budget="64kB")
    f = h.extend(torch.ones(64, dtype=torch.float64))
    largest = 0
    f(np.full((3000, 2), 0.5))
    assert 0 < largest < 64_000 < 3000 * 16 * 8


@pytest.mark.parametrize("problem", ["kd/prime", "sparse:gaussian", "strings:uniform"], indirect=True)
def test_new_points_in_the_users_form(problem):
    """Arrays, lists and sparse matrices are taken as they are given."""
    f = problem.hierarchical.extend(problem.b)
    assert torch.equal(f(problem.new), f(problem.new_points))
    assert torch.equal(
        problem.hierarchical.cross(problem.new), problem.hierarchical.cross(problem.new_points)
    )


def test_users_route(rng):
    """New points go where the user's function sends them, here and in the definition."""
    kernel, x, new = Gaussian(0.5), rng.uniform(size=(60, 2)), rng.uniform(size=(20, 2))

    def labels(points):
        quarter = (2 * np.asarray(points)).astype(int)
        return np.where(quarter[:, :1] == 0, 0, quarter + 1)  # the left half is one leaf, at depth 1

    tree = Tree.from_labels(labels(x), route=labels)
    assert tree.level[tree.leaves].tolist() == [1, 2, 2]
    h = HierarchicalKernel.build(kernel, x, rank=7, partition=tree)
    expected = Definition(kernel, h.tree, h.landmarks, h.jitter).cross(as_points(x), as_points(new))
    torch.testing.assert_close(h.cross(new), expected, rtol=0, atol=1e-12)
    left = new[new[:, 0] < 0.5]
    torch.testing.assert_close(h.cross(left), expected[:, new[:, 0] < 0.5], rtol=0, atol=1e-12)
    inside = np.isin(labels(x)[:, 0], 0)
    base = torch.from_numpy(kernel(x[inside], left))
    torch.testing.assert_close(h.cross(left)[inside], base, rtol=0, atol=1e-12)
