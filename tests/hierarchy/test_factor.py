"""Solving, the log-determinant, the inverse and the posterior, on the whole zoo, against dense algebra."""

from itertools import pairwise

import pytest
import torch

from hck.errors import NotPositiveDefiniteError

pytestmark = pytest.mark.usefixtures("one_thread")

SOME = [
    "random_projection/prime",
    "kmeans/leaf_size_3",
    "kernel/fewer_points_than_rank",
    "user/prime",
    "user/prime@float32",
    "pca/one_leaf",
    "kd/one_point",
    "landmarks:list",
    "sparse:laplace",
    "strings:uniform",
]


def test_solve(problem):
    expected = torch.linalg.solve(problem.noisy, problem.b.double())
    problem.assert_close(problem.factor.solve(problem.b), expected, "solve")
    problem.assert_close(problem.factor.solve(problem.b[:, 2]), expected[:, 2], "solve")


def test_log_determinant(problem):
    expected = torch.linalg.slogdet(problem.noisy).logabsdet
    got = problem.factor.log_determinant
    assert got.dtype == torch.float64
    assert got.shape == ()
    error = float((got - expected).abs()) / problem.n
    tolerance = problem.tolerances["log_determinant"]
    assert error <= tolerance, f"{problem.name}: {error:.1e} per point"


def test_inverse(problem):
    inverse, expected = problem.factor.inverse(), torch.linalg.inv(problem.noisy)
    assert inverse.shape == (problem.n, problem.n)
    problem.assert_close(inverse.to_dense(), expected, "solve")
    problem.assert_close(inverse @ problem.b, expected @ problem.b.double(), "solve")
    problem.assert_close(inverse @ problem.b[:, 0], expected @ problem.b[:, 0].double(), "solve")
    problem.assert_close(inverse.diagonal(), expected.diagonal(), "solve")


def test_inverse_times_matrix_is_identity(problem):
    """Both are hierarchical matrices of the same layout, so this tests them against each other."""
    h, inverse = problem.hierarchical, problem.factor.inverse()
    product = inverse @ h.to_dense() + problem.alpha * inverse.to_dense()
    problem.assert_close(product, torch.eye(problem.n), "identity")


def test_inverse_diagonal(problem):
    expected = torch.linalg.inv(problem.noisy).diagonal()
    problem.assert_close(problem.factor.inverse_diagonal(), expected, "solve")


def landmark_covariance(problem, node):
    """Covariance of the latent process at the landmarks of a node with the training points' values.

    Up from the node to the last common ancestor with a leaf by K(Z, Z_p), and down to the leaf by ψ (14).
    """
    definition, tree = problem.definition, problem.hierarchical.tree
    x, path = problem.exact_points, definition._path(node)
    out = torch.empty(len(definition.z[node]), problem.n, dtype=torch.float64)
    for number, leaf in enumerate(tree.leaves.tolist()):
        ancestor = definition._last_common_ancestor(node, leaf)
        carried = definition.landmark_matrix[node]
        for below, above in pairwise(path[: path.index(ancestor) + 1]):
            values = definition._base(definition.z[below], definition.z[above])
            carried = carried @ torch.linalg.solve(definition.landmark_matrix[below], values)
        columns = (tree.leaf_of_point == number).nonzero().squeeze(1)
        psi = definition._psi(x.take(columns), leaf, ancestor)
        out[:, columns] = carried @ torch.linalg.solve(definition.landmark_matrix[ancestor], psi.mT)
    return out


@pytest.mark.parametrize("problem", SOME, indirect=True)
def test_posterior_covariance_of_the_latents(problem):
    """P = I − C⁻¹ S (K_h + αI)⁻¹ Sᵀ C⁻ᵀ, S the covariance of the landmarks' values with the points'."""
    posterior, tree = problem.factor.posterior(), problem.hierarchical.tree
    rank = posterior.shape[-1]
    assert posterior.shape == (max(1, len(tree.inner)), rank, rank)
    for slot, node in enumerate(tree.inner.tolist()):
        factor = torch.linalg.cholesky(problem.definition.landmark_matrix[node])
        whitened = torch.linalg.solve_triangular(factor, landmark_covariance(problem, node), upper=False)
        gained = whitened @ torch.linalg.solve(problem.noisy, whitened.mT)
        expected = torch.eye(rank, dtype=torch.float64)  # padded landmarks learn nothing
        real = problem.hierarchical.landmarks.blocks.mask[slot].nonzero().squeeze(1)
        expected[real[:, None], real] -= gained
        problem.assert_close(posterior[slot], expected, "solve")
        assert torch.equal(posterior[slot], posterior[slot].mT)


