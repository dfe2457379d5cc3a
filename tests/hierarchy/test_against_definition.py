"""The structured matrix and its product, on the whole zoo, against the definition evaluated densely."""

import numpy as np
import pytest
import torch

from hck.hierarchy import HierarchicalKernel
from hck.hierarchy.dense import Definition
from hck.kernels import Gaussian, Laplace
from hck.partition import Tree
from hck.points import as_points

pytestmark = pytest.mark.usefixtures("one_thread")


def test_to_dense(problem):
    problem.assert_close(problem.hierarchical.to_dense(), problem.dense, "matrix")


def test_matrix_times_vector_and_matrix(problem):
    expected = problem.dense @ problem.b.double()
    problem.assert_close(problem.hierarchical @ problem.b, expected, "matrix")
    problem.assert_close(problem.hierarchical @ problem.b[:, 1], expected[:, 1], "matrix")


def test_diagonal(problem):
    diagonal = problem.hierarchical.diagonal()
    problem.assert_close(diagonal, problem.dense.diagonal(), "matrix")
    problem.assert_close(diagonal, problem.base.diagonal(), "matrix")


def test_the_zoo_is_diverse(zoo):
    """The problems have the shapes that they are there for."""
    trees = {name: problem.hierarchical.tree for name, problem in zoo.items()}
    leaves = {name: tree.size[tree.leaves] for name, tree in trees.items()}
    assert trees["pca/two_leaves"].n_leaves == 2
    assert all(tree.depth == 0 for name, tree in trees.items() if "one_" in name and "user" not in name)
    assert all(trees[f"{cutter}/leaf_size_2"].depth >= 4 for cutter in ("kd", "kernel", "random_projection"))
    user = trees["user/prime"]
    assert user.level[user.leaves].unique().tolist() == [1, 2, 3]
    assert user.n_children[user.inner].unique().tolist() == [2, 3, 4]
    assert trees["kmeans/prime"].n_children.max() == 3
    assert leaves["kmeans/prime"].max() > 2 * leaves["kmeans/prime"].min()
    padded = zoo["landmarks:list"].hierarchical.landmarks.blocks
    assert not padded.full
    few = zoo["kd/fewer_points_than_rank"].hierarchical.landmarks
    assert few.rank == 7 < zoo["kd/fewer_points_than_rank"].options["rank"]


@pytest.mark.parametrize("problem", ["kd/prime", "user/prime@float32"], indirect=True)
def test_right_side_of_another_dtype_or_layout(problem):
    """Right sides are taken as numbers: integers, another precision, columns of a larger matrix."""
    generator = torch.Generator().manual_seed(0)
    b = torch.randint(-3, 4, (problem.n, 4), generator=generator)
    expected = problem.dense @ b.double()
    problem.assert_close(problem.hierarchical @ b, expected, "matrix")
    problem.assert_close(problem.hierarchical @ b.double(), expected, "matrix")
    problem.assert_close(problem.hierarchical @ b.float()[:, ::2], expected[:, ::2], "matrix")
    w = torch.linalg.solve(problem.noisy, b.double())
    problem.assert_close(problem.factor.solve(b[:, 0]), w[:, 0], "solve")
    problem.assert_close(problem.factor.solve(b.mT.contiguous().mT), w, "solve")


@pytest.mark.parametrize("problem", ["kd/prime", "pca/one_leaf"], indirect=True)
@pytest.mark.parametrize("operation", ["multiply", "solve", "extend"])
@pytest.mark.parametrize("excess", [-1, 1])
def test_right_side_of_the_wrong_length(problem, operation, excess):
    """An error, not an answer to another question."""
    b = torch.zeros(problem.n + excess, 2, dtype=torch.float64)
    do = {
        "multiply": problem.hierarchical.__matmul__,
        "solve": problem.factor.solve,
        "extend": problem.hierarchical.extend,
    }
    with pytest.raises(ValueError, match=str(len(b))):
        do[operation](b)


@pytest.mark.parametrize("problem", ["kd/prime", "user/prime", "strings:uniform"], indirect=True)
def test_no_columns(problem):
    none = problem.b[:, :0]
    assert (problem.hierarchical @ none).shape == (problem.n, 0)
    assert problem.factor.solve(none).shape == (problem.n, 0)


@pytest.mark.parametrize("jitter", [0.0, 1e-10, 1e-3])
def test_jitter_is_part_of_the_definition(rng, jitter):
    """λ' enters where the paper inverts K(Z, Z) and nowhere else, whatever its size."""
    x = as_points(rng.uniform(size=(60, 2)))
    h = HierarchicalKernel.build(Laplace(0.5), x, rank=6, leaf_size=8, jitter=jitter)
    expected = Definition(Laplace(0.5), h.tree, h.landmarks, jitter).square(x)
    torch.testing.assert_close(h.to_dense(), expected, rtol=0, atol=1e-12)


