"""The gradient of likelihoods of small sets of observations on the CPU: one compiled function for some sets.

What it computes is said in `hck.backend.likelihood`. Each step of learning a metric asks for it, and by torch
half of its time would go to small commands, for which threads wait for each other.
"""

from collections import namedtuple
from functools import cache

import numpy as np
import torch
from torch import Tensor

from hck.backend.cpu import dense, kernel_tile
from hck.backend.cpu.jit import compiled, exposed, shared
from hck.backend.cpu.kernel_tile import HEIGHT, evaluate_slopes
from hck.backend.cpu.kernels import CompiledProfile, Rows, gather, scratch, set_centre, side_at, side_stride
from hck.backend.cpu.matrix import Matrix, aligned, flat, member, mirror_upper, panel_of, upright
from hck.backend.cpu.products import dot, subtract
from hck.backend.cpu.products import scratch as algebra_scratch
from hck.backend.likelihood import Placed

# Values of a kernel between all points of a set, and their derivatives by the distance and by the shape, on
# and above the diagonal of matrices whose rows are `ld` apart.
_Values = namedtuple("_Values", "value slope other ld")

# The sets: an address of code and whether distances are sums of absolute differences, for each; and what
# `Placed` has, flat.
_Sets = namedtuple("_Sets", "tiles manhattan levels z y noise m k columns")

_PLAIN = CompiledProfile(0, 0, 1.0, 1.0, 1.0)  # points as they are placed


def gradient(sets: Placed) -> tuple[Tensor, Tensor]:
    """See `hck.backend.likelihood.likelihood_gradient`."""
    (_, m, k), columns = sets.z.shape, sets.y.shape[2]
    tiles = np.array([_tile(each, sets.z.itemsize) for each in sets.formulas], np.int64)
    manhattan = np.array([each.manhattan for each in sets.formulas])
    by_place, by_level = torch.zeros_like(sets.z), torch.zeros_like(sets.levels)
    numbers = (flat(each) for each in (sets.levels, sets.z, sets.y, sets.noise))
    _gradients(_Sets(tiles, manhattan, *numbers, m, k, columns), _PLAIN, flat(by_place), flat(by_level))
    return by_place.div_(m * columns), by_level.div_(m * columns)


_tile = cache(kernel_tile.provide_slopes)


@exposed
def _gradients(sets, plain, by_place, by_level):
    z, m, k, columns = sets.z, sets.m, sets.k, sets.columns
    ld = side_stride(m, z)
    values = _Values(aligned(ld * ld, z), aligned(ld * ld, z), aligned(ld * ld, z), ld)
    matrix, inverse = Matrix(aligned(ld * ld, z), 0, ld, m, m), Matrix(aligned(ld * ld, z), 0, ld, m, m)
    sides, work = scratch(z, m, 0, k), algebra_scratch(z)
    spare, index, solved = (
        np.empty(m * m, z.dtype),
        np.arange(len(sets.noise)),
        np.empty(columns * m, z.dtype),
    )
    for i in range(len(sets.tiles)):
        rows, levels = Rows(z, k, index, i * m, m), sets.levels[3 * i : 3 * i + 3]
        noise, y = sets.noise[i * m : (i + 1) * m], member(sets.y, i, m, columns)
        set_centre(rows, plain, sides)
        _evaluate(gather(rows, plain, sides, side_at(sides, k)), sets.tiles[i], levels[2], values)
        _fill(matrix, values, levels, noise)
        if not dense.try_factor(matrix, work):
            continue
        dense.inverse(matrix, inverse, spare, work)
        _weigh(inverse, y, solved)
        _by_levels(inverse, values, levels, noise, by_level[3 * i : 3 * i + 3])
        _times_slopes(inverse, values, levels[0])
        _by_places(inverse, member(z, i, m, k), sets.manhattan[i], member(by_place, i, m, k), work)


