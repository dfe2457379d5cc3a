"""The structure of the matrix."""

import numpy as np

from hck.partition import Tree
from hck.plotting.cut import MOST_SHAPES, Cut, check_tree, describe_leaves
from hck.plotting.style import RED, SEQUENTIAL, Axes, panel, percent, thousands

_MOST_BLOCKS = 2048  # on the diagonal: smaller ones are smaller than a dot
_MOST_LEVELS = 8  # with a line of the legend each


def plot_blocks(tree: Tree, rank: int | None = None, *, ax: "Axes | None" = None) -> Axes:
    """Draw which blocks of the kernel matrix are dense, and which are of low rank.

    Rows and columns are the points in the tree's order. Leaves are dense blocks on the diagonal; between two
    children of a node is a block of low rank, in the colour of the node's level. Chen, Avron and Sindhwani
    (2017), Figure 2.

    Parameters
    ----------
    tree : Tree
    rank : int or None, default=None
        r, for the legend; 0 where leaves are independent.
    ax : Axes, default=None

    Returns
    -------
    Axes

    Examples
    --------
    >>> from hck.partition import Tree
    >>> ax = plot_blocks(Tree.from_labels([["a", "x"], ["b", "x"], ["a", "y"], ["a", "x"]]), rank=1)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['dense leaves: 38 % of all', 'rank ≤ 1, level 0: 38 %', 'rank ≤ 1, level 1: 25 %']
    """
    check_tree(tree)
    if rank is not None and rank < 0:
        raise ValueError(f"rank must not be negative, got {rank!r}")
    cut = Cut.within(tree, _MOST_BLOCKS, least=1)
    with panel(ax, (7.2, 4.6)) as ax:
        colours = _colours(tree.depth)
        for level in range(cut.depth + 1):
            mine = np.flatnonzero(cut.level == level)
            inner, leaves = mine[~cut.leaf[mine]], mine[cut.leaf[mine]]
            for nodes, colour in ((inner, colours[min(level, tree.depth - 1)]), (leaves, RED)):
                _squares(ax, cut, nodes, colour)
        _edges(ax, cut)
        n = tree.n_points
        ax.set(xlim=(0, n), ylim=(n, 0), aspect="equal", title=describe_leaves(tree))
        ax.set(xlabel="points, in the tree's order", ylabel="points, in the tree's order")
        thousands(ax)
        ax.grid(visible=False)
        ax.spines[["top", "right"]].set_visible(True)
        _legend(ax, tree, colours, rank)
    return ax


def _colours(levels: int) -> list[str]:
    """From pale, the largest blocks, to dark."""
    import matplotlib
    from matplotlib.colors import to_hex

    places = np.linspace(0.15, 0.95, levels) if levels > 1 else np.array([0.3])
    return [to_hex(colour) for colour in matplotlib.colormaps[SEQUENTIAL](places)]


def _squares(ax: Axes, cut: Cut, nodes: np.ndarray, colour: str) -> None:
    """Nodes as squares on the diagonal. Those of children cover them, up to what is between the children."""
    from matplotlib.collections import PolyCollection

    if len(nodes):
        a, b = cut.start[nodes], cut.stop[nodes]
        corners = np.stack([np.stack(pair, 1) for pair in ((a, a), (b, a), (b, b), (a, b))], 1)
        drawn = PolyCollection(
            list(corners.astype(float)),
            facecolors=[colour],
            edgecolors="white",
            linewidths=0.5 if len(cut.nodes) <= 64 else 0,
            rasterized=len(cut.nodes) > MOST_SHAPES,
        )
        ax.add_collection(drawn)


def _edges(ax: Axes, cut: Cut) -> None:
    """Lines between the blocks of nodes with more than two children, where there are few."""
    from matplotlib.collections import LineCollection

    lines = []
    for i in np.flatnonzero(~cut.leaf & (cut.level < cut.depth)):
        cuts = np.sort(cut.start[cut.parent == i])[1:]
        if 1 < len(cuts) < 16:
            low, high = cut.start[i], cut.stop[i]
            lines += [((at, low), (at, high)) for at in cuts] + [((low, at), (high, at)) for at in cuts]
    if lines:
        ax.add_collection(LineCollection(lines, colors="white", linewidths=0.5))


def _legend(ax: Axes, tree: Tree, colours: list[str], rank: int | None) -> None:
    from matplotlib.patches import Patch

    host = tree.host
    square = np.bincount(host.level.numpy(), host.size.numpy().astype(float) ** 2, tree.depth + 1)
    leaves = host.size[host.leaves].numpy().astype(float)
    dense = np.bincount(host.level[host.leaves].numpy(), leaves**2, tree.depth + 1)
    total = float(tree.n_points) ** 2
    inner = square - dense
    between = (inner[:-1] - square[1:]) / total
    kind = "low rank" if rank is None else f"rank ≤ {rank:,}" if rank else "zero"
    entries = [Patch(color=RED, label=f"dense leaves: {percent(dense.sum() / total)} of all")]
    shown = tree.depth if tree.depth <= _MOST_LEVELS else _MOST_LEVELS - 1
    entries += [
        Patch(color=colours[k], label=f"{kind}, level {k}: {percent(between[k])}") for k in range(shown)
    ]
    if shown < tree.depth:
        label = f"levels {shown} to {tree.depth - 1}: {percent(between[shown:].sum())}"
        entries.append(Patch(color=colours[-1], label=label))
    ax.legend(handles=entries, loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0)
