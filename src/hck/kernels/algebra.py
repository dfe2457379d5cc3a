"""Kernels made of kernels."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from hck.backend.gradients import requiring_gradient, wants_gradient
from hck.backend.kernels import Profile
from hck.kernels.base import Kernel, Pairs


class _Pair(Kernel):
    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left, self.right = left, right

    @property
    def takes_objects(self) -> bool:
        return self.left.takes_objects and self.right.takes_objects

    def metric(self) -> Tensor | None:
        left, right = self.left.metric(), self.right.metric()
        if left is None or right is None:
            return left if right is None else right
        return (left**-2 + right**-2) ** -0.5

    def parameters(self) -> dict[str, float | Tensor]:
        sides = (("left", self.left), ("right", self.right))
        return {f"{side}.{name}": value for side, k in sides for name, value in k.parameters().items()}

    def _with_parameters(self, values: Mapping[str, Any]) -> "_Pair":
        def of(side: str) -> dict[str, Any]:
            return {name.partition(".")[2]: v for name, v in values.items() if name.partition(".")[0] == side}

        return type(self)(self.left.with_parameters(of("left")), self.right.with_parameters(of("right")))

    def tensors(self) -> list[Tensor]:
        return self.left.tensors() + self.right.tensors()

    def to(self, device: torch.device, dtype: torch.dtype) -> "_Pair":
        return type(self)(self.left.to(device, dtype), self.right.to(device, dtype))


class Sum(_Pair):
    """k₁(x, x') + k₂(x, x')."""

    def evaluate(self, a: Any, b: Any) -> Tensor:
        return self.left.evaluate(a, b) + self.right.evaluate(a, b)

    def diagonal(self, a: Any) -> Tensor:
        return self.left.diagonal(a) + self.right.diagonal(a)

    def pull(self, pairs: Pairs, weight: Tensor) -> list[Tensor]:
        return self.left.pull(pairs, weight) + self.right.pull(pairs, weight)

    def __repr__(self) -> str:
        return f"{self.left} + {self.right}"


class Product(_Pair):
    """k₁(x, x') · k₂(x, x')."""

    def evaluate(self, a: Any, b: Any) -> Tensor:
        return self.left.evaluate(a, b) * self.right.evaluate(a, b)

    def diagonal(self, a: Any) -> Tensor:
        return self.left.diagonal(a) * self.right.diagonal(a)

    def pull(self, pairs: Pairs, weight: Tensor) -> list[Tensor]:
        found = []
        for kernel, other in ((self.left, self.right), (self.right, self.left)):
            if kernel.tensors():
                found += kernel.pull(pairs, pairs.of(other).mul_(weight))
        return found

    def __repr__(self) -> str:
        return f"({self.left}) * ({self.right})"


class Scaled(Kernel):
    """c · k(x, x') with c > 0 (a variance); a tensor that requires a gradient keeps it."""

    def __init__(self, kernel: Kernel, scale: float | Tensor) -> None:
        value = scale.detach() if isinstance(scale, Tensor) else scale
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"a kernel can only be scaled by a positive, finite number, got {scale!r}")
        self.kernel = kernel
        self.scale = scale if isinstance(scale, Tensor) else float(scale)

    def evaluate(self, a: Any, b: Any) -> Tensor:
        return self._times_scale(self.kernel.evaluate(a, b))

    def diagonal(self, a: Any) -> Tensor:
        return self._times_scale(self.kernel.diagonal(a))

    def _times_scale(self, values: Tensor) -> Tensor:
        scale = self.scale
        return values * (scale.to(values.device) if isinstance(scale, Tensor) else scale)

    def profile(self) -> Profile | None:
        inner = self.kernel.profile()
        if inner is None or wants_gradient(self.scale):
            return None
        return replace(inner, amplitude=inner.amplitude * self.scale)

    def metric(self) -> Tensor | None:
        return self.kernel.metric()

    def parameters(self) -> dict[str, float | Tensor]:
        return {**self._inside(), "scale": self.scale}

    def _with_parameters(self, values: Mapping[str, Any]) -> "Scaled":
        inside = {old: values[new] for old, new in self._names().items() if new in values}
        return Scaled(self.kernel.with_parameters(inside), values.get("scale", self.scale))

    def _names(self) -> dict[str, str]:
        """The names of the inner kernel's parameters, and what they are called here."""
        nested = ("scale", "inner.")
        return {n: f"inner.{n}" if n.startswith(nested) else n for n in self.kernel.parameters()}

    def _inside(self) -> dict[str, float | Tensor]:
        return {self._names()[name]: value for name, value in self.kernel.parameters().items()}

    def tensors(self) -> list[Tensor]:
        return self.kernel.tensors() + requiring_gradient(self.scale)

    def pull(self, pairs: Pairs, weight: Tensor) -> list[Tensor]:
        found = [part * self.scale for part in self.kernel.pull(pairs, weight)]
        if requiring_gradient(self.scale):
            found.append(torch.vdot(weight.flatten(), pairs.of(self.kernel).flatten()))
        return found

    @property
    def takes_objects(self) -> bool:
        return self.kernel.takes_objects

    def to(self, device: torch.device, dtype: torch.dtype) -> "Scaled":
        scale = self.scale.to(device, dtype) if isinstance(self.scale, Tensor) else self.scale
        return Scaled(self.kernel.to(device, dtype), scale)

    def __repr__(self) -> str:
        return f"{float(torch.as_tensor(self.scale).detach()):.6g} * ({self.kernel})"
