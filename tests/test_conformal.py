"""Thresholds of errors, their local scale, and the jackknife+ that they stand in for."""

import numpy as np
import pytest
import torch

from hck.conformal import LeftOutErrors, LocalScale, as_if_held, check_level, threshold
from hck.hierarchy import Forest, HierarchicalKernel, share_points
from hck.kernels import CallableKernel, Gaussian, Matern
from hck.points import as_points

RNG = np.random.default_rng(0)


def test_thresholds_are_those_of_few_points():
    """The k-th smallest of n errors has level k / (n + 1)."""

    def of(values, level):
        return float(threshold(np.array(values, dtype=float)[:, None], None, level)[0])

    assert of([3, 1, 2], 0.5) == 2
    assert of([3, 1, 2], 0.75) == 3
    assert of([3, 1, 2], 0.76) == np.inf
    assert of([5], 0.5) == np.inf  # which no other has predicted
    assert of(range(1, 100), 0.95) == 95
    assert of(range(9), 0.9) == 8  # though 10 · 0.9 is a little more than 9 for a computer


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9, 0.95])
def test_a_weight_of_two_is_there_twice(level):
    size, counts = RNG.exponential(size=(40, 3)), RNG.integers(1, 4, 40)
    repeated = np.repeat(size, counts, axis=0)
    # a new point has the mean weight, that is more than one of the repeated points
    n, mean = len(repeated), counts.mean()
    k = int(np.ceil(level * (n + mean) - 1e-6))
    expected = np.sort(repeated, axis=0)[k - 1] if k <= n else np.full(3, np.inf)
    np.testing.assert_array_equal(threshold(size, counts.astype(float), level), expected)
    equal = threshold(size, np.full(40, 7.0), level)
    np.testing.assert_array_equal(equal, threshold(size, None, level))


@pytest.mark.parametrize("level", [0, 1, -0.1, 90, np.nan, "0.9", None, True, [0.9]])
def test_levels_that_are_none(level):
    with pytest.raises(ValueError, match="a number between 0 and 1"):
        check_level(level)


def test_new_errors_are_below_in_as_many_cases():
    """Of exchangeable errors, by counting all cases."""
    values = RNG.normal(size=(4000, 21))
    below = [abs(v[-1]) <= LeftOutErrors(v[:-1, None]).threshold(0.8)[0] for v in values]
    assert abs(np.mean(below) - 17 / 21) < 0.02


@pytest.mark.parametrize("weighted", [False, True])
def test_errors_of_points_that_shaped_the_metric_are_made_as_large_as_others(weighted):
    size = RNG.exponential(size=(20_000, 2))
    held = RNG.uniform(size=20_000) < 0.3
    size[~held] *= [0.5, 2.0]  # too small, and too large, which is chance
    weight = RNG.uniform(1, 2, 20_000) if weighted else None
    found = as_if_held(size, held, weight)
    np.testing.assert_array_equal(found[held], size[held])
    np.testing.assert_array_equal(found[:, 1], size[:, 1])
    np.testing.assert_allclose(found[~held, 0] / size[~held, 0], 2.0, rtol=0.05)
    errors = LeftOutErrors(size, weight, np.flatnonzero(held))
    np.testing.assert_array_equal(errors.threshold(0.9), threshold(found, weight, 0.9))


def test_where_all_points_or_none_are_held_errors_stay():
    size = np.array([[1.0], [2.0], [np.inf], [0.0]])
    for held in (np.ones(4, bool), np.zeros(4, bool)):
        np.testing.assert_array_equal(as_if_held(size, held, None), size)
    some = np.array([True, False, True, False])
    np.testing.assert_array_equal(as_if_held(np.zeros((4, 1)), some, None), np.zeros((4, 1)))


def test_few_held_points_tell_a_large_difference_but_no_chance():
    """Of 40 points and 60: errors that are half as large grow, those that are alike stay nearly."""
    grown = []
    for _ in range(200):
        size, held = np.abs(RNG.normal(size=(100, 2))), np.arange(100) < 40
        size[~held] *= [0.5, 1.0]
        grown.append((as_if_held(size, held, None) / size)[-1])
    half, alike = np.mean(grown, axis=0)
    assert 1.7 < half < 2.3
    assert 1.0 <= alike < 1.1


def test_errors_that_are_infinite_say_nothing_of_others():
    size, held = np.abs(RNG.normal(size=(2000, 1))), np.arange(2000) < 600
    size[~held] *= 0.5
    some = size.copy()
    some[:300] = some[600:1300] = np.inf  # once they counted as 0, and made their kind small
    finite = np.isfinite(some)[:, 0]
    expected = as_if_held(size[finite], held[finite], None)
    np.testing.assert_allclose(as_if_held(some, held, None)[finite], expected)
    none = np.where(held[:, None], np.inf, size)
    np.testing.assert_array_equal(as_if_held(none, held, None), none)


