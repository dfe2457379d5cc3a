"""Kernels that are inner products of few features: k̃(x, x') = φ(x)ᵀ φ(x'), φ(x) of length r.

Nothing of the size of n is kept but the points: features are computed in chunks when they are needed, and go
straight into a matrix of r × r numbers.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from hck.approximations._base import Approximation, Factorization, Predictor
from hck.errors import NotPositiveDefiniteError
from hck.kernels import Gaussian, Kernel, Laplace, Matern, make_kernel
from hck.kernels._algebra import Scaled
from hck.kernels._fused import check_lengthscales
from hck.partition import Tree, choose_landmarks
from hck.points import Points, SparsePoints, Values, VectorPoints, as_points, as_points_like

_AT_ONCE = 2**22  # features computed together, in numbers


class FeatureMap(Approximation):
    """k̃(x, x') = φ(x)ᵀ φ(x')."""

    rank: int

    @abstractmethod
    def features(self, x: Points) -> Tensor:
        """φ of each point: shape (points, rank)."""

    def chunks(self, x: Points) -> Iterator[tuple[slice, Tensor]]:
        """The features of all points, some points at a time."""
        step = max(1, _AT_ONCE // max(1, self.rank, x.values_per_point))
        for i in range(0, len(x), step):
            part = slice(i, min(i + step, len(x)))
            yield part, self.features(x.take(torch.arange(part.start, part.stop, device=x.device)))

    def __matmul__(self, b: Tensor) -> Tensor:
        columns = _columns(b, self.points)
        out = self.expand(self.points, self.project(columns))
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

    def factor(self, noise: float | Tensor) -> "FeatureFactorization":
        return FeatureFactorization(self, noise)


class FeatureFactorization(Factorization):
    """K̃ + N = Φ Φᵀ + N by the r × r matrix A = I + Φᵀ N⁻¹ Φ (Woodbury)."""

    def __init__(self, approximation: FeatureMap, noise: float | Tensor) -> None:
        points = approximation.points
        variance = torch.as_tensor(noise, dtype=points.dtype, device=points.device)
        if not bool((variance > 0).all()):
            raise NotPositiveDefiniteError(
                "a kernel of low rank is singular on more points than its rank: the noise must be positive"
            )
        self.approximation, self.noise = approximation, variance.expand(len(points))
        gram = torch.zeros(approximation.rank, approximation.rank, dtype=points.dtype, device=points.device)
        for part, phi in approximation.chunks(points):
            scaled = phi * self.noise[part].rsqrt()[:, None]
            gram.addmm_(scaled.mT, scaled)
        gram.diagonal().add_(1)
        self.root, failed = torch.linalg.cholesky_ex(gram)
        if bool(failed):
            raise NotPositiveDefiniteError(
                "the noise is too small for this type of numbers: use a larger one"
            )
        self.log_determinant = 2 * self.root.diagonal().log().sum() + self.noise.log().sum()

    def _weights(self, b: Tensor) -> Tensor:
        """A⁻¹ Φᵀ N⁻¹ b."""
        return torch.cholesky_solve(self.approximation.project(b / self.noise[:, None]), self.root)

    def solve(self, b: Tensor) -> Tensor:
        columns = _columns(b, self.approximation.points)
        fitted = self.approximation.expand(self.approximation.points, self._weights(columns))
        out = (columns - fitted) / self.noise[:, None]
        return out if b.ndim == 2 else out[:, 0]

    def inverse_diagonal(self) -> Tensor:
        return 1 / self.noise - self._explained(self.approximation.points) / self.noise.square()

    def _explained(self, x: Points) -> Tensor:
        """φ(x)ᵀ A⁻¹ φ(x): shape (points,)."""
        out = self.root.new_empty(len(x))
        for part, phi in self.approximation.chunks(x):
            out[part] = torch.linalg.solve_triangular(self.root, phi.mT, upper=False).square().sum(0)
        return out

    def predictor(self, b: Tensor) -> Predictor:
        source = self.approximation
        weights = self._weights(_columns(b, source.points))
        return lambda x: source.expand(as_points_like(x, source.points), weights)

    def variance(self, x: Any) -> Tensor:
        return self._explained(as_points_like(x, self.approximation.points))


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
        values, vectors = torch.linalg.eigh(Values.between(kernel, chosen, chosen).tensor()[0])
        kept = values > len(chosen) * torch.finfo(values.dtype).eps * values[-1]
        return cls(kernel, points, chosen, vectors[:, kept] * values[kept].rsqrt())

    @property
    def rank(self) -> int:  # type: ignore[override]
        return self.whitener.shape[1]

    def features(self, x: Points) -> Tensor:
        return Values.between(self.kernel, x, self.landmarks).tensor()[0] @ self.whitener

    @property
    def nbytes(self) -> int:
        return self.whitener.nbytes


@dataclass
class Fourier(FeatureMap):
    """Random Fourier features: cos and sin of ωᵀx, for ω drawn from the kernel's spectral density.

    Made by `Fourier.of`. Known are the spectral densities of Gaussian, Laplace and Matérn kernels and their
    multiples (Rahimi and Recht, 2007).

    Attributes
    ----------
    frequencies : Tensor of shape (d, pairs)
    amplitude : float
        Of the kernel.
    """

    kernel: Kernel
    points: Points
    frequencies: Tensor
    amplitude: float

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
        omega, amplitude = draw_frequencies(kernel, points.n_features, -(-rank // 2), generator)
        return cls(kernel, points, omega.to(points.dtype), amplitude)

    @property
    def rank(self) -> int:  # type: ignore[override]
        return 2 * self.frequencies.shape[1]

    def features(self, x: Points) -> Tensor:
        if isinstance(x, SparsePoints):
            angle = torch.from_numpy(x.x @ self.frequencies.cpu().numpy()).to(self.frequencies)
        else:
            angle = x.x @ self.frequencies
        size = math.sqrt(self.amplitude / self.frequencies.shape[1])
        return torch.cat([angle.cos(), angle.sin()], 1).mul_(size)

    @property
    def nbytes(self) -> int:
        return self.frequencies.nbytes


def draw_frequencies(
    kernel: Kernel, d: int, count: int, generator: torch.Generator
) -> tuple[Tensor, float]:  # fmt: skip
    """Frequencies (d, count) from a kernel's spectral density, and the kernel's amplitude.

    Gaussian: normal, 1/σ. Laplace: Cauchy in each coordinate. Matérn: Student's t with 2ν degrees of freedom,
    whose chi-square is drawn as a sum of squares of normal numbers (2ν is 1, 3 or 5).
    """
    if count < 1:
        raise ValueError("rank must be at least 1")
    amplitude = 1.0
    while isinstance(kernel, Scaled):
        amplitude *= float(kernel.scale)
        kernel = kernel.kernel

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
    scale = torch.as_tensor(kernel.lengthscale, dtype=torch.float64, device=generator.device).detach()
    check_lengthscales(scale, d)
    return omega / (scale[:, None] if scale.ndim else scale), amplitude


def _choose(
    how: Any, points: Points, kernel: Kernel, rank: int, generator: torch.Generator | None
) -> Points:  # fmt: skip
    """Landmarks for all points together, chosen as those of a tree's root."""
    if not isinstance(how, str):
        return as_points_like(how, points)
    if len(points) < 2:
        return points
    if generator is None:
        generator = torch.Generator(points.device).manual_seed(0)
    halves = Tree.from_labels(torch.arange(len(points)).ge(len(points) // 2).long().numpy()).to(points.device)
    return choose_landmarks(how, points, halves, rank, kernel, generator).of_slot(0)


def _columns(b: Tensor, points: Points) -> Tensor:
    """Right-hand sides as columns, like the points in type and place."""
    b = torch.as_tensor(b, dtype=points.dtype, device=points.device)
    if len(b) != len(points):
        raise ValueError(f"b has {len(b)} rows, but there are {len(points)} points")
    return b if b.ndim == 2 else b[:, None]
