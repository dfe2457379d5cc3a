"""What every approximation of a kernel can do on a set of training points."""

from abc import ABC, abstractmethod
from typing import ClassVar, TypeVar

import torch
from torch import Tensor

from hck.approximations.factorization import Factorization, Solution, needs_factorization
from hck.backend.blocks import Blocks
from hck.backend.random import RandomLike
from hck.hierarchy.blueprint import check_noise
from hck.hierarchy.forest import Predictor
from hck.kernels import Kernel
from hck.kernels.inputs import refuse_complex
from hck.partition import Tree
from hck.points import Points, PointsLike, self_values
from hck.settings import Settings

P = TypeVar("P", bound=Points)


class Approximation(ABC):
    """A positive semi-definite kernel k̃ that stands in for another, on training points X.

    Examples
    --------
    >>> import torch
    >>> from hck.approximations import make_approximation
    >>> x = torch.linspace(0, 1, 100, dtype=torch.float64)[:, None]
    >>> names = "hierarchical", "nystrom", "exact"
    >>> made = [make_approximation(name, "matern32", x, rank=10, generator=0) for name in names]
    >>> [round(float((each @ x)[0]), 2) for each in made]  # products with K̃ ...
    [33.86, 33.87, 33.87]
    >>> [round(float(each.factor(1.0).log_determinant), 2) for each in made]  # ... and solutions, all alike
    [8.44, 8.17, 8.43]
    """

    kernel: Kernel  # the one that is approximated
    points: Points  # X, in their original order
    can_ignore: ClassVar[bool] = False  # whether noise may be infinite: such points cost nothing

    @classmethod
    @abstractmethod
    def from_settings(
        cls, kernel: Kernel, points: Points, settings: Settings, generator: RandomLike
    ) -> "Approximation":
        """Of a kernel, on training points."""

    @abstractmethod
    def product(self, b: Tensor) -> Tensor:
        """K̃ b, for b of shape (n, columns)."""

    @abstractmethod
    def cross(self, x: PointsLike) -> Tensor:
        """k̃(X, x) for new points: shape (n, points). For few of them."""

    @abstractmethod
    def extend(self, weights: Tensor) -> Predictor:
        """x ↦ k̃(x, X) weights, for weights of shape (n,) or (n, columns); holds no more than that takes."""

    @abstractmethod
    def factor(self, noise: float | Tensor) -> Factorization:
        """K̃ + noise, for one variance or one for each point (n,), infinite for those that do not count.

        That is possible with `can_ignore`.
        """

    @abstractmethod
    def with_kernel(self, kernel: Kernel, jitter: float | None = None) -> "Approximation":
        """The same for another kernel, of the same kind: with the same landmarks, frequencies and so on."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Memory held, in bytes, the training points not counted."""

    # What follows from these -------------------------------------------------------------------------

    def __matmul__(self, b: Tensor) -> Tensor:
        """K̃ b, for b of shape (n,) or (n, columns)."""
        out = self.product(self.columns(b))
        return out if b.ndim == 2 else out[:, 0]

    @property
    def tree(self) -> Tree | None:
        """The partition of the training points, if there is one."""
        return None

    def draw(self, count: int, generator: RandomLike, verbose: bool = False) -> Tensor:
        """Draws from the Gaussian process with the covariance k̃, at the training points: (n, count)."""
        raise needs_factorization("draws from the prior")

    def diagonal(self) -> Tensor:
        """k̃(x, x) at the training points: that of the kernel, unless k̃ is of low rank."""
        every = torch.arange(len(self), device=self.device)[:, None]
        return self_values(self.kernel, self.points, Blocks(every, full=True))[:, 0]

    def solve(self, noise: float | Tensor, b: Tensor) -> Solution:
        """(K̃ + noise)⁻¹ b, of which what is asked for is kept."""
        return self.factor(noise).solution(b)

    def factor_bytes(self, columns: int = 1) -> int:
        """What a factorization, and solutions of so many columns, take; 0 if that is little."""
        return 0

    def can_leave_out(self, columns: int = 1) -> bool:
        """Whether left-out predictions are possible, and fit into the memory budget."""
        return True

    def ridge(
        self, noise: float | Tensor, b: Tensor, left_out: bool = False
    ) -> tuple[Predictor, Tensor | None]:
        """x ↦ k̃(x, X) (K̃ + noise)⁻¹ b and each of the b predicted from all others, if that is possible."""
        b = self.columns(b)
        solution = self.solve(noise, b)
        others = solution.left_out() if left_out and self.can_leave_out(b.shape[1]) else None
        return solution.predictor, others

    def __len__(self) -> int:
        """The number of training points."""
        return len(self.points)

    @property
    def dtype(self) -> torch.dtype:
        return self.points.dtype

    @property
    def device(self) -> torch.device:
        return self.points.device

    def variances(self, noise: float | Tensor) -> Tensor:
        """The noise as one variance for each point, (n,), after a check."""
        return check_noise(noise, len(self), self.dtype, self.device)

    def columns(self, b: Tensor) -> Tensor:
        """Right-hand sides as columns, like the points in type and place."""
        refuse_complex(b)
        b = torch.as_tensor(b, dtype=self.dtype, device=self.device)
        if len(b) != len(self):
            raise ValueError(f"b has {len(b)} rows, but there are {len(self)} points")
        return b if b.ndim == 2 else b[:, None]


def part_of(points: P, part: slice) -> P:
    """Some points that follow each other."""
    index = torch.arange(part.start, part.stop, device=points.device)
    return points.take(index)  # type: ignore[return-value]  # of the same kind
