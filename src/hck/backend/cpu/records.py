"""The steps of the sweeps on records (`hck.backend.records`), wherever in memory these are.

A record and all that it is made of are known by their addresses, so that nothing is copied into stacks and
back, and a whole way from a leaf to the root is one call. Whoever calls keeps what the addresses refer to.
"""

from collections import namedtuple
from collections.abc import Sequence

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic
from torch import Tensor

from hck.backend import linalg
from hck.backend.cpu.dense import Factoring, factor, unwhiten, whiten
from hck.backend.cpu.jit import compiled, exposed, shared
from hck.backend.cpu.matrix import Matrix, clear, copy, flat, member, part, transpose, turned, upright
from hck.backend.cpu.products import scratch, subtract, subtract_gram
from hck.backend.cpu.steps import (
    NodeMatrices,
    NodeSides,
    Sent,
    half_log_determinant,
    lower_leaf,
    raise_node,
    subtract_from,
    surprise,
)
from hck.backend.records import Layout, Record
from hck.backend.steps import LEAF, NODE, ROOT, Growth

# Of all records of a call: numbers before what is sent, the rank, and right-hand sides.
Form = namedtuple("Form", "head r k")

LeafParts = namedtuple("LeafParts", "factor y a sent")
NodeParts = namedtuple("NodeParts", "packed diagonal nu q sent")

# What leaves of n[i] points get to have whole[i]: see `hck.backend.steps.Growth`.
Arrivals = namedtuple("Arrivals", "values noise b wide most n whole")


class CompiledRecords:
    """What `hck.backend.steps` offers for records."""

    def records_up(
        self, made: Sequence[Record], transfers: Sequence[Tensor], children: Sequence[Sequence[Record]]
    ) -> None:
        layout = made[0].layout
        first = np.cumsum([0, *map(len, children)])
        jitter = np.empty((len(made), 2))
        every = _places([child for each in children for child in each], layout)
        nodes = _places(made, layout), _addresses(transfers, layout, layout.rank)
        _up(*nodes, first, every, _form(layout), _factoring(layout), jitter)
        linalg.warn_of_jitter(jitter[:, 0], layout.dtype, NODE)
        linalg.warn_of_jitter(jitter[:, 1], layout.dtype, ROOT)

    def records_append(
        self, old: Sequence[Record], made: Sequence[Record], landmarks: Sequence[Tensor], growth: Growth
    ) -> list[bool]:
        layout, (_, wide, most) = made[0].layout, growth.values.shape
        shapes = (wide, most), (most,), (most, layout.k)
        for each, shape in zip((growth.values, growth.noise, growth.b), shapes, strict=True):
            _check(each.dtype == layout.dtype and each.shape == (len(old), *shape), "what leaves get")
        arrays = map(flat, (growth.values, growth.noise, growth.b))
        given = Arrivals(*arrays, wide, most, _sizes(old), _sizes(made))
        left, jitter = np.empty(len(old)), np.empty(len(old))
        records = _places(old, layout), _places(made, layout), _addresses(landmarks, layout, layout.rank)
        _append(*records, given, _form(layout), _factoring(layout), left, jitter)
        good = left > growth.least
        linalg.warn_of_jitter(jitter[good], layout.dtype, LEAF)
        return good.tolist()

    def records_down(
        self, nodes: Sequence[Record], transfers: Sequence[Tensor], above: Sequence[Tensor | None], z: Tensor
    ) -> None:
        layout = nodes[0].layout
        _check(z.dtype == layout.dtype and z.shape == (len(nodes), layout.rank, layout.k), "z")
        matrices = _addresses(transfers, layout, layout.rank), _addresses(above, layout, layout.k)
        _down(_places(nodes, layout), *matrices, flat(z), _form(layout))

    def records_leaf_down(
        self, leaves: Sequence[Record], landmarks: Sequence[Tensor], above: Sequence[Tensor]
    ) -> list[Tensor]:
        layout, sizes = leaves[0].layout, _sizes(leaves)
        rows = (sizes + layout.rank).tolist()
        out = leaves[0].memory.new_empty(sum(rows), layout.k)
        matrices = _addresses(landmarks, layout, layout.rank), _addresses(above, layout, layout.k)
        _leaf_down(_places(leaves, layout), *matrices, sizes, flat(out), _form(layout))
        return list(out.split(rows))


def _places(records: Sequence[Record], like: Layout) -> np.ndarray:
    """Addresses of records that begin alike."""
    form = like.dtype, like.rank, like.k
    for each in records:
        own, memory = each.layout, each.memory
        _check((own.dtype, own.rank, own.k) == form, "records")
        _check(memory.dtype == own.dtype and memory.shape == (own.size,), "the memory of a record")
    return np.array([record.memory.data_ptr() for record in records], np.int64)


def _addresses(tensors: Sequence[Tensor | None], like: Layout, columns: int) -> np.ndarray:
    """Of matrices of r rows, 0 for None."""
    for each in tensors:
        if each is not None:
            same = each.dtype == like.dtype and each.numel() == like.rank * columns and each.is_contiguous()
            _check(same, "matrices")
    return np.array([0 if each is None else each.data_ptr() for each in tensors], np.int64)


