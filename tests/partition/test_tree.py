"""The flat tree: trees given by the user, routing, and moving."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hck.backend.kinds import KINDS, OTHER
from hck.kernels import CallableKernel, Gaussian
from hck.partition import Tree, known_partitions, make_tree
from hck.points import as_points

quick = settings(max_examples=35, deadline=None)


@st.composite
def nested_labels(draw):
    """A table of labels, few enough that groups have several members."""
    n, levels = draw(st.integers(1, 25)), draw(st.integers(1, 4))
    return np.array(
        draw(st.lists(st.lists(st.integers(0, 2), min_size=levels, max_size=levels), min_size=n, max_size=n))
    )


def groups_of(tree):
    """The points of each node, as a set of sets."""
    ranges = zip(tree.start.tolist(), tree.stop.tolist(), strict=True)
    return {frozenset(tree.order[a:b].tolist()) for a, b in ranges}


# Labels ---------------------------------------------------------------------------------------------


@quick
@given(nested_labels())
def test_nodes_are_the_groups_that_share_their_first_labels(check_tree, labels):
    tree = Tree.from_labels(labels)
    check_tree(tree, len(labels))
    n, levels = labels.shape
    prefixes = [[tuple(row[:l]) for row in labels] for l in range(levels + 1)]
    groups = {frozenset(i for i in range(n) if p[i] == q) for p in prefixes for q in p}
    assert groups_of(tree) == groups
    assert tree.n_nodes == len(groups)  # no level is made where a label does not divide


@quick
@given(nested_labels(), st.integers(0, 99))
def test_labels_of_any_type_name_the_same_groups(labels, seed):
    renamed = np.array(["c", "a", "b"])[labels]
    for other in (renamed, renamed.tolist(), labels.astype(float), renamed.astype(object)):
        assert groups_of(Tree.from_labels(other)) == groups_of(Tree.from_labels(labels))
    shuffle = np.random.default_rng(seed).permutation(len(labels))
    moved = groups_of(Tree.from_labels(labels[shuffle]))
    assert {frozenset(shuffle[i] for i in group) for group in moved} == groups_of(Tree.from_labels(labels))


def test_one_level_of_labels():
    tree = Tree.from_labels(["b", "a", "b", "c"])
    assert (tree.n_leaves, tree.depth, tree.n_nodes) == (3, 1, 4)
    assert tree.leaf_of_point.tolist() == [1, 0, 1, 2]
    assert tree.order.tolist() == [1, 0, 2, 3]


def test_labels_that_do_not_divide_make_no_level():
    tree = Tree.from_labels([["a", "x", 1], ["a", "x", 2], ["b", "x", 1]])
    assert tree.depth == 2
    assert groups_of(tree) == {frozenset(g) for g in [{0, 1, 2}, {0, 1}, {0}, {1}, {2}]}
    alone = Tree.from_labels(["same"] * 5)
    assert (alone.n_nodes, alone.depth) == (1, 0)
    assert alone.route(np.zeros((3, 2))).tolist() == [0, 0, 0]


@pytest.mark.parametrize("wrong", [[], np.zeros((2, 2, 2)), 3, np.zeros((0, 2)), np.zeros((2, 0))])
def test_labels_must_form_a_table(wrong):
    with pytest.raises(ValueError, match="labels must have shape"):
        Tree.from_labels(wrong)


def test_new_points_follow_their_labels():
    labels = np.array([["a", "x"], ["b", "x"], ["a", "y"], ["a", "x"], ["b", "y"]])
    tree = Tree.from_labels(labels, route=lambda x: labels[x[:, 0].astype(int)])
    x = np.array([[4.0], [0], [2], [2], [1]])
    assert tree.route(x).tolist() == [tree.leaf_of_point[i] for i in (4, 0, 2, 2, 1)]
    flat = Tree.from_labels(labels[:, 1], route=lambda x: labels[x[:, 0].astype(int), 1])
    assert flat.route(x).tolist() == [1, 0, 1, 1, 0]


@quick
@given(nested_labels())
def test_new_points_follow_their_labels_to_leaves_at_any_depth(labels):
    tree = Tree.from_labels(labels, route=lambda x: labels[x[:, 0].astype(int)])
    every = np.arange(len(labels), dtype=float)[:, None]
    assert torch.equal(tree.route(every), tree.leaf_of_point)
    for i in range(len(labels)):
        assert tree.route(every[i : i + 1]).tolist() == [tree.leaf_of_point[i]]
    assert tree.route(every[:0]).tolist() == []


def test_labels_that_no_training_point_has():
    tree = Tree.from_labels([["a", "x"], ["b", "y"]], route=lambda x: [["a", "y"]] * len(x))
    with pytest.raises(ValueError, match=r"no training point has the labels \('a', 'y'\)"):
        tree.route(np.zeros((2, 1)))


# Parents --------------------------------------------------------------------------------------------


@quick
@given(nested_labels(), st.integers(0, 2**32 - 1))
def test_nodes_may_be_numbered_in_any_way(check_tree, labels, seed):
    tree = Tree.from_labels(labels)
    name = np.random.default_rng(seed).permutation(tree.n_nodes)
    parent = np.full(tree.n_nodes, -1)
    parent[name[1:]] = name[tree.parent[1:].numpy()]
    leaf = name[tree.leaves[tree.leaf_of_point].numpy()]
    again = Tree.from_parents(parent, leaf, route=lambda x: leaf[x[:, 0].astype(int)])
    check_tree(again, len(labels))
    assert groups_of(again) == groups_of(tree)
    assert torch.equal(again.route(np.arange(len(labels), dtype=float)[:, None]), again.leaf_of_point)


def test_a_tree_by_hand():
    #        4
    #      /   \
    #     0     2        points 0 and 3 in node 1, point 1 in 3, point 2 in 2
    #    / \
    #   3   1
    tree = Tree.from_parents([4, 0, 4, 0, -1], [1, 3, 2, 1])
    assert tree.parent.tolist() == [-1, 0, 0, 1, 1]
    assert tree.level.tolist() == [0, 1, 1, 2, 2]
    assert groups_of(tree) == {frozenset(g) for g in [{0, 1, 2, 3}, {0, 3, 1}, {2}, {0, 3}, {1}]}
    assert (tree.n_points, tree.n_nodes, tree.n_leaves, tree.depth) == (4, 5, 3, 2)


@pytest.mark.parametrize(
    ("parent", "leaf", "message"),
    [
        ([-1, 0, 0, -1], [1, 2], "the root, which has -1"),
        ([1, 0], [0], "the root, which has -1"),
        ([], [0], "the root, which has -1"),
        ([[-1, 0, 0]], [1, 2], "the root, which has -1"),
        ([-1, 0, 3], [1, 2], "the root, which has -1"),
        ([-1, 0, 0, 4, 3], [1, 2], "cycle"),
        ([-1, 0, 1, 1], [2, 3], "at least two"),
        ([-1, 0, 0, 1, 1], [1, 2, 3, 4], "has children"),
        ([-1, 0, 0], [1, 1], "leaf 2 has no points"),
        ([-1, 0, 0], [1, 3], "a node of the tree for each point"),
        ([-1, 0, 0], [1, -1], "a node of the tree for each point"),
        ([-1, 0, 0], [], "a node of the tree for each point"),
        ([-1, 0, 0], [[1, 2]], "a node of the tree for each point"),
    ],
)
def test_trees_that_are_none(parent, leaf, message):
    with pytest.raises(ValueError, match=message):
        Tree.from_parents(parent, leaf)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ([1, 0], "not a leaf"),
        ([1, 9], "a node of the tree"),
        ([1, -1], "a node of the tree"),
        ([1], "for each point"),
    ],
)
def test_routes_must_return_leaves(returned, message):
    tree = Tree.from_parents([-1, 0, 0], [1, 2], route=lambda x: returned)
    with pytest.raises(ValueError, match=message):
        tree.route(np.zeros((2, 1)))


def test_a_route_sees_the_points_as_they_were_given():
    words = ["tree", "leaf", "root"]
    tree = Tree.from_labels([0, 1, 1], route=lambda x: [0 if word == "tree" else 1 for word in x])
    assert tree.route(as_points(words, objects=True)).tolist() == [0, 1, 1]
    sparse = Tree.from_labels([0, 1, 1], route=lambda x: (np.asarray(x.sum(1)).ravel() > 0).astype(int))
    assert sparse.route(sp.csr_matrix([[0.0, 0], [1, 0], [0, 2]])).tolist() == [0, 1, 1]


# Centres --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.array, sp.csr_matrix, torch.tensor])
def test_without_a_route_new_points_go_to_the_nearest_centre(form):
    rng = np.random.default_rng(0)
    labels, x, new = rng.integers(3, size=40), rng.normal(size=(40, 2)), rng.normal(size=(60, 2))
    tree = make_tree(Tree.from_labels(labels), as_points(form(x)), Gaussian(), 5)
    centres = np.stack([x[labels == label].mean(0) for label in range(3)])
    nearest = ((new[:, None] - centres) ** 2).sum(-1).argmin(1)
    assert tree.route(form(new)).tolist() == nearest.tolist()


def test_centres_at_every_level():
    corner = np.array([[0.0, 0], [0, 9], [40, 0], [40, 9], [90, 0]])
    labels = [["left", "low"], ["left", "high"], ["mid", "low"], ["mid", "high"], ["right", "low"]]
    tree = make_tree(Tree.from_labels(labels * 3), as_points(np.tile(corner, (3, 1))), Gaussian(), 2)
    assert tree.depth == 2
    assert torch.equal(tree.route(corner + np.array([3.0, -2.0])), tree.leaf_of_point[:5])


def test_a_route_of_the_user_comes_before_centres():
    mine = Tree.from_labels([0, 1], route=lambda x: np.zeros(len(x), dtype=int))
    tree = make_tree(mine, as_points([[0.0], [1.0]]), Gaussian(), 1)
    assert tree.route([[0.0], [1.0]]).tolist() == [0, 0]


def test_without_centres_or_route_new_points_cannot_be_routed():
    tree = Tree.from_labels([0, 1])
    with pytest.raises(ValueError, match="no rule that sends new points"):
        tree.route(np.zeros((1, 1)))
    words = as_points(["a", "b"], objects=True)
    kernel = CallableKernel(lambda a, b: np.ones((len(a), len(b))))
    with pytest.raises(ValueError, match="no rule that sends new points"):
        make_tree(tree, words, kernel, 1).route(words)


def test_a_tree_must_be_over_the_points():
    with pytest.raises(ValueError, match="over 2 points, but there are 3"):
        make_tree(Tree.from_labels([0, 1]), as_points(np.zeros((3, 1))), Gaussian(), 1)


# The rest -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("partition", [*known_partitions(), "route"])
def test_to_moves_everything(partition):
    x = np.random.default_rng(1).normal(size=(40, 2))
    mine = Tree.from_labels([0] * 20 + [1] * 20, route=lambda x: (x[:, 0] > 0).astype(int))
    points = as_points(x)
    tree = make_tree(mine if partition == "route" else partition, points, Gaussian(), 5)
    moved = tree.to("meta")
    assert {t.device.type for t in (moved.parent, moved.start, moved.stop, moved.order)} == {"meta"}
    for rule in moved.rules:
        assert {v.device.type for v in vars(rule).values() if hasattr(v, "device")} == {"meta"}
    assert torch.equal(tree.to("cpu").route(x), tree.route(x))
    assert Tree.from_labels([0, 1]).to("cpu").rules is None


def test_repr_and_freezing():
    tree = Tree.from_labels(["a", "b", "b", "b"])
    assert repr(tree) == "Tree(4 points, 3 nodes, 2 leaves of 1 to 3 points, depth 1)"
    with pytest.raises(FrozenInstanceError):
        tree.parent = torch.zeros(1)


def test_a_cpu_that_is_a_device_like_any_other(monkeypatch):
    given = make_tree("pca", as_points(torch.arange(20.0)[:, None]), Gaussian(), 5)
    tree = Tree(given.parent, given.start, given.stop, given.order)
    monkeypatch.setitem(KINDS, "cpu", OTHER)
    assert tree.level.tolist() == given.level.tolist()
    assert tree.n_leaves == given.n_leaves
