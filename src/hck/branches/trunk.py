"""The top of a tree."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from hck.backend import linalg
from hck.backend.blocks import Blocks
from hck.backend.checks import require
from hck.backend.memory import resolve_budget
from hck.backend.random import RandomLike
from hck.backend.steps import Inbox
from hck.branches.piece import Message, Reply
from hck.hierarchy.blueprint import Blueprint
from hck.hierarchy.factor import Factor
from hck.hierarchy.layout import Layout, parent_slots
from hck.hierarchy.smooth import Weights, smooth_down
from hck.kernels import Kernel
from hck.kernels.registry import KernelLike
from hck.partition import Landmarks, Tree, known_partitions
from hck.partition.hyperplane import HyperplaneRule, hyperplane_rules
from hck.points import Points, PointsLike, as_points, check_kernel, features_of
from hck.settings import PartitionLike, Settings

# Sizes of branches vary by 1/√s of themselves, where s is the points of the sample in each: with so many, the
# largest of a thousand are within 5 %.
POINTS_PER_BRANCH = 5000


@dataclass
class Trunk:
    """The nodes of a tree down to some depth, where its branches begin. Made by `Trunk.of`.

    Examples
    --------
    >>> import torch
    >>> from hck.branches import Trunk
    >>> from hck.points import as_points
    >>> from hck.settings import Settings
    >>> points = as_points(torch.linspace(0, 1, 200, dtype=torch.float64)[:, None])
    >>> trunk = Trunk.of("gaussian", points, 4, Settings(rank=8), generator=0)
    >>> trunk.n_branches, torch.bincount(trunk.route(points)).tolist()
    (4, [50, 50, 50, 50])
    """

    kernel: Kernel
    tree: Tree  # without points; its leaves are the branches, all of the same depth
    landmarks: Landmarks
    jitter: float

    def validate(self) -> None:
        """Raise ValueError unless kernel, tree and landmarks fit together."""
        points = self.landmarks.points
        check_kernel(self.kernel, points)
        self.tree.check_rules(features_of(points))
        hyperplane_rules(self.tree)  # or an error
        require(self.tree.depth > 0, "the tree has no branches")
        require(len(self.landmarks.blocks) == len(self.tree.inner), "landmarks must be of the inner nodes")
        require(0 <= self.jitter < float("inf"), f"jitter must be finite, not negative, got {self.jitter}")

    @classmethod
    def of(
        cls,
        kernel: KernelLike,
        sample: PointsLike,
        n_branches: int,
        settings: Settings,
        generator: RandomLike = None,
    ) -> "Trunk":
        """Cut the domain so that each branch has as many points of a sample.

        The sample (points, d) is drawn at random from all points: some thousands for each branch, that they
        become equally large. Their number is a power of two, at least 2; there are fewer where so many points
        are equal that they cannot be divided so often.
        """
        points = as_points(sample)
        check_partition(settings.partition)
        if n_branches < 2 or n_branches & (n_branches - 1):
            raise ValueError(f"the number of branches must be a power of two, at least 2, got {n_branches}")
        if len(points) < n_branches:
            raise ValueError(f"{n_branches} branches need at least as many points, got {len(points)}")
        each = len(points) // n_branches
        points = points.take(torch.arange(each * n_branches, device=points.device))
        whole = Blueprint.of(kernel, points, replace(settings, leaf_size=each), generator)
        tree, chosen = whole.layout.tree, whole.landmarks
        met = torch.zeros(tree.n_leaves, dtype=torch.bool, device=points.device)
        met[tree.route(points)] = True
        if not met.all():  # equal points all go to one child, and may leave nothing for the other
            tree, chosen = _prune(tree, chosen, met)
        nothing = torch.zeros_like(tree.parent)
        bare = Tree(tree.parent, nothing, nothing, tree.order[:0], tree.rules)
        return cls(whole.kernel, bare, compact(chosen), whole.jitter)

    @property
    def n_branches(self) -> int:
        """How many branches there are."""
        return self.tree.n_leaves

    @property
    def rank(self) -> int:
        """The most landmarks of a node."""
        return self.landmarks.rank

    def route(self, x: Points) -> Tensor:
        """The branch of each point."""
        return self.tree.route(x)

    def above(self, branch: int) -> Points:
        """The landmarks of the node that a branch hangs from."""
        return self.landmarks.of_slot(int(self.tree.leaf_parent[branch]))

    def solve(self, messages: list[Message], covariance: bool = False) -> tuple[list[Reply], float]:
        """What each branch hears, and the log-determinant of the whole K_h + noise.

        Messages are those of all branches, in their order; `covariance` says whether variances are wanted.
        """
        if len(messages) != self.n_branches:
            raise ValueError(f"{len(messages)} messages of {self.n_branches} branches")
        layout = self._layout()
        first, stop = layout.levels[-1]
        device, dtype = self.landmarks.points.device, self.landmarks.points.dtype
        where = self.tree.leaf_parent - first
        nothing = torch.zeros(1, messages[0].mean.shape[1], dtype=dtype, device=device)
        information = torch.stack([each.information for each in messages]).to(device)
        mean = torch.stack([each.mean for each in messages]).to(device)
        own = self.kernel, self.landmarks.points, self.landmarks, self.jitter
        source = Blueprint(*own, layout, resolve_budget(None, device))

        def work() -> tuple[Tensor, Tensor | None, float]:
            received = Inbox.empty(stop - first, self.rank, nothing)
            received.pour(where, Inbox(information, mean))
            factor = Factor(source, nothing.new_zeros(1), nothing, received)
            unused = Weights.room(layout, nothing, self.rank)
            state = smooth_down(factor, factor.filtered, unused)[-1]
            spread = factor.posterior()[first:stop] if covariance else None
            return state, spread, float(factor.log_determinant)

        state, spread, log_determinant = linalg.without_waiting(work, device)
        replies = [Reply(state[i], None if spread is None else spread[i]) for i in where.tolist()]
        return replies, log_determinant + sum(each.log_determinant for each in messages)

    def _layout(self) -> Layout:
        """Inner nodes without leaves: those are in the branches."""
        tree = self.tree
        slot = torch.arange(len(tree.host.inner), device=tree.device)
        none = torch.full_like(tree.leaf_parent, -1)
        parent = parent_slots(tree).to(tree.device)
        return Layout(tree, lambda width, count: count, [], [], none, slot, parent, tree.inner_levels)


def branches_for(n: int, leaf_size: int, bytes_per_point: float, budget: float) -> int:
    """How many branches n points are cut into, so that one stays within a budget of bytes.

    A power of two, at least 2, and no more than leave some leaves to each.

    Parameters
    ----------
    n : int
        Points.
    leaf_size : int
        The most points of a leaf.
    bytes_per_point : float
        Memory that work on a branch takes for each of its points.
    budget : float
        Bytes.

    Examples
    --------
    >>> from hck.branches import branches_for
    >>> branches_for(1_000_000, leaf_size=100, bytes_per_point=1000, budget=2e8)
    8
    """
    number = 2
    while n * bytes_per_point > number * budget and n > 8 * number * leaf_size:
        number *= 2
    return number


def check_partition(partition: PartitionLike) -> None:
    """Raise ValueError unless it is the name of one that cuts in halves, by hyperplanes."""
    known = known_partitions(by_hyperplanes=True)
    if partition not in known:
        raise ValueError(
            f"partition={partition!r} cannot be cut into branches, which are halves by hyperplanes; use one "
            f"of {', '.join(known)}"
        )


def _prune(tree: Tree, landmarks: Landmarks, met: Tensor) -> tuple[Tree, Landmarks]:
    """A tree without the leaves that no point is sent to, and without the nodes above these alone."""
    kept = torch.zeros_like(tree.is_leaf)
    kept[tree.leaves[met]] = True
    for first, stop in reversed(tree.inner_levels):
        nodes = tree.inner[first:stop]
        child = tree.first_child[nodes]
        kept[nodes] = kept[child] | kept[child + 1]
    number = kept.long().cumsum(0) - 1
    parent = torch.where(tree.parent >= 0, number[tree.parent.clamp_min(0)], -1)[kept]
    rules = []
    for (first, stop), rule in zip(tree.inner_levels, hyperplane_rules(tree), strict=True):
        nodes = tree.inner[first:stop]
        child = tree.first_child[nodes]
        alone = ~(kept[child] & kept[child + 1])
        threshold = rule.threshold.masked_fill(alone, torch.inf)  # everything goes to the only child
        here = kept[nodes]
        rules.append(HyperplaneRule(rule.directions, rule.pick[here], threshold[here]))
    pruned = Tree(parent, tree.start[kept], tree.stop[kept], tree.order, tuple(rules))
    return pruned, Landmarks(landmarks.points, landmarks.blocks[kept[tree.inner].nonzero().squeeze(1)])


def compact(landmarks: Landmarks) -> Landmarks:
    """The same, without the points that are no landmarks."""
    index, mask = landmarks.blocks.index, landmarks.blocks.mask
    number = torch.full_like(index, -1)
    number[mask] = torch.arange(int(mask.sum()), device=index.device)
    return Landmarks(landmarks.points.take(index[mask]), Blocks(number, landmarks.blocks.full))
