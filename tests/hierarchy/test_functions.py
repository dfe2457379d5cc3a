"""Draws that are functions: the covariance of the definition, everywhere and at every call."""

import numpy as np
import pytest
import torch

from hck.backend.random import as_random
from hck.hierarchy import HierarchicalKernel
from hck.hierarchy.dense import Definition
from hck.hierarchy.sample import sample_functions, sample_prior
from hck.hierarchy.waves import Waves
from hck.kernels import Gaussian, InverseMultiquadric, Laplace, Matern, RationalQuadratic
from hck.points import as_points

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
X, NEW = RNG.uniform(size=(45, 2)), RNG.uniform(size=(12, 2))
KERNELS = {
    "matern32": 1.5 * Matern([0.3, 0.8]),
    "rough": Matern(0.4, nu=0.5),
    "composed": 0.7 * Gaussian(0.3) * Laplace([1.0, 2.0]) + 0.4 * Matern(0.9),
    "metric": Matern(1.0, nu=2.5, metric=[[1.0, 2.0], [-1.0, 3.0]]),
}


def close(drawn, expected):
    """Second moments of draws, each within five standard deviations of what is expected."""
    found = drawn @ drawn.mT / drawn.shape[1]
    variance = expected.diagonal()
    # waves have heavier tails than normal numbers: fourth moments are somewhat larger
    spread = ((variance[:, None] * variance + 2 * expected.square()) / drawn.shape[1]).sqrt()
    assert ((found - expected).abs() < 5.5 * spread).all()


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_waves(kernel):
    points, group = as_points(X[:20]), torch.arange(20) % 2
    drawn = Waves.of(kernel, points, 16, 1500, as_random(0))(points, group)
    expected = torch.from_numpy(kernel(X[:20])) * (group[:, None] == group)
    close(drawn, expected)


def test_more_waves_are_more_gaussian():
    """The fourth moment of a difference, over the square of its variance, comes down to 3."""
    points, group = as_points(np.array([[0.0], [0.5]])), torch.zeros(2, dtype=torch.long)
    excess = []
    for waves in (1, 60):
        drawn = Waves.of(Matern(1.0, nu=0.5), points, waves, 30_000, as_random(0))(points, group)
        apart = drawn[1] - drawn[0]
        assert float(apart.square().mean()) == pytest.approx(2 - 2 * np.exp(-0.5), rel=0.06)
        excess.append(float(apart.pow(4).mean() / apart.square().mean() ** 2) - 3)
    assert excess[0] > 1
    assert abs(excess[1]) < 0.2


SPECTRAL = [
    *(Gaussian(1.0), Laplace(1.0), Matern(1.0, nu=0.5), Matern(1.0)),
    *(RationalQuadratic(1.0, alpha) for alpha in (0.3, 1.0, 1.5, 20.0, 60.0, 1e4)),
]


@pytest.mark.parametrize("kernel", SPECTRAL, ids=str)
@pytest.mark.parametrize("d", [1, 3])
def test_spectral_densities_are_those_of_the_frequencies(kernel, d):
    """The mean of p(2 ω) 2ᵈ / p(ω) over ω from p is 1."""
    omega = kernel.draw_frequencies(d, 100_000, as_random(0))
    ratio = (kernel.log_spectral_density(2 * omega) - kernel.log_spectral_density(omega)).exp() * 2**d
    assert float(ratio.mean()) == pytest.approx(1, abs=5 * float(ratio.std()) / 100_000**0.5)


@pytest.mark.parametrize("leaf_size", [6, 100], ids=["tree", "one leaf"])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_covariance_is_that_of_the_definition(kernel, leaf_size):
    h = HierarchicalKernel.build(kernel, X, 6, leaf_size)
    blueprint, tree = h.blueprint, h.blueprint.layout.tree
    paths, values = sample_functions(blueprint, 1200, 1, 16)
    both = as_points(np.concatenate([X[:15], NEW]))
    drawn = paths(both)
    definition = Definition(blueprint.kernel, tree, blueprint.landmarks, blueprint.jitter)
    close(drawn, definition.matrix(both, tree.route(both), both, tree.route(both)))
    # at the points of the blueprint they are the draws of the prior, whatever the waves
    jitter = blueprint.jitter**0.5
    assert (paths(X) - blueprint.layout.unsort(values)).abs().max() < 10 * jitter
    torch.testing.assert_close(blueprint.layout.unsort(values), sample_prior(blueprint, 1200, 1))


@pytest.mark.parametrize("partition", ["random_projection", "kmeans", "kernel"])
def test_the_same_at_every_call(partition):
    h = HierarchicalKernel.build(KERNELS["composed"], X, 6, 7, partition=partition)
    paths, _ = sample_functions(h.blueprint, 3, 1, 50)
    every = paths(NEW)
    one_by_one = torch.cat([paths(NEW[i : i + 1]) for i in reversed(range(len(NEW)))]).flip(0)
    torch.testing.assert_close(one_by_one, every, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(paths.take(torch.tensor([2, 0]))(NEW), every[:, [2, 0]], rtol=1e-9, atol=1e-9)
    again, other = (sample_functions(h.blueprint, 3, seed, 50)[0](NEW) for seed in (1, 2))
    assert torch.equal(again, every)
    assert not torch.isclose(other, every).any()


def test_they_are_continuous_within_leaves_and_interpolate_the_values():
    """A draw of a smooth kernel is smooth: neighbours differ by little, and by what the kernel says."""
    x = np.linspace(0, 1, 60)[:, None]
    h = HierarchicalKernel.build(Gaussian(0.3), x, 60, 60)
    paths, _ = sample_functions(h.blueprint, 100, 1, 50)
    fine = paths(np.linspace(0, 1, 1001)[:, None])
    slope = fine.diff(dim=0) * 1000
    assert float(slope.square().mean().sqrt()) == pytest.approx(1 / 0.3, rel=0.2)
    assert float(slope.abs().max()) < 6 / 0.3


def test_float32_and_sparse_points():
    import scipy.sparse as sp

    for points in (as_points(X.astype(np.float32), torch.float32), as_points(sp.csr_matrix(X))):
        h = HierarchicalKernel.build(KERNELS["matern32"], points, 6, 7)
        paths, values = sample_functions(h.blueprint, 4, 1, 64)
        found = paths(points)
        assert found.dtype == points.dtype
        error = (found - h.blueprint.layout.unsort(values)).abs().max()
        assert error < 10 * h.blueprint.jitter**0.5
    dense = HierarchicalKernel.build(KERNELS["matern32"], X, 6, 7)
    torch.testing.assert_close(sample_functions(dense.blueprint, 4, 1, 64)[0](X), found, rtol=1e-6, atol=1e-6)


def test_kernels_without_a_spectral_density():
    h = HierarchicalKernel.build(Gaussian(1.0) + InverseMultiquadric(1.0), X, 6, 7)
    with pytest.raises(ValueError, match=r"spectral density is known, but that of InverseMultiquadric"):
        sample_functions(h.blueprint, 1, 1, 8)
