"""The gradient of losses of small sets of observations on the CPU: one compiled function for some sets.

What it computes is said in `hck.backend.left_out`. Each step of learning a metric asks for it, and by torch
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
from hck.backend.cpu.matrix import Matrix, clear, flat, member, mirror_upper, panel_of, transpose, upright
from hck.backend.cpu.products import dot, subtract
from hck.backend.cpu.products import scratch as algebra_scratch
from hck.backend.left_out import SLOPE, Placed

_WIDEST = 32  # columns of the widest tile: rows of matrices begin at multiples of it

# The sets: an address of code and whether distances are sums of absolute differences, for each; and what
# `Placed` has, flat; low and span are empty where y are numbers.
_Sets = namedtuple("_Sets", "tiles manhattan levels z y noise low span m k columns")

# Room for matrices (m, m) whose rows are `ld` apart, one after another: a kernel's values, their derivatives
# by the distance and by the shape, K, P and G. What is symmetric is on and above the diagonal; P is whole.
_Room = namedtuple("_Room", "data ld size")
_MATRICES = 6

_PLAIN = CompiledProfile(0, 0, 1.0, 1.0, 1.0)  # points as they are placed


def gradient(sets: Placed) -> tuple[Tensor, Tensor]:
    """See `hck.backend.left_out.left_out_gradient`."""
    (_, m, k), columns = sets.z.shape, sets.y.shape[2]
    tiles = np.array([_tile(each, sets.z.itemsize) for each in sets.formulas], np.int64)
    manhattan = np.array([each.manhattan for each in sets.formulas])
    by_place, by_level = torch.zeros_like(sets.z), torch.zeros_like(sets.levels)
    none = sets.y.new_empty(0)
    coding = (none, none) if sets.coding is None else (sets.coding.low, sets.coding.span)
    numbers = [flat(each) for each in (sets.levels, sets.z, sets.y, sets.noise, *coding)]
    ld = -(-m // _WIDEST) * _WIDEST
    room = _Room(np.empty(_MATRICES * ld * ld, numbers[0].dtype), ld, ld * ld)
    spare, index = np.empty((m + 3 * columns + 1) * m, numbers[0].dtype), np.arange(sets.noise.numel())
    flat_sets = _Sets(tiles, manhattan, *numbers, m, k, columns)
    _gradients(flat_sets, _PLAIN, room, spare, index, flat(by_place), flat(by_level))
    return by_place.div_(m * columns), by_level.div_(m * columns)


_tile = cache(kernel_tile.provide_slopes)


@exposed
def _gradients(sets, plain, room, spare, index, by_place, by_level):
    z, m, k = sets.z, sets.m, sets.k
    sides, work = scratch(z, m, 0, k), algebra_scratch(z)
    matrix = Matrix(room.data, 3 * room.size, room.ld, m, m)
    inverse = Matrix(room.data, 4 * room.size, room.ld, m, m)
    weight = Matrix(room.data, 5 * room.size, room.ld, m, m)
    for i in range(len(sets.tiles)):
        rows, y = Rows(z, k, index, i * m, m), member(sets.y, i, m, sets.columns)
        set_centre(rows, plain, sides)
        side = gather(rows, plain, sides, side_at(sides, k))
        _evaluate(side, sets.tiles[i], sets.levels, 3 * i, room)
        _add_noise(matrix, sets.levels[3 * i + 1], sets.noise, i * m)
        if not dense.try_factor(matrix, work):
            continue
        dense.inverse(matrix, inverse, spare, work)
        _leave_out(inverse, y, sets, i * m, spare)
        _by_matrix(inverse, matrix, weight, y.columns, spare, work)
        _by_levels(weight, room, sets.levels, 3 * i, sets.noise, i * m, by_level)
        _by_places(weight, member(z, i, m, k), sets.manhattan[i], member(by_place, i, m, k), work)


@shared
def _evaluate(side, tile, levels, at, room):
    """The kernel's values, their slopes and K without noise, in whole tiles that may end outside of these."""
    work, m, d, panel = side.work, side.rows.count, side.rows.d, panel_of(side.work)
    data, ld, size, wide = room.data, room.ld, room.size, side_stride(m, side.work)
    for i in range(0, m, HEIGHT):
        for j in range(i // panel * panel, m, panel):
            here = i * ld + j
            evaluate_slopes(
                tile, levels[at + 2], data, here, data, here + size, data, here + 2 * size, ld,
                work, side.at + i, wide, work, side.at + j, wide, d,
            )  # fmt: skip
    matrix, scale = np.uintp(3 * size), levels[at]
    for i in range(np.uintp(m * ld)):
        data[matrix + i] = scale * data[i]


@compiled
def _add_noise(matrix, level, noise, at):
    for i in range(matrix.rows):
        matrix.data[matrix.at + i * (matrix.ld + 1)] += level * noise[at + i]


@shared
def _leave_out(p, y, sets, first, spare):
    """g and w = P y in `spare`, each column in a row, and room for another like these; then h."""
    n, columns, data = p.rows, y.columns, p.data
    size = columns * n
    transpose(y, Matrix(spare, 0, n, columns, n))
    _multiply(p, columns, spare, 0, size)
    for i in range(n):
        own, total = data[p.at + i * (p.ld + 1)], data.dtype.type(0)
        if len(sets.span):
            _classes_by_error(spare, i, n, columns, own, sets)
            share = 1 / (sets.noise[first + i] * own)
            for at in range(i, size, n):
                spare[at] *= share
                total += spare[at] * spare[size + at] / own
        else:
            for at in range(i, size, n):
                spare[at] = spare[size + at] / own
                total += (spare[at] * spare[at] + 1 / own) / 2
        spare[3 * size + i] = total


@compiled
def _multiply(p, columns, rows, source, target):
    """P times columns, each of which is a row."""
    data, n = p.data, np.uintp(p.rows)
    for c in range(columns):
        here, there = np.uintp(source) + np.uintp(c) * n, np.uintp(target) + np.uintp(c) * n
        for j in range(n):
            rows[there + j] = 0
        for i in range(n):
            row, number = np.uintp(p.at) + i * np.uintp(p.ld), rows[here + i]
            for j in range(n):
                rows[there + j] += data[row + j] * number


@compiled
def _classes_by_error(spare, i, n, columns, own, sets):
    """∂ℓ/∂e of the i-th observation, in place of y; e is w over P's own number."""
    size, largest = columns * n, -np.inf
    scores = spare[2 * size : 2 * size + columns]
    for c in range(columns):
        at, span = c * n + i, sets.span[c]
        score = SLOPE * (spare[at] - spare[size + at] / own - sets.low[c]) / span
        scores[c], largest = score, max(largest, score)
        spare[at] = spare[at] > sets.low[c] + span / 2
    if columns == 1:
        share = 1 / (1 + np.exp(SLOPE - 2 * scores[0]))
        spare[i] = 2 * SLOPE * (spare[i] - share) / sets.span[0]
        return
    total = spare.dtype.type(0)
    for c in range(columns):
        scores[c] = np.exp(scores[c] - largest)
        total += scores[c]
    for c in range(columns):
        at = c * n + i
        spare[at] = SLOPE * (spare[at] - scores[c] / total) / sets.span[c]


@shared
def _by_matrix(p, room, weight, columns, spare, work):
    """G, given what `_leave_out` has left; `room` is for a matrix."""
    data, n, size = p.data, np.uintp(p.rows), columns * p.rows
    _multiply(p, columns, spare, 0, 2 * size)
    for i in range(n):
        source, target = np.uintp(p.at) + i * np.uintp(p.ld), np.uintp(room.at) + i * np.uintp(room.ld)
        number = -spare[3 * size + i]
        for j in range(n):
            data[target + j] = number * data[source + j]
    clear(weight)
    subtract(weight, upright(p), room, True, work)
    for i in range(n):
        row = np.uintp(weight.at) + i * np.uintp(weight.ld)
        for c in range(columns):
            w, u = np.uintp(size + c * p.rows), np.uintp(2 * size + c * p.rows)
            solved, other = spare[w + i] / 2, spare[u + i] / 2
            for j in range(i, n):
                data[row + j] -= other * spare[w + j] + solved * spare[u + j]


@shared
def _by_levels(weight, room, levels, at, noise, first, out):
    """The gradient by the logarithms of scale, level and shape, given G; and H in place of G."""
    data, n, scale = room.data, np.uintp(weight.rows), levels[at]
    by_scale = by_level = by_shape = scale - scale
    for i in range(n):
        here, row = weight.at + i * (weight.ld + 1), i * (room.ld + 1)
        number, more = data[here], n - i - 1
        by_level += number * noise[first + i]
        by_scale += number * data[row] + 2 * dot(data, here + 1, data, row + 1, more)
        row += 2 * room.size
        by_shape += number * data[row] + 2 * dot(data, here + 1, data, row + 1, more)
        slope, target = np.uintp(row - room.size), np.uintp(here)
        for j in range(n - i):
            data[target + j] *= data[slope + j] * scale
    out[at] = by_scale * scale
    out[at + 1] = by_level * levels[at + 1]
    out[at + 2] = by_shape * scale * levels[at + 2]


@shared
def _by_places(weight, places, manhattan, out, work):
    """The gradient by the places, given H; `out` is 0."""
    n, k, data = places.rows, places.columns, weight.data
    mirror_upper(weight)
    if not manhattan:
        subtract(out, upright(weight), places, False, work)
    for i in range(n):
        total, row = data.dtype.type(0), weight.at + i * weight.ld
        here, target = np.uintp(places.at + i * k), np.uintp(out.at + i * k)
        for j in range(n):
            number, there = data[row + j], np.uintp(places.at + j * k)
            total += number
            if manhattan:
                for c in range(np.uintp(k)):
                    gap = places.data[here + c] - places.data[there + c]
                    out.data[target + c] += number * (np.float64(gap > 0) - np.float64(gap < 0)) / 2
        for c in range(np.uintp(k)):
            away = data.dtype.type(0) if manhattan else total * places.data[here + c]
            out.data[target + c] = 4 * (out.data[target + c] + away)
