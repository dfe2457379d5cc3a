"""Nyström's approximation: the kernel seen through landmarks among all points."""

from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np
import torch
from torch import Tensor

from hck.approximations.features import FeatureMap
from hck.backend.checks import require
from hck.backend.random import RandomLike
from hck.kernels import Kernel, make_kernel
from hck.kernels.registry import KernelLike
from hck.kernels.slope import slope_of_sum
from hck.partition import Landmarks, Tree, choose_landmarks
from hck.points import (
    KernelBlocks,
    Points,
    PointsLike,
    as_points,
    as_points_like,
    check_alike,
    check_kernel,
    check_weights,
)
from hck.settings import LandmarksLike, Settings


@dataclass
class Nystrom(FeatureMap):
    """k̃(x, x') = k(x, Z) K(Z, Z)⁺ k(Z, x'), exact at the landmarks Z.

    Made by `Nystrom.of`. Landmarks that repeat, or that others nearly determine, do no harm: the inverse is a
    pseudo-inverse.

    Examples
    --------
    >>> import torch
    >>> from hck.approximations import Nystrom
    >>> from hck.approximations.quality import error
    >>> x = torch.linspace(0, 1, 200, dtype=torch.float64)[:, None]
    >>> few, many = (Nystrom.of("gaussian", x, rank=r, generator=0) for r in (1, 10))
    >>> error(many) < 1e-3 < error(few)
    True
    """

    landmarks: Points
    whitener: Tensor  # (landmarks, rank): K(Z, Z)^(−1/2), without the directions in which it is 0

    def validate(self) -> None:
        """Raise ValueError unless kernel, points, landmarks and whitener fit together."""
        most = check_kernel(self.kernel, self.points)
        check_alike(self.landmarks, self.points)
        check_weights("whitener", self.whitener, most, len(self.landmarks), None)
        require(self.whitener.dtype == self.points.dtype, "whitener must be of the points' type")

    @property
    def largest(self) -> float:
        return super().largest * max(1.0, float(self.whitener.abs().sum()))

    @classmethod
    def of(
        cls,
        kernel: KernelLike,
        x: PointsLike,
        rank: int,
        landmarks: LandmarksLike = "uniform",
        generator: RandomLike = None,
    ) -> "Nystrom":
        """Choose landmarks.

        Parameters
        ----------
        kernel : Kernel, or what `hck.kernels.make_kernel` takes
        x : Points, array-like of shape (n, d), or sparse matrix
        rank : int
            r, the number of landmarks.
        landmarks : {"uniform", "kmeans", "farthest"} or array-like of shape (landmarks, d)
        generator : torch.Generator, int, optional
        """
        points = as_points(x)
        kernel = make_kernel(kernel).to(points.device, points.dtype)
        chosen = _choose(landmarks, points, kernel, rank, generator)
        return cls(kernel, points, chosen, _whitener(kernel, chosen))

    @classmethod
    def from_settings(
        cls, kernel: Kernel, points: Points, settings: Settings, generator: RandomLike
    ) -> "Nystrom":
        """Of a kernel, on training points, with the rank and landmarks of the settings."""
        return cls.of(kernel, points, settings.rank, settings.landmarks, generator)

    def with_kernel(self, kernel: Kernel, jitter: float | None = None) -> "Nystrom":
        return replace(self, kernel=kernel, whitener=_whitener(kernel, self.landmarks))

    # K̃ = B K(Z, X) with B = K(X, Z) K(Z, Z)⁺ = Φ Wᵀ:  dK̃ = dK(X, Z) Bᵀ + B dK(Z, X) − B dK(Z, Z) Bᵀ

    def outer_gradient(self, x: Points, slope: Tensor) -> list[Tensor]:
        return self._gradient(x, slope @ self.whitener.mT)

    def inner_gradient(self, within: Tensor) -> list[Tensor]:
        return self._gradient(self.landmarks, -self.whitener @ within @ self.whitener.mT)

    def _gradient(self, x: Points, weight: Tensor) -> list[Tensor]:
        return self.kernel.gradient_of_sum(KernelBlocks.between(self.kernel, x, self.landmarks), weight[None])

    @property
    def rank(self) -> int:
        return self.whitener.shape[1]

    def features(self, x: Points) -> Tensor:
        return KernelBlocks.between(self.kernel, x, self.landmarks).tensor()[0] @ self.whitener

    def slope(self, x: Points, weights: Tensor) -> Tensor:
        pairs = KernelBlocks.between(self.kernel, x, self.landmarks)
        return slope_of_sum(self.kernel, pairs, (self.whitener @ weights)[None])[0]

    @property
    def nbytes(self) -> int:
        return self.whitener.nbytes + self.landmarks.nbytes


def _whitener(kernel: Kernel, landmarks: Points) -> Tensor:
    values, vectors = torch.linalg.eigh(KernelBlocks.between(kernel, landmarks, landmarks).tensor()[0])
    kept = values > len(landmarks) * torch.finfo(values.dtype).eps * values[-1]
    return vectors[:, kept] * values[kept].rsqrt()


def _choose(how: LandmarksLike, points: Points, kernel: Kernel, rank: int, generator: RandomLike) -> Points:
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
    n = len(points)
    nodes = [[-1, 0, 0], [0, 0, n // 2], [n, n // 2, n]]  # any tree has this root
    parent, start, stop = torch.tensor(nodes, dtype=torch.long, device=points.device)
    halves = Tree(parent, start, stop, torch.arange(n, device=points.device))
    return choose_landmarks(how, points, halves, rank, kernel, generator).of_slot(0)
