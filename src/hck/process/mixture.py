"""Several trees over the same observations, taken together."""

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from hck.approximations.factorization import check_covariance
from hck.backend.caches import cached_property
from hck.backend.checks import require
from hck.backend.interrupts import interruptible
from hck.backend.random import Random
from hck.hierarchy.leave_one_out import LeftOut
from hck.points import PointsLike, as_points_like
from hck.process.process import Functions, Process
from hck.process.spread import Spread, calibrate


@dataclass
class Mixture:
    """Gaussian processes with the same kernel on different trees.

    The mean of a prediction is the mean of the trees' means. Its variance is made of the mean of their
    variances and of the variance of their means, which is large next to cuts, each times a factor (`spread`).
    Factors of 1 are those of a mixture of trees of which one, not known which, is right. But the mean is
    nearer to the truth than the trees are: `calibrated` has the factors that fit left-out observations best.

    Examples
    --------
    >>> import torch
    >>> from hck.approximations import make_approximation
    >>> from hck.process import Mixture, Process
    >>> x = torch.linspace(0, 1, 50, dtype=torch.float64)[:, None]
    >>> made = [make_approximation("hierarchical", "matern52", x, rank=10, generator=k) for k in range(3)]
    >>> y, no_trend = torch.sin(6 * x[:, 0]), torch.zeros(50, 0)
    >>> mixture = Mixture([Process.of(each, 0.01, y, no_trend) for each in made])
    >>> mean, variance = mixture.variance([[0.5]], torch.zeros(1, 0, dtype=torch.float64))
    >>> bool((mean - torch.sin(torch.tensor(3.0))).abs() < 3 * variance.sqrt())
    True
    """

    members: list[Process]
    spread: Spread = field(default_factory=Spread)

    def validate(self) -> None:
        """Raise ValueError unless the members are processes of the same observations."""
        require(len(self.members) > 0, "members must not be empty")
        shapes = {(each.y.shape, each.y.dtype) for each in self.members}
        require(len(shapes) == 1, "members must be of the same observations")

    @interruptible
    def calibrated(self, rows: np.ndarray | None = None, known_noise: bool = False) -> "Mixture":
        """The same with variances by leave-one-out; `rows` are observations to go by, if not all.

        As it is where equations are solved by iteration, since nothing is left out then.
        """
        if not self.has_left_out:
            return self
        first = self.members[0]
        found = calibrate(first.observations, self._left_out(), self._noise, rows, known_noise)
        return replace(self, spread=found)

    @property
    def has_left_out(self) -> bool:
        """Whether observations can be predicted from all others."""
        return all(member.has_left_out for member in self.members)

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
        return mix(means, [member.variance(x, trend, verbose) for member in self.members], self.spread)

    @interruptible
    def slope(self, x: PointsLike, trend: Tensor, verbose: bool = False) -> Tensor:
        """The gradient of the mean at new points; see `Process.slope`."""
        return _mean([member.slope(x, trend, verbose) for member in self.members])

    @interruptible
    def slope_variance(self, x: PointsLike, trend: Tensor, verbose: bool = False) -> tuple[Tensor, Tensor]:
        """The mean and the variance of the gradient at new points; see `Process.slope_variance`."""
        variances = [member.slope_variance(x, trend, verbose) for member in self.members]  # first: an error
        return mix([member.slope(x, trend, verbose) for member in self.members], variances, self.spread)

    @interruptible
    def covariance(self, x: PointsLike, trend: Tensor) -> tuple[Tensor, Tensor]:
        """The mean and the covariances at new points, for several outputs (points, points, outputs)."""
        outputs = 0 if self.members[0].outputs == 1 else 3 * self.members[0].outputs
        check_covariance(as_points_like(x, self.members[0].mean.points), len(self.members) + outputs)
        within = _mean([member.covariance(x, trend) for member in self.members])
        means = torch.stack([member.predict(x, trend) for member in self.members])
        apart, spread = means - means.mean(0), self.spread
        if apart.ndim == 2:
            between = apart.mT @ apart / len(means)
        else:
            between, within = torch.einsum("tio,tjo->ijo", apart, apart) / len(means), within[..., None]
        return means.mean(0), spread.function * within + spread.between * between

    @interruptible
    def leave_one_out(self) -> LeftOut:
        """Every observation predicted from all others."""
        left_out, noise = self._left_out(), self._noise
        latent = [(one.variance - noise).clamp_min(0) for one in left_out]
        mean, variance = mix([one.mean for one in left_out], latent, self.spread)
        return LeftOut(mean, variance + self.spread.noise * noise)

    @cached_property
    def standardised(self) -> Tensor | None:
        """Sizes of errors of left-out observations, in units of their standard deviations: like y.

        Infinite where others cannot predict an observation; None if nothing can be left out.
        """
        if not self.has_left_out:
            return None
        found = self.leave_one_out()
        error, std = (self.members[0].observations.to(found.mean) - found.mean).abs(), found.variance.sqrt()
        known = error.isfinite() & std.isfinite()
        return torch.where(error > 0, error / std, error).where(known, torch.inf)

    @property
    def _noise(self) -> Tensor:
        """Its variance at each observation: (n,), or (n, 1) for several outputs."""
        first = self.members[0]
        return first.noise if first.outputs == 1 else first.noise[:, None]

    def _left_out(self) -> list[LeftOut]:
        return [member.leave_one_out() for member in self.members]

    @interruptible
    def sample(self, x: PointsLike, trend: Tensor, count: int, random: Random) -> Tensor:
        """Draws at new points, each of a tree drawn at random; see `Process.sample`.

        Around the mean of all trees, and with the covariances that `covariance` has.
        """
        which, counts = self._choose(count, random)
        means = [member.predict(x, trend)[..., None] for member in self.members]
        drawn = [
            _widened(member.sample(x, trend, number, random.child(1 + i)), means, i, self.spread)
            for i, (member, number) in enumerate(zip(self.members, counts, strict=True))
            if number
        ]
        return torch.cat(drawn, -1)[..., which.argsort(stable=True).argsort()]

    @interruptible
    def functions(self, count: int, random: Random, n_waves: int = 512) -> "MixtureFunctions":
        """Draws as functions, as wide as those of `sample`; see `Process.functions`."""
        which, counts = self._choose(count, random)
        drawn = {
            i: member.functions(number, random.child(1 + i), n_waves)
            for i, (member, number) in enumerate(zip(self.members, counts, strict=True))
            if number
        }
        return MixtureFunctions(self, drawn, which)

    def _choose(self, count: int, random: Random) -> tuple[Tensor, list[int]]:
        """The tree of each draw, (count,), and how many draws each tree has."""
        which = random.child(0).integers(len(self.members), count, self.members[0].y.device)
        return which, torch.bincount(which, minlength=len(self.members)).tolist()


