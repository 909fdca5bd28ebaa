"""Projection on a tree: the exactly nearest non-negative whole numbers with children that sum to their parents.

First the nearest real numbers (`multiplier`), then the whole numbers in a window around them (`windows`), then a proof
that no others are nearer (`certificate`). If a window is too narrow or the proof fails, the window is widened.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treetop._util.dtypes import whole_numbers
from treetop._util.kernel import kernel
from treetop._util.system import in_runs
from treetop.errors import NumberError
from treetop.noise import Key, Keystream
from treetop.repair._tree import Tree
from treetop.repair.state import mix

# The nearest whole numbers of a tree: slopes of costs, merged in a window around a point near the optimum.

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@kernel
def _raise_windows(
    child: Integers, inner: Integers, weights: Integers, y: Integers, anchor: Integers, reach: int,
    low: Integers, high: Integers, merged: Integers, buffer: Integers,
) -> bool:  # fmt: skip
    """Write the window of every node and the merged slopes in it; return False if a window is empty.

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
    """Write the start, slopes and size of the window of each copy's root; return False if one is empty."""
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


# The nearest point of a tree in real numbers: the supply of each node as a function of one multiplier.

Floats = NDArray[np.float64]

MOST_STEPS = 200


@kernel
def _merge_runs(keys: Floats, jumps: Floats, spare_keys: Floats, spare_jumps: Floats) -> None:
    """Sort breakpoints, with the jumps of slope there, by merging the ascending runs in which they come."""
    size = len(keys)
    moved = False
    while True:
        start = np.int64(0)
        runs = 0
        while start < size:
            middle = start + 1
            while middle < size and keys[middle - 1] <= keys[middle]:
                middle += 1
            if start == 0 and middle == size:
                break  # one run: sorted
            stop = middle + 1 if middle < size else middle
            while stop < size and keys[stop - 1] <= keys[stop]:
                stop += 1
            i, j = start, middle
            for k in range(start, stop):
                if j == stop or (i < middle and keys[i] <= keys[j]):
                    spare_keys[k], spare_jumps[k] = keys[i], jumps[i]
                    i += 1
                else:
                    spare_keys[k], spare_jumps[k] = keys[j], jumps[j]
                    j += 1
            start = stop
            runs += 1
        if runs == 0:
            break
        keys, spare_keys = spare_keys, keys
        jumps, spare_jumps = spare_jumps, jumps
        moved = not moved
    if moved:
        for k in range(size):
            spare_keys[k], spare_jumps[k] = keys[k], jumps[k]


@kernel
def _make_supply(
    child: Integers, room: Integers, weights: Integers, y: Integers, at: Floats, supplied: Floats, slope: Floats,
    scratch: Floats,
) -> None:  # fmt: skip
    """Write the breakpoints of every inner node, the supply at each, and the slope after it."""
    for v in range(len(y) - 1, -1, -1):
        if child[v] == child[v + 1]:
            continue
        size = room[v + 1] - room[v]
        keys, jumps = scratch[0, :size], scratch[1, :size]
        n = 0
        for c in range(child[v], child[v + 1]):
            if child[c] == child[c + 1]:
                keys[n] = -2.0 * weights[c] * y[c]
                jumps[n] = 0.5 / weights[c]
                n += 1
                continue
            before = 0.0
            for i in range(room[c], room[c + 1]):
                keys[n] = at[i]
                jumps[n] = slope[i] - before
                before = slope[i]
                n += 1
        _merge_runs(keys, jumps, scratch[2, :size], scratch[3, :size])
        twice = 2.0 * weights[v]
        m = value = 0.0
        for i in range(size):
            if i > 0:
                value += m * (keys[i] - keys[i - 1])
            m += jumps[i]
            at[room[v] + i] = keys[i] + twice * (value - y[v])
            supplied[room[v] + i] = value
            slope[room[v] + i] = m / (1.0 + twice * m)


@kernel
def _supply(at: Floats, supplied: Floats, slope: Floats, multiplier: float) -> float:
    """Return the supply at a multiplier."""
    i = np.searchsorted(at, multiplier, side="right") - 1
    if i < 0:
        return 0.0
    return supplied[i] + slope[i] * (multiplier - at[i])


