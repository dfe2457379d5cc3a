"""Random Fourier features of stationary kernels."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from hck.approximations.features import FeatureMap
from hck.backend.checks import check_floats, require
from hck.backend.random import RandomLike, as_random
from hck.errors import NoGradientError
from hck.kernels import Kernel, Scaled, make_kernel
from hck.kernels.base import Number
from hck.kernels.placement import check_lengthscales, check_metric
from hck.kernels.registry import KernelLike
from hck.kernels.stationary import Stationary
from hck.points import Points, PointsLike, SparsePoints, VectorPoints, as_points, check_kernel, features_of
from hck.points.sparse import csr_tensor
from hck.settings import Settings


@dataclass
class Fourier(FeatureMap):
    """Random Fourier features: cos and sin of ωᵀx, for ω drawn from the kernel's spectral density.

    Made by `Fourier.of`. Known are those of Gaussian, Laplace, Matérn and rational quadratic kernels, and of
    their multiples (Rahimi and Recht, 2007).

    Examples
    --------
    >>> import torch
    >>> from hck.approximations import Fourier
    >>> from hck.approximations.quality import error
    >>> from hck.kernels import Gaussian
    >>> x = torch.linspace(0, 1, 200, dtype=torch.float64)[:, None]
    >>> few, many = (Fourier.of(Gaussian(0.1), x, rank=r, generator=0) for r in (10, 2000))
    >>> error(many) < 0.1 < error(few)
    True
    """

    # Frequencies for a lengthscale of 1: (d, pairs) or, if the kernel has a metric (d, k), (k, pairs).
    standard: Tensor

    def validate(self) -> None:
        """Raise ValueError unless the frequencies suit kernel and points."""
        check_kernel(self.kernel, self.points)
        metric = _unscale(self.kernel)[0].metric
        d = features_of(self.points) if metric is None else metric.shape[1]
        check_floats("standard", self.standard, d, None)
        require(self.rank > 0, "standard must have frequencies")
        require(self.standard.dtype == self.points.dtype, "standard must be of the points' type")
        largest = float(self.frequencies(self.points).detach().abs().max())
        most = torch.finfo(self.standard.dtype).max ** 0.5
        require(largest < most, "standard must be so small that angles do not overflow")

    @classmethod
    def of(cls, kernel: KernelLike, x: PointsLike, rank: int, generator: RandomLike = None) -> "Fourier":
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
        if rank < 1:
            raise ValueError("rank must be at least 1")
        stationary, d = _unscale(kernel)[0], points.n_features
        if stationary.metric is not None:
            check_metric(stationary.metric, d)
            d = stationary.metric.shape[1]
        elif isinstance(stationary.lengthscale, Tensor):
            check_lengthscales(stationary.lengthscale, d)
        standard = stationary.draw_frequencies(d, -(-rank // 2), as_random(generator))
        return cls(kernel, points, standard.to(points.device, points.dtype))

    @classmethod
    def from_settings(
        cls, kernel: Kernel, points: Points, settings: Settings, generator: RandomLike
    ) -> "Fourier":
        """Of a kernel, on training points, with as many features as the settings' rank."""
        return cls.of(kernel, points, settings.rank, generator)

    def with_kernel(self, kernel: Kernel, jitter: float | None = None) -> "Fourier":
        return replace(self, kernel=kernel)

    def outer_gradient(self, x: Points, slope: Tensor) -> list[Tensor]:
        with torch.enable_grad():
            total = (self.features(x) * slope).sum()
        return list(torch.autograd.grad(total, self.kernel.tensors(), materialize_grads=True))

    @property
    def rank(self) -> int:
        return 2 * self.standard.shape[1]

    def frequencies(self, x: Points) -> Tensor:
        """Those of the kernel, (d, pairs)."""
        inner = _unscale(self.kernel)[0]
        scale = torch.as_tensor(inner.lengthscale, dtype=x.dtype, device=x.device)
        found = self.standard / (scale[:, None] if scale.ndim else scale)
        return found if inner.metric is None else inner.metric.to(found) @ found

    def features(self, x: Points) -> Tensor:
        if isinstance(x, SparsePoints):
            parts = (x.x.indptr, x.x.indices, x.x.data)
            start, column, values = (torch.from_numpy(part).to(x.device) for part in parts)
            angle = csr_tensor(start, column, values, x.x.shape) @ self.frequencies(x)
        else:
            angle = x.x @ self.frequencies(x)
        return torch.cat([angle.cos(), angle.sin()], 1) * self._size(x)

    def slope(self, x: Points, weights: Tensor) -> Tensor:
        if isinstance(x, SparsePoints):
            raise NoGradientError("gradients by points are there for dense ones alone, not for sparse ones")
        frequencies = self.frequencies(x)
        angle = x.x @ frequencies
        turned = torch.cat([-angle.sin(), angle.cos()], 1) * self._size(x)
        both = (
            torch.cat([frequencies, frequencies], 1).mT[:, :, None] * weights[:, None]
        )  # (rank, d, columns)
        return (turned @ both.flatten(1)).unflatten(1, both.shape[1:])

    def _size(self, x: Points) -> Tensor:
        """What cosines and sines are multiplied by, of shape ()."""
        amplitude = _unscale(self.kernel)[1]
        return torch.as_tensor(amplitude / self.standard.shape[1], dtype=x.dtype, device=x.device).sqrt()

    @property
    def nbytes(self) -> int:
        return self.standard.nbytes


def _unscale(kernel: Kernel) -> tuple[Stationary, Number]:
    """The kernel that is multiplied by a number, and the number."""
    amplitude: Number = 1.0
    while isinstance(kernel, Scaled):
        amplitude, kernel = amplitude * kernel.scale, kernel.kernel
    if not isinstance(kernel, Stationary):
        raise ValueError(
            f"{kernel} has no spectral density: Fourier features are there for kernels of the difference of "
            "points and their multiples; use another approximation"
        )
    return kernel, amplitude