def _check(alike: bool, what: str) -> None:
    """Before compiled code takes addresses at their word."""
    if not alike:
        raise ValueError(f"{what} must be numbers of one type, and of the sizes that the layout has")


def _sizes(leaves: Sequence[Record]) -> np.ndarray:
    return np.array([leaf.layout.parts["a"][1][0] for leaf in leaves], np.int64)


def _form(layout: Layout) -> Form:
    return Form(layout.head, layout.rank, layout.k)


def _factoring(layout: Layout) -> Factoring:
    number = np.float64 if layout.dtype.itemsize == 8 else np.float32
    return Factoring(*linalg.jitters(layout.dtype), np.empty(4 * layout.rank**2, number))


# Compiled -------------------------------------------------------------------------------------------------


@intrinsic
def _pointer(context, address):
    """What an address refers to."""

    def build(context, builder, signature, given):
        return builder.inttoptr(given[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), build


@compiled
def _numbers(address, count, like):
    """Numbers at an address, like those of another array."""
    return carray(_pointer(address), (count,), like.dtype)


@compiled
def _tally(address, k):
    """half and gram of a record."""
    return carray(_pointer(address), (1 + k * k,), np.float64)


@compiled
def _sent(record, form):
    """What a record sends up."""
    head, r, k = form
    return Sent(Matrix(record, head, r, r, r), Matrix(record, head + r * r, k, r, k))


@compiled
def _sent_at(address, form, like):
    head, r, k = form
    return _sent(_numbers(address, head + r * (r + k), like), form)


@compiled
def _leaf_at(address, n, form, like):
    """L, Y, a and what is sent, of a leaf of n points."""
    head, r, k = form
    at = head + r * (r + k)
    record = _numbers(address, at + n * (n + r + k), like)
    y, a = Matrix(record, at + n * n, r, n, r), Matrix(record, at + n * (n + r), k, n, k)
    return LeafParts(Matrix(record, at, n, n, n), y, a, _sent(record, form))


@compiled
def _node_at(address, form, like):
    """A and M packed, M's diagonal, ν, q and what is sent, of an inner node."""
    head, r, k = form
    at = head + r * (r + k)
    record, sides = _numbers(address, at + r * (r + 1 + 2 * k), like), at + r * (r + 1)
    nu, q = Matrix(record, sides, k, r, k), Matrix(record, sides + r * k, k, r, k)
    packed, diagonal = Matrix(record, at, r, r, r), Matrix(record, at + r * r, 1, r, 1)
    return NodeParts(packed, diagonal, nu, q, _sent(record, form))


@compiled
def _matrix_at(address, rows, columns, like):
    return Matrix(_numbers(address, rows * columns, like), 0, columns, rows, columns)


@shared
def _gather(address, form, packed, nu, tally):
    """Add what a child has sent."""
    sent, own = _sent_at(address, form, packed.data), _tally(address, form.k)
    _add_upper(packed, sent.information)
    _add_to(nu, sent.mean)
    for p in range(len(tally)):
        tally[p] += own[p]


@compiled
def _add_to(m, other):
    """Add a matrix to another; the rows of both are side by side."""
    target, source = np.uintp(m.at), np.uintp(other.at)
    for p in range(np.uintp(m.rows * m.columns)):
        m.data[target + p] += other.data[source + p]


@compiled
def _add_upper(m, other):
    """The same for what lies on and above the diagonals of square matrices."""
    for i in range(m.rows):
        target, source = np.uintp(m.at + i * m.ld), np.uintp(other.at + i * other.ld)
        for j in range(np.uintp(i), np.uintp(m.columns)):
            m.data[target + j] += other.data[source + j]


@compiled
def _add_product(a, b, sign, out):
    """Add AᵀB, or with sign −1 subtract it, to numbers that follow the first of `out`, in float64."""
    k = a.columns
    for p in range(a.rows):
        for i in range(k):
            left = sign * np.float64(a.data[a.at + p * a.ld + i])
            for j in range(k):
                out[1 + i * k + j] += left * b.data[b.at + p * b.ld + j]


@exposed
def _up(made, transfers, first, children, form, factoring, jitter):
    """Inner nodes, of which each may be a child of a later one; first (nodes + 1,): where children begin."""
    like, (_, r, k) = factoring.spare, form
    work, t, h = scratch(like), member(np.empty(r * k, like.dtype), 0, r, k), member(like, 3, r, r)
    for i in range(len(made)):
        node, tally = _node_at(made[i], form, like), _tally(made[i], k)
        clear(node.packed)
        clear(node.nu)
        tally[:] = 0
        for c in range(first[i], first[i + 1]):
            _gather(children[c], form, node.packed, node.nu, tally)
        w = _matrix_at(transfers[i], r, r, like)
        copy(w, h)
        clear(node.sent.information)
        clear(node.sent.mean)
        matrices, sides = NodeMatrices(node.packed, node.diagonal, w, h), NodeSides(node.nu, node.q, t)
        jitter[i, 0], jitter[i, 1], half = raise_node(matrices, sides, node.sent, factoring, work)
        tally[0] += half
        _add_product(node.nu, node.nu, -1.0, tally)
        _add_product(node.q, t, 1.0, tally)  # qᵀ M q


@exposed
def _append(old, made, landmarks, given, form, factoring, left, jitter):
    """Leaves with more points; `left` is the least share of a new point's variance that the others leave.

    See `hck.online.workshop`.
    """
    values, (_, r, k), most = given.values, form, given.most
    work = scratch(values)
    for i in range(len(old)):
        n, m = given.n[i], given.whole[i] - given.n[i]
        before, after = _leaf_at(old[i], n, form, values), _leaf_at(made[i], n + m, form, values)
        u = Matrix(values, i * given.wide * most, most, n, m)
        corner = Matrix(values, u.at + n * most, most, m, m)
        phi = Matrix(values, corner.at + m * most, most, r, m)
        whiten(_matrix_at(landmarks[i], r, r, values), phi, work)
        whiten(before.factor, u, work)
        subtract(u, turned(before.y), phi, False, work)
        subtract_gram(corner, phi, work)
        variance = np.empty(m)
        for p in range(m):
            variance[p] = corner.data[corner.at + p * (most + 1)] + given.noise[i * most + p]
            corner.data[corner.at + p * (most + 1)] = variance[p]
        subtract_gram(corner, u, work)
        left[i] = np.inf
        for p in range(m):
            left[i] = min(left[i], corner.data[corner.at + p * (most + 1)] / variance[p])
        jitter[i] = 0
        if left[i] > 0:
            spare = Factoring(factoring.first, factoring.last, np.empty(m * m, values.dtype))
            jitter[i] = factor(corner, spare, work)
            _extend(before, after, u, corner, phi, Matrix(given.b, i * most * k, k, m, k), work)
            tally, known = _tally(made[i], k), _tally(old[i], k)
            tally[:] = known
            tally[0] += half_log_determinant(corner)
            sides = part(after.a, n, 0, m, k)
            _add_product(sides, sides, 1.0, tally)


@shared
def _extend(before, after, u, corner, phi, b, work):
    """A leaf with more rows: U ← [[U, u], [0, corner]], and Y, a, −Θ and −t."""
    n, m, r, k = u.rows, u.columns, before.y.columns, b.columns
    copy(before.factor, part(after.factor, 0, 0, n, n))
    copy(u, part(after.factor, 0, n, n, m))
    clear(part(after.factor, n, 0, m, n))
    copy(corner, part(after.factor, n, n, m, m))
    copy(before.y, part(after.y, 0, 0, n, r))
    copy(before.a, part(after.a, 0, 0, n, k))
    copy(before.sent.information, after.sent.information)
    copy(before.sent.mean, after.sent.mean)
    rows, sides = part(after.y, n, 0, m, r), part(after.a, n, 0, m, k)
    transpose(phi, rows)
    subtract(rows, upright(u), before.y, False, work)
    whiten(corner, rows, work)
    copy(b, sides)
    subtract(sides, upright(u), before.a, False, work)
    whiten(corner, sides, work)
    subtract_gram(after.sent.information, rows, work)
    subtract(after.sent.mean, upright(rows), sides, False, work)


@exposed
def _down(nodes, transfers, above, z, form):
    """ẑ = A⁻ᵀ (ν + A⁻¹ W M (ẑ_p − q)) of inner nodes, each after its parent; z (nodes, r, k).

    above (nodes,) has the addresses of ẑ_p; 0 for a root.
    """
    _, r, k = form
    work, room = scratch(z), np.empty(r * r + 2 * r * k, z.dtype)
    rest, gain = Matrix(room, r * r, k, r, k), Matrix(room, r * (r + k), k, r, k)
    for i in range(len(nodes)):
        node, own = _node_at(nodes[i], form, z), member(z, i, r, k)
        copy(node.nu, own)
        if above[i]:
            copy(_matrix_at(above[i], r, k, z), rest)
            subtract_from(rest, node.q)
            surprise(node.packed, node.diagonal, rest, gain, room, work)
            clear(rest)
            subtract(rest, turned(_matrix_at(transfers[i], r, r, z)), gain, False, work)
            whiten(node.packed, rest, work)
            _add_to(own, rest)
        unwhiten(node.packed, own, work)


@exposed
def _leaf_down(leaves, landmarks, above, sizes, out, form):
    """w = L⁻ᵀ (a − Y ẑ_p) (n, k) and after it C⁻ᵀ (ẑ_p − Vᵀ w) (r, k) of leaves, one after another."""
    (_, r, k), work, first = form, scratch(out), 0
    for i in range(len(leaves)):
        n = sizes[i]
        leaf, w = _leaf_at(leaves[i], n, form, out), Matrix(out, first, k, n, k)
        g = Matrix(out, first + n * k, k, r, k)
        copy(leaf.a, w)
        copy(_matrix_at(above[i], r, k, out), g)
        lower_leaf(leaf.factor, leaf.y, w, g, work)
        unwhiten(_matrix_at(landmarks[i], r, r, out), g, work)
        first += (n + r) * k
