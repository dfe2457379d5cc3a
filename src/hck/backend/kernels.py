"""Kernel values between blocks of dense points, without storing anything but the result."""

from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hck.backend.blocks import Blocks
from hck.backend.cpu.arrays import flat
from hck.backend.cuda.compiler import has_triton
from hck.backend.gradients import wants_gradient

NAMES = ("gaussian", "laplace", "inverse_multiquadric", "matern12", "matern32", "matern52")
# Beyond, distances are a matrix product's work; but on a CPU not in small blocks, where to gather and to
# centre the points takes longer than the product.
_MOST_FEATURES, _SMALL = 256, 96


@dataclass(frozen=True)
class Profile:
    """A kernel amplitude · f((x − x')/lengthscale), for one of a few functions f.

    Attributes
    ----------
    name : str
        One of NAMES.
    lengthscale : float, or Tensor of shape () or (n_features,)
    amplitude : float, or Tensor of shape ()
    """

    name: str
    lengthscale: float | Tensor
    amplitude: float | Tensor = 1.0


def fusable(
    profile: Profile | None, x: Tensor, rows: Blocks, z: Tensor, columns: Blocks
) -> Profile | None:  # fmt: skip
    """The profile, if compiled code should evaluate it between these blocks."""
    on_cpu = x.device.type == "cpu"
    small = on_cpu and max(rows.index.shape[1], columns.index.shape[1]) <= _SMALL
    suited = (on_cpu or has_triton()) and (small or x.shape[1] <= _MOST_FEATURES)
    return profile if suited and not wants_gradient(x, z) else None


def fused_cross(
    profile: Profile,
    x: Tensor,
    rows: Blocks,
    z: Tensor,
    columns: Blocks,
    upper: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Values between blocks of rows of x (points, d) and of z, 0 where either side is padding.

    With `upper`, only what lies on and above the diagonal counts. `out` is memory for the result.
    """
    (members, n), m, d = rows.index.shape, columns.index.shape[1], x.shape[1]
    out = x.new_empty(members, n, m) if out is None else out
    if x.device.type != "cpu":
        fixed = not (isinstance(profile.lengthscale, Tensor) or isinstance(profile.amplitude, Tensor))
        weights = (_weights if fixed else _weights.__wrapped__)(profile, x.shape[1], x.dtype, x.device)
        name = NAMES.index(profile.name)
        import_module("hck.backend.cuda.kernels").evaluate(name, weights, x, rows, z, columns, upper, out)
        return out
    left, right = flat(rows.index), flat(columns.index)
    compiled_kernels(x.itemsize).evaluate(
        flat(x), left, flat(z), right, *arguments(profile, x), flat(out), members, n, m, d, upper
    )
    return out


@cache
def compiled_kernels(itemsize: int) -> Any:
    """The compiled code for numbers of this size, loaded when it is first used."""
    import_module("hck.backend.cpu.tile").provide(itemsize)
    import_module("hck.backend.cpu.kernel_tile").provide(itemsize)
    return import_module("hck.backend.cpu.kernels")


def arguments(profile: Profile, x: Tensor) -> tuple[np.ndarray, int, float]:
    """A profile as compiled code takes it: 1 over the lengthscales (d,), the number of f, the amplitude."""
    scales = _scales(profile.lengthscale, x.shape[1], x.dtype, x.device)
    return (1 / scales).numpy(), NAMES.index(profile.name), float(profile.amplitude)


def _scales(scale: float | Tensor, d: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """One number, or one for each feature, as d numbers."""
    if not isinstance(scale, Tensor):
        return torch.full((d,), scale, dtype=dtype, device=device)
    check_lengthscales(scale, d)
    return scale.detach().to(device, dtype).expand(d)


@lru_cache(64)
def _weights(profile: Profile, d: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """1 over the lengthscales, and the amplitude."""
    scales = _scales(profile.lengthscale, d, dtype, device)
    return torch.cat([1 / scales, _scales(profile.amplitude, 1, dtype, device)])


def check_lengthscales(scale: Tensor, n_features: int) -> None:
    """Raise ValueError unless there is one lengthscale, or one per feature."""
    if scale.ndim and scale.shape[0] != n_features:
        raise ValueError(
            f"the kernel has {scale.shape[0]} lengthscales but the points have {n_features} features: give "
            "one lengthscale, or one per feature"
        )
