"""Kernels that a tree makes, behind the protocol, against the definition and dense algebra."""

from functools import partial

import numpy as np
import pytest
import torch

from hck.approximations import TreeKernel
from hck.approximations.hierarchical import make_blueprint
from hck.hierarchy.dense import Definition
from hck.kernels import Gaussian, Laplace, Matern
from hck.partition import Tree
from hck.points import as_points
from hck.process import log_likelihood
from hck.settings import Settings

pytestmark = pytest.mark.usefixtures("one_thread")

RNG = np.random.default_rng(0)
X, NEW = RNG.uniform(size=(143, 3)), RNG.uniform(size=(31, 3))
B = torch.from_numpy(RNG.normal(size=(143, 2)))
NOISE = {"one": 0.1, "each": torch.from_numpy(RNG.uniform(0.05, 0.2, 143))}
KINDS = ("hierarchical", "compositional", "independent", "exact")
PARTITIONS = ("random_projection", "kmeans", "kd")


def close(found, expected, tolerance=1e-8):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def dense(kind, kernel, made):
    """K̃ on old and new points together, by its formula."""
    every = torch.from_numpy(np.concatenate([X, NEW]))
    exact = kernel(every, every)
    tree, blueprint = made.blueprint.layout.tree, made.blueprint
    leaf = torch.cat([tree.leaf_of_point, tree.route(NEW)])
    same = leaf[:, None] == leaf
    if kind == "exact":
        return exact
    if kind == "independent":
        return exact * same
    if kind == "compositional":  # the paper's (8)
        z = blueprint.landmarks.of_slot(0).x
        far = kernel(every, z)
        inner = kernel(z, z) + blueprint.jitter * torch.eye(len(z), dtype=z.dtype)
        return torch.where(same, exact, far @ torch.linalg.solve(inner, far.mT))
    definition, points = Definition(kernel, tree, blueprint.landmarks, blueprint.jitter), as_points(every)
    return definition.matrix(points, leaf, points, leaf)


@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("kind", KINDS)
def test_against_dense_algebra(kind, noise, partition):
    kernel = 1.5 * Matern([0.5, 1.0, 2.0])
    made = TreeKernel.of(kind, kernel, X, 12, partition=partition)
    k, n = dense(kind, kernel, made), len(X)
    noisy = k[:n, :n] + torch.diag(torch.as_tensor(NOISE[noise], dtype=torch.float64).expand(n))
    inverse, across = torch.linalg.inv(noisy), k[:n, n:]
    factor = made.factor(NOISE[noise])
    np.testing.assert_array_equal(made.points.x.numpy(), X)
    close(made @ B, k[:n, :n] @ B)
    close(made @ B[:, 0], k[:n, :n] @ B[:, 0])
    close(made.cross(NEW), across)
    close(factor.solve(B), inverse @ B)
    close(factor.solve(B[:, 0]), inverse @ B[:, 0])
    close(factor.log_determinant, torch.linalg.slogdet(noisy).logabsdet)
    close(factor.inverse_diagonal(), inverse.diagonal())
    close(factor.predictor(B)(NEW), across.mT @ inverse @ B)
    left = k[n:, n:] - across.mT @ inverse @ across
    close(factor.variance(NEW), left.diagonal())
    close(factor.covariance(NEW), left)
    predictor, others = made.ridge(NOISE[noise], B, left_out=True)
    close(predictor(NEW), across.mT @ inverse @ B)
    close(others, B - inverse @ B / inverse.diagonal()[:, None])
    assert made.nbytes > 0


@pytest.mark.parametrize("count", [100, 30, 2, 0])
@pytest.mark.parametrize("kind", KINDS)
def test_points_of_infinite_noise_do_not_count(kind, count):
    kernel = 1.5 * Matern([0.5, 1.0, 2.0])
    made = TreeKernel.of(kind, kernel, X, 12)
    k, n = dense(kind, kernel, made), len(X)
    counted = torch.from_numpy(np.sort(np.random.default_rng(count).permutation(n)[:count]))
    noise = torch.full((n,), torch.inf, dtype=torch.float64)
    noise[counted] = NOISE["each"][counted]
    noisy = k[counted][:, counted] + noise[counted].diag()
    inverse, weights = torch.linalg.inv(noisy), torch.zeros_like(B)
    weights[counted] = inverse @ B[counted]
    solution = made.solve(noise, B)
    factor = solution.factorization
    close(solution.weights, weights)
    close(factor.solve(B), weights)
    close(solution.fitted(), k[:n, :n] @ weights)
    close(solution.predictor(NEW), k[n:, :n] @ weights)
    close(factor.log_determinant, torch.linalg.slogdet(noisy).logabsdet)
    close(factor.inverse_diagonal(), torch.zeros(n).double().index_copy(0, counted, inverse.diagonal()))
    across = k[counted, n:]
    close(factor.variance(NEW), (k[n:, n:] - across.mT @ inverse @ across).diagonal())
    value = partial(_likelihood_among, made, counted, noise)
    slope = float(value(1.0).kernel_gradient()[0])
    ends = [value(1 + sign * 1e-5) for sign in (1, -1)]
    change = [-(float(end.gram().trace()) + 2 * float(end.factorization.log_determinant)) / 2 for end in ends]
    assert slope == pytest.approx((change[0] - change[1]) / 2e-5, rel=1e-5, abs=1e-5)