def test_a_sample_of_points_is_from_all_over_them():
    """The oldest held points alone could be others than those that came later."""
    n = 100_000
    held = np.arange(0, n, 3)
    rows = LeftOutErrors(np.ones((n, 1)), held=held)._some()
    assert len(rows) == 20_000
    assert (np.diff(rows) > 0).all()
    assert rows[-1] == n - 1
    assert abs(np.median(rows) - n / 2) < 100
    assert abs(np.isin(rows, held).mean() - 1 / 3) < 0.01
    few = LeftOutErrors(np.ones((50, 1)), held=np.array([3, 9]))._some()
    np.testing.assert_array_equal(few, np.arange(50))


def test_rows_that_are_held_must_be_there():
    with pytest.raises(ValueError, match="held must be from 0 to 2"):
        LeftOutErrors(np.ones((3, 1)), held=np.array([3])).validate()


def grown(kernel, x, count=2, leaf_size=40):
    points = as_points(x)
    w = torch.zeros(len(x), 1, dtype=torch.float64)
    built = [
        HierarchicalKernel.build(kernel, points, rank=10, leaf_size=leaf_size, generator=seed)
        for seed in range(count)
    ]
    return Forest([share_points(each.extend(w), points) for each in built])


@pytest.mark.parametrize("leaf_size", [40, 300])
def test_local_scale_against_its_definition(leaf_size):
    x, new = RNG.normal(size=(200, 2)), RNG.normal(size=(11, 2))
    kernel, errors = Matern([0.5, 2.0]), LeftOutErrors(RNG.normal(size=(200, 3)))
    forest = grown(kernel, x, leaf_size=leaf_size)
    local, size = LocalScale.of(forest, errors), np.abs(errors.values)

    def by_definition(point, without=-1):
        total, count = 2 * size.mean(0), 2
        for member in forest.members:
            tree = member.tree
            leaf = int(tree.route(as_points(point[None]))[0])
            mine = np.flatnonzero(tree.leaf_of_point.numpy() == leaf)
            near = mine[np.argsort(-kernel(point[None], x[mine])[0])]
            near = near[near != without][:30]
            total, count = total + size[near].sum(0), count + len(near)
        return total / count

    np.testing.assert_allclose(local(as_points(new)), [by_definition(each) for each in new])
    rows = np.array([3, 77, 150])
    np.testing.assert_allclose(local.left_out(rows), [by_definition(x[i], i) for i in rows])


def test_where_there_is_no_local_scale():
    x, errors = RNG.normal(size=(60, 2)), LeftOutErrors(np.ones((60, 1)))
    assert LocalScale.of(grown(Gaussian(), x), LeftOutErrors(np.ones((7, 1)))) is None  # of some points alone
    function = CallableKernel(lambda a, b: 1 + a @ b.mT, batched=True)
    assert LocalScale.of(grown(function, x), errors) is None
    exact = LocalScale.of(
        grown(Gaussian() * Matern() + 2.0 * Gaussian(), x), LeftOutErrors(np.zeros((60, 1)))
    )
    assert (exact(as_points(x)) > 0).all()  # of errors that are all 0


def test_beside_the_jackknife_plus():
    """Its ends, each point's shifted by what the point has changed, are close to ours, and cover as much."""
    n, alpha, level = 300, 0.05, 0.9
    x, new = RNG.uniform(-2, 2, (n, 1)), RNG.uniform(-2, 2, (400, 1))
    y, observed = (np.sin(3 * each[:, 0]) + 0.3 * RNG.normal(size=len(each)) for each in (x, new))
    kernel = Gaussian(0.5)
    inverse = np.linalg.inv(kernel(x) + alpha * np.eye(n))
    errors = inverse @ y / np.diag(inverse)  # left-out ones
    weights = kernel(new, x) @ inverse
    without = (weights @ y)[:, None] - weights * errors  # f_{-i}(x), of every i
    for i in (0, 100):
        rest = np.arange(n) != i
        exact = kernel(new, x[rest]) @ np.linalg.solve(kernel(x[rest]) + alpha * np.eye(n - 1), y[rest])
        np.testing.assert_allclose(without[:, i], exact, atol=1e-9)
    k = int(np.ceil((n + 1) * level))
    lower = -np.sort(-(without - np.abs(errors)), axis=1)[:, k - 1]
    upper = np.sort(without + np.abs(errors), axis=1)[:, k - 1]
    half, centre = LeftOutErrors(errors[:, None]).threshold(level)[0], weights @ y
    width = (upper - lower).mean()
    assert np.abs(upper - (centre + half)).mean() < 0.03 * width
    assert np.abs(lower - (centre - half)).mean() < 0.03 * width
    ours, theirs = np.abs(observed - centre) <= half, (lower <= observed) & (observed <= upper)
    assert abs(ours.mean() - theirs.mean()) < 0.02
    assert ours.mean() > 0.85
