"""What is chosen, as functions of plain values: no estimator is needed."""

import time
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import hck.selection.auto as auto
from hck.errors import NotPositiveDefiniteError
from hck.kernels import CallableKernel, Gaussian, Matern
from hck.points import as_points
from hck.selection import Candidate, Observations
from hck.selection.anisotropic import Course
from hck.selection.auto import given_kernel, meet, refined_alpha, select, share
from hck.selection.candidate import Given, Shape
from hck.selection.contest import Contest, is_series
from hck.selection.isotropic import isotropic, typical_distance
from hck.selection.loss import LogLoss, SquaredError
from hck.selection.tuning import stretched, tune, tune_ridge
from hck.selection.work import SCOUTING, Effort, Limits
from hck.settings import Settings

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(300, 2))
Y = np.sin(6 * X[:, :1]) + 0.1 * RNG.normal(size=(300, 1))
Y -= Y.mean(0)
POINTS = as_points(X)


def contest(work=1e9, approximation="hierarchical"):
    data, settings = Observations(POINTS, torch.from_numpy(Y)), Settings(1, approximation=approximation)
    return Contest(data, SquaredError(Y), settings, Limits(work), np.random.RandomState(0))


# What is given -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "lengthscale", "expected"),
    [
        ("auto", "auto", "auto"),
        ("matern32", "auto", "matern32"),
        ("auto", None, Gaussian(1.0)),
        ("auto", 0.5, Gaussian(0.5)),
        ("matern32", 2.0, Matern(2.0)),
        (Gaussian(3.0), "auto", Gaussian(3.0)),
    ],
)
def test_the_kernel_that_is_given(kernel, lengthscale, expected):
    assert str(given_kernel(kernel, lengthscale)) == str(expected)


def test_kernels_that_are_not_known():
    assert isinstance(given_kernel(lambda a, b: a @ b.T, "auto"), CallableKernel)
    with pytest.raises(ValueError, match="unknown kernel 'rbf'"):
        given_kernel("rbf", "auto")
    with pytest.raises(ValueError, match="carries its own"):
        given_kernel(Gaussian(1.0), 2.0)


def test_nothing_to_choose():
    here = contest()
    found = select(Given(Gaussian(1.0), 0.1, rank=16), here, {"": None})
    assert (found.alpha, found.shape, found.candidates, found.notes) == (0.1, Shape(1, None, 16), [], [])
    assert here.rng.randint(1000) == np.random.RandomState(0).randint(1000)  # nothing was drawn


# What is chosen ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [None, 0.05])
def test_a_kernel_of_a_name(alpha):
    found = select(Given("matern32", alpha, rank=32), contest(), {"": None})
    assert found.kernel.label == "Matérn 3/2"
    assert {each.many for each in found.candidates} == {False, True}
    assert alpha is None or found.alpha == alpha
    assert found.candidates[0].loss < 0.1
    assert not found.blend


def test_a_ridge_for_a_kernel():
    found = select(Given(Gaussian(0.3), rank=32), contest(), {"": None})
    assert found.candidates[0].origin == "the kernel that was given"
    assert found.candidates[0].loss < 0.1


def test_candidates_share_the_trees(monkeypatch):
    monkeypatch.setattr(auto, "_LIGHTEST", 0.0)  # so that even those join that add next to nothing
    given = Given("matern32", n_trees=8, blends=True)
    alone = select(replace(given, blends=False), contest(1e8), {"": None})
    found = select(given, contest(1e8), {"": None})
    assert 2 <= len(found.blend) <= 3
    assert not alone.blend
    assert found.blend[0].kernel is found.kernel
    assert found.shape == alone.shape  # at no more work
    assert sum(each.n_trees for each in found.blend) == 8
    assert sum(each.weight for each in found.blend) == pytest.approx(1)
    assert all(each.predicted is None for each in (*found.blend, *found.candidates))


@pytest.mark.parametrize(
    ("weights", "n_trees", "expected"),
    [
        ([0.5, 0.3, 0.2], 8, [4, 2, 2]),
        ([0.85, 0.15], 8, [7, 1]),
        ([0.95, 0.05], 2, [1, 1]),
        ([0.5, 0.3, 0.2], 2, [1, 1]),
        ([0.5, 0.3, 0.2], 1, []),
        ([1.0], 8, []),
    ],
)
def test_trees_are_dealt_by_weight(weights, n_trees, expected):
    blend = [Candidate(Gaussian(1.0), 0.1, "", weight=weight) for weight in weights]
    found = share(blend, Shape(n_trees, 50, 8), Given("gaussian", n_trees=n_trees), contest())
    assert [each.n_trees for each in found] == expected
    assert not found or sum(each.weight for each in found) == pytest.approx(1)
    np.testing.assert_allclose(
        [each.weight / found[0].weight for each in found],
        [weight / weights[0] for weight in weights[: len(found)]],
    )


