"""Losses of classes: logistic, for two and for many, and the squared hinge of support vector machines."""

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from hck.losses.base import Loss


@dataclass(frozen=True)
class Logistic(Loss):
    """ℓ = −log p(class) of numbers of classes: p is a softmax of f or, of two, a sigmoid of one column.

    Parameters
    ----------
    classes : int, default=2

    Examples
    --------
    >>> import torch
    >>> from hck.losses import Logistic
    >>> f, y = torch.tensor([[0.0], [2.0]]), torch.tensor([1, 1])
    >>> Logistic().value(f, y)
    tensor([0.6931, 0.1269])
    >>> Logistic().mean(f)  # the probability of each class
    tensor([[0.5000, 0.5000],
            [0.1192, 0.8808]])
    """

    classes: int = 2
    name: ClassVar[str] = "logistic"

    @property
    def columns(self) -> int:
        return 1 if self.classes == 2 else self.classes

    @property
    def exact(self) -> bool:  # type: ignore[override]
        return self.classes == 2

    def constant(self, y: Tensor, share: Tensor) -> Tensor:
        found = torch.zeros(self.classes, dtype=share.dtype, device=share.device)
        found = found.index_add_(0, y, share).log()
        return found[1:] - found[:1] if self.classes == 2 else found - found.mean()

    def value(self, f: Tensor, y: Tensor) -> Tensor:
        if self.classes == 2:
            return F.softplus(torch.where(y == 1, -f[:, 0], f[:, 0]), threshold=700.0)
        return f.logsumexp(1) - f.gather(1, y[:, None])[:, 0]

    def slope(self, f: Tensor, y: Tensor) -> Tensor:
        if self.classes == 2:
            sign = (1 - 2 * y).to(f.dtype)[:, None]
            return sign * (sign * f).sigmoid()  # which loses no digits of small ones
        return f.softmax(1).scatter_add(1, y[:, None], f.new_full((len(f), 1), -1.0))

    def curvature(self, f: Tensor, y: Tensor) -> Tensor:
        """p (1 − p) of two classes.

        Of many, 2 max p (1 − p), which no row of diag(p) − p pᵀ exceeds in sum (Gershgorin); it is attained
        where two classes share all probability.
        """
        if self.classes == 2:
            return f[:, 0].sigmoid() * (-f[:, 0]).sigmoid()
        p = f.softmax(1)
        return 2 * (p * (1 - p)).amax(1)

    def bend(self, f: Tensor, y: Tensor, change: Tensor) -> Tensor:
        """(diag(p) − p pᵀ) change."""
        if self.classes == 2:
            return super().bend(f, y, change)
        p = f.softmax(1)
        return p * (change - (p * change).sum(1, keepdim=True))

    def mean(self, f: Tensor) -> Tensor:
        """Probabilities of all classes: shape (n, classes)."""
        return torch.cat([-f, f], 1).sigmoid() if self.classes == 2 else f.softmax(1)


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """ℓ = ½ max(0, 1 − s f)² for s = ±1, the second class and the first: only points inside the margin count.

    As in `sklearn.svm.LinearSVC`, where ``C`` is 1/(2 alpha).

    Examples
    --------
    >>> import torch
    >>> from hck.losses import SquaredHinge
    >>> SquaredHinge().value(torch.tensor([[0.0], [2.0]]), torch.tensor([1, 1]))  # inside the margin, outside
    tensor([0.5000, 0.0000])
    """

    name: ClassVar[str] = "squared_hinge"

    def constant(self, y: Tensor, share: Tensor) -> Tensor:
        return (share @ (2 * y - 1).to(share.dtype))[None]

    def _inside(self, f: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        sign = (2 * y - 1).to(f.dtype)
        return sign, (1 - sign * f[:, 0]).clamp_min(0)

    def value(self, f: Tensor, y: Tensor) -> Tensor:
        return self._inside(f, y)[1].square() / 2

    def slope(self, f: Tensor, y: Tensor) -> Tensor:
        sign, inside = self._inside(f, y)
        return (-sign * inside)[:, None]

    def curvature(self, f: Tensor, y: Tensor) -> Tensor:
        return (self._inside(f, y)[1] > 0).to(f.dtype)
