"""What a loss is: a convex function of a prediction, with what Newton's method needs of it."""

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor


class Loss(ABC):
    """ℓ(f, y) of predictions f (n, columns) and observations y (n,), convex in f.

    All arguments are float64, but for numbers of classes, which are int64. Predictions are on the scale on
    which the loss is convex; `mean` takes them to that of the observations.

    Examples
    --------
    >>> import torch
    >>> from hck.losses import Huber, Loss
    >>> loss = Huber(1.0)
    >>> f, y = torch.tensor([[0.0], [0.0]]), torch.tensor([0.5, 9.0])
    >>> isinstance(loss, Loss), loss.value(f, y), loss.slope(f, y).ravel(), loss.curvature(f, y)
    (True, tensor([0.1250, 8.5000]), tensor([-0.5000, -1.0000]), tensor([1., 0.]))
    """

    name: ClassVar[str]
    smooth: ClassVar[bool] = True  # whether `curvature` says something
    exact: ClassVar[bool] = True  # whether `curvature` is that of all directions, or only bounds it
    lowest: ClassVar[float] = -math.inf  # observation that there can be

    @property
    def columns(self) -> int:
        """How many predictions there are for a point."""
        return 1

    def check(self, y: Tensor) -> None:  # noqa: B027  # most losses take all numbers
        """Raise ValueError for observations that cannot be."""

    def stand_in(self, y: Tensor) -> Tensor:
        """Targets (n,) by which least squares may choose a kernel for this loss."""
        return y

    @abstractmethod
    def constant(self, y: Tensor, share: Tensor) -> Tensor:
        """The best constant prediction, (columns,), for weights (n,) of which the sum is 1."""

    @abstractmethod
    def value(self, f: Tensor, y: Tensor) -> Tensor:
        """ℓ of each point: shape (n,)."""

    @abstractmethod
    def slope(self, f: Tensor, y: Tensor) -> Tensor:
        """∂ℓ/∂f: shape (n, columns)."""

    def curvature(self, f: Tensor, y: Tensor) -> Tensor:
        """∂²ℓ/∂f², or the largest eigenvalue that it may have at f: shape (n,), none negative."""
        raise NotImplementedError(f"{self.name} is not smooth")

    def bend(self, f: Tensor, y: Tensor, change: Tensor) -> Tensor:
        """By how much the slope at f changes with f, to first order: shape (n, columns)."""
        return self.curvature(f, y)[:, None] * change

    def mean(self, f: Tensor) -> Tensor:
        """Predictions of observations."""
        return f


def without_outliers(y: Tensor) -> Tensor:
    """Numbers (n,), of which those far from the middle half are nearer."""
    low, high = (y.sort().values[round(share * (len(y) - 1))] for share in (0.25, 0.75))
    room = 5 * (high - low)
    return y.clamp(low - room, high + room) if float(room) > 0 else y


def weighted_quantile(y: Tensor, share: Tensor, level: float) -> Tensor:
    """The least of the y (n,) with at least this share of the weight up to it: shape ()."""
    ordered, order = y.sort()
    reached = share[order].cumsum(0)
    at = torch.searchsorted(reached, torch.tensor(level * (1 - 1e-12), dtype=reached.dtype, device=y.device))
    return ordered[at.clamp_max(len(y) - 1)]
