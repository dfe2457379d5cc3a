"""Several trees over the same observations, taken together."""

from dataclasses import dataclass

import torch
from torch import Tensor

from hck.backend.checks import require
from hck.backend.interrupts import interruptible
from hck.backend.random import Random
from hck.hierarchy.leave_one_out import LeftOut
from hck.points import PointsLike
from hck.process.process import Functions, Process


@dataclass
class Mixture:
    """Gaussian processes with the same kernel on different trees, each as likely as the others.

    Which tree is right is not known, so that a prediction is a mixture: its mean is the mean of the trees'
    means, and its variance the mean of their variances plus the variance of their means. The second part is
    what the partition itself contributes to the uncertainty; it is large next to cuts.
    """

    members: list[Process]

    def validate(self) -> None:
        require(len(self.members) > 0, "members must not be empty")
        shapes = {(each.y.shape, each.y.dtype) for each in self.members}
        require(len(shapes) == 1, "members must be of the same observations")

    @property
    def log_likelihood(self) -> float:
        """The mean of the trees' log-likelihoods."""
        return sum(member.log_likelihood for member in self.members) / len(self.members)

    @property
    def coefficients(self) -> Tensor:
        """Of the trend: the mean over trees, (trends, outputs)."""
        return _mean([member.coefficients for member in self.members])

    @interruptible
    def predict(self, x: PointsLike, trend: Tensor, verbose: bool = False) -> Tensor:
        """The mean at new points; see `Process.predict`."""
        return _mean([member.predict(x, trend, verbose) for member in self.members])

    @interruptible
    def variance(self, x: PointsLike, trend: Tensor, verbose: bool = False) -> tuple[Tensor, Tensor]:
        """The mean and the variance at new points; see `Process.variance`."""
        means = [member.predict(x, trend, verbose) for member in self.members]
        return mix(means, [member.variance(x, trend, verbose) for member in self.members])

    @interruptible
    def slope(self, x: PointsLike, trend: Tensor, verbose: bool = False) -> Tensor:
        """The gradient of the mean at new points; see `Process.slope`."""
        return _mean([member.slope(x, trend, verbose) for member in self.members])

    @interruptible
    def slope_variance(self, x: PointsLike, trend: Tensor, verbose: bool = False) -> tuple[Tensor, Tensor]:
        """The mean and the variance of the gradient at new points; see `Process.slope_variance`."""
        variances = [member.slope_variance(x, trend, verbose) for member in self.members]  # first: an error
        return mix([member.slope(x, trend, verbose) for member in self.members], variances)

    @interruptible
    def covariance(self, x: PointsLike, trend: Tensor) -> tuple[Tensor, Tensor]:
        """The mean and the covariances at new points, for several outputs (points, points, outputs)."""
        within = _mean([member.covariance(x, trend) for member in self.members])  # first: it may be refused
        means = torch.stack([member.predict(x, trend) for member in self.members])
        apart = means - means.mean(0)
        if apart.ndim == 2:
            return means.mean(0), within + apart.mT @ apart / len(means)
        between = torch.einsum("tio,tjo->ijo", apart, apart) / len(means)
        return means.mean(0), within[..., None] + between

    @interruptible
    def leave_one_out(self) -> LeftOut:
        """Every observation predicted from all others."""
        left_out = [member.leave_one_out() for member in self.members]
        return LeftOut(*mix([one.mean for one in left_out], [one.variance for one in left_out]))

    @interruptible
    def sample(self, x: PointsLike, trend: Tensor, count: int, random: Random) -> Tensor:
        """Draws at new points, each from a tree drawn at random; see `Process.sample`."""
        which, counts = self._choose(count, random)
        drawn = [
            member.sample(x, trend, number, random.child(1 + i))
            for i, (member, number) in enumerate(zip(self.members, counts, strict=True))
            if number
        ]
        return torch.cat(drawn, -1)[..., which.argsort(stable=True).argsort()]

    @interruptible
    def functions(self, count: int, random: Random, n_waves: int = 512) -> "MixtureFunctions":
        """Draws as functions, each from a tree drawn at random; see `Process.functions`."""
        which, counts = self._choose(count, random)
        drawn = {
            i: member.functions(number, random.child(1 + i), n_waves)
            for i, (member, number) in enumerate(zip(self.members, counts, strict=True))
            if number
        }
        return MixtureFunctions(drawn, which)

    def _choose(self, count: int, random: Random) -> tuple[Tensor, list[int]]:
        """The tree of each draw, (count,), and how many draws each tree has."""
        which = random.child(0).integers(len(self.members), count, self.members[0].y.device)
        return which, torch.bincount(which, minlength=len(self.members)).tolist()


@dataclass
class MixtureFunctions:
    """Functions drawn from a mixture, the same whenever they are evaluated."""

    drawn: dict[int, Functions]  # of each tree that has some
    which: Tensor  # (count,): the tree of each

    @interruptible
    def __call__(self, x: PointsLike, trend: Tensor) -> Tensor:
        """Values: (points, count), or (points, outputs, count); see `Functions`."""
        values = torch.cat([functions(x, trend) for functions in self.drawn.values()], -1)
        return values[..., self.which.argsort(stable=True).argsort()]

    def take(self, number: int) -> "MixtureFunctions":
        """One of them."""
        tree = int(self.which[number])
        place = (self.which[:number] == tree).sum()[None]
        return MixtureFunctions({tree: self.drawn[tree].take(place)}, self.which[number : number + 1])


def mix(means: list[Tensor], variances: list[Tensor]) -> tuple[Tensor, Tensor]:
    """The mean and the variance of a mixture, given those of its members: within each, and between them."""
    every = torch.stack(means)
    return every.mean(0), _mean(variances) + every.var(0, correction=0)


def _mean(parts: list[Tensor]) -> Tensor:
    total = parts[0].clone()
    for part in parts[1:]:
        total += part
    return total / len(parts)
