"""Random Fourier features of stationary kernels."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from hck.approximations.features import FeatureMap, Slope
from hck.kernels import Kernel, Scaled, make_kernel
from hck.kernels.placement import check_lengthscales
from hck.kernels.stationary import Stationary
from hck.points import Points, SparsePoints, VectorPoints, as_points
from hck.points.csr import csr_tensor
from hck.settings import Settings


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

    @classmethod
    def from_settings(
        cls, kernel: Any, points: Any, settings: Settings, generator: torch.Generator | None
    ) -> "Fourier":
        return cls.of(kernel, points, settings.rank, generator)

    def with_kernel(self, kernel: Kernel, jitter: float | None = None) -> "Fourier":
        return replace(self, kernel=kernel)

    def feature_gradient(self, slope: Slope, within: Tensor) -> list[Tensor]:
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
    def rank(self) -> int:
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
    """Frequencies (d, count) from the spectral density that a kernel has with a lengthscale of 1."""
    if count < 1:
        raise ValueError("rank must be at least 1")
    kernel = _unscale(kernel)[0]
    if not isinstance(kernel, Stationary):
        raise ValueError(
            f"{kernel} has no spectral density: Fourier features are there for kernels of the difference of "
            "points and their multiples; use another approximation"
        )
    check_lengthscales(torch.as_tensor(kernel.lengthscale), d)
    return kernel.draw_frequencies(d, count, generator)


def _unscale(kernel: Kernel) -> tuple[Any, Any]:
    """The kernel that is multiplied by a number, and the number."""
    amplitude: Any = 1.0
    while isinstance(kernel, Scaled):
        amplitude = amplitude * kernel.scale
        kernel = kernel.kernel
    return kernel, amplitude