# Noise --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", SOME, indirect=True)
def test_noise_of_each_point(problem):
    generator = torch.Generator().manual_seed(1)
    noise = problem.alpha * (1 + 9 * torch.rand(problem.n, generator=generator, dtype=problem.dtype))
    noisy = problem.dense + noise.double().diag()
    factor = problem.hierarchical.factor(noise)
    problem.assert_close(factor.solve(problem.b), torch.linalg.solve(noisy, problem.b.double()), "solve")
    problem.assert_close(factor.inverse_diagonal(), torch.linalg.inv(noisy).diagonal(), "solve")
    error = (factor.log_determinant - torch.linalg.slogdet(noisy).logabsdet).abs() / problem.n
    assert error <= problem.tolerances["log_determinant"]


@pytest.mark.parametrize("problem", ["user/prime"], indirect=True)
def test_one_number_is_the_same_noise_for_all(problem):
    h = problem.hierarchical
    expected = h.factor(0.3).solve(problem.b)
    for noise in (torch.full((problem.n,), 0.3), torch.tensor(0.3), [0.3] * problem.n):
        torch.testing.assert_close(h.factor(noise).solve(problem.b), expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("problem", ["user/prime", "pca/one_leaf"], indirect=True)
@pytest.mark.parametrize("noise", ["too short", "too long", "column", "negative", "one negative", "nan"])
def test_noise_that_makes_no_sense(problem, noise):
    n = problem.n
    values = {
        "too short": torch.ones(n - 1),
        "too long": torch.ones(n + 1),
        "column": torch.ones(n, 1),
        "negative": -0.1,
        "one negative": torch.ones(n).index_fill(0, torch.tensor([n // 2]), -1e-9),
        "nan": float("nan"),
    }
    with pytest.raises(ValueError, match="noise must"):
        problem.hierarchical.factor(values[noise])


@pytest.mark.parametrize("problem", SOME, indirect=True)
def test_factoring_again_without_rebuilding(problem):
    """Another λ needs no new kernel values, and factoring leaves the matrix as it was."""
    h, other = problem.hierarchical, 7 * problem.alpha
    before = h.to_dense()
    h.factor(problem.alpha)
    again, anew = h.factor(other), problem.build().factor(other)
    assert torch.equal(h.to_dense(), before)
    torch.testing.assert_close(again.solve(problem.b), anew.solve(problem.b), rtol=0, atol=0)
    assert again.log_determinant == anew.log_determinant
    noisy = problem.dense + other * torch.eye(problem.n, dtype=torch.float64)
    problem.assert_close(again.solve(problem.b), torch.linalg.solve(noisy, problem.b.double()), "solve")


@pytest.mark.parametrize("problem", SOME, indirect=True)
def test_overwrite_gives_the_same_factor(problem):
    h = problem.build()
    held = h.nbytes
    factor = h.factor(problem.alpha, overwrite=True)
    assert h.nbytes < held  # the leaf blocks are gone
    assert torch.equal(factor.solve(problem.b), problem.factor.solve(problem.b))
    assert torch.equal(factor.inverse_diagonal(), problem.factor.inverse_diagonal())
    assert factor.log_determinant == problem.factor.log_determinant
    expected = problem.hierarchical.extend(factor.solve(problem.b))(problem.new_points)
    weights = factor.solve_padded(factor.layout.pad(problem.b, problem.b))
    problem.assert_close(h.predictor(weights)(problem.new_points), expected, "solve")


@pytest.mark.parametrize("problem", ["laplace/prime", "matern12/prime", "laplace/one_leaf"], indirect=True)
def test_no_noise_on_distinct_points(problem):
    """Rough kernels interpolate: their matrix needs no noise to be well-conditioned."""
    factor = problem.hierarchical.factor(0.0)
    w = factor.solve(problem.b)
    torch.testing.assert_close(problem.dense @ w, problem.b, rtol=0, atol=1e-6)
    error = (factor.log_determinant - torch.linalg.slogdet(problem.dense).logabsdet).abs() / problem.n
    assert error < 1e-8


@pytest.mark.parametrize("problem", ["user/prime", "user/prime@float32"], indirect=True)
def test_not_positive_definite(problem):
    """A kernel that is none is named an error that says what to change, in the factor as in the build."""
    h = problem.build()
    for residual in h.matrix.residual:
        residual.diagonal(dim1=-2, dim2=-1).sub_(0.5)
    with pytest.raises(NotPositiveDefiniteError, match=r"leaf matrix.*alpha.*jitter.*dtype") as caught:
        h.factor(problem.alpha)
    assert str(problem.dtype) in str(caught.value)