@kernel
def root_supplies(
    child: Integers, room: Integers, weights: Integers, y: Integers, out_at: Floats, out_supplied: Floats,
    out_slope: Floats,
) -> None:  # fmt: skip
    """Write the function of the root of each copy of the tree, a row of y; of the slopes only the last."""
    at, supplied, slope = np.empty(room[-1]), np.empty(room[-1]), np.empty(room[-1])
    leaves = out_at.shape[1]
    scratch = np.empty((4, leaves))
    for s in range(len(y)):
        if child[0] == child[1]:  # the root is a leaf
            out_at[s, 0], out_supplied[s, 0], out_slope[s] = -2.0 * weights[0] * y[s, 0], 0.0, 0.5 / weights[0]
            continue
        _make_supply(child, room, weights, y[s], at, supplied, slope, scratch)
        for i in range(leaves):
            out_at[s, i], out_supplied[s, i] = at[i], supplied[i]
        out_slope[s] = slope[leaves - 1]


@kernel
def find_multiplier(at: Floats, supplied: Floats, last_slope: Floats, total: float) -> float:
    """Return the multiplier for which some roots together supply a total: Newton's method, kept between bounds.

    The sum grows and is convex, so from the right exact steps would never go too far. But between breakpoints that are
    equal but for rounding the slope is noise: a step out of the bounds is replaced by halving, and so is each fourth.
    """
    low, high, multiplier = at[:, 0].min(), np.inf, at[:, -1].max()
    for count in range(MOST_STEPS):
        value = slope = 0.0
        for s in range(len(at)):
            i = np.searchsorted(at[s], multiplier, side="right") - 1
            if i < 0:
                continue
            m = last_slope[s]
            if i + 1 < at.shape[1]:
                m = (supplied[s, i + 1] - supplied[s, i]) / (at[s, i + 1] - at[s, i])
            value += supplied[s, i] + m * (multiplier - at[s, i])
            slope += m
        if value < total:
            low = multiplier
        else:
            high = multiplier
        following = multiplier + (total - value) / slope if slope > 0.0 else low
        if high < np.inf and (count % 4 == 3 or not low <= following <= high):
            following = low + 0.5 * (high - low)
        if value == total or abs(following - multiplier) <= 1e-15 * abs(multiplier):
            break
        multiplier = following
    return multiplier


@kernel
def find_multipliers(at: Floats, supplied: Floats, last_slope: Floats, totals: Integers, out: Floats) -> None:
    """Write the multiplier for which each root supplies its own total."""
    for s in range(len(at)):
        out[s] = find_multiplier(at[s : s + 1], supplied[s : s + 1], last_slope[s : s + 1], float(totals[s]))


@kernel
def descend_multipliers(
    child: Integers, room: Integers, weights: Integers, y: Integers, multipliers: Floats, out: Floats
) -> None:
    """Write the real counts of every node of each copy, given the multiplier of its root."""
    at, supplied, slope = np.empty(room[-1]), np.empty(room[-1]), np.empty(room[-1])
    scratch = np.empty((4, room[1] if room[-1] > 0 else 1))
    paid = np.empty(y.shape[1])
    for s in range(len(y)):
        _make_supply(child, room, weights, y[s], at, supplied, slope, scratch)
        paid[0] = multipliers[s]
        for v in range(y.shape[1]):
            if child[v] == child[v + 1]:
                out[s, v] = max(0.0, y[s, v] + 0.5 * paid[v] / weights[v])
                continue
            own = slice(room[v], room[v + 1])
            out[s, v] = _supply(at[own], supplied[own], slope[own], paid[v])
            for c in range(child[v], child[v + 1]):
                paid[c] = paid[v] - 2.0 * weights[v] * (out[s, v] - y[s, v])


# The certificate of a projection: no unit can be moved to lower the cost, so nothing can.

NEVER = 1 << 61
"""More than any cost: the cost of removing a unit from an empty node."""
MOST = 2 * NEVER - 1


@kernel
def best_exchange(add: Integers, remove: Integers) -> int:
    """Return the least add[i] + remove[j] with i ≠ j: the cost of moving a unit between two siblings."""
    cheapest, least, second = -1, MOST, MOST
    for i in range(len(add)):
        if add[i] < least:
            cheapest, least, second = i, add[i], least
        elif add[i] < second:
            second = add[i]
    best = MOST
    for j in range(len(remove)):
        other = second if j == cheapest else least
        if remove[j] < NEVER and other < NEVER:
            best = min(best, other + remove[j])
    return best


