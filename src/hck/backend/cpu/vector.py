"""Arithmetic on vector registers, so that a formula in plain Python writes instructions."""

import math
from typing import TypeAlias

import numpy as np
from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils

Operand: TypeAlias = "Vector | float"

_FUSE = ("contract",)  # a product and a sum may become one instruction

# log((1 + f) / (1 − f)) = 2f + f (c₁ f² + c₂ f⁴ + …), by minimax polynomials (FreeBSD's msun)
_LOG_64 = (
    6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01,
    1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01,
)  # fmt: skip
_LOG_32 = (0.66666662693, 0.40000972152, 0.28498786688, 0.24279078841)


class Vector:
    """A register of numbers that knows + − * / with others and with plain numbers."""

    def __init__(self, writer: "VectorWriter", value: Value) -> None:
        self.writer, self.value = writer, value

    def __add__(self, other: Operand) -> "Vector":
        return self._with("fadd", self, other)

    def __sub__(self, other: Operand) -> "Vector":
        return self._with("fsub", self, other)

    def __mul__(self, other: Operand) -> "Vector":
        return self._with("fmul", self, other)

    def __truediv__(self, other: Operand) -> "Vector":
        if isinstance(other, int | float):
            return self * (1 / other)  # a division takes ten times as long
        return self._with("fdiv", self, other)

    def __rsub__(self, other: Operand) -> "Vector":
        return self._with("fsub", other, self)

    def __rtruediv__(self, other: Operand) -> "Vector":
        return self._with("fdiv", other, self)

    def __neg__(self) -> "Vector":
        return Vector(self.writer, self.writer.builder.fneg(self.value))

    __radd__, __rmul__ = __add__, __mul__

    def _with(self, operation: str, left: Operand, right: Operand) -> "Vector":
        values = [
            side.value if isinstance(side, Vector) else self.writer.constant(float(side))
            for side in (left, right)
        ]
        return Vector(self.writer, getattr(self.writer.builder, operation)(*values, flags=_FUSE))


class VectorWriter:
    """exp, log and sqrt of a register, for writers of tiles (`hck.backend.cpu.tile.Writer`)."""

    builder: IRBuilder
    fma: ir.Function
    real: ir.Type
    vector: ir.VectorType
    lanes: int
    size: int

    def sqrt(self, x: Vector) -> Vector:
        return Vector(self, self.call("sqrt", x.value))

    def exp(self, x: Vector) -> Vector:
        """exp to the last digit or two; 0 becomes the least number there is, and from 709 (88) on infinity.

        x = k log 2 + f with a whole k; a polynomial gives exp(f), and 2^k is put together from bits: adding
        1.5 · 2^52 (2^23 in single precision) leaves k in the last bits of the sum.
        """
        builder, double = self.builder, self.size == 8
        least, most = (-708.0, 710.0) if double else (-87.0, 89.0)
        degree, magic = (13, 1.5 * 2**52) if double else (7, 1.5 * 2**23)
        high, low = (
            (6.93147180369123816e-01, 1.90821492927058770e-10) if double else (0.693359375, -2.12194440e-4)
        )
        value = self._between(x.value, least, most)
        shifted = self.multiply_add(value, self.constant(1 / math.log(2)), self.constant(magic))
        k = builder.fsub(shifted, self.constant(magic))
        f = self.multiply_add(k, self.constant(-high), value)
        f = self.multiply_add(k, self.constant(-low), f)
        value = self.constant(1 / math.factorial(degree))
        for power in range(degree - 1, -1, -1):
            value = self.multiply_add(value, f, self.constant(1 / math.factorial(power)))
        whole, mantissa, bias = self._bits()
        exponent = builder.shl(builder.bitcast(shifted, whole), self._integers(whole, mantissa))
        power = builder.add(exponent, self._integers(whole, bias << mantissa))
        return Vector(self, builder.fmul(value, builder.bitcast(power, self.vector)))

    def log(self, x: Vector) -> Vector:
        """log of positive numbers, to the last digit.

        x = 2^k m with m between √½ and √2; with f = m − 1 and s = f / (2 + f), log m = log (1 + s) / (1 − s),
        which is put together so that f, the largest part, is added last.
        """
        builder, double = self.builder, self.size == 8
        whole, mantissa, _ = self._bits()
        low_root = int(np.array(math.sqrt(0.5), f"f{self.size}").view(f"i{self.size}"))
        bits = builder.bitcast(x.value, whole)
        shift = self._integers(whole, mantissa)
        k = builder.ashr(builder.sub(bits, self._integers(whole, low_root)), shift)
        m = builder.bitcast(builder.sub(bits, builder.shl(k, shift)), self.vector)
        f = Vector(self, builder.fsub(m, self.constant(1.0)))
        power = Vector(self, builder.sitofp(k, self.vector))
        s = f / (f + 2.0)
        z, half = s * s, f * f * 0.5
        series = Vector(self, self.constant(0.0))
        for coefficient in reversed(_LOG_64 if double else _LOG_32):
            series = series * z + coefficient
        high, low = (
            (6.93147180369123816490e-01, 1.90821492927058770002e-10)
            if double
            else (6.9313812256e-01, 9.0580006145e-06)
        )
        rest = s * (half + z * series) + power * low
        return power * high - ((half - rest) - f)

    def constant(self, value: float) -> ir.Constant:
        value = float(np.float32(value)) if self.size == 4 else value
        return ir.Constant(self.vector, [self.real(value)] * self.lanes)

    def multiply_add(self, a: Value, b: Value, c: Value) -> Value:
        return self.builder.call(self.fma, [a, b, c])

    def call(self, name: str, value: Value) -> Value:
        signature = ir.FunctionType(self.vector, [self.vector])
        full = f"llvm.{name}.v{self.lanes}f{8 * self.size}"
        function = cgutils.get_or_insert_function(self.builder.module, signature, full)
        return self.builder.call(function, [value])

    def _between(self, value: Value, least: float, most: float) -> Value:
        for limit, sign in ((least, "<"), (most, ">")):
            beyond = self.builder.fcmp_ordered(sign, value, self.constant(limit))
            value = self.builder.select(beyond, self.constant(limit), value)
        return value

    def _bits(self) -> tuple[ir.VectorType, int, int]:
        """Registers of whole numbers, and how numbers are made of bits: their mantissa's, and the bias."""
        bits, mantissa, bias = (64, 52, 1023) if self.size == 8 else (32, 23, 127)
        return ir.VectorType(ir.IntType(bits), self.lanes), mantissa, bias

    def _integers(self, whole: ir.VectorType, value: int) -> ir.Constant:
        return ir.Constant(whole, [whole.element(value)] * self.lanes)
