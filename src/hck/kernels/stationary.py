"""Kernels of the scaled difference (x − x')/σ, with one lengthscale σ, one per feature, or a matrix."""

from collections.abc import Mapping
from typing import ClassVar, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from hck.backend.caches import cached_property
from hck.backend.kernels import Formula, Profile, apply, requiring_gradient
from hck.backend.random import Random
from hck.kernels.base import Kernel, Number, Pairs, Parameter
from hck.kernels.distance import manhattan, rounded_squares
from hck.kernels.inputs import Positive, linear_metric, positive
from hck.kernels.placement import Block, Linear, PerFeature, Placement, divide

S = TypeVar("S", bound="Stationary")


class Stationary(Kernel):
    """A kernel amplitude · f(s) of the scaled distance: s = Σ (x_m − x'_m)²/σ_m², or Σ |x_m − x'_m|/σ_m.

    With a metric L, Lᵀx and Lᵀx' take the place of x and x'. A new kernel has a `formula` and a name
    (`hck.kernels.named` says how).

    Parameters
    ----------
    lengthscale : float, or array-like of shape (n_features,)
        σ > 0; with a metric, one for each of its columns. A tensor that requires a gradient keeps it.
    metric : array-like of shape (n_features, k), default=None
        L, of which the kernel has a copy; a tensor that requires a gradient is kept.

    Attributes
    ----------
    formula : Formula
        f, for every machine.
    learned : tuple of str
        Those of `arguments` that are positive numbers, to be learned: its `parameters`.
    """

    formula: Formula
    arguments: ClassVar[tuple[str, ...]] = ("lengthscale", "metric")
    learned: ClassVar[tuple[str, ...]] = ("lengthscale",)

    def __init__(self, lengthscale: Positive = 1.0, metric: ArrayLike | Tensor | None = None) -> None:
        self.lengthscale = positive("lengthscale", lengthscale, most_axes=1)
        self.metric = None if metric is None else linear_metric(metric)
        self._check_columns()

    def _check_columns(self) -> None:
        each, metric = self._each, self.metric
        if each is not None and metric is not None and len(each) != metric.shape[1]:
            raise ValueError(
                f"the kernel has {len(each)} lengthscales but a metric of shape {tuple(metric.shape)}: give "
                "one lengthscale, or one for each column of the metric"
            )

    @property
    def _each(self) -> Tensor | None:
        """The lengthscales, if there are several."""
        return self.lengthscale if isinstance(self.lengthscale, Tensor) and self.lengthscale.ndim else None

    @property
    def amplitude(self) -> Number:
        """k(x, x)."""
        return 1.0

    @property
    def shape(self) -> Number:
        """The second argument of the formula, if it has one."""
        return 1.0

    @cached_property
    def placement(self) -> Placement | None:
        if self.metric is not None:
            return Linear(self.metric, self._each)
        return None if self._each is None else PerFeature(self._each)

    @cached_property
    def unit(self) -> Number:
        """The lengthscale that is left where points are placed."""
        return self.lengthscale if self._each is None else 1.0

    @property
    def slope(self) -> Kernel | None:
        """−2 f' for a kernel f(s) of the squared distance, if that is a kernel that we have."""
        return None

    def slopes(self, pairs: Pairs) -> Tensor | None:
        """−2 f' between pairs of points, 0 for padding, if it is known."""
        return None if self.slope is None else pairs.of(self.slope)

    def alongside(self, other: S, factor: float) -> S:
        """Another kernel, with `factor` times these lengthscales, for points that are placed for this one."""
        unit = self.unit.detach() if isinstance(self.unit, Tensor) else self.unit
        other.placement, other.unit = self.placement, unit * factor
        other.metric = None if self.metric is None else self.metric.detach()
        return other

    def where_placed(self: S) -> S:
        """The kernel of points that are placed for this one."""
        other = self._with({"lengthscale": self.unit})
        other.metric = None
        return other

    @property
    def has_spectral_density(self) -> bool:
        """Whether it is known, so that there are frequencies to draw."""
        return type(self).draw_frequencies is not Stationary.draw_frequencies

    def draw_frequencies(self, d: int, count: int, random: Random) -> Tensor:
        """Frequencies (d, count) from the spectral density that the kernel has with a lengthscale of 1."""
        raise ValueError(
            f"the spectral density of {self} is not known: Fourier features are there for Gaussian, "
            "Laplace, Matérn and rational quadratic kernels and their multiples; use another approximation"
        )

    def log_spectral_density(self, omega: Tensor) -> Tensor:
        """The logarithm of that density at frequencies (d, …), up to a constant: shape (…)."""
        raise ValueError(f"the spectral density of {self} is not known")

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

    def stretch(self) -> Tensor | None:
        if self.metric is not None:
            scale = self.lengthscale
            scale = scale.detach().to(self.metric) if isinstance(scale, Tensor) else scale
            return self.metric.detach() / scale
        return None if self._each is None else 1 / self._each.detach()

    def parameters(self) -> dict[str, Parameter]:
        return {name: getattr(self, name) for name in self.learned}

    def _with_parameters(self: S, values: Mapping[str, Parameter]) -> S:
        other = self._with(values)
        if self.metric is not None and self._each is None and other._each is None:
            other.placement = self.placement  # that does not depend on lengthscales, and that points know
        return other

    def _with(self: S, values: Mapping[str, Parameter]) -> S:
        """With other values for some of its arguments; a metric is taken as it is, without a copy."""
        parts = {name: values.get(name, getattr(self, name)) for name in self.arguments}
        metric = parts.pop("metric", None)
        other = type(self)(**parts)
        other.metric = metric
        other._check_columns()
        return other

    def before(self: S, factor: Tensor) -> S:
        """The same kernel of points whose features were not multiplied by factors (d,) first.

        Examples
        --------
        >>> import torch
        >>> from hck.kernels import Gaussian
        >>> Gaussian(3.0).before(torch.tensor([1.0, 8.0])).lengthscale.tolist()
        [3.0, 0.375]
        """
        if self.metric is not None:
            return self._with({"metric": self.metric * factor.to(self.metric)[:, None]})
        scale = self.lengthscale.to(factor) if isinstance(self.lengthscale, Tensor) else self.lengthscale
        return self._with({"lengthscale": scale / factor})

    def tensors(self) -> list[Tensor]:
        return requiring_gradient(*self.parameters().values(), self.metric)

    def gradient_of_sum(self, pairs: Pairs, weight: Tensor) -> list[Tensor]:
        wanted = self.tensors()
        if wanted and all(tensor is self.lengthscale or tensor is self.metric for tensor in wanted):
            slopes = self.slopes(pairs)
            if slopes is not None:
                by_scale, by_metric = self._closed_form(pairs, slopes.mul_(weight))
                return [by_metric if tensor is self.metric else by_scale for tensor in wanted]
        return super().gradient_of_sum(pairs, weight)

    def gradient_of_metric(self, pairs: Pairs, weight: Tensor) -> Tensor:
        if self.metric is None:
            return super().gradient_of_metric(pairs, weight)
        slopes = self.slopes(pairs)
        if slopes is not None:
            return self._closed_form(pairs, slopes.mul_(weight))[1]
        given = self.parameters()
        fixed = {name: value.detach() for name, value in given.items() if isinstance(value, Tensor)}
        alone = self._with({**fixed, "metric": self.metric.detach().requires_grad_()})
        return Kernel.gradient_of_sum(alone, pairs, weight)[0]

    def _closed_form(self, pairs: Pairs, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients by lengthscales and by the metric, for weights times −2 f'.

        With δ = x − x' these are Σ weight · (Lᵀδ)_j²/σ_j³ and −Σ weight · δ δᵀL/σ². Without a metric L is 1,
        and the second is nothing.
        """
        scale = self.lengthscale.detach() if isinstance(self.lengthscale, Tensor) else self.lengthscale
        if self.metric is None:
            squares, by_metric = pairs.weighted_squares(weight), weight.new_zeros(0)
        else:
            assert self.placement is not None
            products = pairs.weighted_products(weight, self.placement)  # Σ weight · δ δᵀL
            products = products if self._each is None else products * scale
            squares = (self.metric.detach().to(products) * products).sum(0)
            by_metric = products / -(scale**2)
        by_scale = squares / scale**3
        return by_scale.sum() if self._each is None else by_scale, by_metric

    def to(self: S, device: torch.device, dtype: torch.dtype) -> S:
        parts = {**self.parameters(), "metric": self.metric}
        given = {name: value for name, value in parts.items() if isinstance(value, Tensor)}
        moved = {name: value.to(device, dtype) for name, value in given.items()}
        if all(moved[name] is given[name] for name in given):
            return self  # and with it the placement that points know
        return self._with(moved)

    def __repr__(self) -> str:
        parts = {name: getattr(self, name) for name in self.arguments}
        given = ", ".join(f"{name}={shown(value)}" for name, value in parts.items() if value is not None)
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
    if value.ndim == 2 and value.numel() > 9:
        return " × ".join(map(str, value.shape))
    text = np.array2string(value.detach().cpu().numpy(), precision=4, separator=", ", threshold=9)
    return " ".join(text.split())
