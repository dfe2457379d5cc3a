"""A trunk and its branches, worked on apart, against the one tree that they are."""

import pytest
import torch

from hck.approximations import TreeKernel
from hck.branches import Branch, Piece, Trunk, assemble, branches_for
from hck.hierarchy import Blueprint, ridge
from hck.hierarchy.dense import Definition
from hck.hierarchy.factor import Factor
from hck.hierarchy.layout import Layout
from hck.hierarchy.uncertainty import Uncertainty
from hck.kernels import Gaussian, Laplace, Matern
from hck.partition import Landmarks
from hck.points import DensePoints
from hck.settings import Settings

pytestmark = pytest.mark.usefixtures("one_thread")


def points_and_targets(n, d=3, columns=2, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(n, d, generator=generator, dtype=dtype)
    y = torch.sin(5 * x[:, :1]) + torch.randn(n, columns, generator=generator, dtype=dtype) / 10
    return x, y


def in_pieces(x, y, noise, kernel, n_branches=4, rank=12, leaf_size=20, landmarks="uniform", **more):
    """Trunk, branches, their rows, factors, replies and solutions, and the log-determinant."""
    points = DensePoints(x)
    sample = x[
        torch.randperm(len(x), generator=torch.Generator().manual_seed(1))[: max(n_branches, len(x) // 2)]
    ]
    settings = Settings(rank, leaf_size, landmarks=landmarks, **more)
    trunk = Trunk.of(kernel, DensePoints(sample), n_branches, settings)
    number = trunk.route(points)
    rows = [(number == k).nonzero().squeeze(1) for k in range(n_branches)]
    branches = [Branch.grow(trunk, k, points.take(mine), settings) for k, mine in enumerate(rows)]
    noises = [noise if isinstance(noise, float) else noise[mine] for mine in rows]
    factors = [
        branch.factor(each, y[mine]) for branch, each, mine in zip(branches, noises, rows, strict=True)
    ]
    replies, log_determinant = trunk.solve([Branch.message(factor) for factor in factors], covariance=True)
    parts = [b.solve(f, r) for b, f, r in zip(branches, factors, replies, strict=True)]
    return trunk, branches, rows, factors, replies, parts, log_determinant


def whole_of(trunk, parts, rows):
    """The blueprint of the tree that the pieces are."""
    joined = assemble(trunk, [Piece(*each) for each in zip(parts, rows, strict=True)])
    layout = Layout.of(joined.tree, lambda width, count: count)
    return joined, Blueprint(joined.kernel, joined.points, joined.landmarks, trunk.jitter, layout, 2**30)


CASES = [
    (500, 2, 12, 20, Gaussian(0.5)),
    (501, 4, 12, 20, Matern(0.5, nu=1.5)),
    (700, 8, 9, 30, Laplace(0.8)),
    (333, 4, 16, 16, Gaussian(torch.tensor([0.3, 0.5, 2.0]))),
    (90, 4, 12, 40, Gaussian(0.5)),  # branches of a single leaf
    (90, 8, 12, 13, Gaussian(0.5)),  # of one leaf and of two
    (40, 8, 12, 13, Gaussian(0.5)),  # of fewer points than landmarks
]


@pytest.mark.parametrize(("n", "n_branches", "rank", "leaf_size", "kernel"), CASES)
def test_pieces_are_one_tree(n, n_branches, rank, leaf_size, kernel):
    x, y = points_and_targets(n)
    noise = 0.02 + torch.rand(n, dtype=x.dtype, generator=torch.Generator().manual_seed(2)) / 10
    given = {"n_branches": n_branches, "rank": rank, "leaf_size": leaf_size}
    trunk, branches, rows, factors, replies, parts, log_determinant = in_pieces(x, y, noise, kernel, **given)
    joined, blueprint = whole_of(trunk, parts, rows)
    assert joined.tree.n_points == n
    assert torch.equal(joined.tree.order.sort().values, torch.arange(n))
    assert torch.equal(joined.points.x[:n], x[joined.tree.order])
    assert torch.equal(joined.tree.route(DensePoints(x)), joined.tree.leaf_of_point)

    whole = ridge(blueprint, noise, y)
    torch.testing.assert_close(joined.weights, whole.weights, rtol=1e-8, atol=1e-8)
    new, _ = points_and_targets(200, seed=5)
    expected = whole(DensePoints(new))
    torch.testing.assert_close(joined(DensePoints(new)), expected, rtol=1e-8, atol=1e-8)
    number = trunk.route(DensePoints(new))
    for k, part in enumerate(parts):
        some = number == k
        torch.testing.assert_close(part(DensePoints(new[some])), expected[some], rtol=1e-8, atol=1e-8)

    factor = Factor(blueprint, blueprint.pad_noise(noise))
    assert log_determinant == pytest.approx(float(factor.log_determinant), rel=1e-9)
    variance = Uncertainty(blueprint, factor).variance(DensePoints(new))
    diagonal = factor.inverse_diagonal()
    for k, branch in enumerate(branches):
        some, spread = number == k, replies[k].covariance[None]
        mine = Uncertainty(branch.blueprint, factors[k], spread).variance(DensePoints(new[some]))
        torch.testing.assert_close(mine, variance[some], rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(
            factors[k].inverse_diagonal(spread), diagonal[rows[k]], rtol=1e-7, atol=1e-9
        )


def test_pieces_are_the_definition():
    """Against the kernel's recursive definition, evaluated densely."""
    x, y = points_and_targets(150)
    trunk, _, rows, _, _, parts, log_determinant = in_pieces(x, y, 0.05, Gaussian(0.6), rank=7, leaf_size=11)
    joined, blueprint = whole_of(trunk, parts, rows)
    k = Definition(blueprint.kernel, joined.tree, joined.landmarks, trunk.jitter).square(DensePoints(x))
    dense = k + 0.05 * torch.eye(150, dtype=k.dtype)
    expected = torch.linalg.solve(dense, y)[joined.tree.order]
    torch.testing.assert_close(joined.weights, expected, rtol=1e-8, atol=1e-8)
    assert log_determinant == pytest.approx(float(torch.logdet(dense)), rel=1e-9)


@pytest.mark.parametrize("how", ["kmeans", "farthest"])
@pytest.mark.parametrize("partition", ["pca", "kd"])
def test_other_landmarks_and_cuts(how, partition):
    x, y = points_and_targets(400)
    trunk, _, rows, _, _, parts, _ = in_pieces(x, y, 0.05, Gaussian(0.5), landmarks=how, partition=partition)
    joined, blueprint = whole_of(trunk, parts, rows)
    torch.testing.assert_close(joined.weights, ridge(blueprint, 0.05, y).weights, rtol=1e-8, atol=1e-8)


def test_left_out_observations():
    x, y = points_and_targets(400)
    trunk, branches, rows, factors, replies, parts, _ = in_pieces(x, y, 0.05, Gaussian(0.5))
    _, blueprint = whole_of(trunk, parts, rows)
    expected = TreeKernel(blueprint).ridge(0.05, y, left_out=True)[1]
    for branch, factor, reply, part, mine in zip(branches, factors, replies, parts, rows, strict=True):
        w = branch.blueprint.layout.unsort(part.weights)
        found = y[mine] - w / factor.inverse_diagonal(reply.covariance[None])[:, None]
        torch.testing.assert_close(found, expected[mine], rtol=1e-7, atol=1e-8)


def test_float32():
    x, y = points_and_targets(600, dtype=torch.float32)
    trunk, _, rows, _, _, parts, _ = in_pieces(x, y, 0.05, Gaussian(0.5))
    joined, blueprint = whole_of(trunk, parts, rows)
    torch.testing.assert_close(joined.weights, ridge(blueprint, 0.05, y).weights, rtol=1e-2, atol=1e-2)


def test_branches_are_balanced():
    x = torch.randn(400_000, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    trunk = Trunk.of(Gaussian(1.0), DensePoints(x[: 16 * 5000]), 16, Settings(8))
    size = torch.bincount(trunk.route(DensePoints(x)), minlength=16)
    assert (size / (len(x) / 16) - 1).abs().max() < 0.05


def test_a_trunk_keeps_its_landmarks_only():
    x, _ = points_and_targets(3000)
    trunk = Trunk.of(Gaussian(0.5), x, 4, Settings(10))
    assert len(trunk.landmarks.points) == 3 * 10
    assert trunk.tree.n_points == 0
    assert isinstance(trunk.landmarks, Landmarks)
    assert len(trunk.above(3)) == 10


def test_wrong_input():
    x, _ = points_and_targets(100)
    with pytest.raises(ValueError, match="power of two"):
        Trunk.of(Gaussian(0.5), x, 3, Settings(10))
    with pytest.raises(ValueError, match="8 branches need at least as many points, got 5"):
        Trunk.of(Gaussian(0.5), x[:5], 8, Settings(10))
    with pytest.raises(ValueError, match=r"kmeans.*random_projection, pca, kd"):
        Trunk.of(Gaussian(0.5), x, 4, Settings(10, partition="kmeans"))
    trunk = Trunk.of(Gaussian(0.5), x, 4, Settings(10))
    with pytest.raises(ValueError, match="branch 2 has no points"):
        Branch.grow(trunk, 2, DensePoints(x[:0]), Settings(10, 20))
    with pytest.raises(ValueError, match="1 messages of 4 branches"):
        trunk.solve([None])


@pytest.mark.parametrize(
    ("n", "leaf", "per_point", "budget", "expected"),
    [
        (100, 32, 1.0, 1e9, 2),
        (10**6, 32, 1000.0, 1e8, 16),
        (1000, 100, 1e6, 1e3, 2),
        (10**6, 100, 1e9, 1.0, 2048),
    ],
)
def test_number_of_branches(n, leaf, per_point, budget, expected):
    assert branches_for(n, leaf, per_point, budget) == expected
