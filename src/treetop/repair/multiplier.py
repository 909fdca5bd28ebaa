"""The nearest point of a tree in real numbers: what each node supplies, as a function of one multiplier.

Minimise Σ w (x − y)² over x ≥ 0 with children that sum to their parent. If the sum of a node's counts were paid for at
price λ, the node would supply S(λ): 0 up to a first breakpoint, then convex and piecewise linear.

- A leaf has S(λ) = max(0, y + λ/2w).
- An inner node whose children are paid μ supplies S = Σ S_c(μ) and is itself paid λ = μ + 2w (S − y). So its
  breakpoints are those of its children, moved, and a slope m becomes m / (1 + 2wm).

The functions are made from the leaves up; then the root's multiplier gives the root's count, that the multiplier of its
children, and so on down. The result is exact but for rounding.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treetop.basics.kernel import kernel

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

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
    """Write the breakpoints of every inner node, what is supplied there, and the slope after it."""
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
    """Return what is supplied for a multiplier."""
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
