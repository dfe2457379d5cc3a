"""Losses of numbers: squared, Huber's, absolute, of quantiles, and of counts and positive amounts."""

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import torch
from torch import Tensor

from hck.losses.base import Loss, weighted_quantile, without_outliers

_LARGEST = 300.0  # of predictions of logarithms: beyond it their exponentials overflow


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


@dataclass(frozen=True)
class Squared(Loss):
    """ℓ = ½ (y − f)²: means.

    Examples
    --------
    >>> import torch
    >>> from hck.losses import Squared
    >>> f, y = torch.tensor([[1.0], [3.0]]), torch.tensor([1.0, 1.0])
    >>> Squared().value(f, y)
    tensor([0., 2.])
    """

    name: ClassVar[str] = "squared"

    def constant(self, y: Tensor, share: Tensor) -> Tensor:
        return (share @ y)[None]

    def value(self, f: Tensor, y: Tensor) -> Tensor:
        return (f[:, 0] - y).square() / 2

    def slope(self, f: Tensor, y: Tensor) -> Tensor:
        return f - y[:, None]

    def curvature(self, f: Tensor, y: Tensor) -> Tensor:
        return torch.ones_like(y)


@dataclass(frozen=True)
class Huber(Loss):
    """ℓ = ½ (y − f)² for errors up to δ, and δ |y − f| − ½ δ² beyond: means that outliers do not move.

    Parameters
    ----------
    delta : float or None, default=None
        δ, in the unit of y. None: 1.345 times the standard deviation of the noise, from the median error at
        left-out points, where normal errors lose a twentieth of their information.

    Examples
    --------
    >>> from hck.losses import Huber
    >>> Huber(0.5)
    Huber(delta=0.5)
    """

    delta: float | None = None
    name: ClassVar[str] = "huber"

    def __post_init__(self) -> None:
        if self.delta is not None and not (_is_number(self.delta) and 0 < self.delta < float("inf")):
            raise ValueError(f"delta must be positive and finite, or None, got {self.delta!r}")

    @property
    def _delta(self) -> float:
        if self.delta is None:
            raise ValueError("delta=None is not known yet: give a number")
        return self.delta

    def stand_in(self, y: Tensor) -> Tensor:
        return without_outliers(y)

    def constant(self, y: Tensor, share: Tensor) -> Tensor:
        return weighted_quantile(y, share, 0.5)[None]

    def value(self, f: Tensor, y: Tensor) -> Tensor:
        error = (f[:, 0] - y).abs()
        near = error.clamp_max(self._delta)
        return near * (error - near / 2)

    def slope(self, f: Tensor, y: Tensor) -> Tensor:
        return (f - y[:, None]).clamp(-self._delta, self._delta)

    def curvature(self, f: Tensor, y: Tensor) -> Tensor:
        return ((f[:, 0] - y).abs() <= self._delta).to(f.dtype)


class Pinball(Loss):
    """ℓ = above · (y − f) for y > f, below · (y − f) else, with below < 0 < above: not smooth."""

    smooth = False

    @property
    def slopes(self) -> tuple[float, float]:
        """Below and above."""
        raise NotImplementedError

    def stand_in(self, y: Tensor) -> Tensor:
        return without_outliers(y)

    def constant(self, y: Tensor, share: Tensor) -> Tensor:
        below, above = self.slopes
        return weighted_quantile(y, share, above / (above - below))[None]

    def value(self, f: Tensor, y: Tensor) -> Tensor:
        below, above = self.slopes
        error = y - f[:, 0]
        return torch.maximum(above * error, below * error)

    def slope(self, f: Tensor, y: Tensor) -> Tensor:
        below, above = self.slopes
        return torch.where(y[:, None] > f, torch.full_like(f, -above), torch.full_like(f, -below))


@dataclass(frozen=True)
class Absolute(Pinball):
    """ℓ = |y − f|: medians.

    Examples
    --------
    >>> import torch
    >>> from hck.losses import Absolute
    >>> f, y = torch.tensor([[1.0], [3.0]]), torch.tensor([1.0, 1.0])
    >>> Absolute().value(f, y)
    tensor([0., 2.])
    """

    name: ClassVar[str] = "absolute"

    @property
    def slopes(self) -> tuple[float, float]:
        return -1.0, 1.0


