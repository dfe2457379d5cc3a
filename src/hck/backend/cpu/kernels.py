"""Kernel values between blocks of points on the CPU: gather, distance and formula in one compiled function.

The points of a block are gathered into a *side*: each feature in a row of its own, divided by the lengthscale
and relative to a centre, and a last row of squared norms. Squared distances are sums of squared differences,
or, which takes half the time where there are many features, ‖a‖² + ‖b‖² − 2⟨a, b⟩. That loses digits of small
distances between points far from the centre; it is done only for kernels that are smooth where the distance
is 0, and only where what is lost does not matter.
"""

from collections import namedtuple
from functools import cache

import numpy as np
from torch import Tensor

from hck.backend.cpu import kernel_tile
from hck.backend.cpu.jit import compiled, exposed, shared
from hck.backend.cpu.kernel_tile import HEIGHT, evaluate_tile
from hck.backend.cpu.matrix import Matrix, aligned, copy, flat, member, panel_of
from hck.backend.kernels import DenseCross, Profile

_MANY = 12  # features, from which on the expansion pays
_LOST = {8: 1e-12, 4: 1e-6}  # of a squared distance in lengthscales that may be lost
_FARTHEST_8, _FARTHEST_4 = (_LOST[size] / np.finfo(f"f{size}").eps for size in (8, 4))

# A profile: where the code is that computes a tile of values from differences of points, and from norms and
# products (0 if there is none); 1 over the lengthscale.
CompiledProfile = namedtuple("CompiledProfile", "tile expanded inverse amplitude shape")

# Values between rows of x (points, d) and of z: rows (members, n) and columns (members, m) are positions, -1
# for padding. `known` is whether there are any to compute.
Cross = namedtuple("Cross", "known kernel x rows n z columns m d")

# Some rows of x: those at the positions index[at : at + count].
Rows = namedtuple("Rows", "x d index at count")

# These, gathered at a place in `work`, and their largest squared norm.
Side = namedtuple("Side", "rows work at largest")


def fill(cross: DenseCross, upper: bool, out: Tensor) -> None:
    """See `hck.backend.kernels.fused_cross`."""
    _evaluate(flat_cross(cross, out), flat(out), upper)


def flat_cross(cross: DenseCross | None, like: Tensor) -> Cross:
    """What is wanted, for compiled code; None: nothing is."""
    if cross is None:
        side = flat(like.new_empty(0)), np.empty(0, np.int64), 0
        return Cross(False, CompiledProfile(0, 0, 1.0, 1.0, 1.0), *side, *side, 0)
    sides = ((cross.x, cross.rows.index), (cross.z, cross.columns.index))
    left, right = ((flat(x), flat(index), index.shape[1]) for x, index in sides)
    d = cross.x.shape[1]
    return Cross(True, _compiled(cross.profile, like.itemsize, d), *left, *right, d)


def _compiled(profile: Profile, itemsize: int, d: int) -> CompiledProfile:
    numbers = (1 / float(profile.lengthscale), float(profile.amplitude), float(profile.shape))
    formula = profile.formula
    pays = d >= _MANY and formula.smooth and not formula.manhattan
    expanded = _tile(formula, itemsize, True) if pays else 0
    return CompiledProfile(_tile(formula, itemsize, False), expanded, *numbers)


_tile = cache(kernel_tile.provide)


@compiled
def left_rows(cross, i):
    """The rows of a member."""
    return Rows(cross.x, cross.d, cross.rows, i * cross.n, cross.n)


@compiled
def right_rows(cross, i):
    """The columns of a member."""
    return Rows(cross.z, cross.d, cross.columns, i * cross.m, cross.m)


@compiled
def _round_up(n, step):
    return (n + step - 1) // step * step


@compiled
def side_stride(n, like):
    """How far the rows of a side of n points are apart.

    An odd number of cache lines: with a power of two, all rows would compete for a few places in the cache.
    """
    line = 64 // like.itemsize
    return _round_up(n, 2 * panel_of(like)) // line * line + line


@compiled
def side_at(like, d):
    """Where in the memory of `scratch` the first side may be: after the centre and a tile."""
    panel = panel_of(like)
    return _round_up(d, panel) + HEIGHT * panel


@compiled
def side_size(like, n, d):
    """Numbers that a side of n points takes."""
    return side_stride(n, like) * (d + 1)


