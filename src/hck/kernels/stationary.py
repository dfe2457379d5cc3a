"""Kernels of the scaled difference (x − x')/σ, with one lengthscale σ or one per feature."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hck.backend.gradients import requiring_gradient, wants_gradient
from hck.backend.kernels import Profile, check_lengthscales
from hck.kernels.algebra import Scaled
from hck.kernels.base import Kernel, Pairs
from hck.kernels.distance import euclidean, manhattan, scale_features, squared_euclidean

Lengthscale = float | Tensor


class Stationary(Kernel):
    """A kernel of the scaled difference.

    Parameters
    ----------
    lengthscale : float, or array-like of shape (n_features,)
        σ > 0. A tensor that requires a gradient keeps it.
    """

    def __init__(self, lengthscale: Any = 1.0) -> None:
        self.lengthscale = _check_lengthscale(lengthscale)

    @abstractmethod
    def _profile(self, a: Any, b: Any) -> Tensor:
        """Values for points that are already divided by the lengthscale."""

    def _amplitude(self) -> Lengthscale:
        """k(x, x)."""
        return 1.0

    @property
    def _name(self) -> str:
        """One of `hck.backend.kernels.NAMES`, or nothing."""
        return _NAMES.get(type(self), "")

    def profile(self) -> Profile | None:
        if not self._name or wants_gradient(self.lengthscale):
            return None
        return Profile(self._name, self.lengthscale, self._amplitude())

    @cached_property
    def slope(self) -> Kernel | None:
        """−2 f' for a kernel f(s²) of the squared distance, if that is a kernel that we have."""
        return None

    def metric(self) -> Tensor | None:
        scale = self.lengthscale
        return scale.detach() if isinstance(scale, Tensor) and scale.ndim else None

    def parameters(self) -> dict[str, Lengthscale]:
        return {"lengthscale": self.lengthscale}

    def _with_parameters(self, values: Mapping[str, Any]) -> "Stationary":
        return self._with_lengthscale(values.get("lengthscale", self.lengthscale))

    def tensors(self) -> list[Tensor]:
        return requiring_gradient(self.lengthscale)

    def pull(self, pairs: Pairs, weight: Tensor) -> list[Tensor]:
        if self.slope is not None and isinstance(self.lengthscale, Tensor) and self.lengthscale.requires_grad:
            # ∂k/∂σ_m = −2 f'(s²) (x_m − x'_m)² / σ_m³
            squares = pairs.weighted_squares(pairs.of(self.slope).mul_(weight))
            if squares is not None:
                each = squares / self.lengthscale.detach() ** 3
                return [each if self.lengthscale.ndim else each.sum()]
        return super().pull(pairs, weight)

    def evaluate(self, a: Any, b: Any) -> Tensor:
        scale = self._lengthscale_for(a)
        values = self._profile(scale_features(a, scale), scale_features(b, scale))
        amplitude = self._amplitude()
        return values if isinstance(amplitude, float) and amplitude == 1.0 else values * amplitude

    def diagonal(self, a: Any) -> Tensor:
        one = (
            a.new_ones(a.shape[:-1]) if isinstance(a, Tensor) else torch.ones(a.shape[0], dtype=torch.float64)
        )
        return one * self._amplitude()

    def to(self, device: torch.device, dtype: torch.dtype) -> "Stationary":
        if not isinstance(self.lengthscale, Tensor):
            return self
        return self._with_lengthscale(self.lengthscale.to(device, dtype))

    def _with_lengthscale(self, lengthscale: Lengthscale) -> "Stationary":
        return type(self)(lengthscale)

    def _lengthscale_for(self, a: Any) -> Lengthscale:
        scale = self.lengthscale
        if not isinstance(scale, Tensor):
            return scale
        check_lengthscales(scale, a.shape[-1])
        return scale.to(a) if isinstance(a, Tensor) else scale

    def __repr__(self) -> str:
        scale = self.lengthscale
        shown = (
            f"{scale:.6g}"
            if not isinstance(scale, Tensor)
            else np.array2string(scale.detach().cpu().numpy(), precision=4, separator=", ", threshold=8)
        )
        return f"{type(self).__name__}(lengthscale={shown})"