def _likelihood_among(made, counted, noise, amplitude):
    """A solution whose kernel has one tensor, its amplitude; what is not counted is 0, for the gram."""
    b = torch.zeros_like(B).index_copy(0, counted, B[counted])
    tensor = torch.tensor(amplitude, dtype=torch.float64, requires_grad=True)
    return made.with_kernel(tensor * Matern([0.5, 1.0, 2.0]), 1e-8).solve(noise, b)


def test_leaves_at_several_levels_without_some_points():
    labels = [["a", "p"], ["b", "p"], ["a", "q"], ["c", "p"], ["a", "p"]] * 4
    tree = Tree.from_labels(labels, np.asarray)
    made = TreeKernel.of("hierarchical", Gaussian(0.5), X[:20], 2, partition=tree)
    noise = torch.ones(20, dtype=torch.float64).index_fill(0, torch.arange(0, 20, 3), torch.inf)
    solution = made.solve(noise, B[:20])
    close(solution.fitted(), made @ solution.weights)
    assert not solution.weights[::3].any()


def test_shapes():
    made = {kind: make_blueprint(Gaussian(0.5), X, Settings(12, approximation=kind)) for kind in KINDS}
    leaves = {kind: each.layout.tree.n_leaves for kind, each in made.items()}
    assert leaves["hierarchical"] == leaves["compositional"] == leaves["independent"] == 8
    assert [made[kind].layout.tree.depth for kind in KINDS] == [3, 1, 1, 0]
    assert made["independent"].rank == 1  # which is padding
    assert leaves["exact"] == 1


def test_a_flat_tree_has_the_same_leaves():
    """Also where leaves lie at several levels, and on both ways to them."""
    labels = [["a", "p", "1"], ["b", "p", "1"], ["a", "q", "1"], ["a", "q", "2"], ["c", "p", "1"]] * 4
    grown = make_blueprint(Gaussian(0.5), X, Settings(5)).layout.tree
    for tree in (grown, Tree.from_labels(labels, np.asarray)):
        flat = tree.flat()
        assert flat.depth == 1
        assert flat.n_leaves == tree.n_leaves
        for old in range(tree.n_leaves):
            assert len(flat.leaf_of_point[tree.leaf_of_point == old].unique()) == 1
    tree = grown
    pairs = {*zip(tree.leaf_of_point.tolist(), tree.flat().leaf_of_point.tolist(), strict=True)}
    new = {*zip(tree.route(NEW).tolist(), tree.flat().route(NEW).tolist(), strict=True)}
    assert new <= pairs
    assert tree.flat().flat().n_leaves == tree.n_leaves
    np.testing.assert_array_equal(tree.flat().route(X), tree.flat().leaf_of_point)


@pytest.mark.parametrize("kind", KINDS)
def test_likelihood_and_its_gradient(kind):
    def value(scale, amplitude, noise, gradient=False):
        tensors = [
            torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (scale, amplitude, noise)
        ]
        kernel = tensors[1] * Laplace(tensors[0])
        made = TreeKernel.of(kind, 1.0 * Laplace(0.7), X, 12).with_kernel(kernel, 1e-8)
        found = log_likelihood(made, tensors[2], B[:, 0], tensors if gradient else ())
        return [float(g) for g in found.gradient] if gradient else float(found.value)

    at = [0.7, 1.3, 0.2]
    for i, slope in enumerate(value(*at, gradient=True)):
        ends = [value(*(v + sign * 1e-5 * (i == k) for k, v in enumerate(at))) for sign in (1, -1)]
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5)


def test_draws_of_independent_leaves_are_independent():
    made = TreeKernel.of("independent", Gaussian(0.7), X, 20)
    drawn = made.draw(4000, torch.Generator().manual_seed(0))
    error = (drawn @ drawn.mT / 4000 - made @ torch.eye(len(X), dtype=torch.float64)).abs().max()
    assert error < 6 * (2 / 4000) ** 0.5


def test_unknown_kinds():
    with pytest.raises(ValueError, match="unknown kind 'flat'; known: hierarchical"):
        make_blueprint(Gaussian(1.0), X, Settings(10, approximation="flat"))
