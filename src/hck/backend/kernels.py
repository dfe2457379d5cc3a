"""Kernel values between blocks of dense points, without storing anything but the result.

A kernel's function of the distance is written once, in plain Python (`Formula`); torch, the CPU's vector
registers and Triton each put their own exp, log and sqrt into it. Here kernels are isotropic: points have
been placed (`hck.kernels.placement`), and one lengthscale is left.
"""

import dis
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from types import FunctionType
from typing import Any, TypeAlias

import torch
from torch import Tensor

from hck.backend.blocks import Blocks
from hck.backend.caches import cached_property
from hck.backend.kinds import kind_of
from hck.backend.parallel import chunks

# What a machine computes with: a tensor, a vector register, or a tile of Triton's.
Numbers: TypeAlias = Any

_PIECE = 2**16  # numbers to which torch applies a formula at once
_KNOWN = ("exp", "log", "sqrt")
_LOOKUPS = ("LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD", "LOAD_NAME", "IMPORT_NAME")


@dataclass(frozen=True)
class Formula:
    """A kernel's function f of the distance, from which the code of every machine is made.

    It is f(s) with f(0) = 1, or f(s, shape) with one more number; s is ‖x − x'‖², or with `manhattan`
    ‖x − x'‖₁, in units of the lengthscale. It is written with numbers, + − * / and the functions `exp`, `log`
    and `sqrt` of s alone, for which each machine has its own. A `smooth` one has a derivative in s at 0, so
    that a small error of s is as small an error of f.
    """

    function: Callable[..., Numbers]
    manhattan: bool = False
    smooth: bool = False

    def __post_init__(self) -> None:
        code = getattr(self.function, "__code__", None)
        if code is None or self.function.__closure__ or code.co_argcount not in (1, 2):
            raise TypeError(f"a formula is a plain function f(s) or f(s, shape), got {self.function!r}")
        if any(hasattr(constant, "co_code") for constant in code.co_consts):
            raise TypeError(f"the formula {self.name} has a function inside, which compiled code has not")
        for step in dis.get_instructions(code):
            if step.opname in _LOOKUPS and (step.opname != "LOAD_GLOBAL" or step.argval not in _KNOWN):
                raise ValueError(
                    f"the formula {self.name} uses {step.argval!r}; compiled code knows numbers, + - * / and "
                    f"the functions {', '.join(_KNOWN)}"
                )

    def __call__(self, s: Numbers, shape: Numbers) -> Numbers:
        return self.function(s, shape) if self.shaped else self.function(s)

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def shaped(self) -> bool:
        """Whether it takes one more number."""
        return self.function.__code__.co_argcount == 2

    @cached_property
    def fingerprint(self) -> str:
        """What it does, as a few letters."""
        code = self.function.__code__
        text = repr((code.co_code, code.co_consts, code.co_names, code.co_varnames))
        return sha256(text.encode()).hexdigest()[:16]

    def with_functions(self, **functions: Callable[[Numbers], Numbers]) -> FunctionType:
        """The same function, with other meanings of exp, log and sqrt."""
        known = {"__name__": self.function.__module__, **functions}
        made = FunctionType(self.function.__code__, known, self.name)
        made.__qualname__ = f"{self.name}_{self.fingerprint}"
        return made


@dataclass(frozen=True)
class Profile:
    """An isotropic kernel: amplitude · f(s) with s = ‖x − x'‖² / lengthscale², or ‖x − x'‖₁ / lengthscale."""

    formula: Formula
    lengthscale: float | Tensor = 1.0
    amplitude: float | Tensor = 1.0
    shape: float | Tensor = 1.0


@dataclass(frozen=True)
class DenseCross:
    """Values of a kernel that are wanted between blocks of rows of x (points, d) and of z, 0 for padding."""

    profile: Profile
    x: Tensor
    rows: Blocks
    z: Tensor
    columns: Blocks


def farthest(dtype: torch.dtype) -> float:
    """The largest distance, or squared one, that a formula is given: of a larger one it could make ∞ · 0.

    In between lies the least number that compiled code takes for exp(−∞), times what a formula makes of it.
    """
    return 1e280 if dtype == torch.float64 else 1e30


def wants_gradient(*values: object) -> bool:
    """Whether torch would record what is done with these, which compiled code does not."""
    return torch.is_grad_enabled() and bool(requiring_gradient(*values))


def requiring_gradient(*values: object) -> list[Tensor]:
    """Those that are tensors and require a gradient."""
    return [value for value in values if isinstance(value, Tensor) and value.requires_grad]


def apply(profile: Profile, s: Tensor, rounding: Tensor | None = None) -> Tensor:
    """amplitude · f(s), by torch, for distances s (*batch, n, m) in units of the lengthscale.

    These may be overwritten. Up to `rounding`, which expands to (*batch, n, 1), they are taken as 0.
    """
    formula, amplitude, shape = profile.formula, profile.amplitude, profile.shape
    n, m = s.shape[-2:]
    plain, most = isinstance(amplitude, float) and amplitude == 1.0, farthest(s.dtype)
    if n * m < _PIECE or not kind_of(s.device).is_host or wants_gradient(s, amplitude, shape):
        near = s if rounding is None else without_rounding(s, rounding)
        values: Tensor = formula(near.clamp(max=most), shape)
        return values if plain else values * amplitude
    s = s.contiguous()
    members = s.view(-1, n, m)
    limits = None if rounding is None else rounding.expand(*s.shape[:-2], 1, 1).flatten().tolist()
    for k, member in enumerate(members):
        for rows in chunks(0, n, max(1, _PIECE // m)):  # what stays in the cache
            part = member[rows].clamp_(max=most)
            if limits is not None:
                torch.threshold_(part, limits[k], 0)
            part.copy_(formula(part, shape) if plain else formula(part, shape) * amplitude)
    return s


def without_rounding(s: Tensor, rounding: Tensor) -> Tensor:
    """Squared distances with 0 for those that may be rounding; in place, unless a gradient is recorded."""
    close = s <= rounding
    return s.masked_fill(close, 0) if wants_gradient(s) else s.masked_fill_(close, 0)


def fusable(cross: DenseCross) -> bool:
    """Whether compiled code should compute these values."""
    width = max(cross.rows.index.shape[1], cross.columns.index.shape[1])
    fuses = kind_of(cross.x.device).machine().fuses(cross.x.shape[1], width)
    return fuses and not wants_gradient(cross.x, cross.z)


def fused_cross(cross: DenseCross, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """The values (blocks, rows' width, columns' width), perhaps in the memory `out`.

    With `upper` only what lies on and above the diagonal counts.
    """
    if out is None:
        out = cross.x.new_empty(*cross.rows.index.shape, cross.columns.index.shape[1])
    kind_of(out.device).machine().evaluate(cross, upper, out)
    return out


def numbers_of(profile: Profile, dtype: torch.dtype, device: torch.device) -> Tensor:
    """1 over the lengthscale, the amplitude and the shape, (3,), without waiting for the device."""
    values = (profile.lengthscale, profile.amplitude, profile.shape)
    fixed = not any(isinstance(value, Tensor) for value in values)
    return (_numbers if fixed else _numbers.__wrapped__)(values, dtype, device)


@lru_cache(64)
def _numbers(values: tuple[float | Tensor, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    each = [
        value.detach().to(device, dtype)
        if isinstance(value, Tensor)
        else torch.full((), value, dtype=dtype, device=device)
        for value in values
    ]
    out = torch.stack(each)
    out[0].reciprocal_()
    return out
