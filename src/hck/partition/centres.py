"""Cuts into the neighbourhoods of centres: k-means, and routing for trees given by the user."""

import warnings
from dataclasses import dataclass

import torch
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from hck.backend.blocks import ranges
from hck.backend.checks import check_floats, require
from hck.partition.cutter import Cutter, Frontier
from hck.partition.rules import Rule, as_vectors
from hck.partition.tree import Tree
from hck.points import Points, VectorPoints

_MOST_POINTS = 20_000  # k-means sees a sample of larger nodes


@dataclass(frozen=True)
class CentreRule(Rule):
    """The child whose centre is nearest."""

    centres: Tensor  # (children, d): those of the first node, those of the second, …
    count: Tensor  # (nodes,)

    def check(self, children: Tensor, d: int) -> None:
        same = self.count.dtype == torch.int64 and torch.equal(self.count, children)
        require(same, "count must be the numbers of children")
        check_floats("centres", self.centres, int(children.sum()), d)

    def choose(self, points: Points, rows: Tensor, which: Tensor) -> Tensor:
        vectors = as_vectors(points)
        first = self.count.cumsum(0) - self.count
        centres = self.centres.to(points.dtype)
        half_square = centres.square().sum(1) / 2
        best = torch.full((len(rows),), torch.inf, dtype=points.dtype, device=points.device)
        child = torch.zeros_like(rows)
        for k in range(int(self.count.max())):
            here = (self.count[which] > k).nonzero().squeeze(1)
            centre = first[which[here]] + k
            # ‖x − c‖²/2 less ‖x‖²/2, which is the same for all children
            score = half_square[centre] - vectors.project(rows[here], centres, centre)
            nearer = score < best[here]
            best[here] = torch.where(nearer, score, best[here])
            child[here] = torch.where(nearer, k, child[here])
        return child


class KMeans(Cutter):
    """Clusters each node's points into several children of uneven size.

    Parameters
    ----------
    n_children : int, default=4
        The most children of a node.

    Examples
    --------
    >>> import torch
    >>> from hck.kernels import Gaussian
    >>> from hck.partition import KMeans, make_tree
    >>> from hck.points import as_points
    >>> x = torch.rand(64, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> tree = make_tree(KMeans(n_children=3), as_points(x), Gaussian(1.0), rank=32, generator=0)
    >>> int(tree.n_children[0])
    3
    """

    measures = True
    looks_at_some = True
    arguments = ("n_children",)

    def __init__(self, n_children: int = 4) -> None:
        if n_children < 2:
            raise ValueError(f"n_children must be at least 2, got {n_children}")
        self.n_children = n_children

    def cut(self, frontier: Frontier) -> tuple[Tensor, Rule]:
        points, device = as_vectors(frontier.points), frontier.order.device
        sizes = torch.zeros(len(frontier), self.n_children, dtype=torch.long, device="cpu")
        centres = []
        for i, (start, size) in enumerate(zip(frontier.start.tolist(), frontier.size.tolist(), strict=True)):
            rows = frontier.order[start : start + size]
            label, centre = self._cluster(points, rows, frontier.random.child(i).seed())
            frontier.order[start : start + size] = rows[torch.argsort(label, stable=True)]
            sizes[i, : len(centre)] = torch.bincount(label).cpu()
            centres.append(centre)
        count = torch.tensor([len(c) for c in centres], dtype=torch.long, device=device)
        return sizes, CentreRule(torch.cat(centres), count)

    def _cluster(self, points: VectorPoints, rows: Tensor, seed: int) -> tuple[Tensor, Tensor]:
        """A label for each of `rows`, each label used, and the labels' centres."""
        sample = rows[:: -(-len(rows) // _MOST_POINTS)]
        centre = kmeans_centres(points, sample, self.n_children, max_iter=30, seed=seed)
        every = torch.zeros_like(rows)
        rule = CentreRule(centre, torch.tensor([len(centre)], dtype=torch.long, device=rows.device))
        used, label = torch.unique(rule.choose(points, rows, every), return_inverse=True)
        if len(used) > 1:
            return label, centre[used]
        # Nothing tells these points apart, so any halves will do.
        half = torch.arange(len(rows), device=rows.device) >= (len(rows) + 1) // 2
        return half.long(), centre[used].expand(2, -1)


def kmeans_centres(points: VectorPoints, rows: Tensor, k: int, max_iter: int, seed: int) -> Tensor:
    """At most k different centres of the points at `rows`."""
    means = SklearnKMeans(min(k, len(rows)), n_init=1, max_iter=max_iter, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points than clusters
        means.fit(points.numpy(rows))
    centre = torch.as_tensor(means.cluster_centers_, dtype=points.dtype, device=points.device)
    return torch.unique(centre, dim=0)


def centre_rules(tree: Tree, points: Points) -> tuple[Rule, ...]:
    """Rules by the mean of each child's points, for trees that come without any."""
    vectors = as_vectors(points)
    rules = []
    for first, stop in tree.inner_levels:
        parent = tree.inner[first:stop]
        node, _ = ranges(tree.first_child[parent], tree.n_children[parent])
        position, which = ranges(tree.start[node], tree.size[node])
        centre = vectors.mean(tree.order[position], which, len(node))
        rules.append(CentreRule(centre, tree.n_children[parent]))
    return tuple(rules)