def test_one_leaf_is_solved_for_as_many_as_work_allows():
    blend = [Candidate(Gaussian(1.0), 0.1, "", weight=weight) for weight in (0.5, 0.3, 0.2)]
    given, whole = Given("gaussian"), Shape(1, len(X), 8)
    assert [each.n_trees for each in share(blend, whole, given, contest(1e12))] == [1, 1, 1]
    assert share(blend, whole, given, contest(1.0)) == []
    assert share(blend, whole, replace(given, n_trees=1), contest(1e12)) == []


def test_a_ridge_for_another_approximation():
    found = select(Given(Gaussian(0.3), rank=40), contest(approximation="nystrom"), {"": None})
    assert found.notes == [f"with this approximation: alpha {found.alpha:.3g}"]


class Failing:
    """A stand-in whose matrix is positive definite with a large ridge only."""

    def __init__(self, least):
        self.least = least

    def ridge(self, noise, y, left_out):
        if noise < self.least:
            raise NotPositiveDefiniteError("too small")
        return None, y + noise  # the smaller, the better


def test_ridges_that_are_too_small_are_passed_over():
    sample = contest().sample(1000)
    assert refined_alpha(1.0, Failing(0.05), *sample) == pytest.approx(0.1)
    assert refined_alpha(1.0, Failing(10), *sample) == 1.0


def test_units_compete():
    """In the unit that undoes a stretched feature, one lengthscale for all is enough."""
    unit = torch.tensor([1.0, 100.0], dtype=torch.float64)
    here = contest()
    here.data.points = as_points(X * unit.numpy())
    comparison = here.compare_on(300, SCOUTING)
    found = isotropic(comparison, ["gaussian", "matern32"], {"": None, " in units": unit}, None, 10)
    assert [each.loss for each in found] == sorted(each.loss for each in found)
    assert all(each.origin.endswith("in units") for each in found)


def test_meeting_goes_on_beyond_the_end():
    """The best of the alphas is the largest of those that are tried, so that a larger one is tried too."""
    candidate = Candidate(Matern(0.3), 1e-4, "")
    (found,), _ = meet(contest(), [candidate], (0.1, 1.0, 10.0), 1e9)
    assert found.alpha in (pytest.approx(1e-2), pytest.approx(1e-1))


def test_tuning_finds_scale_and_ridge():
    comparison = contest().compare_on(300, SCOUTING)
    far = Candidate(Matern(5.0), 1.0, "")
    found = tune(comparison, far, 40)
    assert found.loss < 0.05 < tune(comparison, far, 1).loss
    assert tune(comparison, far, 40, ridge_too=False).alpha == 1.0


def test_ridges_are_looked_for_beyond_the_end():
    comparison = contest().compare_on(300, SCOUTING)
    found = tune_ridge(comparison, Candidate(Matern(0.5), 1e-6, ""), (1.0, 10.0, 100.0))
    assert found.alpha > 1e-4


def test_of_many_features_a_metric_of_low_rank_is_learned():
    """y depends on one direction of 300 features, along which the points do not differ most."""
    rng = np.random.default_rng(0)
    inner = rng.normal(size=(600, 5)) * [3.0, 3.0, 3.0, 3.0, 1.0]
    x = inner @ rng.normal(size=(5, 300)) / 300**0.5 + 0.01 * rng.normal(size=(600, 300))
    y = np.sin(2 * inner[:, 4])
    data = Observations(as_points(x), torch.tensor((y - y.mean())[:, None] / y.std()))
    here = Contest(data, SquaredError(data.y.numpy()), Settings(1), Limits(1e9), np.random.RandomState(0))
    comparison = here.hold_out(600, SCOUTING)
    first = isotropic(comparison, ["matern32"], {"": None}, None, 8)[0]
    effort = Effort(kernels=1, matrices=1, steps=100, size=100, tries=6, scouts=600)
    found = Course(here, comparison, ["matern32"], None, effort).metrics(first)
    assert all(each.kernel.metric.shape == (300, 64) for each in found)
    assert min(each.loss for each in found) < 0.5 * first.loss


