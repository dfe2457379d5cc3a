"""What the paper proves about the hierarchical kernel (Sections 2, 4.2 and appendix A)."""

import numpy as np
import pytest
import torch

from hck.hierarchy import HierarchicalKernel
from hck.kernels import Gaussian, Laplace, Matern
from hck.partition import KMeans, Tree, known_partitions

pytestmark = pytest.mark.usefixtures("one_thread")

CUTTERS = [KMeans(3) if name == "kmeans" else name for name in known_partitions()]
ROUGH = Laplace(1.0)  # its matrices are well-conditioned, so that a small jitter changes little
JITTER = 1e-11


def cloud(n=75, d=2):
    return torch.from_numpy(np.random.default_rng(5).uniform(size=(n, d)))


def same_leaf(tree):
    return tree.leaf_of_point[:, None] == tree.leaf_of_point


def nystrom(kernel, x, z):
    """k(x, Z) K(Z, Z)⁻¹ k(Z, x')."""
    return kernel(x, z) @ torch.linalg.solve(kernel(z), kernel(z, x))


# Theorem 3 and Theorem 6: positive definiteness ---------------------------------------------------------


def test_positive_definite(problem):
    """Theorem 6, on the whole zoo: the fast matrix is positive definite, to rounding."""
    rounding = 100 * problem.n * torch.finfo(problem.dtype).eps
    eigenvalues = torch.linalg.eigvalsh(problem.hierarchical.to_dense().double())
    assert eigenvalues[0] > -rounding * eigenvalues[-1]


@pytest.mark.parametrize("partition", CUTTERS)
@pytest.mark.parametrize("landmarks", ["uniform", "kmeans", "same"])
@pytest.mark.parametrize("kernel", [ROUGH, Matern(0.5, nu=0.5)], ids=str)
def test_strictly_positive_definite(partition, landmarks, kernel):
    """Where the base kernel is strictly so, and by far on these points."""
    h = HierarchicalKernel.build(kernel, cloud(), 6, 5, partition, landmarks)
    assert torch.linalg.eigvalsh(kernel(cloud()))[0] > 1e-3
    assert torch.linalg.eigvalsh(h.to_dense())[0] > 1e-4


def test_indefinite_without_recursion():
    """Why (14) recurses: k(x, Z₁)K(Z₁, Z₁)⁻¹k(Z₁, x') across domains, Nyström with other landmarks within
    them, is no kernel. So the test above can fail."""
    kernel, x = Gaussian(0.4), cloud(60)
    h = HierarchicalKernel.build(kernel, x, rank=5, leaf_size=15)
    side = h.tree.leaf_of_point >= h.tree.n_leaves // 2
    naive = torch.where(side[:, None] == side, h.to_dense(), nystrom(kernel, x, h.landmarks.of_slot(0).x))
    assert torch.linalg.eigvalsh(naive)[0] < -1e-3
    assert torch.linalg.eigvalsh(h.to_dense())[0] > -1e-12


def test_symmetric(problem):
    dense, inverse = problem.hierarchical.to_dense(), problem.factor.inverse().to_dense()
    problem.assert_close(dense, dense.mT, "matrix")
    problem.assert_close(inverse, inverse.mT, "solve")


# Propositions 1 and 5: where it equals the base kernel --------------------------------------------------


def test_equal_to_base_kernel_within_leaves(problem):
    """Exactly, whatever the jitter and the landmarks."""
    within = same_leaf(problem.hierarchical.tree)
    problem.assert_close(problem.hierarchical.to_dense()[within], problem.base[within], "matrix")


@pytest.mark.parametrize("partition", CUTTERS)
def test_equal_to_base_kernel_at_landmarks(partition):
    """Points that are landmarks all the way up, one of them in the last common ancestor too."""
    kernel, x = Laplace(0.5), cloud(64)
    tree = HierarchicalKernel.build(kernel, x, 4, 8, partition).tree
    assert tree.depth >= 2
    chosen, twice = torch.arange(64) % 4 == 0, torch.arange(64) % 8 == 0
    sets = []
    for node in tree.inner.tolist():
        own = tree.order[tree.start[node] : tree.stop[node]]
        mine = own[(twice if node == 0 else chosen)[own]]
        sets.append(x[mine] if len(mine) else x[own[:1]])
    h = HierarchicalKernel.build(kernel, x, 4, partition=tree, landmarks=sets, jitter=JITTER)
    child_of_root = torch.zeros(64, dtype=torch.long)
    for child in range(1, 1 + int(tree.n_children[0])):
        child_of_root[tree.order[tree.start[child] : tree.stop[child]]] = child
    across = child_of_root[:, None] != child_of_root  # the root is the last common ancestor
    equal = chosen[:, None] & chosen & (~across | twice[:, None] | twice)
    error = (h.to_dense() - kernel(x)).abs()
    assert (equal & ~same_leaf(tree)).sum() > 50
    assert error[equal].max() < 1e-8
    assert error[across & ~equal].max() > 1e-2


def test_one_leaf_is_the_base_kernel():
    h = HierarchicalKernel.build(Gaussian(0.3), cloud(), rank=5, leaf_size=75)
    assert h.tree.depth == 0
    torch.testing.assert_close(h.to_dense(), Gaussian(0.3)(cloud()), rtol=0, atol=1e-14)


