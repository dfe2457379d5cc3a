"""Kernel values between blocks of dense points, without storing anything but the result.

A kernel's function of the distance is written once, in plain Python (`Formula`); torch, the CPU's vector
registers and Triton each put their own exp, log and sqrt into it. Here kernels are isotropic: points have
been placed (`hck.kernels.placement`), and one lengthscale is left.
"""

import dis
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from types import FunctionType
from typing import Any

import torch
from torch import Tensor

from hck.backend.blocks import Blocks
from hck.backend.gradients import wants_gradient
from hck.backend.kinds import kind_of
from hck.backend.parallel import chunks

_PIECE = 2**16  # numbers to which torch applies a formula at once
_KNOWN = ("exp", "log", "sqrt")
_LOOKUPS = ("LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD", "LOAD_NAME", "IMPORT_NAME")


@dataclass(frozen=True)
class Formula:
    """A kernel's function f of the distance, from which the code of every machine is made.

    Attributes
    ----------
    function : callable
        f(s) with f(0) = 1, or f(s, shape) with one more number; s is ‖x − x'‖², in units of the lengthscale.
        It is written with numbers, + − * / and the functions `exp`, `log` and `sqrt` of s alone, for which
        each machine has its own.
    manhattan : bool
        Whether s is ‖x − x'‖₁ instead.
    smooth : bool
        Whether f has a derivative in s at 0, so that a small error of s is as small an error of f.
    """

    function: Callable[..., Any]
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

    def __call__(self, s: Any, shape: Any) -> Any:
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

    def with_functions(self, **functions: Any) -> FunctionType:
        """The same function, with other meanings of exp, log and sqrt."""
        known = {"__name__": self.function.__module__, **functions}
        made = FunctionType(self.function.__code__, known, self.name)
        made.__qualname__ = f"{self.name}_{self.fingerprint}"
        return made


@dataclass(frozen=True)
class Profile:
    """An isotropic kernel: amplitude · f(s) with s = ‖x − x'‖² / lengthscale², or ‖x − x'‖₁ / lengthscale.

    Attributes
    ----------
    formula : Formula
    lengthscale, amplitude, shape : float, or Tensor of shape ()
    """

    formula: Formula
    lengthscale: float | Tensor = 1.0
    amplitude: float | Tensor = 1.0
    shape: float | Tensor = 1.0


def apply(profile: Profile, s: Tensor, rounding: Tensor | None = None) -> Tensor:
    """amplitude · f(s), by torch, for distances in units of the lengthscale, which may be overwritten.

    Parameters
    ----------
    s : Tensor of shape (*batch, n, m)
    rounding : Tensor that expands to (*batch, n, 1), optional
        Up to which s is taken as 0.
    """
    formula, amplitude, shape = profile.formula, profile.amplitude, profile.shape
    n, m = s.shape[-2:]
    plain = isinstance(amplitude, float) and amplitude == 1.0
    if n * m < _PIECE or not kind_of(s.device).is_host or wants_gradient(s, amplitude, shape):
        values: Tensor = formula(s if rounding is None else without_rounding(s, rounding), shape)
        return values if plain else values * amplitude
    s = s.contiguous()
    members = s.view(-1, n, m)
    limits = None if rounding is None else rounding.expand(*s.shape[:-2], 1, 1).flatten().tolist()
    for k, member in enumerate(members):
        for rows in chunks(0, n, max(1, _PIECE // m)):  # what stays in the cache
            part = member[rows]
            if limits is not None:
                torch.threshold_(part, limits[k], 0)
            part.copy_(formula(part, shape) if plain else formula(part, shape) * amplitude)
    return s


def without_rounding(s: Tensor, rounding: Tensor) -> Tensor:
    """Squared distances with 0 for those that may be rounding; in place, unless a gradient is recorded."""
    close = s <= rounding
    return s.masked_fill(close, 0) if wants_gradient(s) else s.masked_fill_(close, 0)


def fusable(x: Tensor, rows: Blocks, z: Tensor, columns: Blocks) -> bool:
    """Whether compiled code should evaluate profiles between these blocks."""
    width = max(rows.index.shape[1], columns.index.shape[1])
    return kind_of(x.device).machine().fuses(x.shape[1], width) and not wants_gradient(x, z)


def fused_cross(
    profile: Profile,
    left: tuple[Tensor, Blocks],
    right: tuple[Tensor, Blocks],
    upper: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Values between blocks of rows of x and of z, 0 where either side is padding.

    Parameters
    ----------
    left, right : (Tensor of shape (points, d), Blocks)
        x and z, and positions in them.
    upper : bool
        Whether only what lies on and above the diagonal counts.
    out : Tensor of shape (blocks, rows' width, columns' width), optional
        Memory for the result.
    """
    (x, rows), (_, columns) = left, right
    if out is None:
        out = x.new_empty(*rows.index.shape, columns.index.shape[1])
    kind_of(x.device).machine().evaluate(profile, left, right, upper, out)
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
