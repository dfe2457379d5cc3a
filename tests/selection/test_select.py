"""What is chosen, as functions of plain values: no estimator is needed."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from hck.errors import NotPositiveDefiniteError
from hck.kernels import CallableKernel, Gaussian, Matern
from hck.points import as_points
from hck.selection import Candidate, Observations
from hck.selection.auto import given_kernel, refined_alpha, select
from hck.selection.candidate import Given, Shape
from hck.selection.contest import Contest, meet
from hck.selection.isotropic import isotropic, stretched, typical_distance
from hck.selection.loss import SquaredError
from hck.selection.work import Limits
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
    assert found.kernel.parameters()["lengthscale"].shape == (2,)
    assert alpha is None or found.alpha == alpha
    assert found.candidates[0].loss < 0.1
    assert not found.blend


def test_a_ridge_for_a_kernel():
    found = select(Given(Gaussian(0.3), rank=32), contest(), {"": None})
    assert found.candidates[0].origin == "the kernel that was given"
    assert found.candidates[0].loss < 0.1


def test_averages_have_half_of_the_work_each():
    given = Given("matern32", n_trees=8, blends=True)
    alone = select(replace(given, blends=False), contest(1e8), {"": None})
    found = select(given, contest(1e8), {"": None})
    assert 1 <= len(found.blend) <= 3
    assert found.blend[0].kernel is found.kernel
    assert found.leaf_size < alone.leaf_size
    assert found.n_trees == alone.n_trees


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
    found = isotropic(here, ["gaussian", "matern32"], {"": None, " in units": unit}, None)
    assert [each.loss for each in found] == sorted(each.loss for each in found)
    assert all(each.origin.endswith("in units") for each in found)


def test_meeting_goes_on_beyond_the_end():
    """The best of the alphas is the largest of those that are tried, so that a larger one is tried too."""
    candidate = Candidate(Matern(0.3), 1e-4, "")
    (found,) = meet(contest(), [candidate], (0.1, 1.0, 10.0), 1e9)
    assert found.alpha == pytest.approx(1e-2)


def test_stretched_kernels():
    kernel = 2.0 * Gaussian([1.0, 3.0]) + Matern(0.5)
    found = stretched(kernel, 2.0)
    assert str(found) == str(2.0 * Gaussian([2.0, 6.0]) + Matern(1.0))


def test_typical_distances():
    assert typical_distance(as_points([[0.0], [1.0], [3.0]])) == 2
    assert typical_distance(as_points([[1.0], [1.0]])) == 1
