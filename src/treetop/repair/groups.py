"""Repair of group sizes: make the measurements add up, without reading private data.

Differential Privacy of Hierarchical Census Data (CP 2019), sections 5 to 8: direct sizes (M_H) or cumulative ones
(M_c), and in each the exact nearest whole numbers (dp) or the nearest real numbers, rounded (r), which then may neither
add up nor keep the total. A third way is not in the paper (r+dp): the nearest real numbers, then whole numbers that
keep every sum, including those of regions with a known number of groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np
from numpy.typing import NDArray

from treetop._util.kernel import kernel
from treetop._util.system import in_runs
from treetop.noise import Key, Keystream
from treetop.repair import Tree, isotonic, project_tree, relax_cumulative, relax_tree
from treetop.repair._cumulative import relax_direct, sum_offset
from treetop.repair.state import mix

# Whole numbers for the parts of regions, with two sums each: over the parts size by size, and over the sizes.

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

PARTS = 1 << 24
"""Fixed-point unit of costs: 4096ths of targets, each with as many random parts that break ties."""
_COARSE = 4096
MOST_FAMILY_STEPS = cast(int, np.int64(60))  # a plain 60 would be a type of its own to Numba
"""Maximum number of steps towards the dual prices of the real solution."""
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FAR = 1 << 62


@kernel
def divide_families(
    child: Ints, real: Reals, number: Ints, first: int, last: int, words: NDArray[np.uint64], out: Ints
) -> None:
    """Write the counts of the children of regions first … last − 1; the regions' own counts are already in `out`.

    `real` holds targets by region (row) and size (column), `number` each region's total; negative means free.
    """
    for v in range(first, last):
        start, stop = child[v], child[v + 1]
        if stop - start == 1:
            out[start] = out[v]
        elif stop > start and number[start] < 0:
            for s in range(real.shape[1]):
                round_row(real[start:stop, s], out[v, s], words[v] + np.uint64(s), out[start:stop, s])
        elif stop > start:
            _divide(real[start:stop], number[start:stop], out[v], words[v], out[start:stop])


@kernel
def round_row(real: Reals, number: int, word: np.uint64, out: Ints) -> None:
    """Write the whole numbers nearest to one row of targets that have this sum."""
    fine = np.empty(len(real), np.int64)
    for s in range(len(real)):
        fine[s] = _fine(real[s], word, s)
    settle_line(fine, np.zeros(len(real), np.int64), number, out)


@kernel
def _divide(real: Reals, number: Ints, sums: Ints, word: np.uint64, out: Ints) -> None:
    """Write the counts of one family; a size that its region does not have is zero in all parts."""
    parts, sizes = real.shape
    there = np.flatnonzero(sums)
    out[:] = 0
    by_size = parts <= len(there)  # then sizes are the lines
    nodes, lines = (parts, len(there)) if by_size else (len(there), parts)
    if nodes == 0:
        return
    fine = np.empty((lines, nodes), np.int64)
    for k in range(len(there)):
        for i in range(parts):
            value = _fine(real[i, there[k]], word, i * sizes + there[k])
            if by_size:
                fine[k, i] = value
            else:
                fine[i, k] = value
    whole = np.zeros((lines, nodes), np.int64)
    if by_size:
        nearest_block(fine, sums[there], number, MOST_FAMILY_STEPS, whole)
    else:
        nearest_block(fine, number, sums[there], MOST_FAMILY_STEPS, whole)
    for k in range(len(there)):
        for i in range(parts):
            out[i, there[k]] = whole[k, i] if by_size else whole[i, k]


@kernel
def _fine(real: float, word: np.uint64, at: int) -> int:
    """Return a target in units of 1/`PARTS`, with random low bits."""
    drawn = np.int64(mix(word + GOLDEN * np.uint64(at + 1)) & np.uint64(PARTS // _COARSE - 1))
    return int(np.int64(np.rint(real * _COARSE)) * (PARTS // _COARSE) + drawn)


@kernel
def nearest_block(fine: Ints, of_lines: Ints, of_nodes: Ints, steps: int, out: Ints) -> tuple[Ints, Ints]:
    """Write the whole numbers nearest to targets with these sums of lines (rows) and nodes; return the prices."""
    if of_lines.sum() != of_nodes.sum() or of_lines.min() < 0 or of_nodes.min() < 0:
        raise ValueError("the two sums of a family do not agree")
    lines, nodes = fine.shape
    node_price = _node_prices(fine, of_lines, of_nodes, steps)
    line_price = np.empty(lines, np.int64)
    lacking = of_nodes.copy()
    for s in range(lines):
        line_price[s] = settle_line(fine[s], node_price, of_lines[s], out[s])
        for i in range(nodes):
            lacking[i] -= out[s, i]
    _balance(fine, lacking, node_price, line_price, out)
    return line_price, node_price


@kernel
def settle_line(fine: Ints, prices: Ints, count: int, out: Ints) -> int:
    """Write the whole numbers of one line that are best for its sum, given the prices of nodes; return its own."""
    real = fine / PARTS + prices / (2.0 * PARTS)
    offset = sum_offset(real, float(count))
    left = count
    for i in range(len(fine)):
        out[i] = np.int64(max(np.floor(real[i] + offset), 0.0))
        left -= out[i]
    while True:
        cheapest, dearest, least, most = -1, -1, np.int64(_FAR), np.int64(-_FAR)
        for i in range(len(fine)):
            add = 2 * (out[i] * PARTS - fine[i]) + PARTS - prices[i]
            if add < least:
                cheapest, least = i, add
            if out[i] > 0 and add - 2 * PARTS > most:
                dearest, most = i, add - 2 * PARTS
        if left > 0:
            out[cheapest] += 1
            left -= 1
        elif left < 0:
            out[dearest] -= 1
            left += 1
        elif most > least:
            out[cheapest] += 1
            out[dearest] -= 1
        else:
            return int(least)


@kernel
def _node_prices(fine: Ints, of_lines: Ints, of_nodes: Ints, steps: int) -> Ints:
    """Return about the prices of nodes with which the nearest real numbers have their sums."""
    lines, nodes = fine.shape
    a, before, after = np.zeros(nodes), np.zeros(nodes), np.zeros(nodes)
    total, curved, real = np.empty(nodes), np.empty(nodes), np.empty(nodes)
    momentum = 1.0
    for _ in range(steps):
        total[:] = 0.0
        curved[:] = 0.0
        for s in range(lines):
            for i in range(nodes):
                real[i] = fine[s, i] / PARTS + a[i]
            offset = sum_offset(real, float(of_lines[s]))
            above = 0
            for i in range(nodes):
                above += real[i] + offset > 0.0
            for i in range(nodes):
                if real[i] + offset > 0.0:
                    total[i] += real[i] + offset
                    curved[i] += 1.0 - 1.0 / above
        worst, turned = 0.0, 0.0
        for i in range(nodes):
            residual = of_nodes[i] - total[i]
            worst = max(worst, abs(residual))
            after[i] = a[i] + 0.5 * residual / max(curved[i], 0.5)
            turned += residual * (after[i] - before[i])
        if worst <= 0.25:
            break
        if turned < 0.0:
            momentum = 1.0
        following = 0.5 + 0.5 * np.sqrt(1.0 + 4.0 * momentum * momentum)
        for i in range(nodes):
            a[i] = after[i] + (momentum - 1.0) / following * (after[i] - before[i])
            before[i] = after[i]
        momentum = following
    prices = np.empty(nodes, np.int64)
    for i in range(nodes):
        prices[i] = np.int64(np.rint(2.0 * PARTS * a[i]))
    return prices


@kernel
def _balance(fine: Ints, lacking: Ints, node_price: Ints, line_price: Ints, out: Ints) -> None:
    """Move units along shortest paths until no node lacks any; prices follow, so that every count stays best."""
    lines, nodes = fine.shape
    to_line, to_node = np.empty(lines, np.int64), np.empty(nodes, np.int64)
    from_node, from_line = np.empty(lines, np.int64), np.empty(nodes, np.int64)
    line_done, node_done = np.empty(lines, np.bool_), np.empty(nodes, np.bool_)
    while True:
        source = np.argmax(lacking)
        if lacking[source] <= 0:
            return
        to_line[:] = _FAR
        to_node[:] = _FAR
        line_done[:] = False
        node_done[:] = False
        to_node[source] = 0
        while True:
            u, s, least = -1, -1, np.int64(_FAR)
            for i in range(nodes):
                if not node_done[i] and to_node[i] < least:
                    u, least = i, to_node[i]
            for k in range(lines):
                if not line_done[k] and to_line[k] < least:
                    s, least = k, to_line[k]
            if s >= 0:
                line_done[s] = True
                for i in range(nodes):
                    if not node_done[i] and out[s, i] > 0:
                        cost = PARTS - 2 * (out[s, i] * PARTS - fine[s, i]) + node_price[i] + line_price[s]
                        if least + cost < to_node[i]:
                            to_node[i], from_line[i] = least + cost, s
                continue
            if lacking[u] < 0:
                break
            node_done[u] = True
            for k in range(lines):
                if not line_done[k]:
                    cost = 2 * (out[k, u] * PARTS - fine[k, u]) + PARTS - node_price[u] - line_price[k]
                    if least + cost < to_line[k]:
                        to_line[k], from_node[k] = least + cost, u
        for i in range(nodes):
            if node_done[i]:
                node_price[i] += least - to_node[i]
        for k in range(lines):
            if line_done[k]:
                line_price[k] -= least - to_line[k]
        lacking[source] -= 1
        lacking[u] += 1
        while u != source:
            s = from_line[u]
            out[s, u] -= 1
            u = from_node[s]
            out[s, u] += 1


@kernel
def best_by_prices(fine: Ints, whole: Ints, line_price: Ints, node_price: Ints) -> bool:
    """Whether every count is best by itself with these prices: the proof that no others are nearer."""
    lines, nodes = fine.shape
    for s in range(lines):
        for i in range(nodes):
            add = 2 * (whole[s, i] * PARTS - fine[s, i]) + PARTS
            price = line_price[s] + node_price[i]
            if whole[s, i] < 0 or add < price or (whole[s, i] > 0 and add - 2 * PARTS > price):
                return False
    return True


Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_STEPS = 300
"""Maximum number of steps towards the nearest real numbers; the remaining error is far below the noise."""
NEAR = 0.02
"""Tolerance, in standard deviations of the noise."""


@dataclass(frozen=True)
class KnownTotals:
    """Public knowledge about the number of groups."""

    total: int
    high: Integers
    """Upper bound of the number of groups, by node."""
    ends: NDArray[np.bool_]
    """Whether that bound is the exact number of groups, by node."""
    spread: float = 1.0
    """Least standard deviation of the noise."""

    @property
    def numbers(self) -> Integers | int:
        """The number of groups of every node, if all are known; otherwise of all together."""
        return self.high if self.ends.all() else self.total

    @property
    def tolerance(self) -> float:
        """Tolerance of the relaxation: far below the noise, or below the resolution of rounding."""
        return max(0.02, NEAR * self.spread)


def repair_direct(tree: Tree, y: Integers, weights: Integers, known: KnownTotals, key: Key, threads: int) -> Integers:
    """Return the nearest group sizes, by nodes and sizes, that are whole, add up and have the total."""
    return project_tree(tree, y.T, weights, known.total, key=key, threads=threads).T


def round_direct(tree: Tree, y: Integers, weights: Integers, known: KnownTotals, key: Key, threads: int) -> Integers:
    """Return the nearest real group sizes that add up, each rounded."""
    return _rounded(relax_tree(tree, y.T, weights, known.total, threads).T)


def repair_cumulative(
    tree: Tree, y: Integers, weights: Integers, known: KnownTotals, key: Key, threads: int
) -> Integers:
    """Make each node's cumulative sizes rise from 0 to its number of groups, and then their differences add up.

    Not the nearest to the measurements, since the two steps are apart, but exact in each.
    """
    rising = np.empty_like(y)
    # Where the number of groups is known, it is the last; the others are repaired without the noise of that.
    rising[known.ends, :-1] = isotonic(y[known.ends, :-1], known.high[known.ends])
    rising[known.ends, -1] = known.high[known.ends]
    if not known.ends.all():
        rising[~known.ends] = isotonic(y[~known.ends], known.high[~known.ends])
    return repair_direct(tree, np.diff(rising, axis=1, prepend=0), weights, known, key, threads)


def round_cumulative(
    tree: Tree, y: Integers, weights: Integers, known: KnownTotals, key: Key, threads: int
) -> Integers:
    """Return the differences of the nearest real cumulative sizes that add up and do not decrease, each rounded."""
    return _rounded(_real_cumulative(tree, y, weights, known, threads))


def join_cumulative(tree: Tree, y: Integers, weights: Integers, known: KnownTotals, key: Key, threads: int) -> Integers:
    """Return whole numbers nearest to the differences of the nearest real cumulative sizes, family by family."""
    return whole_families(tree, _real_cumulative(tree, y, weights, known, threads), known, key, threads)


def join_direct(tree: Tree, y: Integers, weights: Integers, known: KnownTotals, key: Key, threads: int) -> Integers:
    """Return whole numbers nearest to the nearest real sizes, family by family."""
    real = relax_direct(tree, y, known.numbers, weights, MOST_STEPS, known.tolerance, threads)
    return whole_families(tree, real, known, key, threads)


def _real_cumulative(tree: Tree, y: Integers, weights: Integers, known: KnownTotals, threads: int) -> Floats:
    found = relax_cumulative(tree, y, known.numbers, weights, MOST_STEPS, known.tolerance, threads)
    return np.diff(found, axis=1, prepend=0.0)


def whole_families(tree: Tree, real: Floats, known: KnownTotals, key: Key, threads: int) -> Integers:
    """Return whole numbers near to real ones, from the root down: of each node's children at once, the nearest.

    They are not negative, sum to the node's size by size, and each child's sum to its number of groups. Where those
    are not known they are the nearest whole numbers to the real sums, found in the same way first.
    """
    words = np.empty(2 * tree.nodes, np.uint64)
    Keystream(key.derive("ties")).fill(words, 0)
    numbers = known.numbers
    if not isinstance(numbers, np.ndarray):
        sums = np.zeros((tree.nodes, 1), np.int64)
        sums[0] = known.total
        _divide_all(tree, real.sum(axis=1, keepdims=True), None, words[tree.nodes :], sums, threads)
        numbers = sums[:, 0]
    whole = np.zeros(real.shape, np.int64)
    round_row(real[0], int(numbers[0]), words[0], whole[0])
    _divide_all(tree, real, numbers, words[: tree.nodes], whole, threads)
    return whole


def _divide_all(
    tree: Tree, real: Floats, numbers: Integers | None, words: NDArray[np.uint64], out: Integers, threads: int
) -> None:
    """Fill in the counts of all nodes below the root, level by level."""
    free = np.full(tree.nodes, -1, np.int64) if numbers is None else numbers
    for level in tree.levels[:-1]:
        divide = partial(_divide_run, level.start, tree.child, real, free, words, out)
        in_runs(threads, level.stop - level.start, divide)


def _divide_run(
    start: int, child: Integers, real: Floats, numbers: Integers, words: NDArray[np.uint64], out: Integers, own: slice
) -> None:
    divide_families(child, real, numbers, start + own.start, start + own.stop, words, out)


def _rounded(x: NDArray[np.float64]) -> Integers:
    return np.floor(x + 0.5).astype(np.int64)
