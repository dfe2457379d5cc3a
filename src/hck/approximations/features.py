"""Kernels that are inner products of few features: k̃(x, x') = φ(x)ᵀ φ(x'), φ(x) of length r.

Nothing of the size of n is kept but the points: features are computed in chunks when they are needed, and go
straight into a matrix of r × r numbers.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hck.approximations.base import Approximation, Factorization
from hck.backend import linalg
from hck.backend.kernels import check_lengthscales
from hck.errors import NotPositiveDefiniteError
from hck.hierarchy.forest import Predictor
from hck.kernels import Gaussian, Kernel, Laplace, Matern, make_kernel
from hck.kernels.algebra import Scaled
from hck.partition import Landmarks, Tree, choose_landmarks
from hck.points import Points, SparsePoints, Values, VectorPoints, as_points, as_points_like
from hck.points.csr import csr_tensor

_AT_ONCE = 2**22  # features computed together, in numbers


class FeatureMap(Approximation):
    """k̃(x, x') = φ(x)ᵀ φ(x')."""

    rank: int

    @abstractmethod
    def features(self, x: Points) -> Tensor:
        """φ of each point: shape (points, rank)."""

    @abstractmethod
    def without_points(self) -> "FeatureMap":
        """The same features, without the training points."""

    def chunks(self, x: Points) -> Iterator[tuple[slice, Tensor]]:
        """The features of all points, some points at a time."""
        step = max(1, _AT_ONCE // max(1, self.rank, x.values_per_point))
        for i in range(0, len(x), step):
            part = slice(i, min(i + step, len(x)))
            yield part, self.features(x.take(torch.arange(part.start, part.stop, device=x.device)))

    def __matmul__(self, b: Tensor) -> Tensor:
        out = self.expand(self.points, self.project(self.columns(b)))
        return out if b.ndim == 2 else out[:, 0]

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

    def cross(self, x: Any) -> Tensor:
        return self.expand(self.points, self.features(as_points_like(x, self.points)).mT.contiguous())

    def extend(self, weights: Tensor) -> "FeaturePredictor":
        return FeaturePredictor(self.without_points(), self.project(self.columns(weights)))

    def diagonal(self) -> Tensor:
        return torch.cat([phi.square().sum(1) for _, phi in self.chunks(self.points)])

    def factor(self, noise: float | Tensor) -> "FeatureFactorization":
        return FeatureFactorization(self, noise)

    def ridge(
        self, noise: float | Tensor, b: Tensor, left_out: bool = False
    ) -> tuple[Predictor, Tensor | None]:  # fmt: skip
        b = self.columns(b)
        factor = FeatureFactorization(self, noise, b)
        others = factor.left_out(b) if left_out else None
        return FeaturePredictor(self.without_points(), factor.weights), others

    def draw(self, count: int, generator: torch.Generator, verbose: bool = False) -> Tensor:
        normal = torch.randn(
            self.rank, count, generator=generator, dtype=self.points.dtype, device=self.points.device
        )
        return self.expand(self.points, normal)

    @abstractmethod
    def pull(self, slope: Callable[[slice, Tensor], Tensor], within: Tensor) -> list[Tensor]:
        """What a function of the features changes by with each of the kernel's `tensors`.

        Parameters
        ----------
        slope : callable
            Some points and their features ↦ the derivative by these features.
        within : Tensor of shape (rank, rank)
            Φᵀ G Φ, where the derivative by the features is 2 G Φ.
        """


class FeatureFactorization(Factorization):
    """K̃ + N = Φ Φᵀ + N by the r × r matrix A = I + Φᵀ N⁻¹ Φ (Woodbury), which is in float64.

    Parameters
    ----------
    b : Tensor of shape (n, columns), optional
        Right-hand sides that are known beforehand: Φᵀ N⁻¹ b is found in the same pass over the points.
    """

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
            scaled = phi.double() * self.noise[part].double().rsqrt()[:, None]
            gram.addmm_(scaled.mT, scaled)
            if b is not None:
                projected.addmm_(scaled.mT, b[part].double() * self.noise[part].double().rsqrt()[:, None])
        gram.diagonal().add_(1)
        self.root = linalg.cholesky(gram, "the matrix I + Φᵀ N⁻¹ Φ of a kernel of low rank")
        self.log_determinant = 2 * self.root.diagonal().log().sum() + self.noise.double().log().sum()
        self.weights = self._solve(projected)  # A⁻¹ Φᵀ N⁻¹ b

    def _solve(self, projected: Tensor) -> Tensor:
        """A⁻¹ times something, as numbers of the points' type."""
        return torch.cholesky_solve(projected.double(), self.root).to(self.noise.dtype)

    def _weights(self, b: Tensor) -> Tensor:
        """A⁻¹ Φᵀ N⁻¹ b."""
        return self._solve(self.approximation.project(b / self.noise[:, None]))

    def solve(self, b: Tensor) -> Tensor:
        columns = self.approximation.columns(b)
        fitted = self.approximation.expand(self.approximation.points, self._weights(columns))
        out = (columns - fitted) / self.noise[:, None]
        return out if b.ndim == 2 else out[:, 0]

    def inverse_diagonal(self) -> Tensor:
        left = 1 - self._explained(self.approximation.points) / self.noise.double()
        return (left.clamp_min(torch.finfo(left.dtype).eps) / self.noise).to(self.noise.dtype)

    def left_out(self, b: Tensor) -> Tensor:
        """Each of the b that were given predicted from all others: shape (n, columns).

        By the leverages h: what is fitted leaves the residual of the others, times 1 − h.
        """
        out = torch.empty_like(b)
        for part, phi in self.approximation.chunks(self.approximation.points):
            leverage = self._explain(phi) / self.noise[part].double()
            rest = (b[part] - phi @ self.weights).double()
            left = (1 - leverage).clamp_min(torch.finfo(leverage.dtype).eps)
            out[part] = (b[part] - rest / left[:, None]).to(b.dtype)
        return out

    def _explain(self, phi: Tensor) -> Tensor:
        """φᵀ A⁻¹ φ for rows φ, in float64."""
        return torch.linalg.solve_triangular(self.root, phi.double().mT, upper=False).square().sum(0)

    def _explained(self, x: Points) -> Tensor:
        """The same for points: shape (points,)."""
        return torch.cat([self._explain(phi) for _, phi in self.approximation.chunks(x)])

    def predictor(self, b: Tensor, solved: Tensor | None = None) -> Predictor:
        source = self.approximation
        return FeaturePredictor(source.without_points(), self._weights(source.columns(b)))

    def variance(self, x: Any) -> Tensor:
        return self._explained(as_points_like(x, self.approximation.points)).to(self.noise.dtype)

    def covariance(self, x: Any) -> Tensor:
        phi = self.approximation.features(as_points_like(x, self.approximation.points))
        half = torch.linalg.solve_triangular(self.root, phi.double().mT, upper=False)
        return (half.mT @ half).to(self.noise.dtype)

    def sample(self, x: Any, count: int, generator: torch.Generator) -> Tensor:
        """At any number of points: φ(x)ᵀ A^(−1/2) z."""
        normal = torch.randn(
            len(self.root), count, generator=generator, dtype=torch.float64, device=self.root.device
        )
        weights = torch.linalg.solve_triangular(self.root.mT, normal, upper=True).to(self.noise.dtype)
        return self.approximation.expand(as_points_like(x, self.approximation.points), weights)

    def pull(self, w: Tensor) -> list[Tensor]:
        source, columns = self.approximation, w.shape[1]
        along, inverse = source.project(w), torch.cholesky_inverse(self.root).to(w.dtype)

        def slope(part: slice, phi: Tensor) -> Tensor:
            """(w wᵀ − (K̃ + N)⁻¹) Φ, where (K̃ + N)⁻¹ Φ = N⁻¹ Φ A⁻¹."""
            return w[part] @ along.mT - columns * (phi @ inverse) / self.noise[part][:, None]

        identity = torch.eye(source.rank, dtype=w.dtype, device=w.device)
        return source.pull(slope, (along @ along.mT - columns * (identity - inverse)) / 2)