@dataclass(frozen=True)
class Quantile(Pinball):
    """ℓ = level · (y − f) for y > f, (1 − level) · (f − y) else: quantiles.

    Parameters
    ----------
    level : float, default=0.5
        Between 0 and 1: this share of observations is below the prediction.

    Examples
    --------
    >>> import torch
    >>> from hck.losses import Quantile
    >>> f, y = torch.tensor([[1.0], [3.0]]), torch.tensor([2.0, 2.0])
    >>> Quantile(0.9).value(f, y)  # to be above costs little, to be below much
    tensor([0.9000, 0.1000])
    """

    level: float = 0.5
    name: ClassVar[str] = "quantile"

    def __post_init__(self) -> None:
        if not (_is_number(self.level) and 0 < self.level < 1):
            raise ValueError(f"a quantile must be between 0 and 1, both excluded, got {self.level!r}")

    @property
    def slopes(self) -> tuple[float, float]:
        return self.level - 1, self.level


@dataclass(frozen=True)
class Tweedie(Loss):
    """Half the deviance of numbers with a variance of mean^power, whose mean is exp(f).

    ℓ = exp((2 − p) f)/(2 − p) − y exp((1 − p) f)/(1 − p), of which power 1 is Poisson's, for counts, and 2
    gamma's, for positive amounts. Between them there are amounts of which some are 0.

    Parameters
    ----------
    power : float, default=1.5
        p, between 1 and 2, where the loss is convex.

    Examples
    --------
    >>> import torch
    >>> from hck.losses import Tweedie
    >>> f, y = torch.tensor([[0.0], [1.0]]), torch.tensor([0.0, 3.0])
    >>> Tweedie(1.5).value(f, y)
    tensor([2.0000, 6.9366])
    >>> Tweedie(1.5).mean(f)
    tensor([[1.0000],
            [2.7183]])
    """

    power: float = 1.5
    lowest = 0.0
    name: ClassVar[str] = "tweedie"

    def __post_init__(self) -> None:
        if not (_is_number(self.power) and 1 <= self.power <= 2):
            raise ValueError(f"power must be between 1 (Poisson) and 2 (gamma), got {self.power!r}")

    def check(self, y: Tensor) -> None:
        least, wanted = float(y.min()), "positive numbers" if self.power == 2 else "no negative numbers"
        if least < 0 or (self.power == 2 and least == 0):
            row = int(y.argmin())
            raise ValueError(f"loss={self.name!r} needs {wanted}, but y is {least:g} in row {row:,}")
        if not float(y.max()) > 0:
            raise ValueError(f"loss={self.name!r} needs a y above 0, but all of them are 0: nothing to learn")

    def stand_in(self, y: Tensor) -> Tensor:
        return (y + y.mean()).log()

    def constant(self, y: Tensor, share: Tensor) -> Tensor:
        return (share @ y).log()[None]

    def _parts(self, f: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """exp((2 − p) f) and y exp((1 − p) f): shape (n, 1)."""
        f = f.clamp(-_LARGEST, _LARGEST)
        return ((2 - self.power) * f).exp(), y[:, None] * ((1 - self.power) * f).exp()

    def value(self, f: Tensor, y: Tensor) -> Tensor:
        up, down = (part[:, 0] for part in self._parts(f, y))
        first = f[:, 0] if self.power == 2 else up / (2 - self.power)
        return first - (y * f[:, 0] if self.power == 1 else down / (1 - self.power))

    def slope(self, f: Tensor, y: Tensor) -> Tensor:
        up, down = self._parts(f, y)
        return up - down

    def curvature(self, f: Tensor, y: Tensor) -> Tensor:
        up, down = (part[:, 0] for part in self._parts(f, y))
        return (2 - self.power) * up + (self.power - 1) * down

    def mean(self, f: Tensor) -> Tensor:
        return f.clamp(-_LARGEST, _LARGEST).exp()


@dataclass(frozen=True)
class Poisson(Tweedie):
    """ℓ = exp(f) − y f: counts, whose mean is exp(f).

    Examples
    --------
    >>> import torch
    >>> from hck.losses import Poisson
    >>> f, y = torch.tensor([[0.0], [1.0]]), torch.tensor([0.0, 3.0])
    >>> Poisson().value(f, y)
    tensor([ 1.0000, -0.2817])
    >>> Poisson().mean(f)
    tensor([[1.0000],
            [2.7183]])
    """

    power: float = 1.0
    name: ClassVar[str] = "poisson"


@dataclass(frozen=True)
class Gamma(Tweedie):
    """ℓ = y exp(−f) + f: positive amounts, whose mean is exp(f) and whose relative spread is constant.

    Examples
    --------
    >>> import torch
    >>> from hck.losses import Gamma
    >>> f, y = torch.tensor([[0.0], [1.0]]), torch.tensor([1.0, 3.0])
    >>> Gamma().value(f, y)
    tensor([1.0000, 2.1036])
    >>> Gamma().mean(f)
    tensor([[1.0000],
            [2.7183]])
    """

    power: float = 2.0
    name: ClassVar[str] = "gamma"