@pytest.mark.parametrize("partition", CUTTERS)
@pytest.mark.parametrize("landmarks", ["uniform", "farthest", "same"])
def test_full_rank_is_the_base_kernel(partition, landmarks):
    h = HierarchicalKernel.build(ROUGH, cloud(), 75, 6, partition, landmarks, jitter=JITTER)
    assert h.tree.n_leaves > 8
    torch.testing.assert_close(h.to_dense(), ROUGH(cloud()), rtol=0, atol=1e-8)


# Section 4.2 and Theorem 4: the compositional kernel ----------------------------------------------------


def compositional(kernel, x, z, tree):
    """Section 2.1: the base kernel within the leaves, Nyström across."""
    return torch.where(same_leaf(tree), kernel(x), nystrom(kernel, x, z))


def one_level_tree(n):
    return Tree.from_labels(np.arange(n) % 5)


@pytest.mark.parametrize("kernel", [ROUGH, Gaussian(0.3), Matern(0.7, nu=2.5)], ids=str)
def test_compositional_is_a_tree_of_one_level(kernel):
    x, tree = cloud(), one_level_tree(75)
    h = HierarchicalKernel.build(kernel, x, rank=7, partition=tree, jitter=JITTER)
    assert h.tree.depth == 1
    expected = compositional(kernel, x, h.landmarks.of_slot(0).x, tree)
    torch.testing.assert_close(h.to_dense(), expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("partition", CUTTERS)
@pytest.mark.parametrize("landmarks", ["same", "array"])
def test_compositional_is_any_tree_with_one_set_of_landmarks(partition, landmarks):
    x = cloud()
    how = cloud(9) + 0.01 if landmarks == "array" else landmarks  # not even training points
    h = HierarchicalKernel.build(ROUGH, x, 9, 5, partition, how, jitter=JITTER)
    assert h.tree.depth >= 2
    expected = compositional(ROUGH, x, h.landmarks.of_slot(0).x, h.tree)
    torch.testing.assert_close(h.to_dense(), expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("order", [2, "fro"])
@pytest.mark.parametrize("kernel", [ROUGH, Gaussian(0.2), Matern(0.3, nu=1.5)], ids=str)
@pytest.mark.parametrize(
    "partition", [*CUTTERS, one_level_tree(75)], ids=lambda p: type(p).__name__ + str(p)[:6]
)
def test_closer_to_the_base_kernel_than_nystrom(partition, kernel, order):
    """Theorem 4: ‖K − K_compositional‖ < ‖K − K_Nyström‖."""
    x = cloud()
    h = HierarchicalKernel.build(kernel, x, 8, 10, partition, "same", jitter=JITTER)
    loss = torch.linalg.matrix_norm(kernel(x) - h.to_dense(), order)
    theirs = torch.linalg.matrix_norm(kernel(x) - nystrom(kernel, x, h.landmarks.of_slot(0).x), order)
    assert loss < theirs


# Appendix A: the kernel is a sum of positive definite ones, one per node --------------------------------


def telescoped(problem):
    """The terms ξ of (29): for each node its points and a matrix on them; their sum is K_h."""
    definition, tree = problem.definition, problem.hierarchical.tree
    z, sigma = definition.z, definition.landmark_matrix
    basis = {}  # ψ(x, Z) Σ⁻¹ for the points below each inner node, in the tree's order
    for node in reversed(range(tree.n_nodes)):
        parent, rows = int(tree.parent[node]), tree.order[tree.start[node] : tree.stop[node]]
        if node not in z:
            x = problem.exact_points.take(rows)
            psi = definition._base(x, z[parent])
            schur = definition._base(x, x) - psi @ torch.linalg.solve(sigma[parent], psi.mT)
            yield rows, schur
        else:
            children = [c for c in range(tree.n_nodes) if tree.parent[c] == node]
            psi = torch.cat([basis.pop(c) for c in sorted(children, key=lambda c: int(tree.start[c]))])
            basis[node] = weights = torch.linalg.solve(sigma[node], psi.mT).mT
            inner = sigma[node]
            if parent >= 0:
                far = definition._base(z[node], z[parent])
                inner = inner - far @ torch.linalg.solve(sigma[parent], far.mT)
                psi = weights @ far
            yield rows, weights @ inner @ weights.mT
        if parent >= 0:
            basis[node] = psi  # ψ(x, Z_parent)


@pytest.mark.parametrize(
    "problem",
    ["kd/leaf_size_3", "kmeans/prime", "user/prime", "laplace/prime", "sparse:matern"],
    indirect=True,
)
def test_sum_of_one_positive_definite_kernel_per_node(problem):
    total = torch.zeros(problem.n, problem.n, dtype=torch.float64)
    for rows, term in telescoped(problem):
        assert torch.linalg.eigvalsh((term + term.mT) / 2)[0] > -1e-11
        total[rows[:, None], rows] += term
    torch.testing.assert_close(problem.hierarchical.to_dense(), total, rtol=0, atol=1e-10)