@dataclass
class FeaturePredictor:
    """x ↦ φ(x)ᵀ weights."""

    source: FeatureMap
    weights: Tensor  # (rank, columns)

    def __call__(self, x: Any, verbose: bool = False) -> Tensor:
        return self.source.expand(as_points_like(x, self.source.points), self.weights)

    @property
    def points(self) -> Points:
        return self.source.points

    @property
    def nbytes(self) -> int:
        return self.weights.nbytes + self.source.nbytes


@dataclass
class Nystrom(FeatureMap):
    """k̃(x, x') = k(x, Z) K(Z, Z)⁺ k(Z, x'), exact at the landmarks Z.

    Made by `Nystrom.of`. Landmarks that repeat, or that others nearly determine, do no harm: the inverse is a
    pseudo-inverse.

    Attributes
    ----------
    landmarks : Points
    whitener : Tensor of shape (landmarks, rank)
        K(Z, Z)^(−1/2), without the directions in which it is 0.
    """

    kernel: Kernel
    points: Points
    landmarks: Points
    whitener: Tensor

    @classmethod
    def of(
        cls,
        kernel: Any,
        x: Any,
        rank: int,
        landmarks: Any = "uniform",
        generator: torch.Generator | None = None,
    ) -> "Nystrom":
        """Choose landmarks.

        Parameters
        ----------
        kernel : Kernel, or what `hck.kernels.make_kernel` takes
        x : Points, array-like of shape (n, d), or sparse matrix
        rank : int
            r, the number of landmarks.
        landmarks : {"uniform", "kmeans", "farthest"} or array-like of shape (landmarks, d)
        generator : torch.Generator, optional
            On the device of the points.
        """
        points = as_points(x)
        kernel = make_kernel(kernel).to(points.device, points.dtype)
        chosen = _choose(landmarks, points, kernel, rank, generator)
        return cls(kernel, points, chosen, _whitener(kernel, chosen))

    def with_kernel(self, kernel: Kernel, jitter: float | None = None) -> "Nystrom":
        return replace(self, kernel=kernel, whitener=_whitener(kernel, self.landmarks))

    def without_points(self) -> "Nystrom":
        return replace(self, points=_none_of(self.points))

    def pull(self, slope: Callable[[slice, Tensor], Tensor], within: Tensor) -> list[Tensor]:
        # K̃ = B K(Z, X) with B = K(X, Z) K(Z, Z)⁺ = Φ Wᵀ:  dK̃ = dK(X, Z) Bᵀ + B dK(Z, X) − B dK(Z, Z) Bᵀ
        inner = self.whitener @ within @ self.whitener.mT
        found = self.kernel.pull(Values.between(self.kernel, self.landmarks, self.landmarks), -inner[None])
        for part, phi in self.chunks(self.points):
            some = self.points.take(torch.arange(part.start, part.stop, device=self.points.device))
            weight = slope(part, phi) @ self.whitener.mT
            more = self.kernel.pull(Values.between(self.kernel, some, self.landmarks), weight[None])
            found = [a + b for a, b in zip(found, more, strict=True)]
        return found

    @property
    def rank(self) -> int:  # type: ignore[override]
        return self.whitener.shape[1]

    def features(self, x: Points) -> Tensor:
        return Values.between(self.kernel, x, self.landmarks).tensor()[0] @ self.whitener

    @property
    def nbytes(self) -> int:
        return self.whitener.nbytes + self.landmarks.nbytes


