"""The partition of the domain."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.spatial import ConvexHull, Delaunay, QhullError

from hck.metrics import as_array, as_numbers, check_finite
from hck.partition import Tree
from hck.plotting.cut import MOST_POINTS, MOST_SHAPES, Cut, check_tree, describe_leaves, some_of
from hck.plotting.style import PALETTE, Axes, panel, plain
from hck.points import check_sparse
from hck.preparation.arrays import PointsLike

_MOST_DOMAINS = 128  # more cannot be told apart


def plot_partition(
    tree: Tree,
    X: PointsLike,
    features: tuple[int, int] | None = None,
    *,
    leaf: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    ax: "Axes | None" = None,
) -> Axes:
    """Draw points in the colours of their leaves.

    Neighbours have different colours; there are fewer colours than leaves. Where there are two features, the
    leaves are outlined as well. Of a tree with more than 128 leaves the domains further up are shown, and of
    more than 20,000 points some.

    Parameters
    ----------
    tree : Tree
    X : array-like of shape (n_samples, n_features)
        The points of the tree, in their order, or others, with `leaf`.
    features : (int, int), default=None
        The two features to draw. They may be left out where there are no others.
    leaf : array-like of shape (n_samples,), default=None
        The leaf number of each point, as `Tree.route` tells it. None: those of the tree's own points.
    feature_names : sequence of str, default=None
        None: the names that X has, if it is a table.
    ax : Axes, default=None

    Returns
    -------
    Axes

    Examples
    --------
    >>> import numpy as np
    >>> from hck.partition import Tree
    >>> X = np.random.default_rng(0).uniform(size=(100, 2))
    >>> ax = plot_partition(Tree.from_labels(X[:, 0] > 0.5), X)
    >>> ax.get_title()
    '2 leaves of 45 to 55 points'
    """
    check_tree(tree)
    names = _names(feature_names, X)
    x, features = _two_columns(X, features)
    leaf = _leaves(tree, len(x), leaf)
    cut = Cut.within(tree, _MOST_DOMAINS, least=1)
    first = tree.host.start[tree.host.leaves].numpy()[leaf]
    domain = np.searchsorted(cut.start[cut.nodes], first, side="right") - 1
    colour = _colours(x, domain, len(cut.nodes))
    shown = some_of(len(x), MOST_POINTS)
    with panel(ax) as ax:
        if features is None:
            _outline(ax, x, domain, colour)
        ax.scatter(
            x[shown, 0],
            x[shown, 1],
            s=float(np.clip(20_000 / len(shown), 2, 14)),
            c=np.array(PALETTE)[colour[domain[shown]]],
            linewidths=0,
            rasterized=len(shown) > MOST_SHAPES,
        )
        i, j = features or (0, 1)
        ax.set(xlabel=_label(names, i), ylabel=_label(names, j), title=_title(tree, cut, len(shown), len(x)))
    return ax


def _two_columns(
    X: PointsLike, features: tuple[int, int] | None
) -> tuple[np.ndarray, tuple[int, int] | None]:
    """The columns to draw, and which of several they are."""
    if not hasattr(X, "shape"):
        X = np.asarray(X)
    if len(X.shape) != 2 or X.shape[0] == 0:
        raise ValueError(f"X must have shape (n_samples, n_features), got {tuple(X.shape)}")
    d = X.shape[1]
    if features is None and d != 2:
        raise ValueError(f"X has {d} features, but a picture has two: choose them, features=(i, j)")
    chosen = (0, 1) if features is None else tuple(features)
    if len(chosen) != 2 or not all(isinstance(i, int | np.integer) and 0 <= i < d for i in chosen):
        raise ValueError(f"features must be two numbers of features, from 0 to {d - 1}, got {features!r}")
    if sp.issparse(X):
        x = check_sparse(X)[:, list(chosen)].toarray()
    else:
        x = X.iloc[:, list(chosen)] if hasattr(X, "iloc") else X[:, list(chosen)]
    x = as_numbers("X", x)
    check_finite(X=x)
    return x, None if d == 2 and chosen == (0, 1) else chosen


def _leaves(tree: Tree, n: int, leaf: ArrayLike | None) -> np.ndarray:
    if leaf is None:
        if n != tree.n_points:
            raise ValueError(
                f"the tree is over {tree.n_points} points, but X has {n}: pass the points that it was made "
                "of, or the leaves of others, leaf=tree.route(X)"
            )
        return tree.leaf_of_point.cpu().numpy()
    numbers = as_array(leaf)
    whole = numbers.dtype.kind in "iu"
    if numbers.shape != (n,) or not whole or numbers.min() < 0 or numbers.max() >= tree.n_leaves:
        raise ValueError(f"leaf must have a number from 0 to {tree.n_leaves - 1} for each of {n} points")
    return numbers


def _colours(x: np.ndarray, domain: np.ndarray, count: int) -> np.ndarray:
    """A colour for each domain, such that neighbours have different ones as far as possible."""
    colour = np.arange(count) % len(PALETTE)
    here = np.unique(domain)
    number = np.bincount(domain, minlength=count)[here]
    centre = np.stack([np.bincount(domain, column, count)[here] / number for column in x.T], 1)
    try:
        indptr, indices = Delaunay(centre).vertex_neighbor_vertices
    except (QhullError, ValueError):  # fewer than four, or on a line
        return colour
    used = np.full(len(here), -1)
    for i in range(len(here)):
        near = used[indices[indptr[i] : indptr[i + 1]]]
        taken = np.bincount(near[near >= 0], minlength=len(PALETTE))
        usual = np.bincount(used[used >= 0], minlength=len(PALETTE))
        used[i] = np.lexsort([usual, taken])[0]  # least among neighbours, then least of all
    colour[here] = used
    return colour


def _outline(ax: Axes, x: np.ndarray, domain: np.ndarray, colour: np.ndarray) -> None:
    """The convex hulls of domains: of cuts by planes and of nearest centres they are what belongs to them."""
    from matplotlib.collections import PolyCollection

    corners, colours = [], []
    order = np.argsort(domain, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(domain[order])) + 1):
        try:
            hull = ConvexHull(x[rows])
        except (QhullError, ValueError):  # fewer than three, or on a line
            continue
        corners.append(x[rows][hull.vertices])
        colours.append(PALETTE[colour[domain[rows[0]]]])
    faces = PolyCollection(corners, facecolors=colours, edgecolors="none", alpha=0.15)
    width = 0.8 if len(corners) <= 64 else 0.4
    edges = PolyCollection(corners, facecolors="none", edgecolors=colours, linewidths=width)
    for each in (faces, edges):
        ax.add_collection(each)


def _title(tree: Tree, cut: Cut, shown: int, n: int) -> str:
    title = describe_leaves(tree)
    if not cut.whole:
        title += f"; {len(cut.nodes):,} domains at level {cut.depth} shown"
    return title if shown == n else f"{title}\n{shown:,} of {n:,} points shown"


def _names(given: Sequence[str] | None, X: PointsLike) -> list[str] | None:
    names = getattr(X, "columns", None) if given is None else given
    names = None if names is None else list(names)
    d = np.shape(X)[1] if np.ndim(X) == 2 or hasattr(X, "columns") else None
    if given is not None and names is not None and len(names) != d:
        raise ValueError(f"there are {len(names)} feature names for {d} features")
    return names


def _label(names: list[str] | None, i: int) -> str:
    return f"feature {i}" if names is None else plain(names[i])
