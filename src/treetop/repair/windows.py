"""The nearest whole numbers of a tree: slopes of costs, merged in a window around a point near the optimum.

The least cost of a subtree, as a function of its root's count, is convex; so it is known by its slopes, and the
slopes of a sum of subtrees are theirs, sorted. A leaf's slope from k to k + 1 is w (2 (k − y) + 1); an inner node's is
the merged slope of its children plus the same. Only slopes in a window of 2K + 2 counts around an anchor are made; that
this was enough is shown afterwards: no node at the end of its window, and the certificate of `certificate`.

Everything is int64, so costs are compared exactly and ties are ties.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treetop.basics.kernel import kernel
from treetop.repair.settle import mix

Integers = NDArray[np.int64]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@kernel
def _raise_windows(
    child: Integers, inner: Integers, weights: Integers, y: Integers, anchor: Integers, reach: int,
    low: Integers, high: Integers, merged: Integers, buffer: Integers,
) -> bool:  # fmt: skip
    """Write the window of every node and the merged slopes in it; False where a window came out empty.

    `merged[inner[v], j]` is the slope that the children add from low + j − 1 to low + j, so the first is the one
    below the window.
    """
    width = 2 * reach + 2
    for v in range(len(y) - 1, -1, -1):
        base = max(np.int64(0), anchor[v] - reach)
        if child[v] == child[v + 1]:
            low[v] = base
            high[v] = base + width
            continue
        n = 0
        least = np.int64(0)
        for c in range(child[v], child[v + 1]):
            least += low[c]
            own = weights[c] * (2 * (low[c] - y[c]) + 1)
            if child[c] == child[c + 1]:
                for _ in range(width):
                    buffer[n] = own
                    own += 2 * weights[c]
                    n += 1
            else:
                for j in range(1, high[c] - low[c] + 1):
                    buffer[n] = merged[inner[c], j] + own
                    own += 2 * weights[c]
                    n += 1
        low[v] = max(base, least)
        high[v] = min(base + width, least + n)
        if high[v] < low[v]:
            return False
        slopes = buffer[:n]
        slopes.sort()
        for j in range(high[v] - low[v] + 1):
            rank = low[v] - least - 1 + j
            if rank >= 0:
                merged[inner[v], j] = slopes[rank]
    return True


@kernel
def _slopes(
    v: int, leaf: bool, inner: Integers, weights: Integers, y: Integers, low: Integers, high: Integers,
    merged: Integers, out: Integers,
) -> int:  # fmt: skip
    """Write a node's slopes in its window and return how many there are."""
    n = high[v] - low[v]
    for j in range(n):
        out[j] = weights[v] * (2 * (low[v] + j - y[v]) + 1)
        if not leaf:
            out[j] += merged[inner[v], j + 1]
    return n


@kernel
def spread(counts: Integers, ties: Integers, left: int, word: np.uint64) -> np.uint64:
    """Add `left` units to `counts`, drawn without replacement among the `ties` of each; return the next word.

    The draws decide who among equals is favoured, nothing else (splitmix64: Steele, Lea and Flood 2014).
    """
    equal = ties.sum()
    for c in range(len(counts)):
        for _ in range(ties[c]):
            if left == 0:
                return word
            word += GOLDEN
            if np.int64((mix(word) >> np.uint64(1)) % np.uint64(equal)) < left:
                counts[c] += 1
                left -= 1
            equal -= 1
    return word


@kernel
def toss(counts: Integers, ties: Integers, word: np.uint64) -> None:
    """Add each of the `ties` or not, by the toss of a coin: units that change nothing in the cost of a free sum."""
    for c in range(len(counts)):
        for _ in range(ties[c]):
            word += GOLDEN
            counts[c] += np.int64(mix(word) >> np.uint64(63))


@kernel
def _lower_counts(
    child: Integers, inner: Integers, weights: Integers, y: Integers, low: Integers, high: Integers,
    merged: Integers, x: Integers, ties: Integers, slopes: Integers, word: np.uint64,
) -> bool:  # fmt: skip
    """Give every node's count to its children, cheapest first; return whether all are inside their windows."""
    inside = True
    for v in range(len(y)):
        if x[v] == high[v] or (x[v] == low[v] and low[v] > 0):
            inside = False
        first, last = child[v], child[v + 1]
        if first == last:
            continue
        left = x[v]
        for c in range(first, last):
            x[c] = low[c]
            left -= low[c]
        if left == 0:
            continue
        threshold = merged[inner[v], x[v] - low[v]]
        for c in range(first, last):
            n = _slopes(c, child[c] == child[c + 1], inner, weights, y, low, high, merged, slopes)
            below = equal = 0
            for j in range(n):
                below += slopes[j] < threshold
                equal += slopes[j] == threshold
            x[c] += below
            left -= below
            ties[c] = equal
        word = spread(x[first:last], ties[first:last], left, word)
    return inside


@kernel
def root_windows(
    child: Integers, inner: Integers, widest: int, weights: Integers, y: Integers, anchor: Integers, reach: int,
    out_low: Integers, out_slopes: Integers, out_size: Integers,
) -> bool:  # fmt: skip
    """Write the window of the root of each copy: where it starts, its slopes and how many; False if one is empty."""
    width = 2 * reach + 2
    nodes = y.shape[1]
    low, high = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    merged, buffer = np.empty((inner.max() + 1, width + 1), np.int64), np.empty(widest * width, np.int64)
    for s in range(len(y)):
        if not _raise_windows(child, inner, weights, y[s], anchor[s], reach, low, high, merged, buffer):
            return False
        out_low[s] = low[0]
        out_size[s] = _slopes(0, child[0] == child[1], inner, weights, y[s], low, high, merged, out_slopes[s])
    return True


@kernel
def lower_windows(
    child: Integers, inner: Integers, widest: int, weights: Integers, y: Integers, anchor: Integers, reach: int,
    roots: Integers, words: NDArray[np.uint64],
) -> bool:  # fmt: skip
    """Overwrite the anchors of each copy by its counts, given that of its root; return whether all windows sufficed."""
    width = 2 * reach + 2
    nodes = y.shape[1]
    low, high, ties = np.empty(nodes, np.int64), np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    merged, buffer = np.empty((inner.max() + 1, width + 1), np.int64), np.empty(widest * width, np.int64)
    slopes = np.empty(width, np.int64)
    inside = True
    for s in range(len(y)):
        _raise_windows(child, inner, weights, y[s], anchor[s], reach, low, high, merged, buffer)
        x = anchor[s]
        x[0] = roots[s]
        word = mix(words[s])
        inside &= _lower_counts(child, inner, weights, y[s], low, high, merged, x, ties, slopes, word)
    return inside