@dataclass
class Fourier(FeatureMap):
    """Random Fourier features: cos and sin of ωᵀx, for ω drawn from the kernel's spectral density.

    Made by `Fourier.of`. Known are the spectral densities of Gaussian, Laplace and Matérn kernels and their
    multiples (Rahimi and Recht, 2007).

    Attributes
    ----------
    standard : Tensor of shape (d, pairs)
        Frequencies for a lengthscale of 1.
    """

    kernel: Kernel
    points: Points
    standard: Tensor

    @classmethod
    def of(
        cls, kernel: Any, x: Any, rank: int, generator: torch.Generator | None = None
    ) -> "Fourier":  # fmt: skip
        """Draw frequencies.

        Parameters
        ----------
        kernel : Kernel, or what `hck.kernels.make_kernel` takes
        x : Points, array-like of shape (n, d), or sparse matrix
        rank : int
            r, the number of features: a cosine and a sine for each frequency; an odd one is rounded up.
        """
        points = as_points(x)
        if not isinstance(points, VectorPoints):
            raise TypeError("Fourier features need points with coordinates")
        kernel = make_kernel(kernel).to(points.device, points.dtype)
        if generator is None:
            generator = torch.Generator(points.device).manual_seed(0)
        standard = draw_frequencies(kernel, points.n_features, -(-rank // 2), generator)
        return cls(kernel, points, standard.to(points.dtype))

    def with_kernel(self, kernel: Kernel, jitter: float | None = None) -> "Fourier":
        return replace(self, kernel=kernel)

    def without_points(self) -> "Fourier":
        return replace(self, points=_none_of(self.points))

    def pull(self, slope: Callable[[slice, Tensor], Tensor], within: Tensor) -> list[Tensor]:
        found = [torch.zeros_like(tensor) for tensor in self.kernel.tensors()]
        for part, phi in self.chunks(self.points):
            some = self.points.take(torch.arange(part.start, part.stop, device=self.points.device))
            weight = slope(part, phi)
            with torch.enable_grad():
                total = (self.features(some) * weight).sum()
            more = torch.autograd.grad(total, self.kernel.tensors(), materialize_grads=True)
            found = [a + b for a, b in zip(found, more, strict=True)]
        return found

    @property
    def rank(self) -> int:  # type: ignore[override]
        return 2 * self.standard.shape[1]

    def features(self, x: Points) -> Tensor:
        inner, amplitude = _unscale(self.kernel)
        scale = torch.as_tensor(inner.lengthscale, dtype=x.dtype, device=x.device)
        frequencies = self.standard / (scale[:, None] if scale.ndim else scale)
        if isinstance(x, SparsePoints):
            parts = (x.x.indptr, x.x.indices, x.x.data)
            start, column, values = (torch.from_numpy(part).to(x.device) for part in parts)
            angle = csr_tensor(start, column, values, x.x.shape) @ frequencies
        else:
            angle = x.x @ frequencies
        size = torch.as_tensor(amplitude / self.standard.shape[1], dtype=x.dtype, device=x.device).sqrt()
        return torch.cat([angle.cos(), angle.sin()], 1) * size

    @property
    def nbytes(self) -> int:
        return self.standard.nbytes


def draw_frequencies(kernel: Kernel, d: int, count: int, generator: torch.Generator) -> Tensor:
    """Frequencies (d, count) from the spectral density that a kernel has with a lengthscale of 1.

    Gaussian: normal, 1/σ. Laplace: Cauchy in each coordinate. Matérn: Student's t with 2ν degrees of freedom,
    whose chi-square is drawn as a sum of squares of normal numbers (2ν is 1, 3 or 5).
    """
    if count < 1:
        raise ValueError("rank must be at least 1")
    kernel = _unscale(kernel)[0]

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64, device=generator.device)

    omega = normal(d, count)
    if isinstance(kernel, Laplace):
        omega = omega / normal(d, count)
    elif isinstance(kernel, Matern):
        degrees = round(2 * kernel.nu)
        omega = omega * (degrees / normal(degrees, count).square().sum(0)).sqrt()
    elif not isinstance(kernel, Gaussian):
        raise ValueError(
            f"the spectral density of {kernel} is not known: Fourier features are there for Gaussian, "
            "Laplace and Matérn kernels and their multiples; use another approximation"
        )
    check_lengthscales(torch.as_tensor(kernel.lengthscale), d)
    return omega


def _unscale(kernel: Kernel) -> tuple[Any, Any]:
    """The kernel that is multiplied by a number, and the number."""
    amplitude: Any = 1.0
    while isinstance(kernel, Scaled):
        amplitude = amplitude * kernel.scale
        kernel = kernel.kernel
    return kernel, amplitude


def _whitener(kernel: Kernel, landmarks: Points) -> Tensor:
    values, vectors = torch.linalg.eigh(Values.between(kernel, landmarks, landmarks).tensor()[0])
    kept = values > len(landmarks) * torch.finfo(values.dtype).eps * values[-1]
    return vectors[:, kept] * values[kept].rsqrt()


def _none_of(points: Points) -> Points:
    return points.take(torch.arange(0, device=points.device))


def _choose(
    how: Any, points: Points, kernel: Kernel, rank: int, generator: torch.Generator | None
) -> Points:  # fmt: skip
    """Landmarks for all points together, chosen as those of a tree's root."""
    if isinstance(how, Landmarks) or (isinstance(how, list) and how and np.ndim(how[0]) != 1):
        raise TypeError("one set of landmarks is needed, an array of points, not one for each node of a tree")
    if not isinstance(how, str):
        given = as_points_like(how, points)
        if len(given) == 0:
            raise ValueError("there are no landmarks")
        return given
    if how not in ("uniform", "kmeans", "farthest"):
        raise ValueError(f"unknown landmarks {how!r}; known: uniform, kmeans, farthest, or an array")
    if not (isinstance(rank, Integral) and rank >= 1):
        raise ValueError(f"rank must be a whole number, at least 1, got {rank!r}")
    if len(points) < 2:
        return points
    if generator is None:
        generator = torch.Generator(points.device).manual_seed(0)
    n = len(points)
    parent, start, stop = torch.tensor([[-1, 0, 0], [0, 0, n // 2], [n, n // 2, n]])  # any tree has this root
    halves = Tree(parent, start, stop, torch.arange(n)).to(points.device)
    return choose_landmarks(how, points, halves, rank, kernel, generator).of_slot(0)
