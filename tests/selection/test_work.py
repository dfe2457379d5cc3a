"""The size of forests follows the work that is allowed."""

import time

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from hck import HCKRegressor
from hck.kernels import Gaussian
from hck.partition import Tree
from hck.points import as_points
from hck.selection.auto import shape_of
from hck.selection.candidate import Given, Shape
from hck.selection.contest import Contest
from hck.selection.loss import SquaredError
from hck.selection.observations import Observations
from hck.selection.work import (
    Limits,
    allowed_work,
    final_shape,
    forest_shape,
    forest_work,
    refining,
    tree_work,
)
from hck.settings import Settings

CPU = torch.device("cpu")


def test_names_and_seconds():
    fast, balanced, best = (allowed_work(name, 10**5, CPU) for name in ("fast", "balanced", "best"))
    assert fast < balanced < best
    assert allowed_work(20.0, 10**5, CPU) == 2 * allowed_work(10.0, 10**5, CPU)


@pytest.mark.parametrize("work", [1e10, 1e12, 1e14])
@pytest.mark.parametrize("d", [3, 800])
def test_no_more_work_than_allowed(work, d):
    shape = forest_shape((10**5, d), Limits(work))
    assert shape.n_trees * tree_work(10**5, d, shape.leaf_size, shape.rank) <= work or shape.leaf_size == 64
    assert 1 <= shape.rank <= shape.leaf_size
    assert forest_shape((10**5, d), Limits(2 * work)).leaf_size >= shape.leaf_size


def test_few_points_have_one_leaf():
    assert forest_shape((500, 4), Limits(1e12)) == forest_shape((500, 4), Limits(1e13))
    assert forest_shape((500, 4), Limits(1e12)).n_trees == 1
    assert forest_shape((500, 4), Limits(1e12)).leaf_size == 500


def test_memory_bounds_leaves():
    assert forest_shape((10**5, 4), Limits(1e18, 3e8)).leaf_size <= 1000


def test_trees_that_are_given():
    assert forest_shape((500, 4), Limits(1e12), n_trees=3).n_trees == 3


def test_a_leaf_may_have_all_points():
    assert forest_shape((1000, 2), Limits(1e13, 1e12), n_trees=1) == Shape(1, 1000, 125)
    assert forest_shape((50, 2), Limits(1e13, 1e12), n_trees=8) == Shape(8, 50, 6)


POINTS = as_points(torch.rand(1000, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))
LARGE, SMALL = Limits(1e15), Limits(1e8)


def final(limits, rank=None, n_trees=None, **settings):
    return final_shape(Given("auto", None, rank, n_trees), Settings(1, **settings), POINTS, limits)


def test_a_shape_that_is_given_stays():
    assert final(LARGE, n_trees=3, leaf_size=50, rank=20) == Shape(3, 50, 20)
    assert final(LARGE, rank=20) == Shape(1, None, 20)
    assert final(SMALL, leaf_size=200) == Shape(8, 200, 25)
    assert final(SMALL, leaf_size=2000) == Shape(1, 2000, 125)


def test_the_rest_of_a_shape_follows_the_limits():
    assert final(LARGE) == Shape(1, 1000, 125)
    assert final(SMALL).n_trees == 8
    assert final(LARGE, approximation="exact").n_trees == 1


def test_the_leaves_of_a_tree_that_is_given():
    tree = Tree.from_labels([k // 80 for k in range(1000)])
    assert final(LARGE, partition=tree) == Shape(1, 80, 10)


@pytest.mark.parametrize(("name", "most"), [("nystrom", 1000), ("fourier", 1000), ("tapered", 64)])
def test_ranks_without_a_tree(name, most):
    assert final(LARGE, approximation=name) == Shape(1, None, most)
    assert final(SMALL, approximation=name, n_trees=2).rank <= most
    assert final(SMALL, approximation=name, n_trees=2).n_trees == 2


def test_the_work_of_a_forest_is_that_of_leaves_as_halving_makes_them():
    """A leaf size between two that halving makes is the smaller one."""
    work = [forest_work(8000, 5, Shape(4, leaf_size, 50)) for leaf_size in (1000, 1500, 1999, 2000)]
    assert work[0] == work[1] == work[2] < work[3]
    assert forest_work(8000, 5, Shape(4, 9000, 50)) == forest_work(8000, 5, Shape(4, 8000, 50))
    assert forest_work(8000, 5, Shape(1, None, 100)) > 8000 * 100**2


@pytest.mark.parametrize("seconds", [2.0, 20.0, 200.0])
def test_what_is_trained_fits_into_the_time_that_is_left(seconds):
    rng = np.random.default_rng(0)
    data = Observations(as_points(rng.uniform(size=(50_000, 4))), torch.zeros(50_000, 1))
    limits = Limits(allowed_work(seconds, 50_000, CPU), deadline=time.perf_counter() + seconds)
    loss = SquaredError(np.zeros((50_000, 1)))
    contest = Contest(data, loss, Settings(rank=1), limits, np.random.RandomState(0), pace=5e10)
    shape = shape_of(Given("auto"), contest)
    assert shape.n_trees == 8
    assert 0.3 * seconds < forest_work(50_000, 4, shape) / contest.pace < seconds


def test_few_seconds_leave_fewer_trees_rather_than_tiny_leaves():
    rng = np.random.default_rng(0)
    data = Observations(as_points(rng.uniform(size=(50_000, 4))), torch.zeros(50_000, 1))
    trees = []
    for seconds in (0.1, 0.5, 5.0):
        limits = Limits(allowed_work(seconds, 50_000, CPU), deadline=time.perf_counter() + seconds)
        loss = SquaredError(np.zeros((50_000, 1)))
        contest = Contest(data, loss, Settings(rank=1), limits, np.random.RandomState(0), pace=5e10)
        shape = shape_of(Given("auto"), contest, passes=4.0)
        assert shape.leaf_size >= 128 or shape.n_trees == 1
        assert shape_of(Given("auto", n_trees=8), contest).n_trees == 8
        trees.append(shape.n_trees)
    assert trees[0] == 1 < trees[-1] == 8
    assert trees == sorted(trees)


def test_a_part_of_the_time():
    now = time.perf_counter()
    limits = Limits(1.0, deadline=now + 100, begin=now)
    assert limits.allow(40, by=0.5)
    assert not limits.allow(60, by=0.5)
    assert limits.allow(60)
    assert Limits(1.0).allow(1e9, by=0.1)


@pytest.mark.parametrize("more", [{"leaf_size": 64}, {"memory_budget": 100 * 3 * 3000 * 8}], ids=str)
def test_small_leaves_that_time_does_not_ask_for_have_as_many_trees(more):
    x = np.random.default_rng(0).uniform(size=(3000, 5))
    model = HCKRegressor(Gaussian(1.0), fit_time=20, random_state=0, **more).fit(x, x[:, 0])
    assert len(model.trees_) == 8


@pytest.mark.parametrize("given", [{}, {"alpha": 0.1, "lengthscale": 3.0}], ids=["one candidate", "none"])
def test_no_time_is_one_tree(given):
    x = sp.random(3000, 2000, 0.01, format="csr", random_state=0)
    model = HCKRegressor("gaussian", fit_time=1e-9, random_state=0, **given).fit(x, np.arange(3000.0))
    assert len(model.trees_) == 1


def test_enough_points_to_choose_the_ridge_of_a_tapered_kernel():
    assert refining("tapered", 1.0) == 500
    assert 500 < refining("tapered", 1e10) < refining("tapered", 1e15) == refining("nystrom", 1.0)
