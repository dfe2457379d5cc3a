"""All that is settled before branches are worked on, and what is done with each of them."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from hck.backend.checks import require
from hck.backend.interrupts import interruptible
from hck.backend.random import as_random
from hck.branches.branch import Branch
from hck.branches.piece import Message, Piece, Reply, Share, probed
from hck.branches.trunk import Trunk
from hck.hierarchy.extremes import extremes, refuse_overflow
from hck.hierarchy.leave_one_out import leave_one_out
from hck.kernels import Kernel
from hck.points import Points, as_points, as_tensor, features_of
from hck.preparation.coding import Coding
from hck.preparation.scaling import Scaling
from hck.preparation.trend import Trend
from hck.settings import Settings

_PROBED = 100_000  # rows that are predicted from all others, about
DTYPES = {"float64": torch.float64, "float32": torch.float32}


@dataclass
class Plan:
    """All that branches need beside their points.

    Examples
    --------
    >>> import numpy as np
    >>> from hck.branches import Plan, Share
    >>> from hck.kernels import Gaussian
    >>> from hck.preparation.scaling import Scaling
    >>> from hck.settings import Settings
    >>> x = np.random.default_rng(0).uniform(size=(200, 2))
    >>> plan = Plan(Gaussian(1.0), 0.1, Scaling(), [], [0], Settings(rank=8), "float64", "cpu").cut(x, 2)
    >>> shares = [Share(x[rows], x[rows, :1], rows) for rows in plan.split(0, x)]
    >>> messages = [plan.up(0, branch, share) for branch, share in enumerate(shares)]
    >>> replies, _ = plan.solve(0, messages)
    >>> pieces = [plan.down(0, k, shares[k], replies[k]) for k in range(2)]
    >>> [len(piece.rows) for piece in pieces]
    [100, 100]
    """

    kernel: Kernel  # for scaled features
    noise: float
    scaling: Scaling
    trunks: list[Trunk]  # one for each tree, like the seeds
    seeds: list[int]
    settings: Settings  # of trunks and branches, with the memory budget of one branch
    dtype: str
    device: str
    coding: Coding | Trend | None = None  # how targets become right-hand sides; None: they are
    every: int | None = None  # every so-many-th row is predicted from all others; None: none is
    process: bool = False  # whether branches say what they do not know, as Gaussian processes do

    def validate(self) -> None:
        """Raise ValueError unless seeds, trunks and scaling fit together."""
        require(len(self.seeds) == len(self.trunks) > 0, "seeds and trunks must be one for each tree")
        require(all(0 <= seed < 2**31 for seed in self.seeds), "seeds must be from 0 to 2³¹")
        require(self.dtype in DTYPES, f"dtype must be one of {', '.join(DTYPES)}, got {self.dtype!r}")
        require(0 <= self.noise < float("inf"), f"noise must be finite, not negative, got {self.noise}")
        require(self.every is None or self.every >= 1, f"every must be at least 1, got {self.every}")
        for trunk in self.trunks:
            points = trunk.landmarks.points
            require(features_of(points) == self.n_features, "trunks must be of the same features")
            require(points.dtype == DTYPES[self.dtype], f"trunks must be of dtype {self.dtype}")
        self.scaling.check(self.n_features)

    @property
    def n_features(self) -> int:
        """Of the points."""
        return features_of(self.trunks[0].landmarks.points)

    @property
    def branches(self) -> list[range]:
        """The numbers of the branches of each tree."""
        return [range(trunk.n_branches) for trunk in self.trunks]

    def cut(self, x: np.ndarray, n_branches: int) -> "Plan":
        """With a trunk for each tree, by a sample of the points."""
        points = self.points(x)
        trunks = [Trunk.of(self.kernel, points, n_branches, self.settings, seed) for seed in self.seeds]
        return replace(self, trunks=trunks)

    def points(self, x: np.ndarray) -> Points:
        """Scaled points, on the device."""
        return self.scaling(as_points(x, device=torch.device(self.device)), DTYPES[self.dtype])

    def split(self, tree: int, x: np.ndarray) -> list[np.ndarray]:
        """The rows of x that fall into each branch of a tree."""
        number = self.trunks[tree].route(self.points(x)).cpu().numpy()
        order = np.argsort(number, kind="stable")
        ends = np.cumsum(np.bincount(number, minlength=self.trunks[tree].n_branches))
        return np.split(order, ends[:-1])

    def right_sides(self, share: Share) -> Tensor:
        """b of the rows of a branch: shape (rows, columns)."""
        if isinstance(self.coding, Trend):
            return as_tensor(self.coding.right_sides(share.x, share.y))
        return as_tensor(share.y if self.coding is None else self.coding(share.y))

    # Branches ---------------------------------------------------------------------------------------

    def grow(self, tree: int, branch: int, x: np.ndarray) -> Branch:
        """A branch, of the features as they came."""
        points, trunk = self.points(x), self.trunks[tree]
        random = as_random(self.seeds[tree]).child(2, branch)
        return Branch.grow(trunk, branch, points, self.settings, random)

    @interruptible
    def up(self, tree: int, branch: int, share: Share) -> Message:
        """What a branch sends up."""
        grown, b = self.grow(tree, branch, share.x), self.right_sides(share)
        message = Branch.message(grown.factor(self.noise, b))
        refuse_overflow(message.mean, b)
        return message

    @interruptible
    def solve(self, tree: int, messages: list[Message]) -> tuple[list[Reply], float]:
        """What the branches of a tree hear, and the log-determinant of the whole K_h + noise."""
        return self.trunks[tree].solve(messages, covariance=self.process or self.every is not None)

    @interruptible
    def down(self, tree: int, branch: int, share: Share, reply: Reply) -> Piece:
        """What a branch becomes once it has heard from the trunk."""
        grown, b = self.grow(tree, branch, share.x), self.right_sides(share)
        factor = grown.factor(self.noise, b)
        solved = grown.solve(factor, reply)
        refuse_overflow(solved.weights, b)
        piece = Piece(solved, as_tensor(share.number), extremes=extremes(solved, grown.blueprint.points, b))
        weights = grown.blueprint.layout.unsort(solved.weights)
        if self.process:
            piece.targets, piece.above = b, reply.covariance
            piece.gram = b.mT @ weights.double().cpu()
        elif self.every is not None and reply.covariance is not None:
            some = as_tensor(probed(share.number, self.every))
            diagonal = factor.inverse_diagonal(reply.covariance.to(weights.device)[None])
            piece.left_out = leave_one_out(b, weights, diagonal).mean[some].double().cpu()
            piece.observed = b[some]
        return piece


def probe_every(n: int) -> int:
    """Of n rows, every so-many-th is predicted from all others."""
    return max(1, n // _PROBED)
