"""Draws from the prior have the covariance K_h."""

import pytest
import torch

from hck.hierarchy import HierarchicalKernel
from hck.hierarchy.sample import sample_prior
from hck.kernels import Matern
from hck.partition import Tree

pytestmark = pytest.mark.usefixtures("one_thread")

X = torch.rand(61, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
UNEVEN = Tree.from_parents(
    [-1, 0, 0, 0, 3, 3], torch.cat([torch.full((20,), 1), torch.full((11,), 2), 4 + torch.arange(30) // 15])
)


@pytest.mark.parametrize("partition", ["random_projection", "kmeans", UNEVEN], ids=["rp", "kmeans", "uneven"])
@pytest.mark.parametrize("leaf_size", [8, 100])
def test_covariance(partition, leaf_size):
    count = 40_000
    h = HierarchicalKernel.build(Matern(0.5), X, 8, leaf_size, partition=partition)
    drawn = sample_prior(h.blueprint, count)
    assert drawn.shape == (61, count)
    found, expected = drawn @ drawn.mT / count, h.to_dense()
    # the standard deviation of an entry is at most √(2/count), with k(x, x) = 1
    assert (found - expected).abs().max() <= 5 * (2 / count) ** 0.5
    assert drawn.mean(1).abs().max() <= 5 / count**0.5


def test_a_seed_makes_a_draw():
    h = HierarchicalKernel.build(Matern(0.5), X, 8, 8)
    first, again, other = (
        sample_prior(h.blueprint, 2, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("count", [0, -1, 1.5])
def test_count(count):
    with pytest.raises(ValueError, match="count"):
        sample_prior(HierarchicalKernel.build(Matern(0.5), X, 8, 8).blueprint, count)
