"""A branch of a tree, with its points."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from hck.backend import linalg
from hck.backend.blocks import Blocks
from hck.backend.memory import resolve_budget
from hck.backend.random import RandomLike, as_random
from hck.branches.piece import Message, Reply
from hck.branches.trunk import Trunk, check_partition
from hck.hierarchy.blueprint import Blueprint, lay_out
from hck.hierarchy.factor import Factor
from hck.hierarchy.predictor import TreePredictor, descend
from hck.partition import Landmarks, Tree, choose_landmarks, make_tree
from hck.partition.hyperplane import HyperplaneRule
from hck.partition.rules import as_vectors
from hck.points import Points, VectorPoints
from hck.settings import Settings


@dataclass
class Branch:
    """What hangs from a node of a trunk. Made by `Branch.grow`.

    Its tree begins with that node, which has the branch as its only child, and the landmarks of the trunk.
    The blueprint is of the branch without that node; landmarks follow its points.

    Examples
    --------
    >>> import torch
    >>> from hck.branches import Branch, Trunk
    >>> from hck.points import as_points
    >>> from hck.settings import Settings
    >>> points = as_points(torch.linspace(0, 1, 200, dtype=torch.float64)[:, None])
    >>> settings = Settings(rank=8)
    >>> trunk = Trunk.of("gaussian", points, 2, settings, generator=0)
    >>> mine = points.take((trunk.route(points) == 0).nonzero()[:, 0])
    >>> branch = Branch.grow(trunk, 0, mine, settings, generator=0)
    >>> message = Branch.message(branch.factor(0.1, mine.x))
    >>> message.information.shape, message.mean.shape  # all that the trunk hears of a hundred points
    (torch.Size([8, 8]), torch.Size([8, 1]))
    """

    blueprint: Blueprint

    @classmethod
    def grow(
        cls,
        trunk: Trunk,
        number: int,
        points: Points,
        settings: Settings,
        generator: RandomLike = None,
    ) -> "Branch":
        """Cut the points of a branch further, and choose landmarks.

        `number` is which of the trunk's branches it is, `points` all that `trunk.route` sends to it. Settings
        are those of the trunk, with the memory budget of one branch.
        """
        check_partition(settings.partition)
        if len(points) == 0:
            raise ValueError(
                f"branch {number} has no points: so many are alike that the sample did not separate them; "
                "use fewer branches"
            )
        device, n, rank = points.device, len(points), trunk.rank
        settings = replace(settings, rank=rank)  # of which a small sample has fewer
        random = as_random(generator)
        kernel = trunk.kernel.to(device, points.dtype)
        tree = _under_a_node(
            make_tree(settings.partition, points, kernel, settings.rank, settings.leaf_size, random.child(0)),
            as_vectors(points),
        )
        points = points.take(tree.order)
        own = _without_the_node(tree)
        chosen = choose_landmarks(settings.landmarks, points, own, settings.rank, kernel, random.child(1))
        above = trunk.above(number).to(device)
        more = [above] if chosen.points is points else [chosen.points, above]
        offset = 0 if chosen.points is points else n
        points = points.join(more)
        index = torch.full((1 + len(own.inner), rank), -1, device=device)
        index[0, : len(above)] = torch.arange(len(points) - len(above), len(points), device=device)
        blocks = chosen.blocks.index
        index[1:, : blocks.shape[1]] = torch.where(blocks >= 0, blocks + offset, -1)
        joined = Landmarks(points, Blocks(index, bool((index >= 0).all())))
        budget = resolve_budget(settings.memory_budget, device)
        layout = lay_out(tree, points, rank, budget).cut(1).bundle(0)
        return cls(Blueprint(kernel, points, joined, trunk.jitter, layout, budget))

    @property
    def tree(self) -> Tree:
        """It begins with the node of the trunk."""
        return self.blueprint.layout.tree

    def factor(self, noise: float | Tensor, b: Tensor) -> Factor:
        """Go up with right-hand sides (n, columns), which, like the noise, are in the original order."""
        source = self.blueprint
        variance = source.pad_noise(noise)
        padded = source.layout.pad(b, variance)
        return linalg.without_waiting(lambda: Factor(source, variance, padded), variance.device)

    @staticmethod
    def message(factor: Factor) -> Message:
        """What to send to the trunk."""
        sent = factor.message
        return Message(sent.information[0].cpu(), sent.mean[0].cpu(), float(factor.log_determinant))

    def solve(self, factor: Factor, reply: Reply) -> TreePredictor:
        """Go down: x ↦ k_h(x, X) (K_h + noise)⁻¹ b for all points X of the tree, and x in this branch."""
        return descend(self.blueprint, factor, factor.filtered, reply.state.to(factor.device)[None])


def _under_a_node(tree: Tree, points: VectorPoints) -> Tree:
    """The tree as the only child of one more node, which then has an inner node below it in any case."""
    device = points.device
    nowhere = torch.zeros(1, points.n_features, dtype=points.dtype, device=device)
    first = torch.zeros(1, dtype=torch.long, device=device)
    only_child = HyperplaneRule(nowhere, first, nowhere.new_full((1,), torch.inf))
    for _ in range(1 if tree.depth else 2):
        parent = torch.cat([tree.parent[:1], tree.parent + 1])
        start, stop = (torch.cat([ends[:1], ends]) for ends in (tree.start, tree.stop))
        tree = Tree(parent, start, stop, tree.order, (only_child, *(tree.rules or ())))
    return tree


def _without_the_node(tree: Tree) -> Tree:
    """The branch alone, over points that are in its order already."""
    order = torch.arange(tree.n_points, device=tree.device)
    return Tree(tree.parent[1:] - 1, tree.start[1:], tree.stop[1:], order, (tree.rules or ())[1:])
