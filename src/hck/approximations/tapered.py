"""Covariance tapering: k̃(x, x') = k(x, x') φ(‖x − x'‖ / θ), which is 0 for points that are θ apart or more.

φ is a function of Wendland (1995), so that K̃ is positive definite, and sparse (Furrer, Genton and Nychka,
2006; Kaufman, Schervish and Nychka, 2008). Products with K̃, and solutions by iteration, take its nonzeros
only. Determinants, variances, gradients and draws take a sparse Cholesky factor, which has more of them: of
the order of n log n in the plane, of n^(4/3) in space, and nearly n² where points have many features.
"""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from hck.approximations.base import Approximation, part_of
from hck.approximations.conjugate_gradients import Stopping, conjugate_gradients
from hck.approximations.factorization import Factorization, normal
from hck.approximations.sparse_cholesky import Cholesky, Elimination
from hck.approximations.taper import ROWS, Pattern, Taper
from hck.backend.caches import cached_property
from hck.backend.checks import check_floats, require
from hck.backend.memory import resolve_budget
from hck.backend.parallel import chunks
from hck.backend.progress import track
from hck.backend.random import RandomLike
from hck.errors import NotPositiveDefiniteError
from hck.kernels import Kernel, make_kernel
from hck.kernels.inputs import looks_like_objects
from hck.kernels.registry import KernelLike
from hck.kernels.slope import slope_variance
from hck.points import (
    DensePoints,
    KernelBlocks,
    Points,
    PointsLike,
    as_points,
    as_points_like,
    check_alike,
    check_kernel,
    check_weights,
)
from hck.settings import MemoryBudget, Option, Settings

_AT_ONCE = 2**22  # numbers gathered together
_MAX_ITER = 1000
_TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


@dataclass
class Tapered(Approximation):
    """k̃(x, x') = k(x, x') φ(‖x − x'‖ / θ).

    Made by `Tapered.of`. The taper stays as it was made: with another kernel, θ and the lengthscales by which
    features are divided to measure distances are those of the first. While a kernel is learned, no pair of
    points appears or vanishes, and gradients are those of k alone.

    Examples
    --------
    >>> import torch
    >>> from hck.approximations.tapered import Tapered
    >>> from hck.kernels import Matern
    >>> x = torch.linspace(0, 1, 1000, dtype=torch.float64)[:, None] ** 2
    >>> tapered = Tapered.of(Matern(0.1), x, rank=20)
    >>> round(tapered.pattern.count.double().mean().item())
    20
    >>> predictor = tapered.factor(0.01).predictor(torch.sin(6 * x))
    >>> bool((predictor(x) - torch.sin(6 * x)).abs().max() < 0.02)
    True
    """

    kernel: Kernel
    points: DensePoints
    taper: Taper
    pattern: Pattern  # of K̃
    elimination: Elimination  # the order in which equations are solved
    budget: float = math.inf  # for the factor, where it is not indispensable

    def validate(self) -> None:
        """Raise ValueError unless kernel, points, taper and factorization fit together."""
        n, own, pattern = len(self.points), self.elimination, self.pattern
        check_kernel(self.kernel, self.points)
        check_alike(self.taper.points, self.points)
        require(len(self.taper.points) == n == pattern.columns, "taper and pattern must be of the points")
        same = torch.equal(own.start, pattern.start) and torch.equal(own.column, pattern.column)
        require(same, "elimination must have the start and column of the pattern")
        check_floats("elimination.place", own.place, n, None)
        require(pattern.taper.dtype == self.points.dtype, "taper must be of the points' type")
        require(self.budget > 0, "budget must be positive")

    @classmethod
    def of(
        cls,
        kernel: KernelLike,
        x: PointsLike,
        rank: float,
        smoothness: int = 1,
        radius: float | None = None,
        **options: Option,
    ) -> "Tapered":
        """Choose a radius and find all pairs of points within it.

        Parameters
        ----------
        kernel : Kernel, or what `hck.kernels.make_kernel` takes
        x : Points or array-like of shape (n, d)
        rank : float
            r, the number of nonzeros in a row of K̃, on average, the point itself included. The radius is
            chosen so, by a sample of the points if there are thousands of them. Rows of points in dense
            regions have more.
        smoothness : {0, 1, 2}, default=1
            Of φ, which has 2 · `smoothness` continuous derivatives. It should not be less smooth than k.
        radius : float, optional
            θ itself, instead of `rank`: in units of the features or, if the kernel has a lengthscale for each
            of them or a metric, as that measures distances.
        **options
            `verbose`, to show progress, and the `memory_budget` for the factor, where it is not
            indispensable; see `hck.backend.memory.resolve_budget`.
        """
        kernel, points = _prepare(kernel, x)
        return cls._of(kernel, Taper.of(points, kernel.stretch(), rank, smoothness, radius), **options)

    @classmethod
    def from_settings(
        cls, kernel: Kernel, points: Points, settings: Settings, generator: RandomLike
    ) -> "Tapered":
        """Of a kernel, on training points, each with as many neighbours as the settings' rank."""
        kernel, points = _prepare(kernel, points)
        taper = Taper.of(points, kernel.stretch(), settings.rank)
        return cls._of(kernel, taper, settings.memory_budget, settings.verbose)

    @classmethod
    def _of(
        cls, kernel: Kernel, taper: Taper, memory_budget: MemoryBudget = None, verbose: bool = False
    ) -> "Tapered":
        pattern = taper.pattern(taper.points, verbose)
        elimination = Elimination(taper.place, pattern.start, pattern.column)
        budget = resolve_budget(memory_budget, taper.points.device)
        return cls(kernel, taper.points, taper, pattern, elimination, budget)

    def with_kernel(self, kernel: Kernel, jitter: float | None = None) -> "Tapered":
        """The same for another kernel, with the same taper."""
        return replace(self, kernel=kernel)

    @property
    def radius(self) -> float:
        """θ."""
        return self.taper.radius

    @cached_property
    def values(self) -> Tensor:
        """The nonzeros of K̃, as `pattern` has them."""
        return self.pattern.values(self.kernel, self.points, self.points)

    @cached_property
    def matrix(self) -> Tensor:
        """K̃, as a sparse tensor."""
        return self.pattern.matrix(self.values)

    def __getstate__(self) -> dict[str, object]:
        return {k: v for k, v in self.__dict__.copy().items() if k not in ("values", "matrix")}

    def product(self, b: Tensor) -> Tensor:
        return self.matrix @ b

    def across(self, x: DensePoints) -> Tensor:
        """k̃(x, X) as a sparse tensor: shape (points, n)."""
        return self.taper.across(self.kernel, x)

    def cross(self, x: PointsLike) -> Tensor:
        x = as_points_like(x, self.points)
        return self.across(x).to_dense().mT.contiguous()

    def extend(self, weights: Tensor) -> "TaperedPredictor":
        return TaperedPredictor(self.kernel, self.taper, self.columns(weights))

    def factor(self, noise: float | Tensor) -> "TaperedFactorization":
        return TaperedFactorization(self, self.variances(noise))

    @torch.no_grad()
    def draw(self, count: int, generator: RandomLike, verbose: bool = False) -> Tensor:
        """Draws from the Gaussian process with the covariance k̃, at the training points: (n, count).

        If K̃ is singular in this type of numbers, its diagonal is raised by as little as it takes.
        """
        drawn = normal(len(self), count, self.points, generator).double()
        least = torch.finfo(self.dtype).eps * float(self.values[self.pattern.diagonal].max())
        for jitter in (0, *(least * 10**k for k in range(1, 5))):
            try:
                return self.factor(jitter).cholesky.multiply(drawn).to(self.dtype)
            except NotPositiveDefiniteError as error:
                failed = error
        raise failed

    @property
    def nbytes(self) -> int:
        return self.pattern.nbytes + self.pattern.taper.nbytes

    def can_leave_out(self, columns: int = 1) -> bool:
        return self.elimination.factor_bytes <= self.budget


