"""The structure of the matrix against the tree."""

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_hex

from hck.partition import Tree
from hck.plotting import plot_blocks
from hck.plotting.style import RED

TABLE = [["a", "x"], ["b", "x"], ["a", "y"], ["a", "x"]]


def painted(ax, n):
    """The colour of each entry of the matrix: what was drawn last is on top."""
    colour = np.full((n, n), "", dtype=object)
    for each in ax.collections:
        if isinstance(each, PolyCollection):
            for path in each.get_paths():
                (a, _), (b, _) = path.vertices[0], path.vertices[2]
                colour[int(a) : int(b), int(a) : int(b)] = to_hex(each.get_facecolors()[0])
    return colour


def legend_of(ax):
    texts, handles = ax.get_legend().get_texts(), ax.get_legend().legend_handles
    colours = (to_hex(handle.get_facecolor()) for handle in handles)
    return dict(zip(colours, (text.get_text() for text in texts), strict=True))


@pytest.mark.parametrize("partition", ["random_projection", "kmeans"])
def test_entries_have_the_colour_of_the_level_at_which_their_leaves_part(grown, partition):
    tree, _ = grown(120, 10, partition=partition)
    ax = plot_blocks(tree, rank=5)
    colour, legend = painted(ax, 120), legend_of(ax)
    path = {}  # of each leaf up to the root, by the position of its points
    for leaf in tree.leaves.tolist():
        nodes, node = [leaf], leaf
        while node:
            node = int(tree.parent[node])
            nodes.append(node)
        path |= dict.fromkeys(range(int(tree.start[leaf]), int(tree.stop[leaf])), nodes)
    share = dict.fromkeys(legend.values(), 0)
    for i in range(0, 120):
        for j in range(0, 120):
            label = legend[colour[i, j]]
            share[label] += 1
            if path[i][0] == path[j][0]:
                assert label.startswith("dense leaves")
            else:
                common = next(node for node in path[i] if node in path[j])
                assert label.startswith(f"rank ≤ 5, level {int(tree.level[common])}:")
    for label, count in share.items():
        told = float(label.split(": ")[1].split(" %")[0])
        assert told == pytest.approx(100 * count / 120**2, rel=0.06)


def test_axes():
    ax = plot_blocks(Tree.from_labels(TABLE))
    assert (ax.get_xlim(), ax.get_ylim()) == ((0, 4), (4, 0))
    assert ax.get_aspect() == 1
    assert ax.get_xlabel() == ax.get_ylabel() == "points, in the tree's order"
    assert list(legend_of(ax).values()) == [
        "dense leaves: 38 % of all",
        "low rank, level 0: 38 %",
        "low rank, level 1: 25 %",
    ]


def test_lines_between_blocks_of_several_children():
    ax = plot_blocks(Tree.from_labels([0, 0, 1, 2, 2]))
    (lines,) = [each for each in ax.collections if isinstance(each, LineCollection)]
    assert sorted(segment[0].tolist() for segment in lines.get_segments()) == [[0, 2], [0, 3], [2, 0], [3, 0]]


def test_independent_leaves_and_one_leaf():
    labels = list(legend_of(plot_blocks(Tree.from_labels([0, 0, 1, 1]), rank=0)).values())
    assert labels == ["dense leaves: 50 % of all", "zero, level 0: 50 %"]
    alone = plot_blocks(Tree.from_labels([0, 0, 0]))
    assert set(painted(alone, 3).ravel()) == {RED.lower()}
    assert list(legend_of(alone).values()) == ["dense leaves: 100 % of all"]


def test_a_large_tree(grown):
    tree, _ = grown(50_000, 10)
    assert tree.n_leaves == 8192
    ax = plot_blocks(tree, rank=10)
    drawn = [each for each in ax.collections if isinstance(each, PolyCollection)]
    assert sum(len(each.get_paths()) for each in drawn) == 4095  # down to 2048 squares
    assert all(each.get_rasterized() for each in drawn)
    labels = list(legend_of(ax).values())
    assert len(labels) == 9
    assert labels[-1].startswith("levels 7 to 12")


def test_bad_input():
    with pytest.raises(ValueError, match="rank must not be negative"):
        plot_blocks(Tree.from_labels(TABLE), rank=-1)
    with pytest.raises(TypeError, match="Tree"):
        plot_blocks(np.eye(3))