@dataclass
class MixtureFunctions:
    """Functions drawn from a mixture, the same whenever they are evaluated.

    Examples
    --------
    >>> import torch
    >>> from hck.approximations import make_approximation
    >>> from hck.backend.random import as_random
    >>> from hck.process import Mixture, Process
    >>> x = torch.linspace(0, 1, 50, dtype=torch.float64)[:, None]
    >>> made = [make_approximation("hierarchical", "matern52", x, rank=10, generator=k) for k in range(3)]
    >>> y, no_trend = torch.sin(6 * x[:, 0]), torch.zeros(50, 0)
    >>> mixture = Mixture([Process.of(each, 0.01, y, no_trend) for each in made])
    >>> functions = mixture.functions(4, as_random(0), 64)
    >>> grid, none = [[0.1], [0.2]], torch.zeros(2, 0, dtype=torch.float64)
    >>> bool((functions(grid, none) == functions(grid, none)).all())  # the same whenever they are evaluated
    True
    """

    mixture: Mixture
    drawn: dict[int, Functions]  # of each tree that has some
    which: Tensor  # (count,): the tree of each

    @interruptible
    def __call__(self, x: PointsLike, trend: Tensor) -> Tensor:
        """Values: (points, count), or (points, outputs, count); see `Functions`."""
        parts, spread = [functions(x, trend) for functions in self.drawn.values()], self.mixture.spread
        if spread.function != 1 or (spread.between != 1 and len(self.mixture.members) > 1):
            means = [member.predict(x, trend)[..., None] for member in self.mixture.members]
            parts = [_widened(part, means, i, spread) for i, part in zip(self.drawn, parts, strict=True)]
        return torch.cat(parts, -1)[..., self.which.argsort(stable=True).argsort()]

    def take(self, number: int) -> "MixtureFunctions":
        """One of them."""
        tree = int(self.which[number])
        place = (self.which[:number] == tree).sum()[None]
        drawn = {tree: self.drawn[tree].take(place)}
        return MixtureFunctions(self.mixture, drawn, self.which[number : number + 1])


def _widened(drawn: Tensor, means: list[Tensor], tree: int, spread: Spread) -> Tensor:
    """Draws (…, count) of a tree, around the mean of all trees, given the mean of each (…, 1)."""
    centre = _mean(means)
    inside, apart = drawn - means[tree], means[tree] - centre
    return centre + spread.function**0.5 * inside + spread.between**0.5 * apart


def mix(means: list[Tensor], variances: list[Tensor], spread: Spread) -> tuple[Tensor, Tensor]:
    """The mean and the variance of the function, given those of each tree."""
    every = torch.stack(means)
    return every.mean(0), spread.function * _mean(variances) + spread.between * every.var(0, correction=0)


def _mean(parts: list[Tensor]) -> Tensor:
    total = parts[0].clone()
    for part in parts[1:]:
        total += part
    return total / len(parts)
