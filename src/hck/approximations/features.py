"""Kernels that are inner products of few features: k̃(x, x') = φ(x)ᵀ φ(x'), φ(x) of length r.

Nothing of the size of n is kept but the points: features are computed in chunks when they are needed, and go
straight into a matrix of r × r numbers.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from hck.approximations.base import Approximation, part_of
from hck.approximations.factorization import Factorization, Solution, normal, times
from hck.backend import linalg
from hck.backend.caches import cached_property
from hck.backend.checks import require
from hck.backend.interrupts import check_wanted
from hck.backend.parallel import chunks
from hck.backend.random import RandomLike
from hck.errors import NotPositiveDefiniteError
from hck.kernels import Kernel
from hck.points import Points, PointsLike, as_points_like, check_kernel, check_weights, features_of

_AT_ONCE = 2**22  # features computed together, in numbers

Slope = Callable[[slice, Tensor], Tensor]  # some points and their features ↦ a derivative by these features


@dataclass
class FeatureMap(Approximation):
    """k̃(x, x') = φ(x)ᵀ φ(x').

    Examples
    --------
    >>> import torch
    >>> from hck.approximations import Nystrom
    >>> x = torch.linspace(0, 1, 100, dtype=torch.float64)[:, None]
    >>> made = Nystrom.of("gaussian", x, rank=5, generator=0)
    >>> phi = made.features(made.points)
    >>> phi.shape
    torch.Size([100, 5])
    >>> bool((phi @ (phi.mT @ x) - made @ x).abs().max() < 1e-10)
    True
    """

    kernel: Kernel
    points: Points

    @property
    def largest(self) -> float:
        """A bound of features."""
        return max(1.0, check_kernel(self.kernel, self.points))

    @property
    @abstractmethod
    def rank(self) -> int:
        """r, the number of features."""

    @abstractmethod
    def features(self, x: Points) -> Tensor:
        """φ of each point: shape (points, rank)."""

    @abstractmethod
    def slope(self, x: Points, weights: Tensor) -> Tensor:
        """The gradient of φ(x)ᵀ weights by x at each point: shape (points, d, columns)."""

    def slope_parts(self, x: Points, columns: int) -> list[slice]:
        """Points whose gradients, of so many columns, are computed together."""
        return chunks(0, len(x), max(1, _AT_ONCE // (features_of(x) * max(columns, self.rank))))

    def without_points(self) -> "FeatureMap":
        """The same features, without the training points."""
        none = self.points.take(torch.arange(0, device=self.points.device))
        return replace(self, points=none)

    def chunks(self, x: Points) -> Iterator[tuple[slice, Tensor]]:
        """The features of all points, some points at a time."""
        for part in chunks(0, len(x), max(1, _AT_ONCE // max(1, self.rank, x.values_per_point))):
            check_wanted()
            yield part, self.features(part_of(x, part))

    def product(self, b: Tensor) -> Tensor:
        return self.expand(self.points, self.project(b))

    def project(self, b: Tensor) -> Tensor:
        """Φᵀ b: shape (rank, columns)."""
        total = b.new_zeros(self.rank, b.shape[1])
        for part, phi in self.chunks(self.points):
            total += phi.mT @ b[part]
        return total

    def expand(self, x: Points, weights: Tensor) -> Tensor:
        """φ(x)ᵀ weights at each point: shape (points, columns)."""
        out = weights.new_empty(len(x), weights.shape[1])
        for part, phi in self.chunks(x):
            out[part] = phi @ weights
        return out

    def cross(self, x: PointsLike) -> Tensor:
        return self.expand(self.points, self.features(as_points_like(x, self.points)).mT.contiguous())

    def extend(self, weights: Tensor) -> "FeaturePredictor":
        return FeaturePredictor(self.without_points(), self.project(self.columns(weights)))

    def diagonal(self) -> Tensor:
        return torch.cat([phi.square().sum(1) for _, phi in self.chunks(self.points)])

    def factor(self, noise: float | Tensor) -> "FeatureFactorization":
        return FeatureFactorization(self, noise)

    def solve(self, noise: float | Tensor, b: Tensor) -> "FeatureSolution":
        """(K̃ + noise)⁻¹ b; the right-hand sides are projected in the same pass over the points."""
        b = self.columns(b)
        factor = FeatureFactorization(self, noise, b)
        return FeatureSolution(factor, b, factor.coefficients)

    def draw(self, count: int, generator: RandomLike, verbose: bool = False) -> Tensor:
        return self.expand(self.points, normal(self.rank, count, self.points, generator))

    def gradient(self, slope: Slope, within: Tensor) -> list[Tensor]:
        """What a function of the features changes by with each of the kernel's `tensors`.

        `slope` gives its derivative by the features, 2 G Φ; `within` is Φᵀ G Φ, of shape (rank, rank).
        """
        total = self.inner_gradient(within)
        for part, phi in self.chunks(self.points):
            more = self.outer_gradient(part_of(self.points, part), slope(part, phi))
            total = [a + b for a, b in zip(total, more, strict=True)]
        return total

    @abstractmethod
    def outer_gradient(self, x: Points, slope: Tensor) -> list[Tensor]:
        """The part of some points (points, …) that comes from the kernel's values at them."""

    def inner_gradient(self, within: Tensor) -> list[Tensor]:
        """The part that comes from what all points share."""
        return [torch.zeros_like(tensor) for tensor in self.kernel.tensors()]


