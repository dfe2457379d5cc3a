"""The steps of the sweeps on the CPU, each of them one compiled function.

All that a node or a leaf needs stays in the cache while it is worked on, and the interpreter, of which there
is only one, is not asked in between. Arrays are flat; n is the leaves' size, r the rank, k the number of
right-hand sides. Kernel values are computed on the way, where a `hck.backend.cpu.kernels.Cross` is `known`.
"""

from collections import namedtuple

import numpy as np

from hck.backend.cpu import kernels
from hck.backend.cpu.dense import factor, inverse, unwhiten, whiten
from hck.backend.cpu.jit import compiled, exposed, shared
from hck.backend.cpu.matrix import (
    Matrix,
    clear,
    copy,
    copy_below,
    member,
    negate,
    part,
    transpose,
    turned,
    upright,
)
from hck.backend.cpu.products import scratch, subtract, subtract_gram

# What leaves are made of, and what becomes of them. own (leaves, n, n): K(X, X) if given, then L.
# far (leaves, r, n): K(Z, X) if given; empty if `own` is D and `y` is V. landmark (nodes, r, r): C, of which
# each leaf takes which[i]; empty as well. noise (leaves, n). b (leaves, n, k): then a. y (leaves, n, r), half
# and jitter (leaves,): results.
LeafArrays = namedtuple("LeafArrays", "own far landmark which noise b y half jitter")

# What inner nodes are made of, and what becomes of them. xi (nodes, r, r): −Ξ, then A and M packed.
# w (nodes, r, r): K(Z_p, Z_i) if given, or W if `own` is empty. own (nodes, r, r): C. above (parents, r, r):
# C of the parents, of which each node takes which[i]. nu (nodes, r, k): −τ, then ν. h (nodes, r, r),
# q (nodes, r, k), diagonal (nodes, r), half (nodes,) and jitter (nodes, 2): results.
NodeArrays = namedtuple("NodeArrays", "xi w own above which nu h q diagonal half jitter")

# −Ξ (nodes, r, r) and −τ (nodes, r, k) of parents; member i adds to those of where[i].
InboxArrays = namedtuple("InboxArrays", "information mean where")

Sizes = namedtuple("Sizes", "n r k")

# Of one inner node: A and M packed, M's diagonal (r, 1), W and H; ν, q and t (r, k); and where Θ (r, r) and
# t are subtracted.
NodeMatrices = namedtuple("NodeMatrices", "packed diagonal w h")
NodeSides = namedtuple("NodeSides", "nu q t")
Sent = namedtuple("Sent", "information mean")


@exposed
def leaf_up(cross, leaves, parents, sizes, factoring):
    """L, Y, a and half the log-determinant of leaves; −Θ and −t are added to their parents.

    `cross` is K(Z, X), from which K(X, X) follows; spare (n, n).
    """
    own, far, landmark, which, noise, b, y, half, jitter = leaves
    information, mean, parent = parents
    known, kernel, (n, r, k) = cross.known, cross.kernel, sizes
    work, room = scratch(own), kernels.scratch(own, n, r, cross.d)
    near = kernels.side_at(own, cross.d)
    away = near + kernels.side_size(own, n, cross.d)
    far = np.empty(r * n, own.dtype) if known else far
    for i in range(len(which)):
        one, own_y, own_b = member(own, i, n, n), member(y, i, n, r), member(b, i, n, k)
        across = member(far, 0 if known else i, r, n)
        if known:
            kernels.set_centre(kernels.right_rows(cross, i), kernel, room)
            x = kernels.gather(kernels.right_rows(cross, i), kernel, room, near)
            kernels.evaluate_sides(x, x, kernel, True, one)
            z = kernels.gather(kernels.left_rows(cross, i), kernel, room, away)
            kernels.evaluate_sides(z, x, kernel, False, across)
        if len(far):
            whiten(member(landmark, which[i], r, r), across, work)
            subtract_gram(one, across, work)
            transpose(across, own_y)
        for q in range(n):
            own[one.at + q * (n + 1)] += noise[i * n + q]
        jitter[i] = factor(one, factoring, work)
        whiten(one, own_y, work)
        subtract_gram(member(information, parent[i], r, r), own_y, work)
        whiten(one, own_b, work)
        subtract(member(mean, parent[i], r, k), upright(own_y), own_b, False, work)
        half[i] = half_log_determinant(one)


@exposed
def node_up(cross, nodes, parents, sizes, factoring):
    """A and M packed, H, ν, q and half the log-determinant of inner nodes; −Θ and −t are added to parents.

    `cross` is K(Z_p, Z_i); spare (4, r, r).
    """
    xi, w, own, above, which, nu, h, q, diagonal, half, jitter = nodes
    information, mean, parent = parents
    known, r, k = cross.known, sizes.r, sizes.k
    work, t, spare = scratch(xi), member(np.empty(r * k, xi.dtype), 0, r, k), factoring.spare
    room = kernels.scratch(xi, r, r, cross.d)
    w = spare[3 * r * r :] if known else w
    for i in range(len(which)):
        own_h, across = member(h, i, r, r), member(w, 0 if known else i, r, r)
        if known:
            kernels.evaluate_member(cross, i, False, across, room)
        if len(own):
            whiten(member(above, which[i], r, r), across, work)
            transpose(across, own_h)
            whiten(member(own, i, r, r), own_h, work)
            copy(own_h, across)
        else:
            copy(across, own_h)
        sent = Sent(member(information, parent[i], r, r), member(mean, parent[i], r, k))
        sides = NodeSides(member(nu, i, r, k), member(q, i, r, k), t)
        matrices = NodeMatrices(member(xi, i, r, r), member(diagonal, i, r, 1), across, own_h)
        jitter[2 * i], jitter[2 * i + 1], half[i] = raise_node(matrices, sides, sent, factoring, work)


