"""Landmarks of the inner nodes: chosen or given."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from hck import HCKRegressor
from hck.backend.random import as_random
from hck.kernels import CallableKernel, Gaussian, Matern
from hck.partition import Tree, choose_landmarks, known_landmarks, make_tree
from hck.partition.landmarks import sample_without_replacement
from hck.points import ObjectPoints, SparsePoints, as_points

KERNEL = Gaussian(1.0)
NAMES = [name for name in known_landmarks() if name != "none"]
SAMPLES = ["uniform", "farthest"]


def choose(how, points, tree, rank, generator, kernel=KERNEL):
    return choose_landmarks(how, points, tree, rank, kernel, generator)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def sorted_by_tree(x, leaf_size=10):
    """A tree, and the points in its order."""
    tree = make_tree("random_projection", as_points(x), KERNEL, 1, leaf_size, generator(1))
    return tree, x[tree.order.numpy()]


def rows_of(landmarks, slot):
    x = landmarks.of_slot(slot).x
    return x.toarray() if sp.issparse(x) else np.asarray(x)


@pytest.fixture
def x():
    return np.random.default_rng(0).normal(size=(100, 3))


# Chosen ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SAMPLES)
@settings(max_examples=40, deadline=None)
@given(n=st.integers(2, 120), rank=st.integers(1, 40), labels=st.integers(1, 9), seed=st.integers(0, 99))
def test_landmarks_are_different_points_of_their_node(name, n, rank, labels, seed):
    rng = np.random.default_rng(seed)
    tree, x = Tree.from_labels(rng.integers(labels, size=(n, 2))), rng.normal(size=(n, 2))
    landmarks = choose(name, as_points(x), tree, rank, generator(seed))
    if tree.depth == 0:
        return
    index = landmarks.blocks.index
    assert len(index) == len(tree.inner)
    for row, node in zip(index.tolist(), tree.inner.tolist(), strict=True):
        real = [i for i in row if i >= 0]
        assert row == real + [-1] * (len(row) - len(real))  # padding comes last
        assert len(real) == len(set(real)) == min(rank, int(tree.size[node]))
        assert all(tree.start[node] <= i < tree.stop[node] for i in real)
    assert landmarks.blocks.full == bool((index >= 0).all())
    assert landmarks.rank == min(rank, n)


def test_same_is_one_sample_for_all(x):
    tree, x = sorted_by_tree(x)
    landmarks = choose("same", as_points(x), tree, 12, generator())
    first = landmarks.blocks.index[0]
    assert (landmarks.blocks.index == first).all()
    assert len(first.unique()) == landmarks.rank == 12
    assert landmarks.blocks.full
    assert choose("same", as_points(x), tree, 500, generator()).rank == len(x)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sparse", [False, True])
def test_a_seed_makes_the_landmarks(name, sparse, x):
    tree, x = sorted_by_tree(x)
    points = as_points(sp.csr_matrix(x) if sparse else x)
    first, again, other = (choose(name, points, tree, 6, generator(s)) for s in (3, 3, 4))
    assert all((rows_of(first, s) == rows_of(again, s)).all() for s in range(len(tree.inner)))
    assert any(
        rows_of(first, s).shape != rows_of(other, s).shape or (rows_of(first, s) != rows_of(other, s)).any()
        for s in range(len(tree.inner))
    )


@pytest.mark.parametrize("name", NAMES)
def test_sparse_points_get_the_landmarks_of_dense_points(name, x):
    tree, x = sorted_by_tree(x * (np.random.default_rng(1).random(x.shape) < 0.6))
    dense, sparse = as_points(x), as_points(sp.csr_matrix(x))
    both = [choose(name, points, tree, 6, generator()) for points in (dense, sparse)]
    assert isinstance(both[1].points, SparsePoints)
    for slot in range(len(tree.inner)):
        if name == "kmeans":  # scikit-learn's algorithms differ
            assert rows_of(both[0], slot).shape == rows_of(both[1], slot).shape
        else:
            np.testing.assert_array_equal(rows_of(both[0], slot), rows_of(both[1], slot))


@pytest.mark.parametrize(("size", "count"), [(12, 5), (100, 5)], ids=["by sorting", "by rejection"])
def test_samples_are_uniform(size, count):
    draws = 4000
    sizes = torch.full((draws,), size)
    sample = sample_without_replacement(sizes, count, as_random(0), sizes.device).index
    assert all(len(set(row)) == count for row in sample.tolist())

    def check(counts, p):
        deviation = math.sqrt(draws * p * (1 - p))
        np.testing.assert_allclose(counts, draws * p, rtol=0, atol=5 * deviation)

    check(np.bincount(sample.ravel(), minlength=size), count / size)
    for place in range(count):  # in random order: any few of them are a sample too
        check(np.bincount(sample[:, place], minlength=size), 1 / size)
    together = ((sample == 0).any(1) & (sample == 1).any(1)).sum().item()
    check([together], count * (count - 1) / (size * (size - 1)))


def test_samples_of_groups_of_uneven_size():
    sizes = torch.tensor([1, 3, 8, 70, 500])
    sample = sample_without_replacement(sizes, 8, as_random(0), sizes.device)
    assert not sample.full
    assert sample.mask.sum(1).tolist() == [1, 3, 8, 8, 8]
    for row, size in zip(sample.index, sizes, strict=True):
        real = row[row >= 0]
        assert len(real.unique()) == len(real)
        assert (real < size).all()


def test_farthest_is_greedy_in_the_kernels_distance(x):
    kernel = Matern([0.5, 1.0, 3.0], nu=0.5)
    tree, x = sorted_by_tree(x, leaf_size=30)
    landmarks = choose("farthest", as_points(x), tree, 15, generator(), kernel)
    values = kernel(x)
    square = np.diag(values)[:, None] + np.diag(values) - 2 * values
    for row, node in zip(landmarks.blocks.index.tolist(), tree.inner.tolist(), strict=True):
        members = slice(tree.start[node], tree.stop[node])  # all are candidates
        for k in range(1, len(row)):
            gap = square[:, row[:k]].min(1)
            assert gap[row[k]] == pytest.approx(gap[members].max(), abs=1e-12)


def test_farthest_points_leave_smaller_gaps_than_random_ones():
    x = np.random.default_rng(2).uniform(size=(400, 2))
    tree, x = sorted_by_tree(x, leaf_size=100)

    def fill_distance(name, seed):
        landmarks = choose(name, as_points(x), tree, 12, generator(seed))
        gaps = [
            cdist(x[tree.start[node] : tree.stop[node]], rows_of(landmarks, slot)).min(1).max()
            for slot, node in enumerate(tree.inner.tolist())
        ]
        return np.mean(gaps)

    farthest, uniform = (
        np.mean([fill_distance(name, s) for s in range(5)]) for name in ("farthest", "uniform")
    )
    assert farthest < 0.9 * uniform


@pytest.mark.parametrize("form", [np.array, sp.csr_matrix])
def test_kmeans_centres_are_nearer_to_the_points_than_random_ones(form):
    x = np.random.default_rng(3).uniform(size=(400, 2))
    tree, x = sorted_by_tree(x, leaf_size=100)
    error = {}
    for name in ("kmeans", "uniform"):
        landmarks = choose(name, as_points(form(x)), tree, 12, generator())
        error[name] = 0.0
        for slot, node in enumerate(tree.inner.tolist()):
            own, found = x[tree.start[node] : tree.stop[node]], rows_of(landmarks, slot)
            assert len(found) == 12
            assert (found >= own.min(0)).all()  # centres are means of the node's points
            assert (found <= own.max(0)).all()
            error[name] += (cdist(own, found).min(1) ** 2).sum()
    assert error["kmeans"] < 0.7 * error["uniform"]


def test_kmeans_of_few_different_points():
    tree, x = sorted_by_tree(np.repeat([[0.0, 1.0], [2.0, 0.0]], 20, axis=0), leaf_size=15)
    landmarks = choose("kmeans", as_points(x), tree, 6, generator())
    for slot, node in enumerate(tree.inner.tolist()):
        own = {tuple(row) for row in x[tree.start[node] : tree.stop[node]]}
        found = [tuple(row) for row in rows_of(landmarks, slot).round(12)]
        assert sorted(found) == sorted(own)


def test_landmarks_among_strings():
    words = np.array(["tree", "leaf", "root", "twig", "bark", "elm", "oak", "ash"], dtype=object)
    kernel = CallableKernel(lambda a, b: np.array([[len(set(s) & set(t)) for t in b] for s in a], float))
    tree = Tree.from_labels([0, 0, 0, 0, 1, 1, 1, 1])
    points = as_points(words, objects=True)
    for name in ("uniform", "farthest", "same"):
        landmarks = choose(name, points, tree, 5, generator(), kernel)
        assert isinstance(landmarks.points, ObjectPoints)
        assert len(set(landmarks.of_slot(0).x)) == 5
    given_words = choose(np.array(["a", "b"], dtype=object), points, tree, 5, generator(), kernel)
    assert given_words.of_slot(0).x.tolist() == ["a", "b"]
    with pytest.raises(TypeError, match="coordinates"):
        choose("kmeans", points, tree, 5, generator(), kernel)


# Given ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trained", [np.array, sp.csr_matrix])
@pytest.mark.parametrize("form", [np.array, sp.csr_matrix, torch.tensor])
def test_one_given_set_serves_every_node(trained, form, x):
    tree, x = sorted_by_tree(x)
    mine = np.random.default_rng(4).normal(size=(7, 3))
    points = as_points(trained(x))
    landmarks = choose(form(mine), points, tree, 99, generator())
    assert type(landmarks.points) is type(points)
    assert landmarks.rank == 7
    assert landmarks.blocks.full
    assert len(landmarks.blocks) == len(tree.inner)
    assert all((rows_of(landmarks, slot) == mine).all() for slot in range(len(tree.inner)))


@pytest.mark.parametrize("trained", [np.array, sp.csr_matrix])
@pytest.mark.parametrize("counts", [(4, 4, 4), (2, 5, 1)], ids=["even", "uneven"])
def test_given_sets_of_every_node(trained, counts, x):
    tree, x = sorted_by_tree(x, leaf_size=25)
    assert len(tree.inner) == 3
    rng = np.random.default_rng(5)
    mine = [rng.normal(size=(count, 3)) for count in counts]
    landmarks = choose(mine, as_points(trained(x)), tree, 99, generator())
    assert landmarks.rank == max(counts)
    assert landmarks.blocks.full == (len(set(counts)) == 1)
    assert landmarks.blocks.mask.sum(1).tolist() == list(counts)
    assert all((rows_of(landmarks, slot) == mine[slot]).all() for slot in range(3))


@pytest.mark.parametrize("how", [*NAMES, np.zeros((4, 3)), []], ids=str)
def test_a_single_leaf_has_one_empty_set(how, x):
    tree, x = sorted_by_tree(x, leaf_size=100)
    landmarks = choose(how, as_points(x), tree, 5, generator())
    assert landmarks.blocks.index.tolist() == [[-1]]
    assert not landmarks.blocks.mask.any()
    assert len(landmarks.of_slot(0)) == 0


# Errors ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ([np.zeros((2, 3))] * 2, "2 sets but the tree has 3 inner nodes"),
        (np.zeros((2, 4)), "4 features where 3 are expected"),
        ([np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 4))], "4 features where 3 are expected"),
        (np.zeros((0, 3)), "empty"),
        ([np.zeros((2, 3)), np.zeros((0, 3)), np.zeros((2, 3))], "empty"),
        (np.zeros(3), "2-D array"),
    ],
)
def test_given_sets_that_do_not_fit(how, message, x):
    tree, x = sorted_by_tree(x, leaf_size=25)
    with pytest.raises(ValueError, match=message):
        choose(how, as_points(x), tree, 5, generator())


def test_unknown_names(x):
    tree, x = sorted_by_tree(x)
    with pytest.raises(ValueError, match="'random'") as unknown:
        choose("random", as_points(x), tree, 5, generator())
    assert all(name in str(unknown.value) for name in NAMES)


@pytest.mark.parametrize("n", [20, 500])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros((3, 5)), "landmarks: .* 5 features where 2 are expected"),
        ([np.zeros((3, 5))], "landmarks: .* 5 features where 2 are expected"),
        (np.full((3, 2), np.nan), "landmarks must not be NaN"),
        (np.zeros(3), "landmarks: .* 2-D"),
        (np.zeros((0, 2)), "a set of landmarks is empty"),
    ],
)
def test_wrong_landmarks_are_named_even_where_none_are_needed(n, wrong, message):
    x = np.random.default_rng(0).uniform(size=(n, 2))
    model = HCKRegressor("gaussian", lengthscale=1.0, alpha=0.1, rank=8, leaf_size=20, landmarks=wrong)
    with pytest.raises(ValueError, match=message):
        model.fit(x, x[:, 0])