def test_tree_is_kept_for_another_kernel(rng):
    """Lengthscales are searched over one tree; landmarks can be kept too."""
    x, new = rng.uniform(size=(71, 2)), as_points(rng.uniform(size=(9, 2)))
    first = HierarchicalKernel.build(Gaussian(1.0), x, rank=6, leaf_size=9)
    sets = [first.landmarks.of_slot(slot).x for slot in range(len(first.tree.inner))]
    second = HierarchicalKernel.build(Gaussian(0.3), x, rank=6, partition=first.tree, landmarks=sets)
    assert torch.equal(second.tree.order, first.tree.order)
    assert torch.equal(second.tree.parent, first.tree.parent)
    assert torch.equal(second.landmarks.points.x, torch.cat(sets))
    points, expected = as_points(x), Definition(Gaussian(0.3), first.tree, first.landmarks, second.jitter)
    torch.testing.assert_close(second.to_dense(), expected.square(points), rtol=0, atol=1e-12)
    torch.testing.assert_close(second.cross(new), expected.cross(points, new), rtol=0, atol=1e-12)
    assert (second.to_dense() - first.to_dense()).abs().max() > 0.1


def test_points_are_in_their_original_order(rng):
    """The same points, tree and landmarks in another order give the same matrix in that order."""
    n, kernel = 41, Gaussian(0.5)
    x, b, new = rng.uniform(size=(n, 2)), torch.from_numpy(rng.normal(size=n)), rng.uniform(size=(7, 2))
    label = np.stack([np.arange(n) % 3, np.arange(n) % 7 // 3], 1)
    sets = [x[i : i + 5] for i in range(len(Tree.from_labels(label).inner))]
    shuffle = rng.permutation(n)
    noise = torch.from_numpy(rng.uniform(0.01, 1, n))

    def build(order):
        tree = Tree.from_labels(label[order])
        return HierarchicalKernel.build(kernel, x[order], rank=5, partition=tree, landmarks=sets)

    plain, shuffled = build(np.arange(n)), build(shuffle)
    close = {"rtol": 0, "atol": 1e-11}
    torch.testing.assert_close(shuffled.to_dense(), plain.to_dense()[shuffle][:, shuffle], **close)
    torch.testing.assert_close(shuffled @ b[shuffle], (plain @ b)[shuffle], **close)
    torch.testing.assert_close(shuffled.diagonal(), plain.diagonal()[shuffle], **close)
    torch.testing.assert_close(shuffled.cross(new), plain.cross(new)[shuffle], **close)
    torch.testing.assert_close(shuffled.extend(b[shuffle])(new), plain.extend(b)(new), **close)
    one, other = plain.factor(noise), shuffled.factor(noise[shuffle])
    torch.testing.assert_close(other.solve(b[shuffle]), one.solve(b)[shuffle], rtol=0, atol=1e-9)
    torch.testing.assert_close(other.inverse_diagonal(), one.inverse_diagonal()[shuffle], rtol=0, atol=1e-9)


@pytest.mark.parametrize("problem", ["kmeans/prime", "user/prime@float32", "sparse:matern"], indirect=True)
def test_memory_budget_changes_nothing(problem):
    """Two leaves, or one, and one node at a time, or all at once."""
    h = problem.build(memory_budget=1)
    assert all(len(batch) <= 2 for batch in h.matrix.layout.leaves)
    assert len(h.matrix.layout.leaves) > len(problem.hierarchical.matrix.layout.leaves)
    problem.assert_close(h.to_dense(), problem.hierarchical.to_dense(), "matrix")
    problem.assert_close(h.landmark_factor, problem.hierarchical.landmark_factor, "matrix")
    problem.assert_close(h.factor(problem.alpha).solve(problem.b), problem.factor.solve(problem.b), "solve")
    expected = problem.hierarchical.extend(problem.b)(problem.new_points)
    problem.assert_close(h.extend(problem.b)(problem.new_points), expected, "solve")
    problem.assert_close(
        h.cross(problem.new_points), problem.hierarchical.cross(problem.new_points), "matrix"
    )


def test_memory_held_is_linear_in_the_number_of_points(rng):
    held = [
        HierarchicalKernel.build(Gaussian(), rng.uniform(size=(n, 2)), rank=4, leaf_size=8).nbytes / n
        for n in (64, 512)
    ]
    assert held[1] < 1.2 * held[0]
    assert held[0] >= 8 * (8 + 4)  # a row of D and a row of V, at least
