"""The steps of the sweeps on the CPU, each of them one compiled function.

All that a node or a leaf needs stays in the cache while it is worked on, and the interpreter, of which there
is only one, is not asked in between. Arrays are flat; n is the leaves' size, r the rank, k the number of
right-hand sides, d the number of features. Kernel values are computed on the way (`hck.backend.cpu.kernels`),
unless `kernel` is `hck.backend.cpu.values.GIVEN`.
"""

from typing import Any, NamedTuple

import numpy as np

from hck.backend.cpu import kernels
from hck.backend.cpu.dense import (
    copy,
    factor,
    inverse,
    negate,
    scratch,
    subtract,
    subtract_gram,
    transpose,
    unwhiten,
    whiten,
)
from hck.backend.cpu.jit import compiled, exposed
from hck.backend.cpu.tile import apart


class Wanted(NamedTuple):
    """Kernel values between rows of x and of z, which have d features; nothing if the kernel is `GIVEN`.

    rows (members, ·) and columns (members, ·): positions in x and z.
    """

    x: Any
    rows: Any
    z: Any
    columns: Any
    kernel: Any
    d: int


class Leaves(NamedTuple):
    """What leaves are made of, and what becomes of them.

    own (leaves, n, n): K(X, X) if given, then L. far (leaves, r, n): K(Z, X) if given; empty if `own` is D
    and `y` is V. landmark (nodes, r, r): C, of which each leaf takes which[i]; empty as well. noise
    (leaves, n). b (leaves, n, k): then a. y (leaves, n, r), half and jitter (leaves,): results.
    """

    own: Any
    far: Any
    landmark: Any
    which: Any
    noise: Any
    b: Any
    y: Any
    half: Any
    jitter: Any


class Nodes(NamedTuple):
    """What inner nodes are made of, and what becomes of them.

    xi (nodes, r, r): −Ξ, then A and M packed. w (nodes, r, r): K(Z_p, Z_i) if given, or W if `own` is empty.
    own (nodes, r, r): C. above (parents, r, r): C of the parents, of which each node takes which[i].
    nu (nodes, r, k): −τ, then ν. h (nodes, r, r), q (nodes, r, k), diagonal (nodes, r), half (nodes,) and
    jitter (nodes, 2): results.
    """

    xi: Any
    w: Any
    own: Any
    above: Any
    which: Any
    nu: Any
    h: Any
    q: Any
    diagonal: Any
    half: Any
    jitter: Any


class Parents(NamedTuple):
    """information (nodes, r, r) and mean (nodes, r, k): −Ξ and −τ; member i adds to those of where[i].

    Both are empty if nobody asks.
    """

    information: Any
    mean: Any
    where: Any


class Filtered(NamedTuple):
    """What the way up leaves for the way down, of inner nodes."""

    packed: Any
    diagonal: Any
    h: Any
    nu: Any
    q: Any


class Sizes(NamedTuple):
    n: int
    r: int
    k: int


class Factoring(NamedTuple):
    """The relative jitter to begin with and the largest; memory with any content."""

    first: float
    last: float
    spare: Any


@exposed
def leaf_up(wanted, leaves, parents, sizes, factoring):
    """L, Y, a and half the log-determinant of leaves; −Θ and −t are added to their parents.

    What is wanted is K(Z, X), so that its x are landmarks; spare (n, n).
    """
    z, columns, x, rows, kernel, d = wanted
    own, far, landmark, which, noise, b, y, half, jitter = leaves
    information, mean, parent = parents
    n, r, k = sizes
    first, last, spare = factoring
    work = scratch(own)
    room = kernels.scratch(own, n, r, d)
    near = kernels.side_at(own, d)
    away = near + kernels.side_size(own, n, d)
    known = kernel.tile != 0
    far = np.empty(r * n, own.dtype) if known else far
    for i in range(len(which)):
        o, v, s, g = i * n * n, i * n * r, i * n * k, parent[i] * r * r
        f = 0 if known else v
        if known:
            kernels.set_centre(x, rows, i * n, d, kernel, room)
            widest = kernels.gather(x, rows, i * n, n, d, kernel, room, near)
            kernels.evaluate_sides(
                room, near, n, near, n, d, kernel, widest, True, rows, i * n, rows, i * n, own, o
            )  # fmt: skip
            widest = max(widest, kernels.gather(z, columns, i * r, r, d, kernel, room, away))
            kernels.evaluate_sides(
                room, away, r, near, n, d, kernel, widest, False, columns, i * r, rows, i * n, far, 0
            )  # fmt: skip
        if len(far):
            whiten(landmark, which[i] * r * r, r, r, far, f, n, n, work)
            subtract_gram(own, o, n, far, f, n, r, n, work)
            transpose(far, f, n, y, v, r, r, n)
        for q in range(n):
            own[o + q * (n + 1)] += noise[i * n + q]
        jitter[i] = factor(own, o, n, n, first, last, spare, work)
        whiten(own, o, n, n, y, v, r, r, work)
        subtract_gram(information, g, r, y, v, r, n, r, work)
        whiten(own, o, n, n, b, s, k, k, work)
        subtract(mean, parent[i] * r * k, k, y, v, r, 1, b, s, k, r, k, n, False, work)
        half[i] = _half_log_determinant(own, o, n)