@shared
def raise_node(node, sides, sent, factoring, work):
    """One node: of −Ξ, −τ and W what `node_up` says; the two jitters, and half the log-determinant.

    H is W at first. Spare (3, r, r).
    """
    (a, diagonal, w, h), (nu, q, t) = node, sides
    r, spare = a.rows, factoring.spare
    root, m = member(spare, 1, r, r), member(spare, 2, r, r)
    negate(a)
    _add_to_diagonal(a, 1)
    first = factor(a, factoring, work)
    whiten(a, h, work)
    clear(root)
    subtract_gram(root, h, work)
    negate(root)
    _add_to_diagonal(root, 1)
    subtract_gram(root, w, work)
    second = factor(root, factoring, work)
    inverse(root, m, spare, work)
    negate(nu)
    whiten(a, nu, work)
    _product(q, h, nu, work)
    _product(t, m, q, work)
    half = half_log_determinant(a) + half_log_determinant(root)
    copy_below(m, a)
    for p in range(r):
        diagonal.data[diagonal.at + p] = m.data[m.at + p * (r + 1)]
    _add_to_diagonal(m, -1)
    subtract_from(sent.information, m)
    subtract_from(sent.mean, t)
    return first, second, half


@exposed
def node_down(factors, nu, q, z, sizes):
    """ẑ = A⁻ᵀ (ν + H M (ẑ_p − q)) of inner nodes; z (nodes, r, k) is ẑ_p, then ẑ."""
    (packed, diagonal, h), r, k = factors, sizes.r, sizes.k
    work, room = scratch(packed), np.empty(r * r + r * k, packed.dtype)
    gain = Matrix(room, r * r, k, r, k)
    for i in range(len(z) // (r * k)):
        a, own = member(packed, i, r, r), member(z, i, r, k)
        subtract_from(own, member(q, i, r, k))
        surprise(a, member(diagonal, i, r, 1), own, gain, room, work)
        copy(member(nu, i, r, k), own)
        subtract(own, turned(member(h, i, r, r)), gain, False, work)
        unwhiten(a, own, work)


@shared
def surprise(packed, diagonal, x, out, room, work):
    """out ← −M X, of A and M packed and M's diagonal (r, 1); room (r, r)."""
    r = packed.rows
    m = member(room, 0, r, r)
    copy_below(packed, m)
    for p in range(r):
        room[p * (r + 1)] = diagonal.data[diagonal.at + p]
    _mirror(m)
    clear(out)
    subtract(out, upright(m), x, False, work)


@exposed
def leaf_down(lower, y, a, z, sizes):
    """w = L⁻ᵀ (a − Y ẑ_p) and d = ẑ_p − Vᵀ w of leaves.

    a (leaves, n, k): then w. z (leaves, r, k): ẑ_p, then d.
    """
    n, r, k = sizes.n, sizes.r, sizes.k
    work = scratch(lower)
    for i in range(len(z) // (r * k)):
        leaf = member(lower, i, n, n), member(y, i, n, r)
        lower_leaf(*leaf, member(a, i, n, k), member(z, i, r, k), work)


@shared
def lower_leaf(lower, y, a, z, work):
    """The same for one leaf."""
    subtract(a, turned(y), z, False, work)
    subtract(z, upright(y), a, False, work)  # Vᵀ w = Yᵀ (a − Y ẑ_p)
    unwhiten(lower, a, work)


@shared
def _product(out, a, b, work):
    """out ← AᵀB."""
    clear(out)
    subtract(out, upright(a), b, False, work)
    negate(out)


@shared
def _mirror(m):
    """Copy the lower triangle into the upper one."""
    n = m.rows
    for p in range(0, n, 8):
        rows = min(8, n - p)
        transpose(part(m, p, 0, rows, p), part(m, 0, p, p, rows))
        for i in range(p, p + rows):
            for j in range(p, i):
                m.data[m.at + j * n + i] = m.data[m.at + i * n + j]


@shared
def subtract_from(m, other):
    """Subtract a matrix from another; the rows of both are side by side."""
    target, source = np.uintp(m.at), np.uintp(other.at)
    for p in range(np.uintp(m.rows * m.columns)):
        m.data[target + p] -= other.data[source + p]


@compiled
def _add_to_diagonal(m, value):
    for p in range(m.rows):
        m.data[m.at + p * (m.ld + 1)] += value


@shared
def half_log_determinant(u):
    total = 0.0
    for p in range(u.rows):
        total += np.log(u.data[u.at + p * (u.ld + 1)])
    return total
