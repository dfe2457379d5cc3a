"""What every approximation of a kernel can do on a set of training points."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from hck.approximations import process
from hck.backend.blocks import Blocks
from hck.hierarchy.forest import Predictor
from hck.hierarchy.leave_one_out import leave_one_out
from hck.hierarchy.likelihood import Likelihood
from hck.kernels import Kernel
from hck.points import Points, self_values


class Factorization(ABC):
    """K̃ + noise, ready to be solved with.

    Attributes
    ----------
    log_determinant : Tensor of shape ()
    has_determinant : bool
        Whether it is known, and with it likelihoods.
    """

    log_determinant: Tensor
    has_determinant: ClassVar[bool] = True

    @abstractmethod
    def solve(self, b: Tensor) -> Tensor:
        """(K̃ + noise)⁻¹ b, for b of shape (n,) or (n, columns)."""

    @abstractmethod
    def inverse_diagonal(self) -> Tensor:
        """The diagonal of (K̃ + noise)⁻¹: shape (n,)."""

    @abstractmethod
    def predictor(self, b: Tensor, solved: Tensor | None = None) -> Predictor:
        """x ↦ k̃(x, X) (K̃ + noise)⁻¹ b; `solved` is (K̃ + noise)⁻¹ b, where it is known and of use."""

    @abstractmethod
    def variance(self, x: Any) -> Tensor:
        """k̃(x, x) − k̃(x, X) (K̃ + noise)⁻¹ k̃(X, x) for each new point: shape (points,)."""

    @abstractmethod
    def covariance(self, x: Any) -> Tensor:
        """The same for all pairs of new points: shape (points, points). For some thousands at most."""

    def sample(self, x: Any, count: int, generator: torch.Generator) -> Tensor:
        """Draws with these covariances, at new points: shape (points, count). For some thousands at most."""
        values, vectors = torch.linalg.eigh(self.covariance(x))
        normal = torch.randn(
            len(values), count, generator=generator, dtype=values.dtype, device=values.device
        )
        return vectors @ (values.clamp_min(0).sqrt()[:, None] * normal)

    @abstractmethod
    def pull(self, w: Tensor) -> list[Tensor]:
        """The gradient of the log-likelihood with respect to each of the kernel's `tensors`.

        That is ½ Σ wᵀ dK̃ w − ½ columns · tr((K̃ + noise)⁻¹ dK̃).

        Parameters
        ----------
        w : Tensor of shape (n, columns)
            (K̃ + noise)⁻¹ y, of one column for each y.
        """


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
    def extend(self, weights: Tensor) -> Predictor:
        """x ↦ k̃(x, X) weights, for weights of shape (n,) or (n, columns); holds no more than that takes."""

    @abstractmethod
    def factor(self, noise: float | Tensor) -> Factorization:
        """K̃ + noise, for one variance or one for each point (n,)."""

    @abstractmethod
    def with_kernel(self, kernel: Kernel, jitter: float | None = None) -> "Approximation":
        """The same for another kernel, of the same kind: with the same landmarks, frequencies and so on."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Memory held, in bytes, the training points not counted."""

    @abstractmethod
    def draw(self, count: int, generator: torch.Generator, verbose: bool = False) -> Tensor:
        """Draws from the Gaussian process with the covariance k̃, at the training points: (n, count)."""

    # What follows from these -------------------------------------------------------------------------

    def diagonal(self) -> Tensor:
        """k̃(x, x) at the training points: that of the kernel, unless k̃ is of low rank."""
        every = torch.arange(len(self), device=self.device)[:, None]
        return self_values(self.kernel, self.points, Blocks(every, full=True))[:, 0]

    def ridge(
        self, noise: float | Tensor, b: Tensor, left_out: bool = False
    ) -> tuple[Predictor, Tensor | None]:  # fmt: skip
        """x ↦ k̃(x, X) (K̃ + noise)⁻¹ b and, if asked for, each of the b predicted from all others."""
        factor, b = self.factor(noise), self.columns(b)
        diagonal = factor.inverse_diagonal() if left_out else None  # first: solutions can use what it made
        solved = factor.solve(b)
        others = None if diagonal is None else leave_one_out(b, solved, diagonal).mean
        return factor.predictor(b, solved), others

    def log_likelihood(
        self,
        noise: float | Tensor,
        y: Tensor,
        parameters: Sequence[Tensor] = (),
        trend: Tensor | None = None,
    ) -> Likelihood:
        """log N(y; trend β, K̃ + noise) at the best β; see `hck.hierarchy.likelihood.log_likelihood`."""
        return process.log_likelihood(self, noise, y, parameters, trend)

    def condition(self, noise: float | Tensor, y: Tensor, trend: Tensor, verbose: bool = False) -> Any:
        """The Gaussian process given observations; see `hck.hierarchy.posterior.Posterior`."""
        return process.Process.of(self, noise, y, trend)

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
        noise = torch.as_tensor(noise, dtype=self.dtype, device=self.device)
        if noise.ndim and noise.shape != (len(self),):
            raise ValueError(f"noise must be a number or have shape ({len(self)},), got {tuple(noise.shape)}")
        if not bool((noise >= 0).all()):
            raise ValueError("noise must be numbers, none negative")
        return noise.expand(len(self))

    def columns(self, b: Any) -> Tensor:
        """Right-hand sides as columns, like the points in type and place."""
        b = torch.as_tensor(b, dtype=self.dtype, device=self.device)
        if len(b) != len(self):
            raise ValueError(f"b has {len(b)} rows, but there are {len(self)} points")
        return b if b.ndim == 2 else b[:, None]