@kernel
def certify(
    child: Integers, weights: Integers, y: Integers, x: Integers, out_gain: Integers, out_add: Integers,
    out_remove: Integers,
) -> None:  # fmt: skip
    """Write for each copy the cost of its best inner exchange, and of one unit more, or less, under its root.

    A copy with negative counts, or with children that do not sum to their parents, has gain −1, so it fails.
    """
    nodes = y.shape[1]
    add, remove = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    for s in range(len(y)):
        gain = MOST
        for v in range(nodes - 1, -1, -1):
            change = x[s, v] - y[s, v]
            add[v] = weights[v] * (2 * change + 1)
            remove[v] = weights[v] * (1 - 2 * change)
            first, last = child[v], child[v + 1]
            if x[s, v] < 0:
                gain = min(gain, -1)
            if first == last:
                if x[s, v] == 0:
                    remove[v] = NEVER
                continue
            total = np.int64(0)
            for c in range(first, last):
                total += x[s, c]
            if total != x[s, v]:
                gain = min(gain, -1)
            gain = min(gain, best_exchange(add[first:last], remove[first:last]))
            add[v] += add[first:last].min()
            least = remove[first:last].min()
            remove[v] = NEVER if least == NEVER else remove[v] + least
        out_gain[s], out_add[s], out_remove[s] = gain, add[0], remove[0]


REACH = 2
"""The first window is from K below the nearest real number to K + 2 above."""

WIDEST = 1 << 14
"""A window this wide means that the relaxation is wrong, not that the window is narrow."""

Total = int | NDArray[np.int64] | None
"""The total of all copies together, of each copy, or None if it is free."""
Integers = NDArray[np.int64]


def project_tree(
    tree: Tree,
    measurements: ArrayLike,
    weights: ArrayLike | None = None,
    total: Total = None,
    *,
    key: Key,
    threads: int = 1,
) -> Integers:
    """Return the whole numbers x ≥ 0 that minimise Σ w (x − y)² with children that sum to their parents.

    `measurements` y are one row of nodes or several, each a copy of the tree. `weights` are whole numbers, one a level
    or one a node. A number as `total` fixes the sum of the roots of all copies, an array fixes each root, and None
    leaves the roots free. Among equally near answers one is drawn by words of the `key`: the same arguments give the
    same answer, on any number of `threads`.

    >>> tree = Tree.from_levels([[0, 3]])
    >>> project_tree(tree, [7, 5, 3, -4], total=8, key=Key(bytes(32))).tolist()
    [8, 5, 3, 0]
    """
    y, shape = _rows(tree, measurements)
    w = tree.weights(weights)
    totals = _total(total, len(y))
    anchor = _relaxed(tree, y, w, totals, threads)
    _refuse_overflow(tree, y, w, float(anchor.max(initial=0.0)))
    x = anchor.astype(np.int64)  # towards zero: they are not negative
    del anchor
    words = np.empty(len(y) + 1, np.uint64)
    Keystream(key.derive("ties")).fill(words, 0)
    reach = REACH
    while not (_solve(tree, y, w, totals, x, reach, words, threads) and certified(tree, y, x, w, totals, threads)):
        reach *= 2
        if reach > WIDEST:
            raise ArithmeticError("the projection of this tree was not found near its relaxation: this is a defect")
    return x.reshape(shape)


def relax_tree(
    tree: Tree, measurements: ArrayLike, weights: ArrayLike | None = None, total: Total = None, threads: int = 1
) -> NDArray[np.float64]:
    """Return the real numbers x ≥ 0 that minimise the objective of `project_tree`."""
    y, shape = _rows(tree, measurements)
    return _relaxed(tree, y, tree.weights(weights), _total(total, len(y)), threads).reshape(shape)


def certified(
    tree: Tree,
    measurements: ArrayLike,
    counts: ArrayLike,
    weights: ArrayLike | None = None,
    total: Total = None,
    threads: int = 1,
) -> bool:
    """Return whether counts are a projection of the measurements, by looking at every exchange of one unit."""
    y, _ = _rows(tree, measurements)
    x, _ = _rows(tree, counts)
    if x.shape != y.shape:
        raise NumberError(f"there are counts of shape {x.shape} for measurements of shape {y.shape}")
    w = tree.weights(weights)
    totals = _total(total, len(y))
    _refuse_overflow(tree, y, w, float(np.abs(x).max(initial=0)))
    gain, add, remove = (np.empty(len(y), np.int64) for _ in range(3))
    in_runs(threads, len(y), lambda own: certify(tree.child, w, y[own], x[own], gain[own], add[own], remove[own]))
    if gain.min() < 0:
        return False
    if totals is None:
        return bool(add.min() >= 0 and remove.min() >= 0)
    if isinstance(totals, int):
        return bool(x[:, 0].sum() == totals and best_exchange(add, remove) >= 0)
    return bool((x[:, 0] == totals).all())


