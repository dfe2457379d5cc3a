"""Points in the colours of their leaves."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from matplotlib.collections import PathCollection, PolyCollection

from hck.partition import Tree
from hck.plotting import plot_partition


def points_of(ax):
    return next(each for each in ax.collections if isinstance(each, PathCollection))


def outlines(ax):
    return [each for each in ax.collections if isinstance(each, PolyCollection)]


def test_every_point_is_drawn_and_a_leaf_has_one_colour(grown):
    tree, X = grown(300, 20)
    ax = plot_partition(tree, X)
    drawn = points_of(ax)
    np.testing.assert_allclose(drawn.get_offsets(), X)
    leaf, colours = tree.leaf_of_point.numpy(), drawn.get_facecolors()
    for k in range(tree.n_leaves):
        assert len(np.unique(colours[leaf == k], axis=0)) == 1
    faces, edges = outlines(ax)
    assert len(faces.get_paths()) == len(edges.get_paths()) == tree.n_leaves
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("feature 0", "feature 1")
    assert ax.get_title() == f"{tree.n_leaves} leaves of 18 to 19 points"
    low, high = ax.get_xlim()
    assert low < X[:, 0].min() < X[:, 0].max() < high


def test_neighbours_have_different_colours():
    """Stripes of a chessboard's width: no two beside each other are alike."""
    side = 6
    X = np.random.default_rng(0).uniform(size=(3000, 2))
    cell = (X * side).astype(int)
    tree = Tree.from_labels(cell[:, 0] * side + cell[:, 1])
    colours = points_of(plot_partition(tree, X)).get_facecolors()
    of_cell = {tuple(key): tuple(colour) for key, colour in zip(cell.tolist(), colours, strict=True)}
    for i, j in of_cell:
        for other in ((i + 1, j), (i, j + 1)):
            assert of_cell.get(other) != of_cell[i, j]


def test_two_of_several_features(grown):
    tree, X = grown(200, 20, d=4)
    frame = pd.DataFrame(X, columns=["a", "b", "$c", "d"])
    ax = plot_partition(tree, frame, (2, 0))
    np.testing.assert_allclose(points_of(ax).get_offsets(), X[:, [2, 0]])
    assert (ax.get_xlabel(), ax.get_ylabel()) == (r"\$c", "a")
    assert not outlines(ax)  # leaves overlap in a projection
    for same in (sp.csr_matrix(X), torch.from_numpy(X), X.tolist()):
        np.testing.assert_allclose(points_of(plot_partition(tree, same, (2, 0))).get_offsets(), X[:, [2, 0]])


def test_other_points_with_their_leaves(grown):
    tree, _ = grown(300, 40)
    new = np.random.default_rng(1).normal(size=(50, 2))
    leaf = tree.route(new)
    ax = plot_partition(tree, new, leaf=leaf, feature_names=["east", "north"])
    assert len(points_of(ax).get_offsets()) == 50
    assert ax.get_xlabel() == "east"
    with pytest.raises(ValueError, match=r"300 points, but X has 50.*leaf=tree.route"):
        plot_partition(tree, new)


def test_many_points_and_leaves_are_summarised(grown):
    tree, X = grown(40_000, 100)
    ax = plot_partition(tree, X)
    drawn = points_of(ax)
    assert len(drawn.get_offsets()) == 20_000
    assert drawn.get_rasterized()
    assert len(outlines(ax)[0].get_paths()) == 128
    assert ax.get_title() == (
        "512 leaves of 78 to 79 points; 128 domains at level 7 shown\n20,000 of 40,000 points shown"
    )


@pytest.mark.parametrize("X", [[[0.0, 1.0], [0.0, 1.0]], [[0.0, 0.0], [1.0, 1.0]]])
def test_leaves_without_an_area(X):
    ax = plot_partition(Tree.from_labels([0, 1]), X)
    assert len(points_of(ax).get_offsets()) == 2
    assert len(outlines(ax)[0].get_paths()) == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"X": np.zeros((300, 3))},
            r"X has 3 features, but a picture has two: choose them, features=\(i, j\)",
        ),
        ({"X": np.zeros((300, 1))}, "X has 1 features"),
        ({"features": (0, 2)}, "from 0 to 1"),
        ({"features": (0,)}, "two numbers"),
        ({"features": (0, "b")}, "two numbers"),
        ({"X": np.zeros(300)}, "shape"),
        ({"X": np.full((300, 2), np.nan)}, "NaN"),
        ({"leaf": np.full(300, 99)}, "leaf must have a number"),
        ({"leaf": np.zeros(299, int)}, "leaf must have a number"),
        ({"feature_names": ["a"]}, "1 feature names for 2"),
    ],
)
def test_bad_input(grown, changes, message):
    tree, X = grown(300, 40)
    with pytest.raises(ValueError, match=message):
        plot_partition(tree, changes.pop("X", X), **changes)


def test_no_tree():
    with pytest.raises(TypeError, match="such as model"):
        plot_partition("tree", np.zeros((3, 2)))
