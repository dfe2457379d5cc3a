"""The one building block of the compiled CPU code: a tile of a matrix, held in vector registers.

A tile takes C −= AᵀB and, if asked, goes on to solve with a small triangle. Cholesky factorizations,
triangular solves and Gram matrices all consist of such tiles (`hck.backend.cpu.dense`). The LAPACK that comes
with torch is slow on matrices of order 64, and torch copies every matrix before and after.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from hck.backend.cpu.jit import address_of

_INT = ir.IntType(64)


def _registers() -> tuple[int, int]:
    """Bytes in a vector register of this machine, and how many rows of two registers a tile can have."""
    features = llvm.get_host_cpu_features()
    if features.get("avx512f"):
        return 64, 8
    return (32, 4) if features.get("avx2") else (16, 4)


VECTOR_BYTES, _MOST_ROWS = _registers()
# A tile has as many rows as one of these, and two registers of columns.
HEIGHTS = (_MOST_ROWS, 4, 1) if _MOST_ROWS > 4 else (4, 1)


@intrinsic
def apart(typing: Any) -> Any:
    """Keep the function in which this stands out of its callers: many copies would take long to compile."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def tile(
    typing: Any, height: Any, solve: Any, c: Any, at_c: Any, ldc: Any,
    a: Any, at_a: Any, down_a: Any, right_a: Any, b: Any, at_b: Any, ldb: Any, depth: Any,
    t: Any, at_t: Any, down_t: Any, right_t: Any, copy: Any, at_copy: Any, ld_copy: Any,
) -> Any:  # fmt: skip
    """C −= AᵀB, then, if `solve`, C ← T⁻ᵀC and a copy of it elsewhere, on one tile. For compiled code only.

    The tile has HEIGHTS[height] rows. C starts at element `at_c` of the array c and has rows `ldc` apart;
    A (depth, rows) has steps `down_a` and `right_a`; B (depth, columns); T (rows, rows) is upper triangular.
    `solve` is 0, 1 or 2; `right_a` must be 1 unless `solve` is 2. All steps but `ldb` may be negative.
    """
    i = types.intp
    signature = types.void(i, i, c, i, i, a, i, i, i, b, i, i, i, t, i, i, i, copy, i, i)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        call_external(context, builder, f"hck_tile_{c.dtype.bitwidth}", types.void, signature, arguments)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def corner(typing: Any, c: Any, at_c: Any, ldc: Any, a: Any, at_a: Any, lda: Any, depth: Any) -> Any:
    """C ← U with UᵀU = C − AᵀA, on a tile of HEIGHTS[0] rows and columns; 0 if it is not positive definite.

    A (depth, rows) has rows `lda` apart. For compiled code only.
    """
    i = types.intp
    signature = i(c, i, i, a, i, i, i)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return call_external(context, builder, f"hck_corner_{c.dtype.bitwidth}", i, signature, arguments)

    return signature, generate


def call_external(
    context: Any, builder: Any, name: str, result: Any, signature: Any, arguments: Any
) -> Any:  # fmt: skip
    """Call a function that `provide` has made known, with an address for each array and its offset.

    The tiles are called, not inlined, and by name: compiling them anew for each of their many callers would
    take a minute.
    """
    given = plain(context, builder, signature.args, arguments)
    returns = ir.VoidType() if result is types.void else context.get_value_type(result)
    function = ir.FunctionType(returns, [value.type for value in given])
    return builder.call(cgutils.get_or_insert_function(builder.module, function, name), given)


def plain(context: Any, builder: Any, kinds: Any, arguments: Any) -> list[Any]:
    """Arguments with one address in place of each array and the offset after it."""
    given, kinds, values = [], list(kinds), list(arguments)
    while values:
        kind, value = kinds.pop(0), values.pop(0)
        if isinstance(kind, types.Array):
            kinds.pop(0)
            value = _address(context, builder, kind, value, values.pop(0))
        given.append(value)
    return given


