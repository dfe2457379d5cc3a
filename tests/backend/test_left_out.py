"""Gradients of losses of small sets, compiled and by torch, against autograd of the definition."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import exp, log, sqrt

from hck.backend.kernels import Formula
from hck.backend.left_out import SLOPE, Coding, Placed, gradient_by_torch, left_out_gradient
from hck.kernels import kernel_names, make_kernel
from hck.selection.metric import can_learn

RNG = np.random.default_rng(0)
FORMULAS = {name: make_kernel(name, 1.0).formula for name in kernel_names() if can_learn(name)}
# With how precise they are: torch has distances from norms and products, which lose some digits.
WAYS = {left_out_gradient(torch.device("cpu")): 1e-9, gradient_by_torch: 1e-5}
both_ways = pytest.mark.parametrize("gradient", WAYS)


def tensor(x):
    return torch.tensor(np.asarray(x), dtype=torch.float64)


def sets(formulas, m, k, columns, level=0.3):
    count = len(formulas)
    levels = torch.cat([tensor(RNG.uniform(0.5, 2.0, (count, 3)))])
    levels[:, 1] *= level
    z, y = RNG.normal(size=(count, m, k)), RNG.normal(size=(count, m, columns))
    return Placed(formulas, levels, tensor(z), tensor(y), tensor(RNG.uniform(0.5, 2.0, (count, m))))


def slow_gradient(given, i):
    """By autograd, of the loss of a set per value of y, each predicted without it."""
    z, logs = given.z[i].clone().requires_grad_(), given.levels[i].log().requires_grad_()
    y, formula, (scale, level, shape) = given.y[i], given.formulas[i], logs.exp()
    gap = z[:, None] - z
    s = gap.abs().sum(-1) if formula.manhattan else gap.square().sum(-1)
    s = s + torch.eye(len(z)).double()  # since roots have no slope at 0
    off = 1 - torch.eye(len(z)).double()
    at_zero = formula(torch.zeros(1).double(), shape)
    matrix = scale * (off * formula(s, shape) + (1 - off) * at_zero) + level * torch.diag(given.noise[i])
    value = sum(loss_of_one(given, i, matrix, j) for j in range(len(y)))
    return torch.autograd.grad(value / y.numel(), (z, logs), allow_unused=True, materialize_grads=True)


def loss_of_one(given, i, matrix, j):
    """Of one observation, by the mean and variance that the others give it."""
    y, others = given.y[i], [k for k in range(len(given.y[i])) if k != j]
    across, inner = matrix[j, others], matrix[others][:, others]
    mean = across @ torch.linalg.solve(inner, y[others])
    if given.coding is None:
        variance = matrix[j, j] - across @ torch.linalg.solve(inner, across)
        return ((y[j] - mean).square() / variance + variance.log()).sum() / 2
    score = (mean - given.coding.low) / given.coding.span
    if len(score) == 1:  # of the second class, and of the first
        score = torch.cat([score, 1 - score])
        own = 0 if y[j, 0] > given.coding.low[0] + 0.5 * given.coding.span[0] else 1
    else:
        own = int(((y[j] - given.coding.low) / given.coding.span).argmax())
    return -(SLOPE * score).log_softmax(0)[own] / given.noise[i, j]


@both_ways
@pytest.mark.parametrize("m", [1, 2, 17, 40, 129])
@pytest.mark.parametrize(("k", "columns"), [(1, 1), (3, 2), (20, 1)])
def test_gradients(gradient, m, k, columns):
    """Of all kernels whose metric is learned, each in a set of its own."""
    given = sets(list(FORMULAS.values()), m, k, columns)
    by_place, by_level = gradient(given)
    for i, (name, formula) in enumerate(FORMULAS.items()):
        for found, expected in zip((by_place[i], by_level[i]), slow_gradient(given, i), strict=True):
            assert (found - expected).abs().max() <= WAYS[gradient] * expected.abs().max() + 1e-13, name
        assert (by_level[i, 2] != 0) == (formula.shaped and m > 1)


@both_ways
@pytest.mark.parametrize("m", [1, 2, 17, 70])
@pytest.mark.parametrize("classes", [2, 3, 7])
def test_gradients_of_classes(gradient, m, classes):
    """Columns that stand for classes, in any unit; one of them for two classes."""
    given = sets(list(FORMULAS.values()), m, 3, 1 if classes == 2 else classes)
    code = torch.from_numpy(RNG.integers(classes, size=given.y.shape[:2]))
    low, span = tensor(RNG.normal(size=given.y.shape[2])), tensor(RNG.uniform(0.5, 3, given.y.shape[2]))
    own = torch.nn.functional.one_hot(code, classes).double()
    y = low + span * (own[..., 1:] if classes == 2 else own)
    given = replace(given, y=y, coding=Coding(low, span))
    by_place, by_level = gradient(given)
    for i, name in enumerate(FORMULAS):
        for found, expected in zip((by_place[i], by_level[i]), slow_gradient(given, i), strict=True):
            assert (found - expected).abs().max() <= WAYS[gradient] * expected.abs().max() + 1e-12, name


def every_operation(s, shape):
    r = sqrt(s)
    return (1 - s / 9 / shape + r * (2 - r) / 50 - (-r) / (60 + s)) / (3 / (20 + r) + 1) - exp(-s) / 8


def of_a_log(s):
    return 1 / (1 + 0.1 * log(1 + s))


@both_ways
@pytest.mark.parametrize("function", [every_operation, of_a_log])
def test_rules_of_differentiation(gradient, function):
    given = sets([Formula(function)], 12, 2, 1, level=20.0)
    for found, expected in zip(gradient(given), slow_gradient(given, 0), strict=True):
        torch.testing.assert_close(found[0], expected, rtol=1e-8, atol=1e-11)


@both_ways
def test_points_that_repeat(gradient):
    given = sets([FORMULAS["matern12"], FORMULAS["matern32"]], 9, 2, 1)
    given.z[:, 4:8] = given.z[:, :4]
    apart = Placed(given.formulas, given.levels, given.z.clone(), given.y, given.noise)
    apart.z[:, 4:8] += 1e-9
    for found, expected in zip(gradient(given), gradient(apart), strict=True):
        assert found.isfinite().all()
        torch.testing.assert_close(found.sum(), expected.sum(), rtol=1e-4, atol=1e-4)


@both_ways
def test_a_matrix_that_is_not_positive_definite_teaches_nothing(gradient):
    """And its neighbours learn as they would without it."""
    given = sets([FORMULAS["gaussian"]] * 3, 5, 2, 1)
    good = gradient(given)
    given.levels[1] = 0
    by_place, by_level = gradient(given)
    assert not by_place[1].any()
    assert not by_level[1].any()
    for found, expected in zip((by_place, by_level), good, strict=True):
        torch.testing.assert_close(found[::2], expected[::2], rtol=1e-12, atol=0)
