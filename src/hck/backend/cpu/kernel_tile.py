"""A tile of kernel values, computed in vector registers: distances, and the kernel's function of them."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from hck.backend.cpu.tile import HEIGHTS, VECTOR_BYTES, Writer, call_external, make_known
from hck.backend.kernels import NAMES

HEIGHT = HEIGHTS[0]
# Kernels of which there is another version, that takes squared distances from norms and products. It has the
# number of the kernel plus the number of NAMES.
EXPANDED = ("gaussian", "inverse_multiquadric", "matern32", "matern52")


@intrinsic
def kernel_tile(
    typing: Any, kind: Any, amplitude: Any, c: Any, at_c: Any, ldc: Any, a: Any, at_a: Any, lda: Any,
    b: Any, at_b: Any, ldb: Any, depth: Any,
) -> Any:  # fmt: skip
    """Kernel values between the columns of A (depth, HEIGHT) and of B (depth, two registers) into C.

    The columns are points, divided by the lengthscales; the row after the last has their squared norms.
    `kind` is a number in NAMES, or that of an expanded one. For compiled code only.
    """
    i = types.intp
    signature = types.void(i, c.dtype, c, i, i, a, i, i, b, i, i, i)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        name = f"hck_kernel_tile_{c.dtype.bitwidth}"
        call_external(context, builder, name, types.void, signature, arguments)
        return context.get_dummy_value()

    return signature, generate


def _writer(real: Any) -> Any:
    @intrinsic
    def write(
        typing: Any, kind: Any, amplitude: Any, c: Any, ldc: Any, a: Any, lda: Any, b: Any, ldb: Any,
        depth: Any,
    ) -> Any:  # fmt: skip
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind, *rest = arguments
            done = builder.append_basic_block("done")
            switch = builder.switch(kind, done)
            cases = {(name, False): number for number, name in enumerate(NAMES)}
            cases |= {(name, True): NAMES.index(name) + len(NAMES) for name in EXPANDED}
            for (name, expanded), number in cases.items():
                block = builder.append_basic_block(name)
                switch.add_case(ir.IntType(64)(number), block)
                builder.position_at_end(block)
                _KernelWriter(context, builder, real, name, expanded).write_kernel(rest)
                builder.branch(done)
            builder.position_at_end(done)
            return context.get_dummy_value()

        return _signature(real), generate

    return write


def _signature(real: Any) -> Any:
    return types.void(types.intp, real, *[types.intp] * 7)


_write_64, _write_32 = _writer(types.float64), _writer(types.float32)


def _tile_64(kind, amplitude, c, ldc, a, lda, b, ldb, depth):  # type: ignore[no-untyped-def]
    _write_64(kind, amplitude, c, ldc, a, lda, b, ldb, depth)


def _tile_32(kind, amplitude, c, ldc, a, lda, b, ldb, depth):  # type: ignore[no-untyped-def]
    _write_32(kind, amplitude, c, ldc, a, lda, b, ldb, depth)


@cache
def provide(itemsize: int) -> None:
    """Make the tile for numbers of this size known. Needed before any compiled code that uses it runs."""
    real, function = (types.float64, _tile_64) if itemsize == 8 else (types.float32, _tile_32)
    make_known(f"hck_kernel_tile_{8 * itemsize}", _signature(real), function)


class _KernelWriter(Writer):
    """Writes the instructions of a tile of kernel values."""

    def __init__(self, context: Any, builder: Any, kind: Any, name: str, expanded: bool) -> None:
        super().__init__(context, builder, kind, HEIGHT, 2, VECTOR_BYTES * 8 // kind.bitwidth)
        self.name, self.expanded = name, expanded

    def write_kernel(self, arguments: Any) -> None:
        amplitude, c, ldc, a, lda, b, ldb, depth = arguments
        ldc, lda, ldb = map(self.bytes, (ldc, lda, ldb))
        zero = [[self.constant(0.0) for _ in self.vectors] for _ in self.rows]
        sums = self.over_depth(zero, a, lda, ir.IntType(64)(self.size), b, ldb, depth)
        if self.expanded:
            self.complete(
                sums, *(self.builder.add(x, self.builder.mul(ld, depth)) for x, ld in ((a, lda), (b, ldb)))
            )
        scale = self.everywhere(amplitude)
        for q in self.rows:
            for v in self.vectors:
                value = self.builder.fmul(scale, self.profile(sums[q][v]))
                self.store(value, self.vector_at(c, ldc, q, v))

    def accumulate(self, left: Any, right: list[Any], sums: list[Any]) -> list[Any]:
        """Σ (a − b)², or Σ |a − b|, or, to be completed, Σ a b."""
        builder, here = self.builder, self.everywhere(left)
        if self.expanded:
            return [builder.call(self.fma, [here, right[v], sums[v]]) for v in self.vectors]
        gaps = [builder.fsub(here, right[v]) for v in self.vectors]
        if self.name == "laplace":
            return [builder.fadd(sums[v], self.call("fabs", gaps[v])) for v in self.vectors]
        return [builder.call(self.fma, [gaps[v], gaps[v], sums[v]]) for v in self.vectors]

    def complete(self, sums: list[list[Any]], norms_a: Any, norms_b: Any) -> None:
        """‖a‖² + ‖b‖² − 2⟨a, b⟩ in place of ⟨a, b⟩; not below 0."""
        builder, zero = self.builder, self.constant(0.0)
        right = [self.load(self.vector_at(norms_b, norms_b, 0, v)) for v in self.vectors]
        for q in self.rows:
            left = self.everywhere(self.number(builder.add(norms_a, ir.IntType(64)(q * self.size))))
            for v in self.vectors:
                both = builder.fadd(left, right[v])
                s = self.multiply_add(sums[q][v], self.constant(-2.0), both)
                sums[q][v] = builder.select(builder.fcmp_ordered(">", s, zero), s, zero)

    def profile(self, s: Any) -> Any:
        """The kernel's function of the distance, or of its square."""
        builder = self.builder
        if self.name == "gaussian":
            return self.exp(builder.fmul(s, self.constant(-0.5)))
        if self.name == "laplace":
            return self.exp(builder.fneg(s))
        if self.name == "inverse_multiquadric":
            root = self.call("sqrt", builder.fadd(s, self.constant(1.0)))
            return builder.fdiv(self.constant(1.0), root)
        twice_nu = int(self.name[-2])
        s = self.call("sqrt", builder.fmul(s, self.constant(float(twice_nu))))
        decay = self.exp(builder.fneg(s))
        if twice_nu == 1:
            return decay
        factor = builder.fadd(s, self.constant(1.0))
        if twice_nu == 5:
            factor = self.multiply_add(builder.fmul(s, s), self.constant(1 / 3), factor)
        return builder.fmul(factor, decay)

    def exp(self, x: Any) -> Any:
        """exp of numbers that are not positive, to the last digit or two.

        x = k log 2 + f with a whole k; a polynomial gives exp(f), and 2^k is put together from bits: adding
        1.5 · 2^52 (2^23 in single precision) leaves k in the last bits of the sum.
        """
        builder, double = self.builder, self.size == 8
        bits, mantissa, bias, least = (64, 52, 1023, -708.0) if double else (32, 23, 127, -87.0)
        degree, magic = (13, 1.5 * 2**52) if double else (7, 1.5 * 2**23)
        high, low = (
            (6.93147180369123816e-01, 1.90821492927058770e-10) if double else (0.693359375, -2.12194440e-4)
        )
        small = builder.fcmp_ordered("<", x, self.constant(least))
        x = builder.select(small, self.constant(least), x)
        shifted = self.multiply_add(x, self.constant(1 / math.log(2)), self.constant(magic))
        k = builder.fsub(shifted, self.constant(magic))
        f = self.multiply_add(k, self.constant(-high), x)
        f = self.multiply_add(k, self.constant(-low), f)
        value = self.constant(1 / math.factorial(degree))
        for power in range(degree - 1, -1, -1):
            value = self.multiply_add(value, f, self.constant(1 / math.factorial(power)))
        whole = ir.VectorType(ir.IntType(bits), self.lanes)
        shift, one = (self._integers(whole, number) for number in (mantissa, bias << mantissa))
        exponent = builder.add(builder.shl(builder.bitcast(shifted, whole), shift), one)
        return builder.fmul(value, builder.bitcast(exponent, self.vector))

    def constant(self, value: float) -> Any:
        value = float(np.float32(value)) if self.size == 4 else value
        return ir.Constant(self.vector, [self.real(value)] * self.lanes)

    def _integers(self, whole: Any, value: int) -> Any:
        return ir.Constant(whole, [whole.element(value)] * self.lanes)

    def multiply_add(self, a: Any, b: Any, c: Any) -> Any:
        return self.builder.call(self.fma, [a, b, c])

    def call(self, name: str, value: Any) -> Any:
        signature = ir.FunctionType(self.vector, [self.vector])
        full = f"llvm.{name}.v{self.lanes}f{8 * self.size}"
        function: Callable[..., Any] = cgutils.get_or_insert_function(self.builder.module, signature, full)
        return self.builder.call(function, [value])
