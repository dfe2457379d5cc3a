"""Branches on a GPU, against the one tree that they are."""

import pytest
import torch

from hck.branches import Branch, Piece, Trunk, assemble
from hck.hierarchy import Blueprint, ridge
from hck.hierarchy.layout import Layout
from hck.kernels import Gaussian, Matern
from hck.points import DensePoints
from hck.settings import Settings

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Matern([0.3, 0.5, 2.0], nu=1.5)])
@pytest.mark.parametrize(("n", "n_branches", "rank", "leaf_size"), [(3000, 4, 32, 64), (700, 8, 9, 30)])
def test_pieces_are_one_tree(n, n_branches, rank, leaf_size, kernel):
    generator = torch.Generator("cuda").manual_seed(0)
    x = torch.rand(n, 3, generator=generator, dtype=torch.float64, device="cuda")
    y = torch.sin(5 * x[:, :2])
    points = DensePoints(x)
    trunk = Trunk.of(kernel, DensePoints(x[: n // 2]), n_branches, Settings(rank, leaf_size))
    number = trunk.route(points)
    rows = [(number == k).nonzero().squeeze(1) for k in range(n_branches)]
    settings = Settings(rank, leaf_size)
    branches = [Branch.grow(trunk, k, points.take(mine), settings) for k, mine in enumerate(rows)]
    factors = [branch.factor(0.02, y[mine]) for branch, mine in zip(branches, rows, strict=True)]
    replies, _ = trunk.solve([Branch.message(factor) for factor in factors], covariance=True)
    parts = [b.solve(f, r) for b, f, r in zip(branches, factors, replies, strict=True)]
    joined = assemble(trunk, [Piece(*each) for each in zip(parts, rows, strict=True)])
    layout = Layout.of(joined.tree, lambda width, count: count)
    blueprint = Blueprint(joined.kernel, joined.points, joined.landmarks, trunk.jitter, layout, 2**30)
    whole = ridge(blueprint, 0.02, y)
    torch.testing.assert_close(joined.weights, whole.weights, rtol=1e-8, atol=1e-8)
    new = torch.rand(200, 3, generator=generator, dtype=torch.float64, device="cuda")
    torch.testing.assert_close(joined(new), whole(new), rtol=1e-8, atol=1e-8)
    for factor, reply, branch in zip(factors, replies, branches, strict=True):
        diagonal = factor.inverse_diagonal(reply.covariance.to("cuda")[None])
        assert diagonal.is_cuda
        assert len(diagonal) == len(branch.tree.order)
        assert (diagonal > 0).all()
