"""Several outputs are processes that share a factorization, whatever approximates the kernel."""

import numpy as np
import pytest
import torch

from hck.approximations import Exact, Fourier, Nystrom, Tapered, TreeKernel
from hck.backend.random import as_random
from hck.kernels import Matern
from hck.points import as_points
from hck.process import Mixture, Process

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
N, M = 81, 9
X, NEW = RNG.uniform(size=(N, 3)), RNG.uniform(size=(M, 3))
Y = torch.from_numpy(np.stack([np.sin(4 * X[:, 0]), 2 * X[:, 1] ** 2, RNG.normal(size=N)], 1))
NOISE = torch.from_numpy(RNG.uniform(0.05, 0.2, N))
KERNEL = 1.5 * Matern(0.8)
MADE = {
    "tree": lambda: TreeKernel.of("hierarchical", KERNEL, X, 8, 1),
    "another tree": lambda: TreeKernel.of("hierarchical", KERNEL, X, 8, 2),
    "one leaf": lambda: TreeKernel.of("exact", KERNEL, X, 8),
    "nystrom": lambda: Nystrom.of(KERNEL, X, 20),
    "fourier": lambda: Fourier.of(KERNEL, X, 40),
    "exact, by iteration": lambda: Exact(KERNEL, as_points(X), [Nystrom.of(KERNEL, X, 20)], tolerance=1e-12),
}
TRENDS = {"none": lambda x: x[:, :0], "linear": lambda x: np.c_[np.ones(len(x)), x[:, :2]]}


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8)


def each(function):
    """What a function gives for each output alone, side by side."""
    return torch.stack([function(k) for k in range(Y.shape[1])], 1)


@pytest.mark.parametrize("trend", TRENDS)
@pytest.mark.parametrize("name", MADE)
def test_columns_are_processes_of_their_own(name, trend):
    made = MADE[name]()
    h, new = (torch.from_numpy(TRENDS[trend](x)) for x in (X, NEW))
    found, alone = Process.of(made, NOISE, Y, h), [Process.of(made, NOISE, y, h) for y in Y.T]
    found.validate()
    close(found.predict(NEW, new), each(lambda k: alone[k].predict(NEW, new)))
    close(found.variance(NEW, new), each(lambda k: alone[k].variance(NEW, new)))
    close(found.covariance(NEW, new), alone[0].covariance(NEW, new))
    close(found.coefficients, torch.cat([one.coefficients for one in alone], 1))
    close(found.observations, Y)
    close(found.features, h)
    if name == "exact, by iteration":
        return
    assert found.log_likelihood == pytest.approx(sum(one.log_likelihood for one in alone), rel=1e-10)
    close(found.leave_one_out().mean, each(lambda k: alone[k].leave_one_out().mean))
    close(found.leave_one_out().variance, each(lambda k: alone[k].leave_one_out().variance))


@pytest.mark.parametrize("name", ["tree", "nystrom", "exact, by iteration"])
def test_one_column_is_none(name):
    made, h = MADE[name](), torch.from_numpy(TRENDS["linear"](X))
    new = torch.from_numpy(TRENDS["linear"](NEW))
    column, plain = Process.of(made, NOISE, Y[:, :1], h), Process.of(made, NOISE, Y[:, 0].contiguous(), h)
    assert torch.equal(column.predict(NEW, new), plain.predict(NEW, new))
    assert torch.equal(column.variance(NEW, new), plain.variance(NEW, new))
    assert torch.equal(column.sample(NEW, new, 3, 1), plain.sample(NEW, new, 3, 1))


@pytest.mark.parametrize("trend", TRENDS)
@pytest.mark.parametrize("name", ["tree", "one leaf", "nystrom"])
@pytest.mark.parametrize("functions", [False, True], ids=["values", "functions"])
def test_draws_have_mean_and_covariance_of_each_output(name, trend, functions):
    count = 1500
    made, h, new = MADE[name](), *(torch.from_numpy(TRENDS[trend](x)) for x in (X, NEW))
    process = Process.of(made, NOISE, Y, h)
    if functions:
        drawn = process.functions(count, 3, n_waves=16)(NEW, new)
    else:
        drawn = process.sample(NEW, new, count, 3)
    assert drawn.shape == (M, 3, count)
    mean, cov = process.predict(NEW, new), process.covariance(NEW, new)
    std = cov.diagonal().sqrt()
    assert ((drawn.mean(2) - mean).abs() < 5 * std[:, None] / count**0.5).all()
    for output in range(3):
        for other in range(3):
            both = (drawn - mean[..., None])[:, [output, other]]
            found = both[:, 0] @ both[:, 1].mT / count
            expected = cov if output == other else torch.zeros_like(cov)
            assert ((found - expected).abs() < 5.5 * (2 / count) ** 0.5 * std[:, None] * std).all()


def test_mixtures():
    h, new = (torch.from_numpy(TRENDS["linear"](x)) for x in (X, NEW))
    trees = [MADE[name]() for name in ("tree", "another tree")]
    found = Mixture([Process.of(tree, NOISE, Y, h) for tree in trees])
    alone = [Mixture([Process.of(tree, NOISE, y, h) for tree in trees]) for y in Y.T]
    mean, cov = found.covariance(NEW, new)
    assert cov.shape == (M, M, 3)
    for k, one in enumerate(alone):
        close(mean[:, k], one.predict(NEW, new))
        close(cov[..., k], one.covariance(NEW, new)[1])
        for ours, theirs in zip(found.variance(NEW, new), one.variance(NEW, new), strict=True):
            close(ours[:, k], theirs)
        for ours, theirs in zip(found.leave_one_out(), one.leave_one_out(), strict=True):
            close(ours[:, k], theirs)
    assert found.sample(NEW, new, 5, as_random(1)).shape == (M, 3, 5)
    functions = found.functions(5, as_random(1), 16)
    assert {*functions.which.tolist()} == {0, 1}
    every = functions(NEW, new)
    assert every.shape == (M, 3, 5)
    for number in range(5):
        close(functions.take(number)(NEW, new), every[..., number : number + 1])


def test_no_functions_without_trees_or_features():
    iterative = Process.of(MADE["exact, by iteration"](), NOISE, Y, torch.zeros(N, 0, dtype=torch.float64))
    tapered = Tapered.of(KERNEL, X, 20)
    for process in (iterative, Process.of(tapered, NOISE, Y, torch.zeros(N, 0, dtype=torch.float64))):
        with pytest.raises(ValueError, match="draws that are functions are there for"):
            process.functions(1)
