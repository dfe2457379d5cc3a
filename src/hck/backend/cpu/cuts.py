"""Projections and medians on the CPU, compiled."""

from collections import namedtuple

import numpy as np

from hck.backend.cpu.jit import compiled, exposed, shared
from hck.backend.cpu.products import dot

_MOST_PASSES = 16  # of which each halves, at least, what is left, unless values are very unequally spread
_FEW = 32
_ROUNDING = 32  # times the spacing of numbers, that halves have to be apart
_UNORDERED = {"contract", "nnan", "nsz", "reassoc"}  # so that sums and extremes are computed in vectors


# x (points, d), and the order (points,) of those that nodes own.
Points = namedtuple("Points", "x d order")

# Where the points of nodes start in the order, how many they are, and the nodes' halves (nodes, 2), -1: none.
Halvings = namedtuple("Halvings", "start size child")

# Nodes whose values are listed one node after another: those of node i end at stop[i].
Listed = namedtuple("Listed", "start size stop")

# values (directions, d); node i has that of number pick[i], and may take one of the last `spares`.
Directions = namedtuple("Directions", "values pick spares")

# Nodes from the first to the one before the last, and the size of the largest of them.
Part = namedtuple("Part", "first last largest")

# The largest value of each node's first half and the smallest of its second.
Ends = namedtuple("Ends", "below above")


@exposed(fastmath={"contract", "reassoc"})
def project(points, directions, which, out):
    """⟨x[rows[i]], directions[which[i]]⟩ for each i; the rows are the order of the points."""
    x, d, rows = points
    for i in range(len(rows)):
        out[i] = dot(x, rows[i] * d, directions, which[i] * d, d)


@exposed
def halve(order, nodes, value, ends, part):
    """Put the points of the nodes of a `part` in order: the half with the smaller values first.

    Equal values are split as they come.
    """
    first, last, largest = part
    start, size, stop = nodes
    _, work, rest = _room(largest, value, order)
    for i in range(first, last):
        own = value[stop[i] - size[i] : stop[i]]
        ends.below[i], ends.above[i] = _separate(own, order, start[i], work, rest)


@exposed
def halve_by_projection(points, nodes, directions, ends, part):
    """The same, by values that are projections on directions.

    A node whose halves are tied takes one of the spare directions, if they are not tied with it.
    """
    first, last, largest = part
    room = _room(largest, points.x, points.order)
    for i in range(first, last):
        segment = nodes.start[i], nodes.size[i]
        ends.below[i], ends.above[i] = _cut(points, i, segment, directions, room)


@exposed
def halve_subtrees(points, nodes, directions, ends, part):
    """The same for nodes, their children, and so on.

    The points of a subtree are gathered once, and then lie close together.
    """
    first, last, largest = part
    x, d, order = points
    start, size, child = nodes
    room = _room(largest, x, order)
    near, place = np.empty(largest * d, x.dtype), np.empty(largest + 1, order.dtype)
    kept, gathered = np.empty(largest + 1, order.dtype), Points(near, d, place)
    waiting = np.empty(2 * 64, np.int64)  # at most one for each level below
    for root in range(first, last):
        at, n = start[root], size[root]
        for p in range(n):
            place[p], kept[p] = p, order[at + p]
            source, target = np.uintp(kept[p] * d), np.uintp(p * d)
            for k in range(np.uintp(d)):
                near[target + k] = x[source + k]
        waiting[0], count = root, 1
        while count:
            count -= 1
            i = waiting[count]
            segment = start[i] - at, size[i]
            ends.below[i], ends.above[i] = _cut(gathered, i, segment, directions, room)
            for c in range(2):
                if child[2 * i + c] >= 0:
                    waiting[count] = child[2 * i + c]
                    count += 1
        for p in range(n):
            order[at + p] = kept[place[p]]


@shared
def _cut(points, node, segment, directions, room):
    """Halve a node by projections; what `_separate` returns. Its n points start at `at` in the order."""
    (x, d, order), (at, n) = points, segment
    values, pick, spares = directions
    own, work, rest = room[0][:n], room[1], room[2]
    total, eps = len(values) // d, 2.0**-52 if own.itemsize == 8 else 2.0**-23
    for attempt in range(spares + 1):
        if attempt:
            pick[node] = total - attempt
        for p in range(n):
            own[p] = dot(x, order[at + p] * d, values, pick[node] * d, d)
        below, above = _separate(own, order, at, work, rest)
        if above - below > _ROUNDING * eps * max(abs(below), abs(above)):
            break
    return below, above


@compiled
def _room(n, values, order):
    """Memory for the values of n points, and for `_separate`."""
    shape = n + 1
    return np.empty(shape, values.dtype), np.empty(shape, values.dtype), np.empty(shape, order.dtype)


@compiled
def _separate(own, order, at, work, rest):
    """Put the first half of points that start at `at`, those with the smaller values, before the others.

    Returns the largest value of the first half and the smallest of the others. `work` and `rest` have room
    for one more than there are.
    """
    n = len(own)
    half = (n + 1) // 2
    middle = _nth(own, n, half - 1, work)
    equal = half - _count_below(own, n, middle)
    smallest = own.dtype.type(np.inf)
    low, high = at, 0
    for i in range(n):  # without branches, which nobody could foresee
        point, value = order[at + i], own[i]
        tied = (value == middle) & (equal > 0)
        equal -= tied
        first_half = (value < middle) | tied
        order[low] = point
        rest[high] = point
        low += first_half
        high += 1 - first_half
        smallest = min(smallest, own.dtype.type(np.inf) if first_half else value)
    for i in range(high):
        order[low + i] = rest[i]
    return middle, smallest


@compiled
def _nth(v, n, k, work):
    """The k-th smallest, from 0, of n numbers. `work` has room for n + 1.

    Passes that only count, several numbers at a time, close in on it from both sides: the next place to look
    at is found by interpolation, a little towards the far end, so that both ends come closer. The few numbers
    that are left are reordered.
    """
    low, high = _ends(v, n)
    before, until = 0, n  # numbers below `low`, and those below `high`, or up to it at first
    whole = True
    for step in range(_MOST_PASSES):
        if until - before <= _FEW:
            break
        share = (k + 0.5 - before) / (until - before)
        margin = 0.0 if step < 2 else 1 / np.sqrt(until - before)
        share = min(1.0, share + margin) if share < 0.5 else max(0.0, share - margin)
        guess = v.dtype.type(low + (high - low) * share)
        if not low < guess < high:
            break
        count = _count_below(v, n, guess)
        if count <= k:
            low, before = guess, count
        else:
            high, until, whole = guess, count, False
    left = 0
    for i in range(n):
        work[left] = v[i]
        left += (v[i] >= low) & ((v[i] < high) | whole)
    return _select(work, left, k - before)


@compiled
def _select(v, n, k):
    """The k-th smallest, from 0, of the first n numbers, which are reordered: Hoare's quickselect."""
    low, high = 0, n - 1
    while low < high:
        a, b, c = v[low], v[(low + high) // 2], v[high]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while v[i] < pivot:
                i += 1
            while v[j] > pivot:
                j -= 1
            if i <= j:
                v[i], v[j] = v[j], v[i]
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return v[k]


@compiled(fastmath=_UNORDERED)
def _ends(v, n):
    """The smallest and the largest."""
    low = high = v[0]
    for i in range(n):
        low, high = min(low, v[i]), max(high, v[i])
    return low, high


@compiled
def _count_below(v, n, limit):
    count = 0
    for i in range(n):
        count += v[i] < limit
    return count
