"""Derivatives of formulas, by the rules of differentiation, of whatever a machine computes with.

A formula is given duals in place of numbers (`hck.backend.kernels.Numbers`), and returns one.
"""

from collections.abc import Callable
from typing import Any

Numbers = Any  # as in `hck.backend.kernels`; None is 0, as a derivative
Operand = Any  # the same, or a dual


class Dual:
    """A number and its derivatives by some variables; it knows + − * / with others and with plain numbers."""

    def __init__(self, value: Numbers, *slopes: Numbers) -> None:
        self.value, self.slopes = value, slopes

    def __add__(self, other: Operand) -> "Dual":
        if not isinstance(other, Dual):
            return Dual(self.value + other, *self.slopes)
        return Dual(self.value + other.value, *map(_sum, self.slopes, other.slopes))

    def __neg__(self) -> "Dual":
        return Dual(-self.value, *(_times(slope, -1.0) for slope in self.slopes))

    def __sub__(self, other: Operand) -> "Dual":
        return self + -other

    def __rsub__(self, other: Numbers) -> "Dual":
        return -self + other

    def __mul__(self, other: Operand) -> "Dual":
        if not isinstance(other, Dual):
            return self.along(self.value * other, other)
        pairs = zip(self.slopes, other.slopes, strict=True)
        slopes = (_sum(_times(a, other.value), _times(b, self.value)) for a, b in pairs)
        return Dual(self.value * other.value, *slopes)

    def __truediv__(self, other: Operand) -> "Dual":
        return self * (1 / other)

    def __rtruediv__(self, other: Numbers) -> "Dual":
        value = 1 / self.value
        return self.along(other * value, -other * (value * value))

    __radd__, __rmul__ = __add__, __mul__

    def along(self, value: Numbers, slope: Numbers) -> "Dual":
        """A function of this number, given its value and its derivative here."""
        return Dual(value, *(_times(each, slope) for each in self.slopes))


def _sum(a: Numbers, b: Numbers) -> Numbers:
    return b if a is None else a if b is None else a + b


def _times(slope: Numbers, factor: Numbers) -> Numbers:
    return None if slope is None else slope * factor


def of_duals(**functions: Callable[[Numbers], Numbers]) -> dict[str, Callable[[Dual], Dual]]:
    """exp, log and sqrt of duals, made of those of a machine's numbers."""
    exp, log, sqrt = (functions[name] for name in ("exp", "log", "sqrt"))

    def exp_(x: Dual) -> Dual:
        value = exp(x.value)
        return x.along(value, value)

    def log_(x: Dual) -> Dual:
        return x.along(log(x.value), 1 / x.value)

    def sqrt_(x: Dual) -> Dual:
        value = sqrt(x.value)
        return x.along(value, 0.5 / value)

    return {"exp": exp_, "log": log_, "sqrt": sqrt_}