def test_rows_that_were_not_shuffled():
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.normal(size=(1000, 3)), 0)
    assert is_series(as_points(walk))
    assert not is_series(as_points(rng.permutation(walk)))
    assert not is_series(as_points(walk[:100]))  # too few to tell
    assert not is_series(as_points(np.ones((1000, 3))))
    assert not is_series(as_points(np.full((1000, 3), 0.1)))  # whose mean is not quite that
    rare = rng.normal(size=(1000, 1))
    rare[500:502] = 1e3  # two alike by chance
    assert not is_series(as_points(rare))
    assert not is_series(as_points(sp.csr_array(walk)))


@pytest.mark.parametrize("useless", [0, 12])
def test_in_a_series_one_kernel_is_asked_first(useless):
    """Of classes, where metrics would have to halve the loss: the others learn only if that is near."""
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.normal(size=(600, 3)), 0)
    walk /= walk.std(0)
    code = (np.sin(3 * walk[:, 0]) + (0 if useless else rng.normal(size=600)) > 0).astype(int)
    x = np.concatenate([walk, rng.normal(size=(600, useless))], 1)
    for rows in (np.arange(600), rng.permutation(600)):
        y = torch.tensor(2.0 * code[rows, None] - 1)
        data = Observations(as_points(x[rows]), (y - y.mean()) / y.std())
        here = Contest(data, LogLoss(code[rows]), Settings(1), Limits(1e9), np.random.RandomState(0))
        comparison = here.hold_out(600, SCOUTING)
        names = ["matern32", "gaussian"]
        first = isotropic(comparison, names, {"": None}, None, 8)[0]
        effort = Effort(kernels=2, matrices=1, steps=100, size=100, tries=6, scouts=600)
        found = auto._learned(Course(here, comparison, names, None, effort), first)
        every = bool(useless) or not is_series(data.points)
        assert {each.name for each in found} == ({*names} if every else {first.name})
        assert any("matrix" in each.origin for each in found) == every


# What counts ---------------------------------------------------------------------------------------------


def test_held_out_observations_shape_nothing():
    here = contest()
    here.hold_out(10**6, SCOUTING)
    assert len(here.held) == 150  # half of so few
    assert len(here.shaping(here.data)) == 150
    assert not np.isin(here.shaping(here.data).y.numpy(), here.data.y.numpy()[here.held]).any()
    comparison = here.compare_on(10**6, SCOUTING)
    np.testing.assert_array_equal(comparison.counted, here.held)


def test_where_candidates_are_tuned_more_is_held_out():
    here = contest()
    there = here.hold_out(80, SCOUTING)
    tuned = there.rows[there.counted]
    assert np.isin(here.held, there.rows).sum() < len(tuned) <= 80
    assert len(tuned) >= 0.15 * 300
    assert not np.isin(here.shaping(here.data).y.numpy(), here.data.y.numpy()[tuned]).any()
    # candidates that have been tuned are judged by rows from everywhere alone
    everywhere = here.compare_on(10**6, SCOUTING)
    np.testing.assert_array_equal(everywhere.counted, here.held)


def test_a_comparison_takes_whole_regions():
    here = contest()
    here.hold_out(10**6, SCOUTING)
    comparison = here.compare_on(100, SCOUTING)
    assert 40 <= len(comparison.some) <= 100
    assert 0 < len(comparison.counted) < len(comparison.some)
    # the loss is that of the observations that count
    predicted = np.zeros((len(comparison.counted), 1))
    expected = comparison.some.y.numpy()[comparison.counted]
    np.testing.assert_allclose(comparison.loss.observed, expected)
    assert np.isfinite(comparison.loss(predicted))


def test_more_work_is_more_effort():
    least, most = Effort.within(1e9, POINTS, 1000), Effort.within(1e13, POINTS, 1000)
    assert least.kernels < most.kernels
    assert least.steps < most.steps
    assert least.scouts < most.scouts


def test_seconds_that_are_left_are_spent():
    """A deadline that is far away allows larger leaves than one that has passed."""
    shapes = []
    for deadline in (0.0, time.perf_counter() + 100):
        here = contest()
        here.limits = Limits(1e7, deadline=deadline)
        shapes.append(select(Given("matern32", None, None, 8), here, {"": None}).shape)
    assert shapes[0].leaf_size < shapes[1].leaf_size


def test_stretched_kernels():
    kernel = 2.0 * Gaussian([1.0, 3.0]) + Matern(0.5)
    found = stretched(kernel, 2.0)
    assert str(found) == str(2.0 * Gaussian([2.0, 6.0]) + Matern(1.0))


def test_typical_distances():
    assert typical_distance(as_points([[0.0], [1.0], [3.0]])) == 2
    assert typical_distance(as_points([[1.0], [1.0]])) == 1