@shared
def _evaluate(side, tile, shape, values):
    """The kernel's values and slopes, in whole tiles, which may end outside of the matrix."""
    work, m, d, panel = side.work, side.rows.count, side.rows.d, panel_of(side.work)
    wide = side_stride(m, work)
    for i in range(0, m, HEIGHT):
        for j in range(i // panel * panel, m, panel):
            at = i * values.ld + j
            evaluate_slopes(
                tile, shape, values.value, at, values.slope, at, values.other, at, values.ld,
                work, side.at + i, wide, work, side.at + j, wide, d,
            )  # fmt: skip


@shared
def _fill(matrix, values, levels, noise):
    """K, on and above the diagonal."""
    for i in range(matrix.rows):
        row = np.uintp(i * matrix.ld)
        for j in range(np.uintp(i), np.uintp(matrix.rows)):
            matrix.data[row + j] = levels[0] * values.value[row + j]
        matrix.data[i * (matrix.ld + 1)] += levels[1] * noise[i]


@shared
def _weigh(inverse, y, solved):
    """G in place of K⁻¹, on and above the diagonal. `solved` has room for y."""
    data, n = inverse.data, inverse.rows
    for c in range(y.columns):  # K⁻¹ y, each column in a row
        at = np.uintp(c * n)
        for i in range(n):
            solved[at + np.uintp(i)] = 0
        for i in range(n):
            row, number = np.uintp(i * inverse.ld), y.data[y.at + i * y.ld + c]
            for j in range(np.uintp(n)):
                solved[at + j] += data[row + j] * number
    for i in range(n):
        row = np.uintp(i * inverse.ld)
        for j in range(np.uintp(i), np.uintp(n)):
            data[row + j] *= y.columns
        for c in range(y.columns):
            at, number = np.uintp(c * n), solved[c * n + i]
            for j in range(np.uintp(i), np.uintp(n)):
                data[row + j] -= number * solved[at + j]
        for j in range(np.uintp(i), np.uintp(n)):
            data[row + j] /= 2


@shared
def _by_levels(weight, values, levels, noise, out):
    """The gradient by the logarithms of scale, level and shape, given G."""
    by_scale, by_level, by_shape = out[0], out[1], out[2]
    for i in range(weight.rows):
        at, more = i * (weight.ld + 1), weight.rows - i - 1
        here = weight.data[at]
        by_level += here * noise[i]
        by_scale += here * values.value[at] + 2 * dot(weight.data, at + 1, values.value, at + 1, more)
        by_shape += here * values.other[at] + 2 * dot(weight.data, at + 1, values.other, at + 1, more)
    out[0], out[1], out[2] = by_scale * levels[0], by_level * levels[1], by_shape * levels[0] * levels[2]


@shared
def _times_slopes(weight, values, scale):
    """H in place of G, both triangles of it."""
    for i in range(weight.rows):
        row = np.uintp(i * weight.ld)
        for j in range(np.uintp(i), np.uintp(weight.rows)):
            weight.data[row + j] *= values.slope[row + j] * scale
    mirror_upper(weight)


@shared
def _by_places(weight, places, manhattan, out, work):
    """The gradient by the places, given H; `out` is 0."""
    n, k = places.rows, places.columns
    if not manhattan:
        subtract(out, upright(weight), places, False, work)
    for i in range(n):
        row = i * weight.ld
        if manhattan:
            for j in range(n):
                _add_signs(places, i, j, 2 * weight.data[row + j], out)
        else:
            total = weight.data.dtype.type(0)
            for j in range(n):
                total += weight.data[row + j]
            for c in range(k):
                at = out.at + i * k + c
                out.data[at] = 4 * (out.data[at] + total * places.data[places.at + i * k + c])


@compiled
def _add_signs(places, i, j, value, out):
    """The signs of a point less another, times a number, to a row of the result."""
    k = places.columns
    here, there = np.uintp(places.at + i * k), np.uintp(places.at + j * k)
    target = np.uintp(out.at + i * k)
    for c in range(np.uintp(k)):
        gap = places.data[here + c] - places.data[there + c]
        out.data[target + c] += value * np.float64(gap > 0) - value * np.float64(gap < 0)
