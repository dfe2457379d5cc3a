"""Kernel values between blocks of points on the CPU: gather, distance and profile in one compiled function.

The points of a block are gathered into a *side*: each feature in a row of its own, divided by the lengthscale
and relative to a centre, and a last row of squared norms. Squared distances are sums of squared differences,
or, which takes half the time where there are many features, ‖a‖² + ‖b‖² − 2⟨a, b⟩. That loses digits of small
distances between points far from the centre; it is done only for kernels that are smooth where the distance
is 0, and only where what is lost does not matter. `kernel` is a `hck.backend.cpu.values.CompiledProfile`.
"""

import numpy as np

from hck.backend.cpu.jit import compiled, exposed
from hck.backend.cpu.kernel_tile import HEIGHT, kernel_tile
from hck.backend.cpu.matrix import Matrix, aligned, copy, panel_of
from hck.backend.cpu.tile import apart

_MANY = 12  # features, from which on the expansion pays
_LOST = {8: 1e-12, 4: 1e-6}  # of a squared distance in lengthscales that may be lost
_FARTHEST_8, _FARTHEST_4 = (_LOST[size] / np.finfo(f"f{size}").eps for size in (8, 4))


@compiled
def _round_up(n, step):
    return (n + step - 1) // step * step


@compiled
def _stride(n, like):
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
    return _stride(n, like) * (d + 1)


@compiled
def scratch(like, n, m, d):
    """Memory for two sides, of n and of m points."""
    return aligned(side_at(like, d) + side_size(like, n, d) + side_size(like, m, d), like)


@compiled
def set_centre(x, index, first, d, kernel, work):
    """Take a point as the centre of the sides that are gathered next."""
    row, inverse = max(0, index[first]), x.dtype.type(kernel.inverse)
    for k in range(d):
        work[k] = x[row * d + k] * inverse


@compiled
def gather(x, index, first, count, d, kernel, work, at):
    """Make a side of some rows of x; the largest squared norm. Padding, -1, becomes any point."""
    apart()
    inverse = x.dtype.type(kernel.inverse)
    padded, step = _round_up(count, panel_of(work)), np.uintp(_stride(count, work))
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
            work[norms + i] += work[start + k * step + i] ** 2
    largest = x.dtype.type(0)
    for i in range(count):
        if index[first + i] >= 0:
            largest = max(largest, work[norms + np.uintp(i)])
    return largest


@compiled
def evaluate_sides(
    work, left, n, right, m, d, kernel, largest, upper, rows, at_rows, columns, at_columns, out, at
):  # fmt: skip
    """Kernel values between two sides, of which `largest` is the largest squared norm.

    left, right: where the sides are; rows, columns: positions of their points, -1 for padding, which gives 0.
    With `upper`, what lies below the diagonal is left as it is.
    """
    apart()
    panel = panel_of(out)
    high, wide = _stride(n, out), _stride(m, out)
    edge = _round_up(d, panel)
    farthest = _FARTHEST_8 if work.itemsize == 8 else _FARTHEST_4
    expand = d >= _MANY and kernel.expanded != 0 and largest <= farthest
    tile = kernel.expanded if expand else kernel.tile
    amplitude, shape = kernel.amplitude, kernel.shape
    for i in range(0, n, HEIGHT):
        count = min(HEIGHT, n - i)
        for j in range(i // panel * panel if upper else 0, m, panel):
            width, here = min(panel, m - j), at + i * m + j
            if count == HEIGHT and width == panel:
                kernel_tile(
                    tile, amplitude, shape, out, here, m, work, left + i, high, work, right + j, wide, d
                )  # fmt: skip
            else:
                kernel_tile(
                    tile, amplitude, shape, work, edge, panel, work, left + i, high, work, right + j, wide, d
                )  # fmt: skip
                copy(Matrix(work, edge, panel, count, width), Matrix(out, here, m, count, width))
    for i in range(n):
        if rows[at_rows + i] < 0:
            out[at + i * m : at + (i + 1) * m] = 0
    last = m
    while last > 0 and columns[at_columns + last - 1] < 0:  # padding is at the end
        last -= 1
    if last < m:
        for i in range(n):
            out[at + i * m + last : at + (i + 1) * m] = 0


@compiled
def evaluate_block(x, rows, at_rows, n, z, columns, at_columns, m, d, kernel, upper, out, at, work):
    """Kernel values between some rows of x and of z; parameters as in `evaluate`."""
    apart()
    left = side_at(work, d)
    right = left + side_size(work, n, d)
    set_centre(x, rows, at_rows, d, kernel, work)
    largest = max(
        gather(x, rows, at_rows, n, d, kernel, work, left),
        gather(z, columns, at_columns, m, d, kernel, work, right),
    )
    evaluate_sides(
        work, left, n, right, m, d, kernel, largest, upper, rows, at_rows, columns, at_columns, out, at
    )  # fmt: skip


@exposed
def evaluate(x, rows, z, columns, kernel, out, members, n, m, d, upper):
    """Kernel values between blocks of rows of x and of z.

    x (points, d), z (points, d); rows (members, n) and columns (members, m) are positions, -1 for padding,
    which gives 0; out (members, n, m). With `upper`, what lies below the diagonal is left as it is.
    """
    work = scratch(x, n, m, d)
    for i in range(members):
        evaluate_block(x, rows, i * n, n, z, columns, i * m, m, d, kernel, upper, out, i * n * m, work)