def _rows(tree: Tree, values: ArrayLike) -> tuple[Integers, tuple[int, ...]]:
    """Return the values as rows of whole numbers, and the shape in which they came."""
    given = np.asarray(values)
    if not np.issubdtype(given.dtype, np.integer):
        raise NumberError(f"a tree is projected from whole numbers, not {given.dtype}")
    if given.ndim not in (1, 2) or given.shape[-1] != tree.nodes or given.size == 0:
        raise NumberError(f"give rows of {tree.nodes} nodes, as the tree has, not an array of {given.shape}")
    return whole_numbers(np.atleast_2d(given), "the counts of a tree", ndim=2), given.shape


def _total(total: Total, copies: int) -> Total:
    if total is None:
        return None
    given = np.asarray(total)
    if not np.issubdtype(given.dtype, np.integer) or given.shape not in ((), (copies,)):
        raise NumberError(f"the total is a whole number, or one for each of {copies} copies, not {total!r}")
    if given.min() < 0:
        raise NumberError(f"the total is {given.min()}: counts that are not negative cannot sum to it")
    given = whole_numbers(given, "the total", ndim=given.ndim)
    return int(given) if given.ndim == 0 else given.astype(np.int64)


def _refuse_overflow(tree: Tree, y: Integers, w: Integers, largest: float) -> None:
    heaviest = sum(int(w[level].max()) for level in tree.levels)
    if heaviest * (2 * (float(np.abs(y).max()) + largest) + 1024) >= NEVER:
        raise NumberError("measurements times weights do not fit 64 bits; give smaller weights in the same proportion")


def _relaxed(tree: Tree, y: Integers, w: Integers, total: Total, threads: int) -> NDArray[np.float64]:
    child, room = tree.child, tree.room
    multipliers = np.zeros(len(y))
    if total is not None:
        at, supplied = (np.empty((len(y), int(tree.leaves[0]))) for _ in range(2))
        slope = np.empty(len(y))
        in_runs(threads, len(y), lambda own: root_supplies(child, room, w, y[own], at[own], supplied[own], slope[own]))
        if isinstance(total, int):
            multipliers[:] = find_multiplier(at, supplied, slope, float(total))
        else:
            find_multipliers(at, supplied, slope, total, multipliers)
        del at, supplied
    relaxed = np.empty(y.shape)
    in_runs(threads, len(y), lambda own: descend_multipliers(child, room, w, y[own], multipliers[own], relaxed[own]))
    return relaxed


def _solve(
    tree: Tree, y: Integers, w: Integers, total: Total, x: Integers, reach: int, words: NDArray[np.uint64], threads: int
) -> bool:
    """Overwrite x by the best whole numbers in windows around it; return whether no window stood in the way."""
    public = (tree.child, tree.inner, max(tree.widest, 1), w)
    low, size = np.empty(len(y), np.int64), np.empty(len(y), np.int64)
    slopes = np.full((len(y), 2 * reach + 2), NEVER, np.int64)
    made = in_runs(
        threads, len(y), lambda own: root_windows(*public, y[own], x[own], reach, low[own], slopes[own], size[own])
    )
    roots = _choose_roots(low, size, slopes, total, words[-1]) if all(made) else None
    if roots is None:
        return False
    lowered = in_runs(
        threads, len(y), lambda own: lower_windows(*public, y[own], x[own], reach, roots[own], words[:-1][own])
    )
    return all(lowered)


def _choose_roots(low: Integers, size: Integers, slopes: Integers, total: Total, word: np.uint64) -> Integers | None:
    """Return the count of each root, cheapest units first; None if the windows do not contain the total."""
    if isinstance(total, np.ndarray):
        return total if bool(((low <= total) & (total <= low + size)).all()) else None
    left = 0 if total is None else total - int(low.sum())
    if not 0 <= left <= size.sum():
        return None
    threshold = 0 if total is None else -NEVER
    if left > 0:
        threshold = int(np.partition(slopes, left - 1, axis=None)[left - 1])
    inside = np.arange(slopes.shape[1]) < size[:, None]
    below, ties = ((slopes < threshold) & inside).sum(axis=1), ((slopes == threshold) & inside).sum(axis=1)
    roots: Integers = low + below
    if total is None:
        toss(roots, ties, word)
    else:
        spread(roots, ties, left - int(below.sum()), word)
    return roots
