"""The sketch of a tree."""

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection

from hck.partition import Tree
from hck.plotting import plot_tree

TABLE = [["a", "x"], ["b", "x"], ["a", "y"], ["a", "x"]]


def parts(ax):
    """Marks by their name, and lines."""
    marks = {each.get_label(): each for each in ax.collections if isinstance(each, PathCollection)}
    (lines,) = [each for each in ax.collections if isinstance(each, LineCollection)]
    return marks, lines


def test_every_node_has_a_mark_and_its_size():
    ax = plot_tree(Tree.from_labels(TABLE))
    marks, lines = parts(ax)
    assert sorted(marks) == ["leaf", "node"]
    np.testing.assert_allclose(marks["node"].get_offsets(), [[1.25, 0], [0.5, -1]])
    np.testing.assert_allclose(sorted(marks["leaf"].get_offsets().tolist()), [[0, -2], [1, -2], [2, -1]])
    assert len(lines.get_segments()) == 4
    assert sorted(text.get_text() for text in ax.texts) == ["1", "1", "2", "3", "4"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["0", "1", "2"]
    assert ax.get_title() == "4 points, 3 leaves of 1 to 2 points, depth 2"
    assert {text.get_text() for text in ax.get_legend().get_texts()} == {"node", "leaf"}


def test_down_to_a_level(grown):
    tree, _ = grown(1000, 20)
    ax = plot_tree(tree, max_depth=2)
    marks, lines = parts(ax)
    assert {name: len(mark.get_offsets()) for name, mark in marks.items()} == {"node": 3, "more below": 4}
    assert len(lines.get_segments()) == 6
    below = [text.get_text() for text in ax.texts if "leaves" in text.get_text()]
    assert below == ["250\n16 leaves"] * 4
    assert len(plot_tree(tree, max_depth=99).texts) == len(plot_tree(tree, max_depth=tree.depth).texts)


def test_a_large_tree_is_cut_where_it_is_too_wide(grown):
    tree, _ = grown(20_000, 20)
    assert tree.n_leaves == 1024
    marks, _ = parts(plot_tree(tree))
    assert len(marks["more below"].get_offsets()) == 32
    assert "leaf" not in marks
    deep, _ = parts(plot_tree(tree, max_depth=10))
    assert len(deep["leaf"].get_offsets()) == 1024


def test_labels_do_not_overlap(grown):
    tree, _ = grown(1000, 20)
    ax = plot_tree(tree)
    renderer = ax.figure.canvas.get_renderer()
    ax.figure.draw_without_rendering()
    boxes = [text.get_window_extent(renderer) for text in ax.texts]
    clashes = [a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i]]
    assert len(boxes) > 32
    assert not any(clashes)


def test_children_in_any_number(grown):
    wide = Tree.from_labels(np.arange(200))
    ax = plot_tree(wide)
    assert [text.get_text() for text in ax.texts] == ["200\n200 leaves"]
    assert len(parts(plot_tree(wide, max_depth=1))[0]["leaf"].get_offsets()) == 200
    single = plot_tree(Tree.from_labels([0, 0, 0]))
    assert [text.get_text() for text in single.texts] == ["3"]
    assert single.get_title() == "3 points, 1 leaf of 3 points, depth 0"


@pytest.mark.parametrize("depth", [-1, 1.5, "all"])
def test_bad_depth(depth):
    with pytest.raises(ValueError, match="max_depth must be a whole number"):
        plot_tree(Tree.from_labels(TABLE), max_depth=depth)