class Gaussian(Stationary):
    """exp(−‖x − x'‖² / 2σ²)."""

    def _profile(self, a: Any, b: Any) -> Tensor:
        return squared_euclidean(a, b).mul_(-0.5).exp_()

    @cached_property
    def slope(self) -> Kernel | None:
        return self


class Laplace(Stationary):
    """exp(−‖x − x'‖₁ / σ)."""

    def _profile(self, a: Any, b: Any) -> Tensor:
        return manhattan(a, b).neg().exp_()


class InverseMultiquadric(Stationary):
    """σ² / √(‖x − x'‖² + σ²), so that k(x, x) = σ.

    With one lengthscale per feature: σ̄ / √(1 + Σ (x_i − x'_i)²/σ_i²), σ̄ their geometric mean, which is
    the same thing where they are equal.
    """

    def _profile(self, a: Any, b: Any) -> Tensor:
        return squared_euclidean(a, b).add_(1).rsqrt_()

    def _amplitude(self) -> Lengthscale:
        if isinstance(self.lengthscale, Tensor):
            return self.lengthscale.double().log().mean().exp()
        return self.lengthscale


class Matern(Stationary):
    """The Matérn kernel of half-integer smoothness ν, with s = ‖x − x'‖/σ.

    ν = 1/2: exp(−s);  ν = 3/2: (1 + √3 s) exp(−√3 s);  ν = 5/2: (1 + √5 s + 5s²/3) exp(−√5 s).

    Parameters
    ----------
    lengthscale : float, or array-like of shape (n_features,)
    nu : {0.5, 1.5, 2.5}
    """

    def __init__(self, lengthscale: Any = 1.0, nu: float = 1.5) -> None:
        super().__init__(lengthscale)
        if nu not in (0.5, 1.5, 2.5):
            raise ValueError(f"nu must be 0.5, 1.5 or 2.5, got {nu!r}")
        self.nu = float(nu)

    def _profile(self, a: Any, b: Any) -> Tensor:
        s = euclidean(a, b).mul_(math.sqrt(2 * self.nu))
        decay = torch.exp(-s)
        if self.nu == 0.5:
            return decay
        if self.nu == 1.5:
            return decay.addcmul(s, decay)
        return decay * (1 + s + s.square() / 3)

    @cached_property
    def slope(self) -> Kernel | None:
        """Of ν = 3/2: 3 exp(−√3 s), that is ν = 1/2 in another scale; of ν = 5/2: ν = 3/2 in another."""
        scale = self.lengthscale.detach() if isinstance(self.lengthscale, Tensor) else self.lengthscale
        if self.nu == 1.5:
            return Scaled(Matern(scale / math.sqrt(3), nu=0.5), 3.0)
        return Scaled(Matern(scale * math.sqrt(3 / 5), nu=1.5), 5 / 3) if self.nu == 2.5 else None

    @property
    def _name(self) -> str:
        return f"matern{round(2 * self.nu)}2" if type(self) is Matern else ""

    def _with_lengthscale(self, lengthscale: Lengthscale) -> "Matern":
        return Matern(lengthscale, self.nu)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, nu={self.nu})"


_NAMES: dict[type, str] = {
    Gaussian: "gaussian",
    Laplace: "laplace",
    InverseMultiquadric: "inverse_multiquadric",
}


def _check_lengthscale(value: Any) -> Lengthscale:
    if isinstance(value, Tensor) and value.requires_grad:
        return value
    array = np.asarray(value.detach().cpu() if isinstance(value, Tensor) else value)
    if array.dtype.kind not in "fiu" or array.ndim > 1 or array.size == 0:
        raise ValueError(f"lengthscale must be a number or one number per feature, got {value!r}")
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise ValueError(f"lengthscale must be positive and finite, got {value!r}")
    if isinstance(value, Tensor):
        return value
    return float(array) if array.ndim == 0 else torch.from_numpy(array.astype(np.float64))
