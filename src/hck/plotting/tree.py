"""A sketch of a tree."""

from numbers import Integral
from typing import Any

import numpy as np

from hck.partition import Tree
from hck.plotting.cut import Cut, check_tree, describe_leaves
from hck.plotting.style import BLUE, GREY, INK, PALETTE, RED, Axes, panel

_MOST_ENDS = 32  # side by side, where it is not said how deep to go
_MOST_LABELS = 64
_MARKS = (("node", "o", BLUE), ("leaf", "s", PALETTE[2]), ("more below", "v", RED))


def plot_tree(tree: Tree, max_depth: int | None = None, *, ax: "Axes | None" = None) -> Axes:
    """Sketch a tree, with the number of points of its nodes.

    Parameters
    ----------
    tree : Tree
    max_depth : int or None, default=None
        The last level to draw. None: as many as there is room for. Nodes at the last level that have children
        say how many leaves are below them.
    ax : Axes, default=None

    Returns
    -------
    Axes

    Examples
    --------
    >>> from hck.partition import Tree
    >>> ax = plot_tree(Tree.from_labels([["a", "x"], ["b", "x"], ["a", "y"], ["a", "x"]]))
    >>> ax.get_title()
    '4 points, 3 leaves of 1 to 2 points, depth 2'
    """
    check_tree(tree)
    cut = _cut(tree, max_depth)
    drawn = np.flatnonzero(cut.level <= cut.depth)
    place = _places(cut, drawn)
    ends = set(cut.nodes.tolist())
    size = float(np.clip(0.3 * len(ends) + 2, 6.4, 14)), float(min(1.6 + 0.8 * cut.depth, 8))
    with panel(ax, size) as ax:
        _draw_lines(ax, cut, drawn, place)
        for name, marker, colour in _MARKS:
            mine = [i for i in drawn.tolist() if _mark(cut, ends, i) == name]
            if mine:
                area = 30 + 170 * np.sqrt(cut.size[mine] / cut.size[0])
                at = place[mine], -cut.level[mine]
                ax.scatter(*at, s=area, marker=marker, color=colour, edgecolors="white", label=name, zorder=3)
        _write_sizes(ax, cut, drawn, place, ends)
        ax.set(title=f"{tree.n_points:,} points, {describe_leaves(tree)}, depth {tree.depth}", ylabel="level")
        ax.set_xticks([])
        ax.set_yticks(-np.arange(cut.depth + 1), [str(k) for k in range(cut.depth + 1)])
        ax.set_xlim(-0.7, len(ends) - 0.3)
        ax.set_ylim(-cut.depth - 0.75, 0.5)
        ax.grid(visible=False)
        ax.spines[["left", "bottom"]].set_visible(False)
        if len(drawn) > 1:
            ax.legend(loc="upper right", labelcolor=INK)
    return ax


def _cut(tree: Tree, max_depth: int | None) -> Cut:
    if max_depth is None:
        return Cut.within(tree, _MOST_ENDS)
    if not isinstance(max_depth, Integral) or max_depth < 0:
        raise ValueError(f"max_depth must be a whole number, at least 0, or None, got {max_depth!r}")
    return Cut.at(tree, min(int(max_depth), tree.depth))


def _places(cut: Cut, drawn: np.ndarray) -> np.ndarray:
    """Nodes from left to right: the last ones in a row, others above the middle of their children."""
    place = np.zeros(len(cut.parent))
    place[cut.nodes] = np.arange(len(cut.nodes))
    last = set(cut.nodes.tolist())
    for i in drawn[::-1].tolist():
        if i not in last:
            children = drawn[cut.parent[drawn] == i]
            place[i] = (place[children[0]] + place[children[-1]]) / 2
    return place


def _mark(cut: Cut, ends: set[int], i: int) -> str:
    if cut.leaf[i]:
        return "leaf"
    return "more below" if i in ends else "node"


def _draw_lines(ax: Axes, cut: Cut, drawn: np.ndarray, place: np.ndarray) -> None:
    from matplotlib.collections import LineCollection

    ends = cut.parent[drawn[1:]], drawn[1:]
    lines = np.stack([np.stack([place[end], -cut.level[end]], 1) for end in ends], 1)
    ax.add_collection(LineCollection(list(lines), colors=GREY, linewidths=1))


def _write_sizes(ax: Axes, cut: Cut, drawn: np.ndarray, place: np.ndarray, ends: set[int]) -> None:
    """Beside nodes, and below the last ones."""
    room = np.bincount(cut.level[drawn], minlength=cut.depth + 1)
    below: dict[str, Any] = {"xytext": (0, -9), "va": "top", "rotation": 90 if len(ends) > 10 else 0}
    behind = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.6}
    above: dict[str, Any] = {"xytext": (0, 9), "va": "bottom", "bbox": behind}
    for i in drawn.tolist():
        if len(ends) > _MOST_LABELS if i in ends else room[cut.level[i]] > 16:
            continue
        more = f"\n{cut.n_leaves(i):,} leaves" if i in ends and not cut.leaf[i] else ""
        ax.annotate(
            f"{cut.size[i]:,}{more}",
            (place[i], -cut.level[i]),
            textcoords="offset points",
            ha="center",
            fontsize=8,
            **(below if i in ends else above),
        )