@compiled
def scratch(like, n, m, d):
    """Memory for two sides, of n and of m points."""
    return aligned(side_at(like, d) + side_size(like, n, d) + side_size(like, m, d), like)


@compiled
def set_centre(rows, kernel, work):
    """Take the first of some rows as the centre of the sides that are gathered next."""
    x, d, index, first, _ = rows
    row, inverse = max(0, index[first]), x.dtype.type(kernel.inverse)
    for k in range(d):
        work[k] = x[row * d + k] * inverse


@shared
def gather(rows, kernel, work, at):
    """Make a side of some rows. Padding, -1, becomes any point."""
    x, d, index, first, count = rows
    inverse = x.dtype.type(kernel.inverse)
    padded, step = _round_up(count, panel_of(work)), np.uintp(side_stride(count, work))
    for i in range(padded):
        row = index[first + i] if i < count else -1
        source, target = np.uintp(row * d if row > 0 else 0), np.uintp(at + i)
        for k in range(np.uintp(d)):
            work[target + k * step] = x[source + k] * inverse - work[k]
    start = np.uintp(at)
    norms = start + np.uintp(d) * step
    for i in range(np.uintp(padded)):
        work[norms + i] = 0
    for k in range(np.uintp(d)):
        for i in range(np.uintp(padded)):
            value = work[start + k * step + i]
            work[norms + i] += value * value
    largest = x.dtype.type(0)
    for i in range(count):
        if index[first + i] >= 0:
            largest = max(largest, work[norms + np.uintp(i)])
    return Side(rows, work, at, largest)


@compiled
def _clear(values, start, stop):
    for i in range(np.uintp(start), np.uintp(stop)):
        values[i] = 0


@shared
def evaluate_sides(left, right, kernel, upper, out):
    """Kernel values between two sides, 0 for padding, into the matrix `out`.

    With `upper`, what lies below the diagonal is left as it is.
    """
    work, values, at = left.work, out.data, out.at
    n, m, d = out.rows, out.columns, left.rows.d
    panel = panel_of(work)
    high, wide = side_stride(n, work), side_stride(m, work)
    edge = _round_up(d, panel)
    farthest = _FARTHEST_8 if work.itemsize == 8 else _FARTHEST_4
    expand = kernel.expanded != 0 and max(left.largest, right.largest) <= farthest
    tile = kernel.expanded if expand else kernel.tile
    amplitude, shape = kernel.amplitude, kernel.shape
    for i in range(0, n, HEIGHT):
        count, a = min(HEIGHT, n - i), left.at + i
        for j in range(i // panel * panel if upper else 0, m, panel):
            width, here, b = min(panel, m - j), at + i * m + j, right.at + j
            if count == HEIGHT and width == panel:
                evaluate_tile(tile, amplitude, shape, values, here, m, work, a, high, work, b, wide, d)
            else:
                evaluate_tile(tile, amplitude, shape, work, edge, panel, work, a, high, work, b, wide, d)
                copy(Matrix(work, edge, panel, count, width), Matrix(values, here, m, count, width))
    index, first = left.rows.index, left.rows.at
    for i in range(n):
        if index[first + i] < 0:
            _clear(values, at + i * m, at + (i + 1) * m)
    index, first, last = right.rows.index, right.rows.at, m
    while last > 0 and index[first + last - 1] < 0:  # padding is at the end
        last -= 1
    if last < m:
        for i in range(n):
            _clear(values, at + i * m + last, at + (i + 1) * m)


@shared
def evaluate_member(cross, i, upper, out, work):
    """Kernel values between the rows and the columns of a member; `out` and `upper` as above."""
    kernel, at = cross.kernel, side_at(work, cross.d)
    set_centre(left_rows(cross, i), kernel, work)
    left = gather(left_rows(cross, i), kernel, work, at)
    right = gather(right_rows(cross, i), kernel, work, at + side_size(work, cross.n, cross.d))
    evaluate_sides(left, right, kernel, upper, out)


@exposed
def _evaluate(cross, out, upper):
    """out (members, n, m)."""
    n, m = cross.n, cross.m
    work = scratch(cross.x, n, m, cross.d)
    for i in range(len(cross.rows) // max(1, n)):
        evaluate_member(cross, i, upper, member(out, i, n, m), work)
