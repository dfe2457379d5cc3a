"""A Gaussian process with a trend against dense formulas, and its draws against its own covariance."""

import math
from functools import cache

import pytest
import torch

from hck.approximations import TreeKernel
from hck.hierarchy.blueprint import Blueprint
from hck.hierarchy.dense import Definition
from hck.kernels import Matern
from hck.points import as_points
from hck.process import Process, log_likelihood
from hck.settings import Settings

pytestmark = pytest.mark.usefixtures("one_thread")

G = torch.Generator().manual_seed(0)
X, NEW = (torch.rand(n, 2, generator=G, dtype=torch.float64) for n in (61, 13))
Y = torch.sin(5 * X[:, 0]) + 3 * X[:, 1] + 2
NOISE = 0.05 + 0.1 * torch.rand(61, generator=G, dtype=torch.float64)


def trend(x, p):
    return torch.cat([torch.ones_like(x[:, :1]), x], 1)[:, :p]


@pytest.fixture(scope="module", params=[(8, "random_projection"), (11, "kmeans"), (100, "kd")], ids=str)
def blueprint(request):
    leaf_size, partition = request.param
    return Blueprint.of(Matern(0.7), X, Settings(8, leaf_size, partition))


@pytest.fixture(scope="module")
def joint(blueprint):
    """The definition of K_h on X and NEW together."""
    tree = blueprint.layout.tree
    definition = Definition(blueprint.kernel, tree, blueprint.landmarks, blueprint.jitter)
    definition._base = cache(definition._base)  # most of the time
    every = as_points(torch.cat([X, NEW]))
    leaf = torch.cat([tree.leaf_of_point, tree.route(NEW)])
    return definition.matrix(every, leaf, every, leaf)


def dense(k, p):
    """Universal kriging, with every matrix written out: β, mean and covariance at NEW."""
    n = len(X)
    solved = torch.linalg.inv(k[:n, :n] + torch.diag(NOISE))
    h, h_new, cross = trend(X, p), trend(NEW, p), k[:n, n:]
    covariance = torch.linalg.inv(h.mT @ solved @ h)
    beta = covariance @ h.mT @ solved @ Y
    rest = h_new - cross.mT @ solved @ h
    mean = h_new @ beta + cross.mT @ solved @ (Y - h @ beta)
    return {
        "inverse": solved,
        "beta": beta,
        "mean": mean,
        "covariance": k[n:, n:] - cross.mT @ solved @ cross + rest @ covariance @ rest.mT,
    }


@pytest.mark.parametrize("p", [0, 1, 3])
def test_predictions(blueprint, joint, p):
    expected = dense(joint, p)
    posterior = Process.of(TreeKernel(blueprint), NOISE, Y, trend(X, p))
    close = {"rtol": 1e-7, "atol": 1e-9}
    torch.testing.assert_close(posterior.coefficients[:, 0], expected["beta"], **close)
    torch.testing.assert_close(posterior.predict(NEW, trend(NEW, p)), expected["mean"], **close)
    torch.testing.assert_close(posterior.covariance(NEW, trend(NEW, p)), expected["covariance"], **close)
    variance = expected["covariance"].diagonal()
    torch.testing.assert_close(posterior.variance(NEW, trend(NEW, p)), variance, **close)


@pytest.mark.parametrize("p", [0, 1, 3])
def test_leave_one_out(blueprint, joint, p):
    """Against the definition: each point left out, and predicted by the others with the same kernel."""
    k = torch.linalg.inv(dense(joint, p)["inverse"])
    left_out = Process.of(TreeKernel(blueprint), NOISE, Y, trend(X, p)).leave_one_out()
    for i in (0, 17, 60):
        others = torch.arange(len(X)) != i
        solved, h = torch.linalg.inv(k[others][:, others]), trend(X, p)
        covariance = torch.linalg.inv(h[others].mT @ solved @ h[others])
        beta = covariance @ h[others].mT @ solved @ Y[others]
        weights, rest = k[i, others] @ solved, h[i] - k[i, others] @ solved @ h[others]
        mean = h[i] @ beta + weights @ (Y[others] - h[others] @ beta)
        variance = k[i, i] - weights @ k[others, i] + rest @ covariance @ rest
        assert float(left_out.mean[i]) == pytest.approx(float(mean), rel=1e-7)
        assert float(left_out.variance[i]) == pytest.approx(float(variance), rel=1e-7)


@pytest.mark.parametrize("p", [0, 1, 3])
def test_log_likelihood(blueprint, joint, p):
    expected = dense(joint, p)
    rest = Y - trend(X, p) @ expected["beta"]
    half = torch.linalg.slogdet(expected["inverse"]).logabsdet - 61 * math.log(2 * math.pi)
    value = float(half - rest @ expected["inverse"] @ rest) / 2
    source = TreeKernel(blueprint)
    assert Process.of(source, NOISE, Y, trend(X, p)).log_likelihood == pytest.approx(value, abs=1e-8)
    found = float(log_likelihood(source, NOISE, Y, trend=trend(X, p)).value)
    assert found == pytest.approx(value, abs=1e-8)


@pytest.mark.parametrize("p", [0, 2])
def test_draws(blueprint, p):
    count = 8_000
    posterior = Process.of(TreeKernel(blueprint), NOISE, Y, trend(X, p))
    drawn = posterior.sample(NEW, trend(NEW, p), count)
    mean, covariance = posterior.predict(NEW, trend(NEW, p)), posterior.covariance(NEW, trend(NEW, p))
    deviation = covariance.diagonal().sqrt()
    assert ((drawn.mean(1) - mean).abs() <= 5 * deviation / count**0.5).all()
    allowed = 5 * (2 / count) ** 0.5 * deviation[:, None] * deviation + 1e-6
    assert ((torch.cov(drawn) - covariance).abs() <= allowed).all()


def test_trends_that_say_the_same(blueprint):
    doubled = torch.cat([trend(X, 2), trend(X, 2)], 1)
    once = Process.of(TreeKernel(blueprint), NOISE, Y, trend(X, 2))
    twice = Process.of(TreeKernel(blueprint), NOISE, Y, doubled)
    new = trend(NEW, 2)
    both = torch.cat([new, new], 1)
    close = {"rtol": 1e-6, "atol": 1e-8}
    torch.testing.assert_close(twice.predict(NEW, both), once.predict(NEW, new), **close)
    torch.testing.assert_close(twice.variance(NEW, both), once.variance(NEW, new), **close)
