"""A device without code of its own: everything by torch, with the same results."""

from dataclasses import replace

import pytest
import torch

from hck.backend.kinds import KINDS, OTHER
from hck.branches.ridge import ridge
from hck.hierarchy import HierarchicalKernel
from hck.hierarchy.blueprint import Blueprint
from hck.kernels import Gaussian, Matern
from hck.partition import known_partitions
from hck.settings import Settings

pytestmark = pytest.mark.usefixtures("one_thread")

G = torch.Generator().manual_seed(0)
X, NEW, B = (torch.rand(*shape, generator=G, dtype=torch.float64) for shape in ((400, 3), (30, 3), (400, 2)))
SHAPES = [(16, 16), (16, 70), (40, 400)]  # rank, leaf_size


@pytest.fixture
def plain(monkeypatch):
    return lambda: monkeypatch.setitem(KINDS, "cpu", replace(OTHER, is_host=True))


def results(partition, landmarks, rank, leaf_size):
    h = HierarchicalKernel.build(Matern(0.7), X, rank, leaf_size, partition, landmarks)
    factor = h.factor(0.01)
    found = {
        "product": h @ B,
        "solve": factor.solve(B),
        "log_determinant": factor.log_determinant,
        "posterior": factor.posterior(),
        "inverse": factor.inverse().to_dense(),
        "inverse_diagonal": factor.inverse_diagonal(),
        "predict": h.solution(factor, B)(NEW),
        "cross": h.cross(NEW),
    }
    return h, found


@pytest.mark.parametrize(("rank", "leaf_size"), SHAPES)
def test_the_same_results(plain, rank, leaf_size):
    here, expected = results("random_projection", "uniform", rank, leaf_size)
    plain()
    _, found = results(here.tree, here.landmarks, rank, leaf_size)
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=0, atol=1e-9 * float(value.abs().max()), msg=name)


@pytest.mark.parametrize("depth", [0, 2])
def test_ridge(plain, depth):
    blueprint = Blueprint.of(Gaussian(0.5), X, Settings(rank=16))
    expected = ridge(blueprint, 0.01, B).weights
    plain()
    same = {"partition": blueprint.layout.tree, "landmarks": blueprint.landmarks}
    found = ridge(Blueprint.of(Gaussian(0.5), X, Settings(rank=16, **same)), 0.01, B, depth).weights
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("partition", known_partitions())
def test_trees_are_cut_as_well(plain, partition):
    plain()
    h = HierarchicalKernel.build(Gaussian(0.5), X, 16, partition=partition)
    assert torch.equal(h.tree.route(X), h.tree.leaf_of_point)
    w = h.factor(0.01).solve(B)
    torch.testing.assert_close(h @ w + 0.01 * w, B, rtol=0, atol=1e-8)


def test_what_requires_gradients_is_not_recorded():
    """Gradients are in closed form (`log_likelihood`): the matrix algebra detaches."""
    scale = torch.tensor([0.5, 0.7, 0.9], dtype=torch.float64)
    expected = HierarchicalKernel.build(Gaussian(scale), X, 16)
    wanted = [
        value.clone().requires_grad_()
        for value in (scale, X, torch.full((400,), 0.01, dtype=torch.float64), B)
    ]
    found = HierarchicalKernel.build(Gaussian(wanted[0]), wanted[1], 16)
    solved = found.factor(wanted[2]).solve(wanted[3])
    predicted = found.extend(wanted[3])(NEW.clone().requires_grad_())
    assert not any(value.requires_grad for value in (solved, predicted, found @ wanted[3]))
    torch.testing.assert_close(solved, expected.factor(0.01).solve(B))
    torch.testing.assert_close(predicted, expected.extend(B)(NEW))
    weights = ridge(found.blueprint, wanted[2], wanted[3]).weights
    assert not weights.requires_grad
    torch.testing.assert_close(weights, ridge(expected.blueprint, 0.01, B).weights)