class TaperedFactorization(Factorization):
    """K̃ + noise, by its sparse Cholesky factor, or, until that is needed, by conjugate gradients.

    Solutions alone, and predictors, take no more memory than K̃. Everything else makes the factor.
    """

    approximation: Tapered

    def __init__(self, approximation: Tapered, noise: Tensor) -> None:
        self.approximation, self.noise = approximation, noise

    @cached_property
    def cholesky(self) -> Cholesky:
        """In float64."""
        source = self.approximation
        values = source.values.to(torch.float64, copy=True)
        values[source.pattern.diagonal] += self.noise
        return Cholesky(source.elimination.fronts, values)

    @property
    def log_determinant(self) -> Tensor:  # type: ignore[override]
        return self.cholesky.log_determinant

    @torch.no_grad()
    def solve_columns(self, b: Tensor) -> Tensor:
        found = None if "cholesky" in self.__dict__ else self._iterate(b)
        return self.cholesky.solve(b.double()).to(b.dtype) if found is None else found

    def _iterate(self, b: Tensor) -> Tensor | None:
        source, noise = self.approximation, self.noise[:, None]
        scale = 1 / (source.values[source.pattern.diagonal][:, None] + noise)
        found = conjugate_gradients(
            lambda p: source.matrix @ p + noise * p,
            b,
            lambda rest: scale * rest,
            Stopping(_TOLERANCE[b.dtype], _MAX_ITER),
        )
        return found.x if found.converged else None

    @cached_property
    def inverse(self) -> Tensor:
        """(K̃ + noise)⁻¹ where K̃ is not 0, as the pattern has it: shape (pairs,), in float64.

        It takes about as long as the factorization.
        """
        return self.cholesky.inverse()

    def inverse_diagonal(self) -> Tensor:
        return self.inverse[self.approximation.pattern.diagonal].to(self.noise.dtype)

    @torch.no_grad()
    def variance(self, x: PointsLike, verbose: bool = False) -> Tensor:
        source = self.approximation
        x = as_points_like(x, source.points)
        out = source.kernel.diagonal(x.x).to(x.dtype)
        for part in self._parts(x):
            across = source.across(part_of(x, part)).to_dense().mT.double()
            out[part] -= self.cholesky.whiten(across).square().sum(0).to(out.dtype)
        return out

    @torch.no_grad()
    def slope_variance(self, x: PointsLike, verbose: bool = False) -> Tensor:
        source = self.approximation
        x = as_points_like(x, source.points)
        out = slope_variance(source.kernel, x.x) + source.taper.slope_variance(source.kernel.diagonal(x.x))
        n, d = len(source), x.n_features
        for part in self._parts(x, d):
            some = part_of(x, part)
            across = x.x.new_zeros(len(some), d, n + 1, dtype=torch.float64)  # the last: padding
            for own, columns, slopes in source.taper.slopes(source.kernel, some):
                place = columns.index.where(columns.index >= 0, n)[:, None].expand(slopes.shape)
                across[own] = across[own].scatter(2, place, slopes.double())
            seen = self.cholesky.whiten(across[..., :n].flatten(0, 1).mT.contiguous()).square().sum(0)
            out[part] -= seen.unflatten(0, (-1, d)).to(out.dtype)
        return out

    @torch.no_grad()
    def covariance(self, x: PointsLike) -> Tensor:
        source = self.approximation
        x = as_points_like(x, source.points)
        across, out = source.across(x), x.x.new_empty(len(x), len(x))
        own = replace(source.taper, points=x)
        for part in self._parts(x):
            some = part_of(x, part)
            solved = self.cholesky.solve(source.across(some).to_dense().mT.double()).to(x.dtype)
            out[part] = own.across(source.kernel, some).to_dense() - (across @ solved).mT
        return (out + out.mT) / 2

    def _parts(self, x: Points, columns: int = 1) -> list[slice]:
        return chunks(0, len(x), max(1, 2 * _AT_ONCE // (columns * len(self.approximation.points))))

    @torch.no_grad()
    def kernel_gradient(self, w: Tensor) -> list[Tensor]:
        source = self.approximation
        kernel, points, pattern = source.kernel, source.points, source.pattern
        total = [torch.zeros_like(tensor) for tensor in kernel.tensors()]
        if not total:
            return total
        inverse = self.inverse.to(w.dtype)
        for batch, rows, columns in pattern.blocks(points.values_per_point + w.shape[1]):
            weight = w[rows.index] @ w[columns.safe].mT  # (blocks, 1, width)
            weight -= w.shape[1] * inverse[batch.safe][:, None]
            weight *= pattern.taper[batch.safe][:, None] / 2
            found = kernel.gradient_of_sum(KernelBlocks(kernel, points, rows, points, columns), weight)
            total = [a + b for a, b in zip(total, found, strict=True)]
        return total


@dataclass
class TaperedPredictor:
    """x ↦ k̃(x, X) weights, of which only the training points close to x matter."""

    kernel: Kernel
    taper: Taper
    weights: Tensor  # (n, columns)

    def validate(self) -> None:
        most = check_kernel(self.kernel, self.points)
        check_weights("weights", self.weights, most, len(self.points), None)
        require(self.columns > 0, "weights must have columns")
        require(self.weights.dtype == self.points.dtype, "weights must be of the points' type")

    @property
    def columns(self) -> int:
        return self.weights.shape[1]

    @torch.no_grad()
    def __call__(self, x: PointsLike, verbose: bool = False) -> Tensor:
        x = as_points_like(x, self.points)
        out = self.weights.new_empty(len(x), self.weights.shape[1])
        for part in track(chunks(0, len(x), ROWS), "Predict", verbose):
            out[part] = self.taper.across(self.kernel, part_of(x, part)) @ self.weights
        return out

    @torch.no_grad()
    def slope(self, x: PointsLike, verbose: bool = False) -> Tensor:
        """Its gradient: shape (points, d, columns)."""
        x = as_points_like(x, self.points)
        out = self.weights.new_zeros(len(x), x.n_features, self.columns)
        for part in track(chunks(0, len(x), ROWS), "Differentiate", verbose):
            for own, columns, slopes in self.taper.slopes(self.kernel, part_of(x, part)):
                out[part.start + own] = slopes @ self.weights[columns.safe]
        return out

    @property
    def points(self) -> Points:
        return self.taper.points

    @property
    def nbytes(self) -> int:
        return self.weights.nbytes


def _prepare(kernel: KernelLike, x: PointsLike) -> tuple[Kernel, DensePoints]:
    points = as_points(x, objects=not isinstance(x, Points) and looks_like_objects(x))
    if not isinstance(points, DensePoints):
        raise TypeError(
            "a taper needs points that are rows of a dense array; for sparse matrices and for objects there "
            "are other approximations"
        )
    return make_kernel(kernel).to(points.device, points.dtype), points