def _address(context: Any, builder: Any, kind: Any, array: Any, offset: Any) -> Any:
    """The address of an element of an array."""
    start = builder.ptrtoint(context.make_array(kind)(context, builder, array).data, _INT)
    return builder.add(start, builder.mul(offset, _INT(kind.dtype.bitwidth // 8)))


def _tile_writer(kind: Any) -> Any:
    @intrinsic
    def write(
        typing: Any, height: Any, solve: Any, c: Any, ldc: Any, a: Any, down_a: Any, right_a: Any, b: Any,
        ldb: Any, depth: Any, t: Any, down_t: Any, right_t: Any, copy: Any, ld_copy: Any,
    ) -> Any:  # fmt: skip
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            height, solve, *rest = arguments
            done = builder.append_basic_block("done")
            switch = builder.switch(builder.add(builder.mul(height, _INT(3)), solve), done)
            for h in range(len(HEIGHTS)):
                for s in range(3):
                    block = builder.append_basic_block("case")
                    switch.add_case(_INT(3 * h + s), block)
                    builder.position_at_end(block)
                    lanes = VECTOR_BYTES * 8 // kind.bitwidth
                    Writer(context, builder, kind, HEIGHTS[h], 2, lanes).write(rest, s)
                    builder.branch(done)
            builder.position_at_end(done)
            return context.get_dummy_value()

        return types.void(*[types.intp] * 15), generate

    return write


def _corner_writer(kind: Any) -> Any:
    @intrinsic
    def write(typing: Any, c: Any, ldc: Any, a: Any, lda: Any, depth: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            good = Writer(context, builder, kind, HEIGHTS[0], 1, HEIGHTS[0]).write_corner(arguments)
            return builder.zext(good, _INT)

        return types.intp(*[types.intp] * 5), generate

    return write


_write_tile_64, _write_tile_32 = _tile_writer(types.float64), _tile_writer(types.float32)
_write_corner_64, _write_corner_32 = _corner_writer(types.float64), _corner_writer(types.float32)


def _tile_64(height, solve, c, ldc, a, down, right, b, ldb, depth, t, down_t, right_t, copy, ld):  # type: ignore[no-untyped-def]
    _write_tile_64(height, solve, c, ldc, a, down, right, b, ldb, depth, t, down_t, right_t, copy, ld)


def _tile_32(height, solve, c, ldc, a, down, right, b, ldb, depth, t, down_t, right_t, copy, ld):  # type: ignore[no-untyped-def]
    _write_tile_32(height, solve, c, ldc, a, down, right, b, ldb, depth, t, down_t, right_t, copy, ld)


def _corner_64(c, ldc, a, lda, depth):  # type: ignore[no-untyped-def]
    return _write_corner_64(c, ldc, a, lda, depth)


def _corner_32(c, ldc, a, lda, depth):  # type: ignore[no-untyped-def]
    return _write_corner_32(c, ldc, a, lda, depth)


@cache
def provide(itemsize: int) -> None:
    """Make the tiles for numbers of this size known. Needed before any compiled code that uses them runs."""
    i = types.intp
    make_known(f"hck_tile_{8 * itemsize}", types.void(*[i] * 15), _tile_64 if itemsize == 8 else _tile_32)
    make_known(f"hck_corner_{8 * itemsize}", i(*[i] * 5), _corner_64 if itemsize == 8 else _corner_32)


def make_known(name: str, signature: Any, function: Any) -> None:
    """Compile a function and make it known to compiled code under a name."""
    llvm.add_symbol(name, address_of(signature, function))


def _mover(lanes_of: Callable[[int], int], vectors: int) -> Any:
    @intrinsic
    def move(typing: Any, source: Any, at_source: Any, target: Any, at_target: Any) -> Any:
        """Copy a few numbers that lie side by side. For compiled code only."""
        signature = types.void(source, types.intp, target, types.intp)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            lanes = lanes_of(source.dtype.bitwidth // 8)
            writer = Writer(context, builder, source.dtype, 1, vectors, lanes)
            at_source = _address(context, builder, source, *arguments[:2])
            at_target = _address(context, builder, target, *arguments[2:])
            for v in range(vectors):
                offset = _INT(v * lanes * writer.size)
                writer.store(writer.load(builder.add(at_source, offset)), builder.add(at_target, offset))
            return context.get_dummy_value()

        return signature, generate

    return move


move_row = _mover(lambda size: VECTOR_BYTES // size, 2)  # a tile's row
move_column = _mover(lambda size: HEIGHTS[0], 1)  # as many numbers as a tile has rows


class Writer:
    """Writes the instructions of one tile."""

    def __init__(self, context: Any, builder: Any, kind: Any, rows: int, vectors: int, lanes: int) -> None:
        self.context, self.builder = context, builder
        self.rows, self.vectors, self.lanes = range(rows), range(vectors), lanes
        self.size = kind.bitwidth // 8
        self.real = context.get_data_type(kind)
        self.vector = ir.VectorType(self.real, lanes)
        signature = ir.FunctionType(self.vector, [self.vector] * 3)
        name = f"llvm.fma.v{lanes}f{kind.bitwidth}"
        self.fma = cgutils.get_or_insert_function(builder.module, signature, name)

    def write(self, arguments: Any, solve: int) -> None:
        c, ldc, a, down_a, right_a, b, ldb, depth, t, down_t, right_t, copy, ld_copy = arguments
        steps = (ldc, down_a, right_a, ldb, down_t, right_t, ld_copy)
        ldc, down_a, right_a, ldb, down_t, right_t, ld_copy = map(self.bytes, steps)
        right_a = right_a if solve == 2 else _INT(self.size)  # a constant makes a shorter loop
        places = [[self.vector_at(c, ldc, q, v) for v in self.vectors] for q in self.rows]
        values = [[self.load(place) for place in row] for row in places]
        values = self.over_depth(values, a, down_a, right_a, b, ldb, depth)
        if solve:
            self._solve(values, t, down_t, right_t)
        for q in self.rows:
            for v in self.vectors:
                self.store(values[q][v], places[q][v])
                if solve:
                    self.store(values[q][v], self.vector_at(copy, ld_copy, q, v))

    def write_corner(self, arguments: Any) -> Any:
        c, ldc, a, lda, depth = arguments
        ldc, lda = self.bytes(ldc), self.bytes(lda)
        places = [[self.vector_at(c, ldc, q, 0)] for q in self.rows]
        values = [[self.load(place) for place in row] for row in places]
        values = self.over_depth(values, a, lda, _INT(self.size), a, lda, depth)
        return self._factor([row[0] for row in values], places)

    def _factor(self, values: Any, places: Any) -> Any:
        """Cholesky factorization of a matrix of which each row is a register."""
        builder, good = self.builder, ir.Constant(ir.IntType(1), 1)
        signature = ir.FunctionType(self.real, [self.real])
        name = f"llvm.sqrt.f{8 * self.size}"
        sqrt = cgutils.get_or_insert_function(builder.module, signature, name)
        for p in self.rows:
            pivot = builder.extract_element(values[p], ir.IntType(32)(p))
            positive = builder.fcmp_ordered(">", pivot, self.real(0.0))
            finite = builder.fcmp_ordered("<", pivot, self.real(float("inf")))
            good = builder.and_(good, builder.and_(positive, finite))
            scale = builder.fdiv(self.real(1.0), builder.call(sqrt, [pivot]))
            values[p] = builder.fmul(values[p], self.everywhere(scale))
            for q in self.rows[p + 1 :]:
                minus = builder.fneg(builder.extract_element(values[p], ir.IntType(32)(q)))
                values[q] = builder.call(self.fma, [self.everywhere(minus), values[p], values[q]])
            self.store(values[p], places[p][0])
        return good

    def over_depth(
        self, start: Any, at_a: Any, down_a: Any, right_a: Any, at_b: Any, ldb: Any, depth: Any
    ) -> Any:
        """The loop over the depth: what `accumulate` makes of `start`."""
        builder, entry = self.builder, self.builder.block
        loop, end = builder.append_basic_block("tile"), builder.append_basic_block("tile_end")
        builder.cbranch(builder.icmp_signed(">", depth, _INT(0)), loop, end)
        builder.position_at_end(loop)
        k, here_a, here_b = (self.phi(_INT, first, entry) for first in (_INT(0), at_a, at_b))
        sums = [[self.phi(self.vector, value, entry) for value in row] for row in start]
        self.prefetch(builder.add(here_a, self.times(down_a, 16)))
        right = [self.load(self.vector_at(here_b, ldb, 0, v)) for v in self.vectors]
        after = []
        for q in self.rows:
            left = self.number(builder.add(here_a, self.times(right_a, q)))
            after.append(self.accumulate(left, right, sums[q]))
        following = builder.add(k, _INT(1))
        k.add_incoming(following, loop)
        here_a.add_incoming(builder.add(here_a, down_a), loop)
        here_b.add_incoming(builder.add(here_b, ldb), loop)
        for q in self.rows:
            for v in self.vectors:
                sums[q][v].add_incoming(after[q][v], loop)
        builder.cbranch(builder.icmp_signed("<", following, depth), loop, end)
        builder.position_at_end(end)
        results = [[self.phi(self.vector, value, entry) for value in row] for row in start]
        for q in self.rows:
            for v in self.vectors:
                results[q][v].add_incoming(after[q][v], loop)
        return results

    def accumulate(self, left: Any, right: list[Any], sums: list[Any]) -> list[Any]:
        """A row's sums after one more step of the depth: here, C − a b."""
        minus = self.everywhere(self.builder.fneg(left))
        return [self.builder.call(self.fma, [minus, right[v], sums[v]]) for v in self.vectors]

    def _solve(self, values: Any, at_t: Any, down_t: Any, right_t: Any) -> None:
        """Forward substitution, in place."""
        builder = self.builder

        def entry(p: int, q: int) -> Any:
            return self.number(
                builder.add(at_t, builder.add(builder.mul(down_t, _INT(p)), builder.mul(right_t, _INT(q))))
            )

        for p in self.rows:
            scale = self.everywhere(builder.fdiv(self.real(1.0), entry(p, p)))
            values[p] = [builder.fmul(scale, value) for value in values[p]]
            for q in self.rows[p + 1 :]:
                minus = self.everywhere(builder.fneg(entry(p, q)))
                values[q] = [
                    builder.call(self.fma, [minus, values[p][v], values[q][v]]) for v in self.vectors
                ]

    def bytes(self, elements: Any) -> Any:
        return self.builder.mul(elements, _INT(self.size))

    def times(self, step: Any, count: int) -> Any:
        if isinstance(step, ir.Constant):
            return _INT(step.constant * count)
        return self.builder.mul(step, _INT(count))

    def vector_at(self, start: Any, ld: Any, row: int, vector: int) -> Any:
        down = self.builder.add(start, self.builder.mul(ld, _INT(row)))
        return self.builder.add(down, _INT(self.size * self.lanes * vector))

    def phi(self, kind: Any, first: Any, entry: Any) -> Any:
        phi = self.builder.phi(kind)
        phi.add_incoming(first, entry)
        return phi

    def load(self, address: Any) -> Any:
        return self.builder.load(self.builder.inttoptr(address, self.vector.as_pointer()), align=self.size)

    def store(self, value: Any, address: Any) -> None:
        pointer = self.builder.inttoptr(address, self.vector.as_pointer())
        self.builder.store(value, pointer, align=self.size)

    def prefetch(self, address: Any) -> None:
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        signature = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        function = cgutils.get_or_insert_function(self.builder.module, signature, "llvm.prefetch.p0")
        self.builder.call(function, [self.builder.inttoptr(address, byte), flag(0), flag(3), flag(1)])

    def number(self, address: Any) -> Any:
        return self.builder.load(self.builder.inttoptr(address, self.real.as_pointer()))

    def everywhere(self, number: Any) -> Any:
        """A number in all lanes."""
        undefined = ir.Constant(self.vector, ir.Undefined)
        first = self.builder.insert_element(undefined, number, ir.IntType(32)(0))
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), None)
        return self.builder.shuffle_vector(first, undefined, lanes)
