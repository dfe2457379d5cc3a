"""The size of forests follows the work that is allowed."""

import pytest
import torch

from hck.selection.work import Shape, allowed_work, forest_shape, tree_work

CPU = torch.device("cpu")


def test_names_and_seconds():
    fast, balanced, best = (allowed_work(name, 10**5, CPU) for name in ("fast", "balanced", "best"))
    assert fast < balanced < best
    assert allowed_work(20.0, 10**5, CPU) == 2 * allowed_work(10.0, 10**5, CPU)


@pytest.mark.parametrize("work", [1e10, 1e12, 1e14])
@pytest.mark.parametrize("d", [3, 800])
def test_no_more_work_than_allowed(work, d):
    shape = forest_shape(10**5, d, work)
    assert shape.n_trees * tree_work(10**5, d, shape.leaf_size, shape.rank) <= work or shape.leaf_size == 64
    assert 1 <= shape.rank <= shape.leaf_size
    assert forest_shape(10**5, d, 2 * work).leaf_size >= shape.leaf_size


def test_few_points_have_one_leaf():
    assert forest_shape(500, 4, 1e12) == forest_shape(500, 4, 1e13)
    assert forest_shape(500, 4, 1e12).n_trees == 1
    assert forest_shape(500, 4, 1e12).leaf_size == 500


def test_memory_bounds_leaves():
    assert forest_shape(10**5, 4, 1e18, memory=3e8).leaf_size <= 1000


def test_trees_that_are_given():
    assert forest_shape(500, 4, 1e12, n_trees=3).n_trees == 3


def test_a_leaf_may_have_all_points():
    assert forest_shape(1000, 2, 1e13, 1e12, n_trees=1) == Shape(1, 1000, 125)
    assert forest_shape(50, 2, 1e13, 1e12, n_trees=8) == Shape(8, 50, 6)
