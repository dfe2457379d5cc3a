"""Kernels of the scaled difference (x − x')/σ, with one lengthscale σ or one per feature."""

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar, TypeVar

import numpy as np
import torch
from torch import Tensor

from hck.backend.kernels import Formula, Profile, apply, requiring_gradient
from hck.backend.random import Random
from hck.kernels.base import Kernel, Number, Pairs, Parameter
from hck.kernels.distance import manhattan, rounded_squares
from hck.kernels.inputs import Positive, positive
from hck.kernels.placement import Block, PerFeature, Placement, divide

S = TypeVar("S", bound="Stationary")


class Stationary(Kernel):
    """A kernel amplitude · f(s) of the scaled distance: s = Σ (x_m − x'_m)²/σ_m², or Σ |x_m − x'_m|/σ_m.

    A new one has a `formula` and a name (`hck.kernels.named` says how).

    Parameters
    ----------
    lengthscale : float, or array-like of shape (n_features,)
        σ > 0. A tensor that requires a gradient keeps it.

    Attributes
    ----------
    formula : Formula
        f, for every machine.
    learned : tuple of str
        Those of `arguments` that are positive numbers, to be learned: its `parameters`.
    """

    formula: Formula
    arguments: ClassVar[tuple[str, ...]] = ("lengthscale",)
    learned: ClassVar[tuple[str, ...]] = ("lengthscale",)

    def __init__(self, lengthscale: Positive = 1.0) -> None:
        self.lengthscale = positive("lengthscale", lengthscale, most_axes=1)

    @property
    def amplitude(self) -> Number:
        """k(x, x)."""
        return 1.0

    @property
    def shape(self) -> Number:
        """The second argument of the formula, if it has one."""
        return 1.0

    @cached_property
    def placement(self) -> Placement | None:  # type: ignore[override]
        scale = self.lengthscale
        return PerFeature(scale) if isinstance(scale, Tensor) and scale.ndim else None

    @cached_property
    def unit(self) -> Number:
        """The lengthscale that is left where points are placed."""
        scale = self.lengthscale
        return 1.0 if isinstance(scale, Tensor) and scale.ndim else scale

    @property
    def slope(self) -> Kernel | None:
        """−2 f' for a kernel f(s) of the squared distance, if that is a kernel that we have."""
        return None

    def alongside(self, other: S, factor: float) -> S:
        """Another kernel, with `factor` times these lengthscales, for points that are placed for this one."""
        unit = self.unit.detach() if isinstance(self.unit, Tensor) else self.unit
        other.placement, other.unit = self.placement, unit * factor
        return other

    def draw_frequencies(self, d: int, count: int, random: Random) -> Tensor:
        """Frequencies (d, count) from the spectral density that the kernel has with a lengthscale of 1."""
        raise ValueError(
            f"the spectral density of {self} is not known: Fourier features are there for Gaussian, "
            "Laplace and Matérn kernels and their multiples; use another approximation"
        )

    def _isotropic(self) -> Profile:
        return Profile(self.formula, self.unit, self.amplitude, self.shape)

    def profile(self) -> Profile | None:
        return None if torch.is_grad_enabled() and self.tensors() else self._isotropic()

    def evaluate(self, a: Block, b: Block) -> Tensor:
        return evaluate(self._isotropic(), self.place(a), self.place(b))

    def diagonal(self, a: Block) -> Tensor:
        if isinstance(a, Tensor):
            return a.new_ones(a.shape[:-1]) * self.amplitude
        return torch.ones(a.shape[0], dtype=torch.float64, device="cpu") * self.amplitude

    def metric(self) -> Tensor | None:
        scale = self.lengthscale
        return scale.detach() if isinstance(scale, Tensor) and scale.ndim else None

    def parameters(self) -> dict[str, Parameter]:
        return {name: getattr(self, name) for name in self.learned}

    def _with_parameters(self: S, values: Mapping[str, Parameter]) -> S:
        return type(self)(**{name: values.get(name, getattr(self, name)) for name in self.arguments})

    def tensors(self) -> list[Tensor]:
        return requiring_gradient(*self.parameters().values())

    def gradient_of_sum(self, pairs: Pairs, weight: Tensor) -> list[Tensor]:
        scale, slope = self.lengthscale, self.slope
        if slope is not None and isinstance(scale, Tensor) and [t is scale for t in self.tensors()] == [True]:
            # ∂k/∂σ_m = −2 f'(s) (x_m − x'_m)² / σ_m³
            squares = pairs.weighted_squares(pairs.of(slope).mul_(weight))
            if squares is not None:
                each = squares / scale.detach() ** 3
                return [each if scale.ndim else each.sum()]
        return super().gradient_of_sum(pairs, weight)

    def to(self: S, device: torch.device, dtype: torch.dtype) -> S:
        given = {name: value for name, value in self.parameters().items() if isinstance(value, Tensor)}
        moved = {name: value.to(device, dtype) for name, value in given.items()}
        if all(moved[name] is given[name] for name in given):
            return self  # and with it the placement that points know
        return self._with_parameters(moved)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={shown(getattr(self, name))}" for name in self.arguments)
        return f"{type(self).__name__}({given})"


def evaluate(profile: Profile, a: Block, b: Block) -> Tensor:
    """The values of an isotropic kernel between blocks of placed points, by torch; shapes as in `Kernel`."""
    scale = profile.lengthscale
    if isinstance(scale, Tensor) or scale != 1.0:
        a, b = divide(a, scale), divide(b, scale)
    if profile.formula.manhattan:
        return apply(profile, manhattan(a, b))
    return apply(profile, *rounded_squares(a, b))


def normal(d: int, count: int, random: Random) -> Tensor:
    """Normal numbers (d, count), for frequencies."""
    return random.normal((d, count), torch.float64, torch.device("cpu"))


def shown(value: Parameter) -> str:
    """A parameter as people read it."""
    if not isinstance(value, Tensor):
        return f"{value:.6g}"
    return np.array2string(value.detach().cpu().numpy(), precision=4, separator=", ", threshold=8)
