"""The one building block of the compiled CPU code: a tile of a matrix, held in vector registers.

A tile takes C −= AᵀB and, if asked, goes on to solve with a small triangle. Cholesky factorizations,
triangular solves and Gram matrices all consist of such tiles (`hck.backend.cpu.dense`). The LAPACK that comes
with torch is slow on matrices of order 64, and torch copies every matrix before and after.

Functions with `typing` as their first argument are called by compiled code: they get the types of what they
are called with, and say which instructions to write.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeAlias

import llvmlite.binding as llvm
from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba import types
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.core.typing import Signature
from numba.extending import intrinsic
from numba.types import Type

from hck.backend.cpu.jit import address_of
from hck.backend.cpu.writer import INT, Values, Writer

Write: TypeAlias = Callable[[BaseContext, IRBuilder, Values], Value | None]


def _registers() -> tuple[int, int]:
    """Bytes in a vector register of this machine, and how many rows of two registers a tile can have."""
    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        return 64, 8
    return (32, 4) if features.get("avx2") else (16, 4)


VECTOR_BYTES, _MOST_ROWS = _registers()
# A tile has as many rows as one of these, and two registers of columns.
HEIGHTS = (_MOST_ROWS, 4, 1) if _MOST_ROWS > 4 else (4, 1)


def written(signature: Signature, write: Write) -> tuple[Signature, Callable[..., Value]]:
    """What an intrinsic returns, given a function that writes its instructions, and may return a value."""

    def generate(context: BaseContext, builder: IRBuilder, _: Signature, arguments: Values) -> Value:
        result = write(context, builder, arguments)
        return context.get_dummy_value() if result is None else result

    return signature, generate


@intrinsic
def tile(
    typing, height, solve, c, at_c, ldc, a, at_a, down_a, right_a, b, at_b, ldb, depth,
    t, at_t, down_t, right_t, copy, at_copy, ld_copy,
):  # fmt: skip
    """C −= AᵀB, then, if `solve`, C ← T⁻ᵀC and a copy of it elsewhere, on one tile.

    The tile has HEIGHTS[height] rows. C starts at element `at_c` of the array c and has rows `ldc` apart;
    A (depth, rows) has steps `down_a` and `right_a`; B (depth, columns); T (rows, rows) is upper triangular.
    `solve` is 0, 1 or 2; `right_a` must be 1 unless `solve` is 2. All steps but `ldb` may be negative.
    """
    i = types.intp
    signature = types.void(i, i, c, i, i, a, i, i, i, b, i, i, i, t, i, i, i, copy, i, i)
    return _external(f"hck_tile_{c.dtype.bitwidth}", signature)


@intrinsic
def corner(typing, c, at_c, ldc, a, at_a, lda, depth):
    """C ← U with UᵀU = C − AᵀA, on a tile of HEIGHTS[0] rows and columns; 0 if it is not positive definite.

    A (depth, rows) has rows `lda` apart.
    """
    i = types.intp
    return _external(f"hck_corner_{c.dtype.bitwidth}", i(c, i, i, a, i, i, i))


def _external(name: str, signature: Signature) -> tuple[Signature, Callable[..., Value]]:
    """Call a function that `provide` has made known, with an address for each array and its offset.

    The tiles are called, not inlined, and by name: compiling them anew for each of their many callers would
    take a minute.
    """
    result = signature.return_type

    def write(context: BaseContext, builder: IRBuilder, arguments: Values) -> Value | None:
        given = plain(context, builder, signature.args, arguments)
        returns = ir.VoidType() if result is types.void else context.get_value_type(result)
        function = ir.FunctionType(returns, [value.type for value in given])
        value = builder.call(cgutils.get_or_insert_function(builder.module, function, name), given)
        return None if result is types.void else value

    return written(signature, write)


def plain(context: BaseContext, builder: IRBuilder, each: Sequence[Type], arguments: Values) -> list[Value]:
    """Arguments of some types, with one address in place of each array and the offset after it."""
    given, left = [], iter(zip(each, arguments, strict=True))
    for of, value in left:
        is_array = isinstance(of, types.Array)
        given.append(_address(context, builder, of, value, next(left)[1]) if is_array else value)
    return given


def _address(context: BaseContext, builder: IRBuilder, of: Type, array: Value, offset: Value) -> Value:
    """The address of an element of an array."""
    start = builder.ptrtoint(context.make_array(of)(context, builder, array).data, INT)
    return builder.add(start, builder.mul(offset, INT(of.dtype.bitwidth // 8)))


def _tile_of(real: Type) -> Callable[..., None]:
    """A function that is one tile, with addresses in place of arrays and their offsets."""

    def write(context: BaseContext, builder: IRBuilder, arguments: Values) -> None:
        height, solve, *rest = arguments
        lanes, done = VECTOR_BYTES * 8 // real.bitwidth, builder.append_basic_block("done")
        switch = builder.switch(builder.add(builder.mul(height, INT(3)), solve), done)
        for h in range(len(HEIGHTS)):
            for s in range(3):
                block = builder.append_basic_block("case")
                switch.add_case(INT(3 * h + s), block)
                builder.position_at_end(block)
                Writer(context, builder, real, (HEIGHTS[h], 2, lanes)).write(rest, s)
                builder.branch(done)
        builder.position_at_end(done)

    @intrinsic
    def body(typing, height, solve, c, ldc, a, down, right, b, ldb, depth, t, down_t, right_t, copy, ld):
        return written(types.void(*[types.intp] * 15), write)

    def tile(height, solve, c, ldc, a, down, right, b, ldb, depth, t, down_t, right_t, copy, ld):
        body(height, solve, c, ldc, a, down, right, b, ldb, depth, t, down_t, right_t, copy, ld)

    return tile


def _corner_of(real: Type) -> Callable[..., int]:
    """A function that is one corner."""

    def write(context: BaseContext, builder: IRBuilder, arguments: Values) -> Value:
        good = Writer(context, builder, real, (HEIGHTS[0], 1, HEIGHTS[0])).write_corner(arguments)
        return builder.zext(good, INT)

    @intrinsic
    def body(typing, c, ldc, a, lda, depth):
        return written(types.intp(*[types.intp] * 5), write)

    def corner(c, ldc, a, lda, depth):
        return body(c, ldc, a, lda, depth)

    return corner


@cache
def provide(itemsize: int) -> None:
    """Make the tiles for numbers of this size known. Needed before any compiled code that uses them runs."""
    i, real = types.intp, types.float64 if itemsize == 8 else types.float32
    for function, signature in ((_tile_of(real), types.void(*[i] * 15)), (_corner_of(real), i(*[i] * 5))):
        function.__qualname__ = f"{function.__name__}_{real.bitwidth}"
        llvm.add_symbol(f"hck_{function.__qualname__}", address_of(signature, function))


def _mover(lanes_of: Callable[[int], int], vectors: int) -> Callable[..., None]:
    @intrinsic
    def move(typing, source, at_source, target, at_target):
        """Copy a few numbers that lie side by side."""
        lanes = lanes_of(source.dtype.bitwidth // 8)

        def write(context: BaseContext, builder: IRBuilder, arguments: Values) -> None:
            writer = Writer(context, builder, source.dtype, (1, vectors, lanes))
            at_source = _address(context, builder, source, *arguments[:2])
            at_target = _address(context, builder, target, *arguments[2:])
            for v in range(vectors):
                offset = INT(v * lanes * writer.size)
                writer.store(writer.load(builder.add(at_source, offset)), builder.add(at_target, offset))

        return written(types.void(source, types.intp, target, types.intp), write)

    return move


move_row = _mover(lambda size: VECTOR_BYTES // size, 2)  # a tile's row
move_column = _mover(lambda size: HEIGHTS[0], 1)  # as many numbers as a tile has rows