class FeatureFactorization(Factorization):
    """K̃ + N = Φ Φᵀ + N by the r × r matrix A = I + Φᵀ N⁻¹ Φ (Woodbury), which is in float64.

    Of right-hand sides b (n, columns) that are known beforehand, Φᵀ N⁻¹ b is found in the same pass.
    """

    approximation: FeatureMap

    def __init__(self, approximation: FeatureMap, noise: float | Tensor, b: Tensor | None = None) -> None:
        points, variance = approximation.points, approximation.variances(noise)
        if not bool((variance > 0).all()):
            raise NotPositiveDefiniteError(
                "a kernel of low rank is singular on more points than its rank: alpha, or the noise, must be "
                "positive"
            )
        self.approximation, self.noise = approximation, variance
        rank = approximation.rank
        gram = torch.zeros(rank, rank, dtype=torch.float64, device=points.device)
        projected = gram.new_zeros(rank, 0 if b is None else b.shape[1])
        for part, phi in approximation.chunks(points):
            weight = variance[part].double().rsqrt()[:, None]
            scaled = phi.double() * weight
            gram.addmm_(scaled.mT, scaled)
            if b is not None:
                projected.addmm_(scaled.mT, b[part].double() * weight)
        gram.diagonal().add_(1)
        self.root = linalg.cholesky(gram, "the matrix I + Φᵀ N⁻¹ Φ of a kernel of low rank")
        self.log_determinant = 2 * self.root.diagonal().log().sum() + self.noise.double().log().sum()
        self.coefficients = self._solve(projected)  # A⁻¹ Φᵀ N⁻¹ b

    def _solve(self, projected: Tensor) -> Tensor:
        """A⁻¹ times something, as numbers of the points' type."""
        return torch.cholesky_solve(projected.double(), self.root).to(self.noise.dtype)

    def solve_columns(self, b: Tensor) -> Tensor:
        return self.solution(b).weights

    def solution(self, b: Tensor) -> "FeatureSolution":
        b = self.approximation.columns(b)
        return FeatureSolution(self, b, self._solve(self.approximation.project(b / self.noise[:, None])))

    def inverse_diagonal(self) -> Tensor:
        left = 1 - self._explained(self.approximation.points) / self.noise.double()
        return (left.clamp_min(torch.finfo(left.dtype).eps) / self.noise).to(self.noise.dtype)

    def explain(self, phi: Tensor) -> Tensor:
        """φᵀ A⁻¹ φ for rows φ, in float64."""
        return torch.linalg.solve_triangular(self.root, phi.double().mT, upper=False).square().sum(0)

    def _explained(self, x: Points) -> Tensor:
        """The same for points: shape (points,)."""
        return torch.cat([self.explain(phi) for _, phi in self.approximation.chunks(x)])

    def variance(self, x: PointsLike, verbose: bool = False) -> Tensor:
        return self._explained(as_points_like(x, self.approximation.points)).to(self.noise.dtype)

    @torch.no_grad()
    def slope_variance(self, x: PointsLike, verbose: bool = False) -> Tensor:
        source = self.approximation
        x = as_points_like(x, source.points)
        every = torch.eye(source.rank, dtype=x.dtype, device=x.device)
        slopes = (source.slope(part_of(x, part), every) for part in source.slope_parts(x, source.rank))
        found = [self.explain(each.flatten(0, 1)).unflatten(0, each.shape[:2]) for each in slopes]
        return torch.cat(found).to(self.noise.dtype)

    def covariance(self, x: PointsLike) -> Tensor:
        phi = self.approximation.features(as_points_like(x, self.approximation.points))
        half = torch.linalg.solve_triangular(self.root, phi.double().mT, upper=False)
        return (half.mT @ half).to(self.noise.dtype)

    def sample(self, x: PointsLike, count: int, generator: RandomLike) -> tuple[Tensor, None]:
        """At any number of points."""
        return self.functions(count, generator)[0](x), None

    def functions(
        self, count: int, generator: RandomLike, n_waves: int = 0
    ) -> "tuple[FeaturePredictor, None]":
        """x ↦ φ(x)ᵀ A^(−1/2) z."""
        drawn = normal(len(self.root), count, self.root, generator)
        weights = torch.linalg.solve_triangular(self.root.mT, drawn, upper=True).to(self.noise.dtype)
        return FeaturePredictor(self.approximation.without_points(), weights), None

    def kernel_gradient(self, w: Tensor) -> list[Tensor]:
        source, columns = self.approximation, w.shape[1]
        along, inverse = source.project(w), torch.cholesky_inverse(self.root).to(w.dtype)

        def slope(part: slice, phi: Tensor) -> Tensor:
            """(w wᵀ − (K̃ + N)⁻¹) Φ, where (K̃ + N)⁻¹ Φ = N⁻¹ Φ A⁻¹."""
            return w[part] @ along.mT - columns * (phi @ inverse) / self.noise[part][:, None]

        identity = torch.eye(source.rank, dtype=w.dtype, device=w.device)
        return source.gradient(slope, (along @ along.mT - columns * (identity - inverse)) / 2)


