"""What every approximation of a kernel can do on a set of training points."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from torch import Tensor

from hck.kernels import Kernel
from hck.points import Points

Predictor = Callable[[Any], Tensor]


class Factorization(ABC):
    """K̃ + noise, ready to be solved with.

    Attributes
    ----------
    log_determinant : Tensor of shape ()
    """

    log_determinant: Tensor

    @abstractmethod
    def solve(self, b: Tensor) -> Tensor:
        """(K̃ + noise)⁻¹ b, for b of shape (n,) or (n, columns)."""

    @abstractmethod
    def inverse_diagonal(self) -> Tensor:
        """The diagonal of (K̃ + noise)⁻¹: shape (n,)."""

    @abstractmethod
    def predictor(self, b: Tensor) -> Predictor:
        """x ↦ k̃(x, X) (K̃ + noise)⁻¹ b, which has shape (points, columns)."""

    @abstractmethod
    def variance(self, x: Any) -> Tensor:
        """k̃(x, x) − k̃(x, X) (K̃ + noise)⁻¹ k̃(X, x) for each new point: shape (points,)."""


class Approximation(ABC):
    """A positive semi-definite kernel k̃ that stands in for another, on training points X.

    Attributes
    ----------
    kernel : Kernel
        The one that is approximated.
    points : Points
        X, in their original order.
    """

    kernel: Kernel
    points: Points

    @abstractmethod
    def __matmul__(self, b: Tensor) -> Tensor:
        """K̃ b, for b of shape (n,) or (n, columns)."""

    @abstractmethod
    def cross(self, x: Any) -> Tensor:
        """k̃(X, x) for new points: shape (n, points). For few of them."""

    @abstractmethod
    def factor(self, noise: float | Tensor) -> Factorization:
        """K̃ + noise, for one variance or one for each point (n,)."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Memory held, in bytes, the training points not counted."""