@exposed
def node_up(wanted, nodes, parents, sizes, factoring):
    """A and M packed, H, ν, q and half the log-determinant of inner nodes; −Θ and −t are added to parents.

    What is wanted is K(Z_p, Z_i); spare (4, r, r).
    """
    z, rows, _, columns, kernel, d = wanted
    xi, w, own, above, which, nu, h, q, diagonal, half, jitter = nodes
    information, mean, parent = parents
    r, k = sizes.r, sizes.k
    first, last, spare = factoring
    work, t, size = scratch(xi), np.empty(r * k, xi.dtype), r * r
    root, m = spare[size : 2 * size], spare[2 * size : 3 * size]
    room = kernels.scratch(xi, r, r, d)
    known = kernel.tile != 0
    w = spare[3 * size :] if known else w
    for i in range(len(which)):
        g, s = i * r * r, i * r * k
        f = 0 if known else g
        negate(xi, g, r * r)
        _add_to_diagonal(xi, g, r, 1)
        jitter[2 * i] = factor(xi, g, r, r, first, last, spare, work)
        if known:
            kernels.evaluate_block(z, rows, i * r, r, z, columns, i * r, r, d, kernel, False, w, 0, room)
        if len(own):
            whiten(above, which[i] * r * r, r, r, w, f, r, r, work)
            transpose(w, f, r, h, g, r, r, r)
            whiten(own, g, r, r, h, g, r, r, work)
            copy(h, g, r, w, f, r, r, r)
        else:
            copy(w, f, r, h, g, r, r, r)
        whiten(xi, g, r, r, h, g, r, r, work)
        root[:] = 0
        subtract_gram(root, 0, r, h, g, r, r, r, work)
        negate(root, 0, r * r)
        _add_to_diagonal(root, 0, r, 1)
        subtract_gram(root, 0, r, w, f, r, r, r, work)
        jitter[2 * i + 1] = factor(root, 0, r, r, first, last, spare, work)
        inverse(root, 0, r, m, 0, r, r, spare, work)
        half[i] = _half_log_determinant(xi, g, r) + _half_log_determinant(root, 0, r)
        negate(nu, s, r * k)
        whiten(xi, g, r, r, nu, s, k, k, work)
        _product(q, s, h, g, r, nu, s, r, r, k, work)
        _product(t, 0, m, 0, r, q, s, r, r, k, work)
        for p in range(r):
            copy(m, p * r, r, xi, g + p * r, r, 1, p)
            diagonal[i * r + p] = m[p * (r + 1)]
        if len(information):
            _add_to_diagonal(m, 0, r, -1)
            _subtract_from(information, parent[i] * r * r, m, r * r)
            _subtract_from(mean, parent[i] * r * k, t, r * k)


@exposed
def node_down(filtered, z, r, k):
    """ẑ = A⁻ᵀ (ν + H M (ẑ_p − q)) of inner nodes; z (nodes, r, k) is ẑ_p, then ẑ."""
    packed, diagonal, h, nu, q = filtered
    work, surprise, m = scratch(packed), np.empty(r * k, packed.dtype), np.empty(r * r, packed.dtype)
    for i in range(len(z) // (r * k)):
        g, s = i * r * r, i * r * k
        for p in range(r):
            copy(packed, g + p * r, r, m, p * r, r, 1, p)
            m[p * (r + 1)] = diagonal[i * r + p]
        _mirror(m, r)
        _subtract_from(z, s, q[s:], r * k)
        surprise[:] = 0
        subtract(surprise, 0, k, m, 0, r, 1, z, s, k, r, k, r, False, work)
        z[s : s + r * k] = nu[s : s + r * k]
        subtract(z, s, k, h, g, 1, r, surprise, 0, k, r, k, r, False, work)
        unwhiten(packed, g, r, r, z, s, k, k, work)


@exposed
def leaf_down(lower, y, a, z, sizes):
    """w = L⁻ᵀ (a − Y ẑ_p) and d = ẑ_p − Vᵀ w of leaves.

    a (leaves, n, k): then w. z (leaves, r, k): ẑ_p, then d.
    """
    n, r, k = sizes.n, sizes.r, sizes.k
    work = scratch(lower)
    for i in range(len(z) // (r * k)):
        o, v, s, d = i * n * n, i * n * r, i * n * k, i * r * k
        subtract(a, s, k, y, v, 1, r, z, d, k, n, k, r, False, work)
        subtract(z, d, k, y, v, r, 1, a, s, k, r, k, n, False, work)  # Vᵀ w = Yᵀ (a − Y ẑ_p)
        unwhiten(lower, o, n, n, a, s, k, k, work)


@compiled
def _product(out, at, a, at_a, lda, b, at_b, depth, m, k, work):
    """out ← AᵀB with A (depth, m) and B (depth, k)."""
    apart()
    out[at : at + m * k] = 0
    subtract(out, at, k, a, at_a, lda, 1, b, at_b, k, m, k, depth, False, work)
    negate(out, at, m * k)


@compiled
def _mirror(matrix, n):
    """Copy the lower triangle into the upper one."""
    apart()
    for p in range(0, n, 8):
        rows = min(8, n - p)
        transpose(matrix, p * n, n, matrix, p, n, rows, p)
        for i in range(p, p + rows):
            for j in range(p, i):
                matrix[j * n + i] = matrix[i * n + j]


@compiled
def _subtract_from(v, at, other, count):
    apart()
    start = np.uintp(at)
    for p in range(np.uintp(count)):
        v[start + p] -= other[p]


@compiled
def _add_to_diagonal(matrix, at, n, value):
    for p in range(n):
        matrix[at + p * (n + 1)] += value


@compiled
def _half_log_determinant(u, at, n):
    apart()
    total = 0.0
    for p in range(n):
        total += np.log(u[at + p * (n + 1)])
    return total
