"""Trees that cutters grow: invariants over sizes, dimensions, duplicates, dense, sparse and other points."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hck.kernels import CallableKernel, Gaussian, Matern
from hck.partition import KMeans, known_partitions, leaf_size_for, make_tree
from hck.points import as_points

EVERY = known_partitions()
HALVING = [*known_partitions(by_hyperplanes=True), "kernel"]
COORDINATES = [name for name in EVERY if name != "kernel"]
KERNEL = Gaussian(1.5)
SIZES = st.one_of(st.sampled_from([1, 2, 3, 5, 7, 61, 97]), st.integers(1, 90))
every_cutter = pytest.mark.parametrize("name", EVERY)
quick = settings(max_examples=15, deadline=None)


def generator(seed):
    return torch.Generator().manual_seed(seed)


@st.composite
def data(draw, kinds=("continuous", "integer", "binary", "copies", "constant", "a constant column")):
    n, d, kind = draw(SIZES), draw(st.integers(1, 6)), draw(st.sampled_from(kinds))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = rng.normal(size=(n, d))
    if kind in ("integer", "binary"):
        x = rng.integers(0, 2 if kind == "binary" else 5, size=(n, d)).astype(float)
    elif kind == "copies":
        x = x[rng.integers(0, max(1, n // 4), size=n)]
    elif kind == "constant":
        x[:] = x[0]
    elif kind == "a constant column":
        x[:, 0] = 3.0
    return x


def without_copies(x):
    _, first = np.unique(x, axis=0, return_index=True)
    return x[np.sort(first)]


def points_of(x, sparse):
    return as_points(sp.csr_matrix(x) if sparse else x)


@every_cutter
@quick
@given(x=data(), leaf_size=st.integers(1, 30), seed=st.integers(0, 99), sparse=st.booleans())
def test_every_point_has_one_leaf(check_tree, name, x, leaf_size, seed, sparse):
    tree = make_tree(name, points_of(x, sparse), KERNEL, 1, leaf_size, generator(seed))
    leaves = check_tree(tree, len(x))
    assert max(len(leaf) for leaf in leaves) <= leaf_size
    assert (tree.size[tree.inner] > leaf_size).all()  # nothing is cut in vain
    assert len(tree.rules) == tree.depth
    if name in HALVING:
        of_level = [tree.size[tree.leaves][tree.level[tree.leaves] == l] for l in range(tree.depth + 1)]
        assert all(int(sizes.max() - sizes.min()) <= 1 for sizes in of_level if len(sizes))
        assert int(tree.level[tree.leaves].min()) >= tree.depth - 1


@pytest.mark.parametrize("name", COORDINATES)
@quick
@given(x=data(), leaf_size=st.integers(1, 30), seed=st.integers(0, 99), sparse=st.booleans())
def test_training_points_are_routed_to_their_leaves(name, x, leaf_size, seed, sparse):
    points = points_of(without_copies(x), sparse)
    tree = make_tree(name, points, KERNEL, 1, leaf_size, generator(seed))
    assert torch.equal(tree.route(points), tree.leaf_of_point)
    one_by_one = [tree.route(points.take(torch.tensor([i]))).item() for i in range(len(points))[:9]]
    assert one_by_one == tree.leaf_of_point[:9].tolist()
    assert torch.equal(tree.route(points.x), tree.leaf_of_point)


@quick
@given(
    x=data(kinds=["continuous"]), leaf_size=st.integers(1, 30), seed=st.integers(0, 99), sparse=st.booleans()
)
def test_training_points_are_routed_to_their_leaves_by_the_kernel(x, leaf_size, seed, sparse):
    points = points_of(x, sparse)
    tree = make_tree("kernel", points, KERNEL, 1, leaf_size, generator(seed))
    assert torch.equal(tree.route(points), tree.leaf_of_point)


@pytest.mark.parametrize("name", COORDINATES)
@quick
@given(x=data(), leaf_size=st.integers(1, 30), seed=st.integers(0, 99), sparse=st.booleans())
def test_copies_are_routed_to_a_leaf_that_has_one(check_tree, name, x, leaf_size, seed, sparse):
    points = points_of(x, sparse)
    tree = make_tree(name, points, KERNEL, 1, leaf_size, generator(seed))
    leaves = check_tree(tree, len(x))
    for point, leaf in zip(x, tree.route(points).tolist(), strict=True):
        assert (x[leaves[leaf]] == point).all(1).any()


@pytest.mark.parametrize("name", HALVING)
@quick
@given(n=st.integers(1, 200), rank=st.integers(1, 30), seed=st.integers(0, 99))
def test_leaves_hold_rank_to_twice_rank_points(name, n, rank, seed):
    x = np.random.default_rng(seed).normal(size=(n, 3))
    tree = make_tree(name, as_points(x), KERNEL, rank, generator=generator(seed))
    depth = 0
    while rank * 2 ** (depth + 1) <= n:
        depth += 1
    assert tree.depth == depth
    sizes = tree.size[tree.leaves]
    if n >= rank:
        assert rank <= int(sizes.min())
        assert int(sizes.max()) <= 2 * rank
    if rank > 1:
        assert tree.n_leaves == 2**depth


@pytest.mark.parametrize("name", HALVING)
@pytest.mark.parametrize("n", [97, 100, 128])
@pytest.mark.parametrize("j", [0, 1, 3, 5])
def test_equation_22(name, n, j):
    x = np.random.default_rng(n).normal(size=(n, 2))
    tree = make_tree(name, as_points(x), KERNEL, n // 2**j)
    assert set(tree.size[tree.leaves].tolist()) <= {math.floor(n / 2**j), math.ceil(n / 2**j)}
    assert leaf_size_for(n, n // 2**j) == math.ceil(n / 2**j)


@every_cutter
@pytest.mark.parametrize("sparse", [False, True])
def test_a_seed_makes_a_tree(name, sparse):
    rng = np.random.default_rng(0)
    points, new = (points_of(rng.normal(size=(n, 4)), sparse) for n in (90, 50))
    first, again, other = (make_tree(name, points, KERNEL, 10, generator=generator(s)) for s in (3, 3, 4))
    for attribute in ("parent", "start", "stop", "order"):
        assert torch.equal(getattr(first, attribute), getattr(again, attribute))
    assert torch.equal(first.route(new), again.route(new))
    if name in ("random_projection", "kernel"):
        assert not torch.equal(first.leaf_of_point, other.leaf_of_point)
    by_default = [make_tree(name, points, KERNEL, 10) for _ in range(2)]
    assert torch.equal(by_default[0].order, by_default[1].order)


@every_cutter
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_new_points_as_arrays_whatever_the_type_of_the_tree(check_tree, name, dtype):
    x = np.random.default_rng(1).normal(size=(70, 3)).astype("float32")
    tree = make_tree(name, as_points(x, dtype), KERNEL, 8)
    check_tree(tree, 70)
    assert torch.equal(tree.route(as_points(x, dtype)), tree.leaf_of_point)
    for given_x in (x, x.astype("float64"), torch.tensor(x)):
        assert torch.equal(tree.route(given_x), tree.leaf_of_point)
    assert tree.route(x[:0]).shape == (0,)


# What each cutter promises -------------------------------------------------------------------------


def first_direction(tree):
    return tree.rules[0].directions[tree.rules[0].pick[0]].numpy()


@pytest.mark.parametrize(
    ("form", "dtype", "offset"),
    [
        (np.array, torch.float64, 20.0),
        (sp.csr_matrix, torch.float64, 20.0),
        (np.array, torch.float64, 1e9),
        (np.array, torch.float32, 1e4),
    ],
)
def test_axes(form, dtype, offset):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(300, 3)) * [1.0, 6.0, 2.0] + [offset, 0, 0]
    points = as_points(form(x), dtype)
    np.testing.assert_array_equal(first_direction(make_tree("kd", points, KERNEL, 150)), [0, 1, 0])
    _, _, axes = np.linalg.svd(x - x.mean(0))
    cosine = abs(first_direction(make_tree("pca", points, KERNEL, 150)) @ axes[0])
    assert cosine > 0.999


def test_random_directions_are_uniform_on_the_sphere():
    points = as_points(np.random.default_rng(6).normal(size=(4, 3)))
    trees = [make_tree("random_projection", points, KERNEL, 2, generator=generator(s)) for s in range(400)]
    found = np.array([first_direction(tree) for tree in trees])
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1)
    np.testing.assert_allclose(found.mean(0), 0, atol=5 / math.sqrt(3 * 400))
    np.testing.assert_allclose(found.T @ found / 400, np.eye(3) / 3, atol=5 * math.sqrt(4 / 45 / 400))


@pytest.mark.parametrize("sparse", [False, True])
def test_kmeans_finds_clusters(check_tree, sparse):
    rng = np.random.default_rng(7)
    cluster = rng.integers(3, size=120)
    x = np.array([[10.0, 0], [0, 10], [-10, -10]])[cluster] + rng.normal(size=(120, 2))
    tree = make_tree(KMeans(n_children=3), points_of(x, sparse), KERNEL, 1, 100)
    found = check_tree(tree, 120)
    assert sorted(map(sorted, found)) == sorted(np.flatnonzero(cluster == c).tolist() for c in range(3))


@quick
@given(x=data(), k=st.integers(2, 5), seed=st.integers(0, 99))
def test_kmeans_has_no_more_children_than_asked_for(x, k, seed):
    tree = make_tree(KMeans(k), as_points(x), KERNEL, 1, 3, generator(seed))
    assert int(tree.n_children.max()) <= k


def test_the_kernel_cut_is_at_the_median_of_a_difference_of_kernels():
    x = np.random.default_rng(8).normal(size=(60, 2))
    tree = make_tree("kernel", as_points(x), KERNEL, 30)
    p, q = tree.rules[0].poles.x.numpy()
    value = (KERNEL(x, p[None]) - KERNEL(x, q[None]))[:, 0]
    assert torch.equal(tree.leaf_of_point, torch.tensor(value > np.median(value)).long())


@quick
@given(
    numbers=st.lists(st.integers(0, 10**6), min_size=1, max_size=60, unique=True), leaf_size=st.integers(1, 9)
)
def test_strings_are_cut_by_their_kernel(check_tree, numbers, leaf_size):
    def near(a, b):
        a, b = (np.array([float(s) / 1e5 for s in c]) for c in (a, b))
        return np.exp(-((a[:, None] - b) ** 2) / 50)

    points = as_points([str(v) for v in numbers], objects=True)
    tree = make_tree("kernel", points, CallableKernel(near), 1, leaf_size)
    leaves = check_tree(tree, len(numbers))
    assert max(map(len, leaves)) <= leaf_size
    assert torch.equal(tree.route(points), tree.leaf_of_point)


def test_strings_that_a_kernel_hardly_tells_apart(check_tree):
    words = ["tree", "leaf", "root", "twig", "bark", "leaf", "tree", "elm"] * 5
    kernel = CallableKernel(lambda a, b: np.array([[len(set(s) & set(t)) for t in b] for s in a], float))
    tree = make_tree("kernel", as_points(words, objects=True), kernel, 1, 6)
    assert max(map(len, check_tree(tree, 40))) <= 6


# Errors ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COORDINATES)
def test_strings_have_no_coordinates(name):
    with pytest.raises(TypeError, match="partition='kernel'"):
        make_tree(name, as_points(["a", "b", "c"], objects=True), KERNEL, 1)


def test_names():
    points = as_points(np.zeros((4, 2)))
    with pytest.raises(ValueError, match="'kdtree'") as unknown:
        make_tree("kdtree", points, KERNEL, 1)
    assert all(name in str(unknown.value) for name in EVERY)
    with pytest.raises(TypeError, match="a name, a Cutter or a Tree"):
        make_tree(3, points, KERNEL, 1)
    with pytest.raises(ValueError, match="at least 2"):
        KMeans(n_children=1)


@pytest.mark.parametrize("partition", COORDINATES)
@pytest.mark.parametrize("sparse", [False, True])
def test_distances_are_measured_in_lengthscales(partition, sparse):
    """A tree for one lengthscale per feature is that of the scaled points, and sends points alike."""
    scale = torch.tensor([0.1, 1.0, 30.0], dtype=torch.float64)
    x = torch.rand(500, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    new = torch.rand(50, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    points, scaled = (as_points(sp.csr_matrix(v) if sparse else v) for v in (x, x / scale))
    trees = [
        make_tree(partition, each, kernel, 20, generator=torch.Generator().manual_seed(2))
        for each, kernel in ((points, 2.0 * Matern(scale)), (scaled, Matern(1.0)))
    ]
    assert torch.equal(trees[0].order, trees[1].order)
    assert torch.equal(trees[0].route(points), trees[0].leaf_of_point)
    routed = [
        tree.route(as_points(sp.csr_matrix(v) if sparse else v))
        for tree, v in zip(trees, (new, new / scale), strict=True)
    ]
    assert torch.equal(*routed)
