"""Projections and medians on the CPU, compiled."""

import numpy as np

from hck.jit import compiled, exposed


@exposed(fastmath={"contract", "reassoc"})
def project(x, d, rows, directions, which, out):
    """⟨x[rows[i]], directions[which[i]]⟩ for each i."""
    for i in range(len(rows)):
        a, b = np.uintp(rows[i] * d), np.uintp(which[i] * d)
        total = x.dtype.type(0)
        for f in range(np.uintp(d)):
            total += x[a + f] * directions[b + f]
        out[i] = total


@exposed
def halve(order, start, value, below, above, size, stop, first, last):
    """Put the points of nodes `first` to `last` in order: the half with the smaller values comes first.

    Equal values are split as they come. The values of node i end at stop[i].
    """
    largest = size[first:last].max()
    work, rest = np.empty(largest, value.dtype), np.empty(largest, order.dtype)
    for node in range(first, last):
        n, at = size[node], start[node]
        own = value[stop[node] - n : stop[node]]
        half = (n + 1) // 2
        work[:n] = own
        middle = _select(work, n, half - 1)
        equal = half
        for i in range(n):
            equal -= own[i] < middle
        smallest = own.dtype.type(np.inf)
        low, high = at, 0
        for i in range(n):
            if own[i] < middle or (own[i] == middle and equal > 0):
                equal -= own[i] == middle
                order[low] = order[at + i]
                low += 1
            else:
                smallest = min(smallest, own[i])
                rest[high] = order[at + i]
                high += 1
        order[low : low + high] = rest[:high]
        below[node], above[node] = middle, smallest


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
