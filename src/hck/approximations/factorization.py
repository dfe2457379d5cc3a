"""K̃ + noise, factored, and the solutions that it gives."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import torch
from torch import Tensor

from hck.backend.caches import cached_property
from hck.backend.memory import require_bytes
from hck.backend.random import RandomLike, as_random
from hck.hierarchy.forest import Predictor
from hck.hierarchy.leave_one_out import leave_one_out
from hck.points import Points, PointsLike, as_points_like

if TYPE_CHECKING:
    from hck.approximations.base import Approximation


class Paths(Protocol):
    """Functions that were drawn."""

    def __call__(self, x: PointsLike, verbose: bool = False) -> Tensor:
        """Their values at points: shape (points, columns)."""

    @property
    def columns(self) -> int:
        """How many there are."""

    def plus(self, other: Any, change: Tensor) -> "Paths":
        """The sum with a predictor of the same factorization, whose columns `change` combines."""

    def take(self, which: Tensor) -> "Paths":
        """Some of them, by number."""


def needs_factorization(what: str) -> ValueError:
    """The error of what cannot be had where equations are solved by iteration."""
    return ValueError(
        f"{what} need a factorization, but with the exact kernel by iteration there is none: use "
        "approximation='hierarchical', or 'exact' with enough memory for n² numbers"
    )


class Factorization(ABC):
    """K̃ + noise, ready to be solved with.

    Examples
    --------
    >>> import torch
    >>> from hck.approximations import make_approximation
    >>> x = torch.linspace(0, 1, 100, dtype=torch.float64)[:, None]
    >>> made = make_approximation("hierarchical", "matern32", x, rank=10, generator=0)
    >>> factorization = made.factor(0.1)
    >>> w = factorization.solve(x[:, 0])
    >>> bool((made @ w + 0.1 * w - x[:, 0]).abs().max() < 1e-10)
    True
    >>> factorization.variance([[0.5]]) < factorization.variance([[1.5]])  # inside, outside
    tensor([True])
    """

    approximation: "Approximation"
    log_determinant: Tensor  # of shape ()
    has_likelihood: ClassVar[bool] = True  # if not, there are no gradients, and the determinant is NaN
    has_left_out: ClassVar[bool] = True  # whether the diagonal of the inverse is known

    @abstractmethod
    def solve_columns(self, b: Tensor) -> Tensor:
        """(K̃ + noise)⁻¹ b, for b of shape (n, columns)."""

    @abstractmethod
    def variance(self, x: PointsLike, verbose: bool = False) -> Tensor:
        """k̃(x, x) − k̃(x, X) (K̃ + noise)⁻¹ k̃(X, x) for each new point: shape (points,)."""

    @abstractmethod
    def covariance(self, x: PointsLike) -> Tensor:
        """The same for all pairs of new points: shape (points, points). For some thousands at most."""

    @abstractmethod
    def slope_variance(self, x: PointsLike, verbose: bool = False) -> Tensor:
        """The variance of ∂f/∂x at each new point, without noise: shape (points, d)."""

    def solve(self, b: Tensor) -> Tensor:
        """(K̃ + noise)⁻¹ b, for b of shape (n,) or (n, columns)."""
        out = self.solve_columns(self.approximation.columns(b))
        return out if b.ndim == 2 else out[:, 0]

    def inverse_diagonal(self) -> Tensor:
        """The diagonal of (K̃ + noise)⁻¹: shape (n,)."""
        raise needs_factorization("leave-one-out predictions")

    def kernel_gradient(self, w: Tensor) -> list[Tensor]:
        """The gradient of the log-likelihood with respect to each of the kernel's `tensors`.

        That is ½ Σ wᵀ dK̃ w − ½ columns · tr((K̃ + noise)⁻¹ dK̃) for w = (K̃ + noise)⁻¹ y, (n, columns).
        """
        raise needs_factorization("likelihoods")

    def sample(self, x: PointsLike, count: int, generator: RandomLike) -> tuple[Tensor, Tensor | None]:
        """Draws of what is not known of f at new points, given observations: shape (points, count).

        Here for some thousands of points at most, by a root of their covariance. The second is None or, of
        shape (n, count), what the draws make of observations of 0, where they are made so: the first is
        f(x) plus what is expected at x given these.
        """
        check_covariance(as_points_like(x, self.approximation.points))
        values, vectors = torch.linalg.eigh(self.covariance(x))
        drawn = normal(len(values), count, values, generator)
        return vectors @ (values.clamp_min(0).sqrt()[:, None] * drawn), None

    def functions(self, count: int, generator: RandomLike, n_waves: int) -> "tuple[Paths, Tensor | None]":
        """Such draws as functions, which can be evaluated anywhere, and the same second part.

        Where k̃ has finitely many features they are exact. Elsewhere `n_waves` random waves stand for what
        values at the training points leave open.
        """
        raise ValueError(
            "draws that are functions are there for kernels of trees and of features: use "
            "approximation='hierarchical' (one leaf, rank at least n, is the exact kernel), 'nystrom' or "
            "'fourier', or draw values at given points"
        )

    def solution(self, b: Tensor) -> "Solution":
        """(K̃ + noise)⁻¹ b, and what follows from it."""
        return Solution(self, self.approximation.columns(b))

    def predictor(self, b: Tensor) -> Predictor:
        """x ↦ k̃(x, X) (K̃ + noise)⁻¹ b."""
        return self.solution(b).predictor

    def extend(self, weights: Tensor) -> Predictor:
        """x ↦ k̃(x, X) weights, for weights that are a solution."""
        return self.approximation.extend(weights)


class Solution:
    """(K̃ + noise)⁻¹ b for right-hand sides b, (n, columns): what is kept of it is computed when asked for.

    Examples
    --------
    >>> import torch
    >>> from hck.approximations import make_approximation
    >>> x = torch.linspace(0, 1, 100, dtype=torch.float64)[:, None]
    >>> y = torch.sin(6 * x[:, 0])
    >>> solution = make_approximation("hierarchical", "matern32", x, rank=10, generator=0).solve(0.01, y)
    >>> solution.predictor([[0.25]]).shape  # a function of new points
    torch.Size([1, 1])
    >>> bool((solution.left_out()[:, 0] - y).abs().max() < 0.1)  # each predicted from all others
    True
    """

    factorization: Factorization

    def __init__(self, factorization: Factorization, b: Tensor, weights: Tensor | None = None) -> None:
        self.factorization, self.b = factorization, b
        if weights is not None:
            self.weights = weights

    @cached_property
    def weights(self) -> Tensor:
        """(K̃ + noise)⁻¹ b: shape (n, columns)."""
        return self.factorization.solve(self.b)

    @cached_property
    def predictor(self) -> Predictor:
        """x ↦ k̃(x, X) (K̃ + noise)⁻¹ b."""
        return self.factorization.extend(self.weights)

    def fitted(self) -> Tensor:
        """K̃ times the weights, (n, columns): at all points, also those of infinite noise."""
        return self.factorization.approximation.product(self.weights)

    def combine(self, change: Tensor) -> "Solution":
        """The same for other right-hand sides, b · change, with change of shape (columns, others)."""
        return Solution(self.factorization, times(self.b, change), times(self.weights, change))

    def gram(self) -> Tensor:
        """bᵀ (K̃ + noise)⁻¹ b, in float64."""
        return self.b.double().mT @ self.weights.double()

    def left_out(self) -> Tensor:
        """Each of the b predicted from all others: shape (n, columns)."""
        diagonal = self.factorization.inverse_diagonal()  # first: solutions can use what it made
        return leave_one_out(self.b, self.weights, diagonal).mean

    def kernel_gradient(self) -> list[Tensor]:
        """The gradient of log N(b; 0, K̃ + noise), of all columns, by each of the kernel's `tensors`."""
        return self.factorization.kernel_gradient(self.weights)

    def noise_gradient(self) -> Tensor:
        """The same by the variance of the noise of each point: shape (n,)."""
        squares = self.weights.square().sum(1)
        return (squares - self.b.shape[1] * self.factorization.inverse_diagonal()) / 2


def check_covariance(x: Points, matrices: int = 1) -> None:
    """Raise MemoryError if there is no room for so many matrices of covariances between points at once."""
    needed = (3.0 + matrices) * x.dtype.itemsize * len(x) ** 2
    what = f"the covariance between {len(x):,} points"
    require_bytes(
        needed, x.device, what, "ask for standard deviations (return_std), or for fewer points at once"
    )


def times(columns: Tensor, change: Tensor) -> Tensor:
    """Combinations of columns, added up in float64."""
    return (columns.double() @ change.to(columns.device, torch.float64)).to(columns.dtype)


def normal(rows: int, columns: int, like: Tensor | Points, generator: RandomLike) -> Tensor:
    """Independent normal numbers, of the type and in the place of others."""
    return as_random(generator).normal((rows, columns), like.dtype, like.device)