class FeatureSolution(Solution):
    """(K̃ + N)⁻¹ b = N⁻¹ (b − Φ c), with the coefficients c = A⁻¹ Φᵀ N⁻¹ b: shape (rank, columns)."""

    factorization: FeatureFactorization

    def __init__(self, factorization: FeatureFactorization, b: Tensor, coefficients: Tensor) -> None:
        super().__init__(factorization, b)
        self.coefficients = coefficients

    @cached_property
    def weights(self) -> Tensor:
        source = self.factorization.approximation
        return (self.b - source.expand(source.points, self.coefficients)) / self.factorization.noise[:, None]

    @cached_property
    def predictor(self) -> "FeaturePredictor":
        return FeaturePredictor(self.factorization.approximation.without_points(), self.coefficients)

    def combine(self, change: Tensor) -> "FeatureSolution":
        other = FeatureSolution(self.factorization, times(self.b, change), times(self.coefficients, change))
        if "weights" in self.__dict__:
            other.weights = times(self.weights, change)
        return other

    def left_out(self) -> Tensor:
        """In one pass, by the leverages h: what is fitted leaves the residual of the others, times 1 − h."""
        b, factor, source = self.b, self.factorization, self.factorization.approximation
        out = torch.empty_like(b)
        for part, phi in source.chunks(source.points):
            leverage = factor.explain(phi) / factor.noise[part].double()
            rest = (b[part] - phi @ self.coefficients).double()
            left = (1 - leverage).clamp_min(torch.finfo(leverage.dtype).eps)
            out[part] = (b[part] - rest / left[:, None]).to(b.dtype)
        return out


@dataclass
class FeaturePredictor:
    """x ↦ φ(x)ᵀ weights."""

    source: FeatureMap
    weights: Tensor  # (rank, columns)

    def validate(self) -> None:
        check_weights("weights", self.weights, self.source.largest, self.source.rank, None)
        require(self.columns > 0, "weights must have columns")
        require(self.weights.dtype == self.points.dtype, "weights must be of the points' type")

    @property
    def columns(self) -> int:
        return self.weights.shape[1]

    def __call__(self, x: PointsLike, verbose: bool = False) -> Tensor:
        return self.source.expand(as_points_like(x, self.source.points), self.weights)

    @torch.no_grad()
    def slope(self, x: PointsLike, verbose: bool = False) -> Tensor:
        x = as_points_like(x, self.source.points)
        parts = self.source.slope_parts(x, self.columns)
        return torch.cat([self.source.slope(part_of(x, part), self.weights) for part in parts])

    def plus(self, other: "FeaturePredictor", change: Tensor) -> "FeaturePredictor":
        """The sum with functions of the same features, whose columns `change` combines."""
        return replace(self, weights=self.weights + other.weights @ change.to(other.weights))

    def take(self, which: Tensor) -> "FeaturePredictor":
        """Some of the columns, by number."""
        return replace(self, weights=self.weights[:, which])

    @property
    def points(self) -> Points:
        return self.source.points

    @property
    def nbytes(self) -> int:
        return self.weights.nbytes + self.source.nbytes
